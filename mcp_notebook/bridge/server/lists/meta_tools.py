"""The bridge's own tools.

`READER` reads the rest of shortened results. It is listed whenever a notebook offers a tool, even
before a result was shortened: most clients list the tools once, before their first call, and hardly
any lets its model read resources. The others are for clients that ignore ``list_changed``: they
list, describe and call the notebooks' tools. With ``--meta-tools=only``, clients get no other
tools, and `SEARCH` takes the place of `LIST`: hundreds of tools then cost a model no more than
five. It does not find prompts, which people choose, or resources, which have lists of their own.
`RUN` runs a notebook of a folder whose tools are not known otherwise; it is listed if there is one,
or found by `SEARCH`.

Runs on the bridge's event loop; no I/O. The arguments of these tools are checked here; the kernel
checks those of the called tool. The server runs that call, so progress, cancellation, results and
errors are the same as in a direct call. With ``--keep``, a long call is answered with a handle, and
`RESULT` waits for its result.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import structs

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.lists.tool_search import ToolSearch
from mcp_notebook.bridge.server.protocol.detached_arguments import split_arguments
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
"""Notebooks that the answer to a search in vain names."""
MAX_RUNNABLE = 50
"""Notebooks that the description of `RUN` names."""
MAX_RUNNABLE_TEXT = 160
"""Characters of what it says of each."""
MAX_NAME = 80
"""Maximum length of a wrong name that a message repeats."""
MAX_PROBLEMS = 20
"""Maximum number of wrong arguments that a message lists."""


# -- schemas ---------------------------------------------------------------------------------------


def _make_input_schema(required: Sequence[str] = (), **parameters: dict[str, Any]) -> Schema:
    schema: Schema = {"additionalProperties": False, "properties": parameters}
    return schema | ({"required": [*required]} if required else {}) | {"type": "object"}


def _make_output_schema(**members: dict[str, Any]) -> Schema:
    return {"properties": members, "required": [*members], "type": "object"}


def _describe(kind: str, description: str) -> Schema:
    return {"description": description, "type": kind}


_ANY_OBJECT = {"additionalProperties": True}
_TOOL_NAME = _describe("string", "The tool's name, as listed.")
_LISTED_NAME = _describe("string", "The name to call it by.")
_NOTEBOOK = _describe("string", "The notebook that it belongs to.")
_LISTED_TOOL = {
    "description": "One of the notebooks' tools.",
    **_make_output_schema(
        name=_LISTED_NAME,
        notebook=_NOTEBOOK,
        description=_describe("string", "The first line of its description."),
    ),
}

# -- the tools -------------------------------------------------------------------------------------

_READS = {"readOnlyHint": True, "openWorldHint": False}

TOOLS = (
    messages.ToolInfo(
        name=LIST,
        title="List the notebooks' tools",
        description="List the tools that the user's live Jupyter notebooks offer right now, each "
        "with its notebook and the first line of its description. Your own list of tools may be "
        f"outdated. Then use `{DESCRIBE}` to see a tool's arguments, and `{CALL}` to call it.",
        input_schema=_make_input_schema(),
        output_schema={
            "$defs": {"NotebookTool": _LISTED_TOOL},
            **_make_output_schema(
                tools={"items": {"$ref": "#/$defs/NotebookTool"}, "type": "array"}
            ),
        },
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=DESCRIBE,
        title="Describe a notebook's tool",
        description="Show a notebook tool's full description and the JSON Schema of its "
        f"arguments, as they are right now. Use this before `{CALL}`.",
        input_schema=_make_input_schema(["name"], name=_TOOL_NAME),
        output_schema=_make_output_schema(
            name=_LISTED_NAME,
            notebook=_NOTEBOOK,
            description=_describe("string", "Its full description."),
            inputSchema=_ANY_OBJECT | _describe("object", "The JSON Schema of its arguments."),
        ),
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=CALL,
        title="Call a notebook's tool",
        description="Call a tool of the user's live Jupyter notebooks by its name, even if it is "
        f"not in your own list of tools. `{DESCRIBE}` shows a tool's "
        "arguments. The result is that of the tool. Some long calls return a handle for "
        f"`{RESULT}` instead.",
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
    messages.ToolInfo(
        name=RESULT,
        title="Get the result of a call",
        description=f"Get the result of a call for which `{CALL}` returned a handle. This waits "
        f"for up to {RESULT_WAIT:.0f} s: if the call is still running then, the answer reports its "
        "progress, and you can wait again. The result is that of the tool.",
        input_schema=_make_input_schema(
            ["handle"],
            handle=_describe("string", f"The call's handle, as returned by `{CALL}`."),
        ),
        annotations=_READS,
    ),
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
NAMES = frozenset(tool.name for tool in (_SEARCH, *TOOLS))
READER = messages.ToolInfo(
    name=READ_RESOURCE,
    title="Read the rest of a result",
    description="Read the rest of a shortened result in pages, by the address (notebook://...) "
    "that it gives. In a table (CSV), line 1 has the column names, and line n+1 has row n.",
    input_schema=_make_input_schema(
        ["uri"],
        uri={"type": "string"},
        first_line={"default": 1, "minimum": 1, "type": "integer"},
        lines={"default": MAX_LINES, "minimum": 1, "type": "integer"},
        first_character={
            "default": 1,
            "description": "To continue within a long line.",
            "minimum": 1,
            "type": "integer",
        },
        columns={
            "description": "Names of the columns of a table to read; all by default.",
            "items": {"type": "string"},
            "type": "array",
        },
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
INPUT_SCHEMAS = {tool.name: tool.input_schema for tool in (_SEARCH, *TOOLS, READER, _RUN)}


@dataclass(frozen=True)
class RequestedCall:
    """A call to a notebook's tool that the client requested through `CALL`."""

    entry: CatalogEntry
    arguments: dict[str, Any] | bytes


