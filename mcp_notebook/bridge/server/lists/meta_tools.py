"""The bridge's own tools.

`READER` reads the rest of shortened results. It is listed whenever a notebook offers a tool, even
before a result was shortened: most clients list the tools once, before their first call, and hardly
any lets its model read resources. The others are for clients that ignore ``list_changed``: they
list, describe and call the notebooks' tools.

Runs on the bridge's event loop; no I/O. The arguments of these tools are checked here; the kernel
checks those of the called tool. The server runs that call, so progress, cancellation, results and
errors are the same as in a direct call. With ``--keep``, a long call is answered with a handle, and
`RESULT` waits for its result.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, ErrorDetails

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.protocol.detached_arguments import split_arguments
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.text.missing_tools import META_TOOLS, READ_RESOURCE
from mcp_notebook.wire import messages

LIST, DESCRIBE, CALL, RESULT = META_TOOLS

ABOUT = (
    "If a tool that you need is not in your list of tools, or its arguments are rejected as "
    f"unknown, your list may be outdated: `{LIST}` shows the tools as they are now, `{DESCRIBE}` "
    f"the arguments of one, and `{CALL}` calls it."
)
"""Added to the server's instructions."""
RESULT_WAIT = 45.0
"""Seconds that `RESULT` waits for a call: many clients wait for a minute at most."""
MAX_LINES = 10_000
"""Maximum number of lines on a page; `resources` also limits its characters."""
MAX_LINE = 200
"""Maximum length of a description's first line in the list."""
MAX_NAME = 80
"""Maximum length of a wrong name that a message repeats."""
MAX_PROBLEMS = 20
"""Maximum number of wrong arguments that a message lists."""


# -- arguments and structured answers --------------------------------------------------------------


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


_A = TypeVar("_A", bound=_Arguments)


class _ListArguments(_Arguments):
    pass


class _DescribeArguments(_Arguments):
    name: str = Field(description=f"The tool's name, as `{LIST}` shows it.")


class _CallArguments(_DescribeArguments):
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description=f"The tool's own arguments by name, as `{DESCRIBE}` shows them: "
        '{"year": 2015}. Omit them to call it without arguments.',
    )


class _ResultArguments(_Arguments):
    handle: str = Field(description=f"The call's handle, as returned by `{CALL}`.")


class _ReadArguments(_Arguments):
    uri: str
    first_line: int = Field(default=1, ge=1)
    lines: int = Field(default=MAX_LINES, ge=1)
    first_character: int = Field(default=1, ge=1, description="To continue within a long line.")


class NotebookTool(BaseModel):
    """One of the notebooks' tools."""  # clients see this, and the name of the class

    name: str = Field(description="The name to call it by.")
    notebook: str = Field(description="The notebook that it belongs to.")
    description: str = Field(description="The first line of its description.")


class _Listing(BaseModel):
    tools: list[NotebookTool]


class _Description(BaseModel):
    name: str = Field(description="The name to call it by.")
    notebook: str = Field(description="The notebook that it belongs to.")
    description: str = Field(description="Its full description.")
    input_schema: dict[str, Any] = Field(
        alias="inputSchema", description="The JSON Schema of its arguments."
    )


