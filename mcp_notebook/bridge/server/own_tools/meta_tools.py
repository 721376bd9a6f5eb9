"""The bridge's own tools.

`READER` reads the rest of shortened results. It is listed whenever a notebook offers a tool, even
before a result was shortened: most clients list the tools once, before their first call. Models
that can read resources need it, too: of a long one, their clients show the beginning or both ends
(Claude Code, Codex, Gemini, Qwen, opencode, 2026-11-29), and only its pages show the middle. Return
annotations do not tell who needs it: any function may print more than a model reads.

The others are for clients that ignore ``list_changed``: they list, describe and call the notebooks'
tools. With ``--meta-tools=only``, clients get no other tools, and `SEARCH` takes the place of
`LIST`: hundreds of tools then cost a model no more than five. It does not find prompts, which
people choose, or resources, which have lists of their own.
`RUN` runs a notebook of a folder whose tools are not known otherwise; it is listed if there is one,
or found by `SEARCH`.

Runs on the bridge's event loop; no I/O. The arguments of these tools are checked here; the kernel
checks those of the called tool. The server runs that call, so progress, cancellation, results and
errors are the same as in a direct call.

A call of a tool with ``--task`` that takes long is answered with a handle if its client cannot
follow tasks, and `RESULT` waits for its result: the one way to a late result without tasks. It is
listed if a notebook offers such a tool, and with the tools that call others.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert, structs

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.own_tools.tool_search import ToolSearch
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import InvalidArguments, ToolGone, UnknownTool
from mcp_notebook.settings.settings import MetaTools
from mcp_notebook.text.missing_tools import (
    META_TOOLS,
    READ_RESOURCE,
    RUN_NOTEBOOK,
    SEARCH_TOOLS,
)
from mcp_notebook.text.wording import count
from mcp_notebook.wire import messages

Schema: TypeAlias = dict[str, Any]
"""A JSON Schema."""
LIST, DESCRIBE, CALL, RESULT = META_TOOLS
SEARCH, RUN = SEARCH_TOOLS, RUN_NOTEBOOK

ABOUT = (
    "If a tool that you need is not in your list of tools, or its arguments are rejected as "
    f"unknown, your list may be outdated: `{LIST}` shows the tools as they are now, `{DESCRIBE}` "
    f"the arguments of one, and `{CALL}` calls it."
)
"""Added to the server's instructions..."""
ABOUT_SEARCH = (
    f"The notebooks' tools are not in your list of tools: find one with `{SEARCH}`, which shows "
    f"its arguments, and call it with `{CALL}`. Search before you say that something cannot be "
    "done."
)
"""...and what is added to them if there is only the search."""
NO_TOOLS = (
    "No notebook offers a tool at the moment. The user can open a Jupyter notebook, run "
    "`%load_ext mcp_notebook`, and put `%%mcp_tool` as the first line of a cell with a function."
)
RESULT_WAIT = 45.0
"""Seconds that `RESULT` waits for a call: many clients wait for a minute at most."""
MAX_LINES = 10_000
"""Maximum number of lines on a page; `resources` also limits its characters."""
MAX_LINE = 200
"""Maximum length of a description's first line in the list."""
DEFAULT_FOUND, MAX_FOUND = 5, 50
"""Number of tools that a search returns, unless its query says so, and at most."""
MAX_FOUND_DESCRIPTION = 600
"""Characters of a found tool's description."""
MAX_FOUND_SCHEMA = 1_500
"""Characters of a found tool's schema; a larger one is left to `DESCRIBE`."""
MAX_NOTEBOOKS = 50
"""Notebooks that the answer to an empty search names."""
MAX_NAMES = 200
"""Other tools that the answer to a search names if it finds fewer than it may."""
MAX_RUNNABLE = 50
"""Notebooks that the description of `RUN` names."""
MAX_RUNNABLE_TEXT = 160
"""Characters of what it says of each."""
MAX_NAME = 80
"""Maximum length of a query that a message repeats."""
MAX_PROBLEM = 200
"""Characters of a message about wrong arguments, which may quote a name."""