@dataclass(frozen=True)
class RequestedResult:
    """The result of a call that outlives its client, requested through `RESULT`."""

    handle: str


@dataclass(frozen=True)
class RequestedPage:
    """A part of a resource, requested through `READER`."""

    uri: str
    first_line: int
    """From 1, like `first_character`."""
    lines: int
    first_character: int
    columns: Sequence[str] = ()
    """The columns of a table; empty for all."""


@dataclass(frozen=True)
class RequestedRun:
    """A run of a notebook, requested through `RUN`."""

    entry: CatalogEntry


def describe_run(notebooks: Sequence[CatalogEntry]) -> messages.ToolInfo:
    """Return `RUN` with the notebooks that it can run."""
    lines = [
        _shorten(f"- {each.name}: {each.tool.description}".rstrip(": "), MAX_RUNNABLE_TEXT)
        for each in notebooks[:MAX_RUNNABLE]
    ]
    if len(notebooks) > MAX_RUNNABLE:
        lines.append(f"- and {len(notebooks) - MAX_RUNNABLE} more: a wrong name lists them.")
    return structs.replace(_RUN, description="\n".join([f"{_RUN.description}\n", *lines]))


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


async def answer(  # noqa: PLR0913 - what the answers need
    name: str,
    arguments: dict[str, Any] | bytes,
    tools: PermittedTools,
    caller: Caller,
    *,
    search: ToolSearch,
    no_tools: str,
) -> Result | RequestedCall | RequestedResult | RequestedPage | RequestedRun:
    """Answer a call to one of these tools, or return what it requests.

    Args:
        name: One of `NAMES`, or that of `READER`.
        arguments: From the client's request; if large, as JSON.
        tools: The present tools.
        caller: Who asks.
        search: Searches them.
        no_tools: The text in place of an empty list.

    Raises:
        InvalidArguments: The arguments do not fit this tool.
        UnknownTool: No notebook offers the tool that the arguments name.
        AmbiguousTool: Several notebooks offer a tool of that name.
    """
    large: bytes | None = None
    if isinstance(arguments, bytes):
        arguments, large = await split_arguments(arguments)
    values = _validate(name, arguments)
    if name == READ_RESOURCE:
        return RequestedPage(**values)
    if name == RESULT:
        return RequestedResult(values["handle"])
    if name == LIST:
        return _list_tools(tools.list_entries(caller), no_tools)
    if name == SEARCH:
        entries = (*tools.list_entries(caller), *tools.list_entries(caller, "notebook"))
        return _show_found(search.rank(caller, values["query"]), entries, values, no_tools)
    return _answer_about_one(name, values, large, tools, caller)


def _answer_about_one(
    name: str,
    values: dict[str, Any],
    large: bytes | None,
    tools: PermittedTools,
    caller: Caller,
) -> Result | RequestedCall | RequestedRun:
    """Answer `DESCRIBE`, `CALL` or `RUN`, of which the first two may be about the last."""
    if name == RUN:
        return _find_run(values["name"], tools, caller)
    try:
        entry = tools.find(caller, values["name"])
    except UnknownTool:
        if values["name"] != RUN:
            raise
        if name == DESCRIBE:
            return _describe_tool(RUN, None, describe_run(tools.list_entries(caller, "notebook")))
        return _find_run(_validate(RUN, values.get("arguments", {}))["name"], tools, caller)
    if name == DESCRIBE:
        return _describe_tool(entry.name, entry.notebook, entry.tool)
    return RequestedCall(entry, values.get("arguments", {}) if large is None else large)


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


def _list_tools(entries: Sequence[CatalogEntry], no_tools: str) -> Result:
    listed = [
        {
            "name": entry.name,
            "notebook": entry.notebook,
            "description": _shorten_description(entry.tool),
        }
        for entry in entries
    ]
    lines = [
        f"- {tool['name']} (notebook {tool['notebook']})"
        + (f": {tool['description']}" if tool["description"] else "")
        for tool in listed
    ]
    return Result([Text("\n".join(lines) or no_tools)], structured={"tools": listed})