class _WithoutTitles(GenerateJsonSchema):
    """JSON Schema without titles that repeat names, and without our class names."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's hook
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> dict[str, Any]:
        json_schema = super().generate(schema, mode)
        for part in (json_schema, *json_schema.get("$defs", {}).values()):
            part.pop("title", None)
        return json_schema


def _make_schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(schema_generator=_WithoutTitles)


# -- the tools -------------------------------------------------------------------------------------

_READS = {"readOnlyHint": True, "openWorldHint": False}

TOOLS = (
    messages.ToolInfo(
        name=LIST,
        title="List the notebooks' tools",
        description="List the tools that the user's live Jupyter notebooks offer right now, each "
        "with its notebook and the first line of its description. Your own list of tools may be "
        f"outdated. Then use `{DESCRIBE}` to see a tool's arguments, and `{CALL}` to call it.",
        input_schema=_make_schema(_ListArguments),
        output_schema=_make_schema(_Listing),
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=DESCRIBE,
        title="Describe a notebook's tool",
        description="Show a notebook tool's full description and the JSON Schema of its "
        f"arguments, as they are right now. Use this before `{CALL}`.",
        input_schema=_make_schema(_DescribeArguments),
        output_schema=_make_schema(_Description),
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=CALL,
        title="Call a notebook's tool",
        description="Call a tool of the user's live Jupyter notebooks by its name, even if it is "
        f"not in your own list of tools. `{LIST}` shows the tools, `{DESCRIBE}` a tool's "
        "arguments. The result is that of the tool. Some long calls return a handle for "
        f"`{RESULT}` instead.",
        input_schema=_make_schema(_CallArguments),
        # The worst case: the actual effects depend on the tool.
        annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    ),
    messages.ToolInfo(
        name=RESULT,
        title="Get the result of a call",
        description=f"Get the result of a call for which `{CALL}` returned a handle. This waits "
        f"for up to {RESULT_WAIT:.0f} s: if the call is still running then, the answer reports its "
        "progress, and you can wait again. The result is that of the tool.",
        input_schema=_make_schema(_ResultArguments),
        annotations=_READS,
    ),
)
"""These tools, in the order in which they are listed."""
NAMES = frozenset(tool.name for tool in TOOLS)
READER = messages.ToolInfo(
    name=READ_RESOURCE,
    title="Read the rest of a result",
    description="Read the rest of a shortened result in pages, by the address (notebook://...) "
    "that it gives. In a table (CSV), line 1 has the column names, and line n+1 has row n.",
    input_schema=_make_schema(_ReadArguments),
    annotations=_READS,
)
"""The tool that reads resources, for models that cannot."""
INPUT_SCHEMAS = {tool.name: tool.input_schema for tool in (*TOOLS, READER)}


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


async def answer(
    name: str,
    arguments: dict[str, Any] | bytes,
    tools: PermittedTools,
    caller: Caller,
    *,
    no_tools: str,
) -> Result | RequestedCall | RequestedResult | RequestedPage:
    """Answer a call to one of these tools, or return what it requests.

    Args:
        name: One of `NAMES`, or that of `READER`.
        arguments: From the client's request; if large, as JSON.
        tools: The tools as they are now.
        caller: Who asks.
        no_tools: The text in place of an empty list.

    Raises:
        InvalidArguments: The arguments do not fit this tool.
        UnknownTool: No notebook offers the tool that the arguments name.
        AmbiguousTool: Several notebooks offer a tool of that name.
    """
    large: bytes | None = None
    if isinstance(arguments, bytes):
        arguments, large = await split_arguments(arguments)
    if name == READ_RESOURCE:
        return RequestedPage(**_validate(_ReadArguments, name, arguments).model_dump())
    if name == LIST:
        _validate(_ListArguments, name, arguments)
        return _list_tools(tools.list_entries(caller), no_tools)
    if name == DESCRIBE:
        tool = _validate(_DescribeArguments, name, arguments).name
        return _describe_tool(tools.find(caller, tool))
    if name == RESULT:
        return RequestedResult(_validate(_ResultArguments, name, arguments).handle)
    request = _validate(_CallArguments, name, arguments)
    entry = tools.find(caller, request.name)
    return RequestedCall(entry, request.arguments if large is None else large)


def _list_tools(entries: Sequence[CatalogEntry], no_tools: str) -> Result:
    tools = [
        NotebookTool(
            name=entry.name, notebook=entry.notebook, description=_shorten_description(entry.tool)
        )
        for entry in entries
    ]
    lines = [
        f"- {tool.name} (notebook {tool.notebook})"
        + (f": {tool.description}" if tool.description else "")
        for tool in tools
    ]
    return Result([Text("\n".join(lines) or no_tools)], structured=_dump(_Listing(tools=tools)))


def _describe_tool(entry: CatalogEntry) -> Result:
    tool = entry.tool
    description = _Description(
        name=entry.name,
        notebook=entry.notebook,
        description=tool.description,
        inputSchema=tool.input_schema,
    )
    schema = json.dumps(tool.input_schema, ensure_ascii=False, indent=2)
    parts = [
        f"{entry.name} (notebook {entry.notebook})",
        tool.description.strip(),
        f"JSON Schema of its arguments:\n{schema}",
    ]
    return Result([Text("\n\n".join(filter(None, parts)))], structured=_dump(description))


def _shorten_description(tool: messages.ToolInfo) -> str:
    line = next(iter(tool.description.strip().splitlines()), "").strip()
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True)


# -- wrong arguments -------------------------------------------------------------------------------


_EXPECTED = {
    "name": f"the tool's name as text, as `{LIST}` shows it",
    "handle": f"the call's handle as text, as returned by `{CALL}`",
    "uri": "the address as text, as the result gives it: notebook://...",
    "first_line": "a whole number, at least 1",
    "lines": "a whole number, at least 1",
    "first_character": "a whole number, at least 1",
    "arguments": f"an object of the tool's own arguments, as `{DESCRIBE}` shows them",
}
_KINDS: dict[type, str] = {
    str: "text",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
    float: "a fraction",
}


def _validate(model: type[_A], name: str, arguments: dict[str, Any]) -> _A:
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False)[:MAX_PROBLEMS]
        sentences = [f"{name}: {_describe_problem(model, problem)}" for problem in problems]
        raise InvalidArguments("\n".join(sentences)) from None


def _describe_problem(model: type[_Arguments], problem: ErrorDetails) -> str:
    """Return a sentence about one wrong argument of these tools."""
    parameter = problem["loc"][0]
    if problem["type"] == "extra_forbidden":
        names = ", ".join(map(repr, model.model_fields))
        step = " The tool's own arguments go into 'arguments'." if model is _CallArguments else ""
        has = f"it has {names}" if names else "it has none"
        return f"there is no parameter {_shorten_name(parameter)}; {has}.{step}"
    expected = _EXPECTED[str(parameter)]
    if problem["type"] == "missing":
        return f"{parameter!r} is missing: give {expected}."
    if problem["type"] == "greater_than_equal":
        return f"{parameter!r} must be {expected}."
    return f"{parameter!r} must be {expected}, not {_name_kind(problem['input'])}."


def _shorten_name(name: object) -> str:
    text = repr(name)
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 3]}..."


def _name_kind(value: object) -> str:
    """Return the kind of a value, which messages name in place of the value: it may be secret."""
    return "null" if value is None else _KINDS.get(type(value), "a number")
