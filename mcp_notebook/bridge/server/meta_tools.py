"""Three fixed tools for clients that ignore ``list_changed``: list, describe and call the others.

Runs in the bridge. Pure: what the three are and what they answer, from the `Catalog`. Their own
arguments are checked here; those of the tool that is called are the kernel's to check, as in any
call. `bridge.server.server` offers them, runs the call that `answer` asks for, and passes on what
it gives, so that progress, cancelling, results and errors are those of a direct call.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, ErrorDetails

from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.wire import messages

LIST = "list_notebook_tools"
DESCRIBE = "describe_notebook_tool"
CALL = "call_notebook_tool"

ABOUT = (
    "If a tool that you need is not in your list of tools, or its arguments are refused as "
    f"unknown, your list may be old: `{LIST}` shows the tools as they are now, `{DESCRIBE}` the "
    f"arguments of one, and `{CALL}` calls it."
)
"""For the instructions that clients read first."""
MAX_LINE = 200
"""Characters of a description's first line in the list."""
MAX_SHOWN = 80
"""Characters of a wrong value that a message repeats."""
MAX_PROBLEMS = 20
"""Wrong arguments that a message tells."""


# -- arguments and structured answers --------------------------------------------------------------


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


_Own = TypeVar("_Own", bound=_Arguments)


class _ListArguments(_Arguments):
    pass


class _DescribeArguments(_Arguments):
    name: str = Field(description=f"The tool's name, as `{LIST}` shows it.")


class _CallArguments(_DescribeArguments):
    arguments: dict[str, Any] = Field(
        default_factory=dict,
        description=f"The tool's own arguments, by name, as `{DESCRIBE}` shows them: "
        '{"year": 2015}. Left out, it is called without any.',
    )


class Listed(BaseModel):
    """One of the notebooks' tools."""  # seen by clients, as is the name of the class

    name: str = Field(description="The name to call it by.")
    notebook: str = Field(description="Its notebook, as in <notebook>.<tool>.")
    description: str = Field(description="The first line of its description.")


class _Listing(BaseModel):
    tools: list[Listed]


class _Description(BaseModel):
    name: str = Field(description="The name to call it by.")
    notebook: str = Field(description="Its notebook, as in <notebook>.<tool>.")
    description: str = Field(description="Its whole description.")
    input_schema: dict[str, Any] = Field(
        alias="inputSchema", description="The JSON Schema of its arguments."
    )


class _WithoutTitles(GenerateJsonSchema):
    """JSON Schema without the titles that repeat names, and without our class names."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's hook
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> dict[str, Any]:
        json_schema = super().generate(schema, mode)
        for part in (json_schema, *json_schema.get("$defs", {}).values()):
            part.pop("title", None)
        return json_schema


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(schema_generator=_WithoutTitles)


# -- the tools -------------------------------------------------------------------------------------

_READS = {"readOnlyHint": True, "openWorldHint": False}

TOOLS = (
    messages.ToolInfo(
        name=LIST,
        title="List the notebooks' tools",
        description="List the tools that the user's live Jupyter notebooks offer right now, each "
        "with its notebook and the first line of its description. Your own list of tools may be "
        f"older. Then `{DESCRIBE}` shows a tool's arguments, and `{CALL}` calls it.",
        input_schema=_schema(_ListArguments),
        output_schema=_schema(_Listing),
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=DESCRIBE,
        title="Describe a notebook's tool",
        description="Show a notebook tool's whole description and the JSON Schema of its "
        f"arguments, as they are right now. Use this before `{CALL}`.",
        input_schema=_schema(_DescribeArguments),
        output_schema=_schema(_Description),
        annotations=_READS,
    ),
    messages.ToolInfo(
        name=CALL,
        title="Call a notebook's tool",
        description="Call a tool of the user's live Jupyter notebooks by its name, also one that "
        f"is not in your own list of tools. `{LIST}` shows what there is, `{DESCRIBE}` a tool's "
        "arguments. The answer is the tool's own.",
        input_schema=_schema(_CallArguments),
        # What it does is up to the tool: the most that a client has to expect.
        annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    ),
)
"""What a client is told about them, in the order in which it is."""
NAMES = frozenset(tool.name for tool in TOOLS)
INPUT_SCHEMAS = {tool.name: tool.input_schema for tool in TOOLS}


@dataclass(frozen=True)
class ToolCall:
    """A call of a notebook's tool that the client asked for through `CALL`."""

    entry: CatalogEntry
    arguments: dict[str, Any]


def answer(
    name: str, arguments: dict[str, Any], catalog: Catalog, *, no_tools: str
) -> Result | ToolCall:
    """Answer a call of one of the three, or return the call to run for it.

    Args:
        name: One of `NAMES`.
        arguments: As the client gave them.
        catalog: The tools as they are now.
        no_tools: What to say where there is none.

    Raises:
        InvalidArguments: The arguments are not those of this tool.
        UnknownTool: There is no tool of the name in the arguments.
        AmbiguousTool: Several notebooks offer a tool of this name.
    """
    if name == LIST:
        _checked(_ListArguments, name, arguments)
        return _listing(catalog, no_tools)
    if name == DESCRIBE:
        return _description(catalog.find(_checked(_DescribeArguments, name, arguments).name))
    wanted = _checked(_CallArguments, name, arguments)
    return ToolCall(catalog.find(wanted.name), wanted.arguments)


def _listing(catalog: Catalog, no_tools: str) -> Result:
    tools = [
        Listed(name=entry.name, notebook=entry.notebook, description=_first_line(entry.tool))
        for entry in catalog.entries()
    ]
    lines = [
        f"- {tool.name} (notebook {tool.notebook})"
        + (f": {tool.description}" if tool.description else "")
        for tool in tools
    ]
    return Result([Text("\n".join(lines) or no_tools)], structured=_dumped(_Listing(tools=tools)))


def _description(entry: CatalogEntry) -> Result:
    tool = entry.tool
    described = _Description(
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
    return Result([Text("\n\n".join(filter(None, parts)))], structured=_dumped(described))


def _first_line(tool: messages.ToolInfo) -> str:
    line = next(iter(tool.description.strip().splitlines()), "").strip()
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"


def _dumped(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True)


# -- wrong arguments -------------------------------------------------------------------------------


_WANTED = {
    "name": f"the tool's name as text, as `{LIST}` shows it",
    "arguments": f"an object of the tool's own arguments, as `{DESCRIBE}` shows them",
}


def _checked(kind: type[_Own], name: str, arguments: dict[str, Any]) -> _Own:
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False)[:MAX_PROBLEMS]
        sentences = [f"{name}: {_sentence(kind, problem)}" for problem in problems]
        raise InvalidArguments("\n".join(sentences)) from None


def _sentence(kind: type[_Arguments], problem: ErrorDetails) -> str:
    """Say what is wrong with one argument; the kernel says it of the tool's own in other words."""
    parameter = problem["loc"][0]
    if problem["type"] == "extra_forbidden":
        known = " and ".join(map(repr, kind.model_fields))
        step = " The tool's own arguments go into 'arguments'." if kind is _CallArguments else ""
        has = f"it has {known}" if known else "it has none"
        return f"there is no parameter {_shown(parameter)}; {has}.{step}"
    wanted = _WANTED[str(parameter)]
    if problem["type"] == "missing":
        return f"{parameter!r} is missing: give {wanted}."
    return f"{parameter!r} must be {wanted}, not {_shown(problem['input'])}."


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