def _show_found(
    found: Sequence[CatalogEntry],
    entries: Sequence[CatalogEntry],
    values: dict[str, Any],
    no_tools: str,
) -> Result:
    """Return the tools that a search has found, as one text: structure would only repeat it."""
    if not entries:
        return Result([Text(no_tools)])
    shown = found[: values["limit"]]
    parts = [_show_one(entry) for entry in shown]
    if not found:
        parts = [f"No tool fits {_shorten_name(values['query'])}. Try other words for it."]
    if not found or not values["query"].strip():
        parts.append(_count_tools(entries))
    elif len(found) > len(shown):
        parts.append(f"{len(found) - len(shown)} more tools fit less well.")
    return Result([Text("\n\n".join(parts))])


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
    description = _shorten(tool.description.strip(), MAX_FOUND_DESCRIPTION)
    if tool.kind == "notebook":
        step = f'Run it first: call `{RUN}` with {{"name": "{entry.name}"}}.'
        return "\n".join([f"{entry.name} (a notebook that has to run)", description, step])
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
    structured = {
        "name": name,
        "notebook": notebook or "",
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }
    schema = json.dumps(tool.input_schema, ensure_ascii=False, indent=2)
    parts = [
        name if notebook is None else f"{name} (notebook {notebook})",
        tool.description.strip(),
        f"JSON Schema of its arguments:\n{schema}",
    ]
    return Result([Text("\n\n".join(filter(None, parts)))], structured=structured)


def _shorten_description(tool: messages.ToolInfo) -> str:
    line = next(iter(tool.description.strip().splitlines()), "").strip()
    return _shorten(line, MAX_LINE)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# -- wrong arguments -------------------------------------------------------------------------------


_EXPECTED = {
    "name": "the tool's name as text, as listed",
    "handle": f"the call's handle as text, as returned by `{CALL}`",
    "uri": "the address as text, as the result gives it: notebook://...",
    "query": "words as text that say what the tool should do",
    "limit": f"a whole number from 1 to {MAX_FOUND}",
    "first_line": "a whole number, at least 1",
    "lines": "a whole number, at least 1",
    "first_character": "a whole number, at least 1",
    "columns": "an array of names of columns, as texts",
    "arguments": f"an object of the tool's own arguments, as `{DESCRIBE}` shows them",
}
_KINDS: dict[type, str] = {
    str: "text",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
    float: "a fraction",
}


_TYPES = {"string": str, "integer": int, "object": dict, "array": list}


def _validate(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of one of these tools, with the defaults.

    Raises:
        InvalidArguments: They do not fit its input schema.
    """
    schema = INPUT_SCHEMAS[name]
    parameters, required = schema["properties"], schema.get("required", ())
    found = [
        _find_problem(parameter, each, arguments)
        for parameter, each in parameters.items()
        if parameter in arguments or parameter in required
    ]
    problems = [problem for problem in found if problem is not None]
    problems += [
        _describe_unknown(parameter, name) for parameter in arguments if parameter not in parameters
    ]
    if problems:
        raise InvalidArguments("\n".join(f"{name}: {text}" for text in problems[:MAX_PROBLEMS]))
    defaults = {key: each["default"] for key, each in parameters.items() if "default" in each}
    return defaults | arguments


def _find_problem(parameter: str, schema: Schema, arguments: dict[str, Any]) -> str | None:
    """Return a sentence about a wrong argument, or None."""
    expected = _EXPECTED[parameter]
    if parameter not in arguments:
        return f"{parameter!r} is missing: give {expected}."
    value = arguments[parameter]
    if type(value) is not _TYPES[schema["type"]]:
        return f"{parameter!r} must be {expected}, not {_name_kind(value)}."
    if isinstance(value, list) and any(type(item) is not str for item in value):
        return f"{parameter!r} must be {expected}."
    if "minimum" in schema and not schema["minimum"] <= value <= schema.get("maximum", value):
        return f"{parameter!r} must be {expected}."
    return None


def _describe_unknown(parameter: str, name: str) -> str:
    names = ", ".join(map(repr, INPUT_SCHEMAS[name]["properties"]))
    step = " The tool's own arguments go into 'arguments'." if name == CALL else ""
    has = f"it has {names}" if names else "it has none"
    return f"there is no parameter {_shorten_name(parameter)}; {has}.{step}"


def _shorten_name(name: object) -> str:
    text = repr(name)
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 3]}..."


def _name_kind(value: object) -> str:
    """Return the kind of a value, which messages name in place of the value: it may be secret."""
    return "null" if value is None else _KINDS.get(type(value), "a number")