# -- schemas ---------------------------------------------------------------------------------------


def _make_input_schema(required: Sequence[str] = (), **parameters: dict[str, Any]) -> Schema:
    schema: Schema = {"additionalProperties": False, "properties": parameters}
    return schema | ({"required": [*required]} if required else {}) | {"type": "object"}


def _describe(kind: str, description: str) -> Schema:
    return {"description": description, "type": kind}


_ANY_OBJECT = {"additionalProperties": True}
_TOOL_NAME = _describe("string", "The tool's name, as listed.")

# -- the tools -------------------------------------------------------------------------------------

_READS = {"readOnlyHint": True, "openWorldHint": False}

RESULTS = messages.ToolInfo(
    name=RESULT,
    title="Get the result of a call",
    description="Get the result of a call that was answered with a handle. This waits "
    f"for up to {RESULT_WAIT:.0f} s: if the call is still running then, the answer reports its "
    "progress, and you can wait again. The result is that of the tool.",
    input_schema=_make_input_schema(
        ["handle"],
        handle=_describe("string", "The call's handle, as its answer gives it."),
    ),
    annotations=_READS,
)
"""The tool that waits for late results, for clients that cannot follow tasks."""
TOOLS = (
    messages.ToolInfo(
        name=LIST,
        title="List the notebooks' tools",
        description="List the tools that the user's live Jupyter notebooks offer right now, each "
        "with its notebook and the first line of its description. Your own list of tools may be "
        f"outdated. Then use `{DESCRIBE}` to see a tool's arguments, and `{CALL}` to call it.",
        input_schema=_make_input_schema(),
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=DESCRIBE,
        title="Describe a notebook's tool",
        description="Show a notebook tool's full description and the JSON Schema of its "
        f"arguments, as they are right now. Use this before `{CALL}`.",
        input_schema=_make_input_schema(["name"], name=_TOOL_NAME),
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=CALL,
        title="Call a notebook's tool",
        description="Call a tool of the user's live Jupyter notebooks by its name, even if it is "
        f"not in your own list of tools. `{DESCRIBE}` shows a tool's "
        "arguments. The result is that of the tool.",
        input_schema=_make_input_schema(
            ["name"],
            name=_TOOL_NAME,
            arguments=_ANY_OBJECT
            | _describe(
                "object",
                f"The tool's own arguments by name, as `{DESCRIBE}` shows them: "
                '{"year": 2015}. Omit them to call it without arguments.',
            ),
        ),
        # The worst case: the actual effects depend on the tool.
        annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    ),
    RESULTS,
)
"""The tools that list, describe and call others, in the order in which they are listed."""
_SEARCH = messages.ToolInfo(
    name=SEARCH,
    title="Search the notebooks' tools",
    description="Find tools of the user's Jupyter notebooks by what they do. They are not in your "
    "own list of tools. Returns the best matches, each with its description and arguments. "
    f"Then call one with `{CALL}`. An empty query lists tools and notebooks.",
    input_schema=_make_input_schema(
        ["query"],
        query=_describe("string", "What the tool should do, in a few words: 'overdue invoices'."),
        limit={"default": DEFAULT_FOUND, "minimum": 1, "maximum": MAX_FOUND, "type": "integer"},
    ),
    annotations=_READS,
)
ONLY_TOOLS = (_SEARCH, *TOOLS[1:])
"""The tools that search, describe and call others, if no others are listed."""
READER = messages.ToolInfo(
    name=READ_RESOURCE,
    description="Read a shortened result in pages, by the address that it gives. In a table (CSV), "
    "line n+1 has row n.",
    input_schema=_make_input_schema(
        ["uri"],
        uri={"type": "string"},
        first_line={"default": 1, "type": "integer"},
        lines={"default": MAX_LINES, "type": "integer"},
        first_character={"default": 1, "type": "integer"},
    ),
    annotations=_READS,
)
"""The tool that reads resources, for models that cannot."""
_RUN = messages.ToolInfo(
    name=RUN,
    title="Run a notebook",
    description="Run a notebook whose tools are not known yet, or not any more, so that they can "
    "be called. All its cells run, with the rights of the user, who serves its folder. This waits "
    "until they have run, and returns the tools.",
    input_schema=_make_input_schema(["name"], name=_describe("string", "The notebook's name.")),
    annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
)
_QUOTED = "In quotes is what the files say of themselves, which nobody may have read."
INPUT_SCHEMAS = {tool.name: tool.input_schema for tool in (_SEARCH, *TOOLS, READER, _RUN)}


@dataclass(frozen=True)
class RequestedCall:
    """A call to a notebook's tool that the client requested through `CALL`."""

    entry: CatalogEntry
    arguments: dict[str, Any]


class RequestedResult(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a call that was answered with a handle, requested through `RESULT`."""

    handle: str


class RequestedPage(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a resource, requested through `READER`."""

    uri: str
    first_line: Annotated[int, Meta(ge=1)] = 1
    """From 1, like `first_character`."""
    lines: Annotated[int, Meta(ge=1)] = MAX_LINES
    first_character: Annotated[int, Meta(ge=1)] = 1


@dataclass(frozen=True)
class RequestedRun:
    """A run of a notebook, requested through `RUN`."""

    entry: CatalogEntry


def describe_run(notebooks: Sequence[CatalogEntry]) -> messages.ToolInfo:
    """Return `RUN` with the notebooks that it can run."""
    lines = [
        f"- {each.name}: {_quote(each.tool, MAX_RUNNABLE_TEXT)}".rstrip(": ")
        for each in notebooks[:MAX_RUNNABLE]
    ]
    if len(notebooks) > MAX_RUNNABLE:
        lines.append(f"- and {len(notebooks) - MAX_RUNNABLE} more: a wrong name lists them.")
    about = f"{_RUN.description} {_QUOTED}" if lines else _RUN.description
    return structs.replace(_RUN, description="\n".join([f"{about}\n", *lines]))


def make_run(notebook: CatalogEntry) -> CatalogEntry:
    """Return `RUN` as a tool of the notebook that it runs: what people allow, and logs record."""
    of = notebook.tool
    tool = structs.replace(_RUN, description=of.description, meta=of.meta)
    return CatalogEntry(RUN, notebook.kernel_id, notebook.notebook, tool, RUN)


def list_offered(meta_tools: MetaTools) -> tuple[messages.ToolInfo, ...]:
    """Return the tools of these that a bridge lists with a setting, before those of notebooks."""
    if meta_tools == "only":
        return ONLY_TOOLS
    return TOOLS if meta_tools else ()


def describe_offered(meta_tools: MetaTools) -> str:
    """Return what the server's instructions say of them."""
    if meta_tools == "only":
        return ABOUT_SEARCH
    return ABOUT if meta_tools else ""


def answer(
    name: str,
    arguments: dict[str, Any],
    tools: PermittedTools,
    caller: Caller,
    *,
    search: ToolSearch,
) -> Result | RequestedCall | RequestedResult | RequestedPage | RequestedRun:
    """Answer a call to one of these tools, or return what it requests.

    Args:
        name: The name of one of these tools.
        arguments: From the client's request.
        tools: The present tools.
        caller: Who asks.
        search: Searches them.

    Raises:
        InvalidArguments: The arguments do not fit this tool.
        UnknownTool: No notebook offers the tool that the arguments name.
        AmbiguousTool: Several notebooks offer a tool of that name.
    """
    values = _read_arguments(name, arguments)
    match values:
        case RequestedPage() | RequestedResult():
            return values
        case _NoArguments():
            return _list_tools(tools.list_entries(caller))
        case _Query():
            entries = (*tools.list_entries(caller), *tools.list_entries(caller, "notebook"))
            return _show_found(search.rank(caller, values.query), entries, values)
    return _answer_about_one(name, values, tools, caller)


def _answer_about_one(
    name: str, values: "_Name", tools: PermittedTools, caller: Caller
) -> Result | RequestedCall | RequestedRun:
    """Answer `DESCRIBE`, `CALL` or `RUN`, of which the first two may be about the last."""
    if name == RUN:
        return _find_run(values.name, tools, caller)
    arguments = values.arguments if isinstance(values, _Call) else {}
    try:
        entry = tools.find(caller, values.name)
    except UnknownTool:
        if values.name != RUN:
            raise
        if name == DESCRIBE:
            return _describe_tool(RUN, None, describe_run(tools.list_entries(caller, "notebook")))
        return _find_run(_read_arguments(RUN, arguments).name, tools, caller)
    if name == DESCRIBE:
        return _describe_tool(entry.name, entry.notebook, entry.tool)
    return RequestedCall(entry, arguments)


def _find_run(name: str, tools: PermittedTools, caller: Caller) -> RequestedRun | Result:
    """Return the requested run of a notebook, or the tools of one that has run."""
    try:
        return RequestedRun(tools.find(caller, name, "notebook"))
    except (ToolGone, UnknownTool):
        own = [entry for entry in tools.list_entries(caller) if entry.notebook == name]
        if not own:
            raise
        return describe_running(name, own)


def describe_running(name: str, own: Sequence[CatalogEntry]) -> Result:
    """Return the answer to a run of a notebook.

    Args:
        name: The notebook's name.
        own: Its tools, as far as the caller sees them.
    """
    if not own:
        return Result([Text(f"{name} has run. It has no tool that you may call.")])
    text = f"{name} has run, and {count(len(own), 'tool')} can be called now:"
    shown = [_show_one(each) for each in own[:MAX_FOUND]]
    if len(own) > len(shown):
        shown.append(f"...and {len(own) - len(shown)} more. List the tools again.")
    return Result([Text("\n\n".join([text, *shown]))])


def _list_tools(entries: Sequence[CatalogEntry]) -> Result:
    lines = [
        f"- {entry.name} (notebook {entry.notebook})"
        + (f": {description}" if (description := _shorten_description(entry.tool)) else "")
        for entry in entries
    ]
    return Result([Text("\n".join(lines) or NO_TOOLS)])


def _show_found(
    found: Sequence[CatalogEntry],
    entries: Sequence[CatalogEntry],
    values: "_Query",
) -> Result:
    """Return the tools that a search has found, as one text."""
    if not entries:
        return Result([Text(NO_TOOLS)])
    shown = found[: values.limit]
    parts = [_show_one(entry) for entry in shown]
    if not found:
        parts = [f"No tool fits {_shorten(repr(values.query), MAX_NAME)}."]
    if not values.query.strip():
        parts.append(_count_tools(entries))
    elif len(shown) < min(values.limit, len(entries)):
        parts.append(_name_others(entries, found))
    elif len(found) > len(shown):
        parts.append(f"{len(found) - len(shown)} more tools fit less well.")
    return Result([Text("\n\n".join(parts))])


def _name_others(entries: Sequence[CatalogEntry], found: Sequence[CatalogEntry]) -> str:
    """Return the names of the tools that were not found, which is less than a second search."""
    names = [entry.name for entry in entries if entry not in found]
    more = f", and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    others = "The other" if found else "The"
    return f"{others} tools are: {', '.join(names[:MAX_NAMES])}{more}. `{DESCRIBE}` shows one."


def _count_tools(entries: Sequence[CatalogEntry]) -> str:
    """Return which notebooks have how many tools, and which have to run first."""
    notebooks = Counter(entry.notebook for entry in entries if entry.tool.kind == "tool")
    named = [f"{name} ({number})" for name, number in notebooks.items()]
    unknown = [entry.name for entry in entries if entry.tool.kind == "notebook"]
    texts = []
    if named:
        tools = count(sum(notebooks.values()), "tool")
        are = "is" if tools.startswith("1 ") else "are"
        texts.append(f"There {are} {tools} in these notebooks: {_join(named)}.")
    if unknown:
        texts.append(f"These notebooks have to run first, with `{RUN}`: {_join(unknown)}.")
    return " ".join(texts)


def _join(names: Sequence[str]) -> str:
    return ", ".join([*names[:MAX_NOTEBOOKS], *(["..."] if len(names) > MAX_NOTEBOOKS else [])])


def _show_one(entry: CatalogEntry) -> str:
    tool = entry.tool
    if tool.kind == "notebook":
        description = _quote(tool, MAX_FOUND_DESCRIPTION)
        step = f'Run it first: call `{RUN}` with {{"name": "{entry.name}"}}.'
        lines = [f"{entry.name} (a notebook that has to run)", description, step]
        return "\n".join(filter(None, lines))
    description = _shorten(tool.description.strip(), MAX_FOUND_DESCRIPTION)
    schema = json.dumps(tool.input_schema, ensure_ascii=False, separators=(",", ":"))
    if not tool.input_schema.get("properties"):
        arguments = "It takes no arguments."
    elif len(schema) > MAX_FOUND_SCHEMA:
        arguments = f"Arguments: `{DESCRIBE}` shows them."
    else:
        arguments = f"Arguments: {schema}"
    lines = [f"{entry.name} (notebook {entry.notebook})", description, arguments]
    return "\n".join(filter(None, lines))


def _describe_tool(name: str, notebook: str | None, tool: messages.ToolInfo) -> Result:
    schema = json.dumps(tool.input_schema, ensure_ascii=False, indent=2)
    parts = [
        name if notebook is None else f"{name} (notebook {notebook})",
        tool.description.strip(),
        f"JSON Schema of its arguments:\n{schema}",
    ]
    return Result([Text("\n\n".join(filter(None, parts)))])


def _shorten_description(tool: messages.ToolInfo) -> str:
    line = next(iter(tool.description.strip().splitlines()), "").strip()
    return _shorten(line, MAX_LINE)


def _quote(notebook: messages.ToolInfo, most: int) -> str:
    """Return what the file of a notebook says of it, as data: nobody may have read it yet."""
    text = _shorten(notebook.description.strip(), most)
    return json.dumps(text, ensure_ascii=False) if text else ""


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# -- arguments -------------------------------------------------------------------------------------


class _NoArguments(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class _Name(Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class _Call(_Name, frozen=True, forbid_unknown_fields=True):
    arguments: dict[str, Any] = {}


class _Query(Struct, frozen=True, forbid_unknown_fields=True):
    query: str
    limit: Annotated[int, Meta(ge=1, le=MAX_FOUND)] = DEFAULT_FOUND


_ARGUMENTS: Mapping[str, type[Struct]] = {
    LIST: _NoArguments,
    SEARCH: _Query,
    DESCRIBE: _Name,
    CALL: _Call,
    RUN: _Name,
    RESULT: RequestedResult,
    READ_RESOURCE: RequestedPage,
}


def _read_arguments(name: str, arguments: dict[str, Any]) -> Any:
    """Return the arguments of one of these tools.

    Raises:
        InvalidArguments: They do not fit its input schema.
    """
    try:
        return convert(arguments, _ARGUMENTS[name])
    except ValidationError as error:
        names = ", ".join(map(repr, INPUT_SCHEMAS[name]["properties"])) or "none"
        step = " The tool's own arguments go into 'arguments'." if name == CALL else ""
        problem = _shorten(str(error), MAX_PROBLEM)
        raise InvalidArguments(f"{name}: {problem}. Its arguments: {names}.{step}") from None
