"""Gathers the contents of a tool's card: its description, parameters, badges and warnings.

Runs on any thread. Pure. Facts depend only on the tool's declaration, so that running a cell again
gives the same card.
"""

import functools
import inspect
import re
from collections.abc import Iterator, Sequence
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Struct

from mcp_notebook import meta_keys
from mcp_notebook.kernel.executors.dask_engine import find_client
from mcp_notebook.kernel.schemas.parameters.bound_objects import is_object
from mcp_notebook.kernel.schemas.parameters.callables import list_fixed_parameters
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import FunctionSchema
from mcp_notebook.kernel.schemas.schema_words import PLAIN_WORDS, describe_schema
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.text.redaction import has_secrets
from mcp_notebook.wire import messages

READ_ONLY = "read-only"
DESTRUCTIVE = "destructive"
ASKS = "asks before each call"
_PLACES = {"thread": "runs in a thread", "fork": "runs in a copy of the kernel"}
"""Texts for `ToolOptions.run`, but for the default's."""
_TURNS = (
    "runs between cells, one call at a time; `--run thread` lifts that for code that sets no "
    "globals, seeds, options or warning filters"
)
"""Threads share these: side by side, such calls were measured to give wrong results."""
_TASKS = {True: "each call is a task", "only": "each call is a task, for clients that support them"}
_HINTS = {
    ("readOnlyHint", True): READ_ONLY,
    ("readOnlyHint", False): "not read-only",
    ("destructiveHint", True): DESTRUCTIVE,
    ("destructiveHint", False): "not destructive",
    ("idempotentHint", True): "idempotent",
    ("idempotentHint", False): "not idempotent",
    ("openWorldHint", True): "open world",
    ("openWorldHint", False): "closed world",
}


class ParameterFacts(Struct, frozen=True):
    """One parameter of a tool, as clients see it."""

    name: str
    allowed: str
    """The allowed values, in plain words."""
    presence: str
    """``required``, ``optional`` or ``default 10``."""
    description: str

    @property
    def is_required(self) -> bool:
        """Whether each call must pass it."""
        return self.presence == "required"


class ToolFacts(Struct, frozen=True):
    """The contents of a card on one tool."""

    kind: messages.Kind
    name: str
    signature: str
    """The tool's signature in Python."""
    title: str
    icons: tuple[str, ...]
    """URLs of pictures."""
    description: str
    badges: tuple[str, ...]
    """Hints on what calls may do: ``read-only``."""
    details: tuple[str, ...]
    """Other options: ``tags: weather``."""
    turns: str
    """How calls run by default, and how to change it; in HTML only, as consoles show one line."""
    parameters: tuple[ParameterFacts, ...]
    warnings: tuple[str, ...]


def gather_facts(
    tool: DeclaredTool, hosts: Sequence[str] = (), changes: Sequence[str] = ()
) -> ToolFacts:
    """Gather the contents of a tool's card.

    Args:
        tool: The tool.
        hosts: Origins that its own view may load from.
        changes: How it differs from the notebook's lock.
    """
    return ToolFacts(
        kind=tool.info.kind,
        name=tool.name,
        signature=format_signature(tool),
        title=tool.info.title or "",
        icons=tuple(icon["src"] for icon in tool.info.icons or ()),
        description=tool.info.description,
        badges=_list_badges(tool),
        details=_list_details(tool, hosts),
        turns=_TURNS if _takes_turns(tool) else "",
        parameters=_list_parameters(tool),
        warnings=(*tool.warnings, *changes),
    )


def describe_in_line(tool: DeclaredTool) -> str:
    """Return the first line of a tool's description, and what it is unless it is a tool."""
    line = find_first_line(tool)
    return line if tool.info.kind == "tool" else f"[{tool.kind_word}] {line}".strip()


def find_first_line(tool: DeclaredTool) -> str:
    """Return the first line of a tool's description."""
    return tool.info.description.strip().partition("\n")[0]


def _list_badges(tool: DeclaredTool) -> tuple[str, ...]:
    if tool.info.kind != "tool":
        return ()
    hints = [_HINTS[hint] for hint in (tool.info.annotations or {}).items() if hint in _HINTS]
    if (tool.info.meta or {}).get(meta_keys.CONFIRM):
        hints.append(ASKS)
    return tuple(hints)


def _list_details(tool: DeclaredTool, hosts: Sequence[str]) -> tuple[str, ...]:
    meta = tool.info.meta or {}
    details = [] if tool.info.uri is None else [tool.info.uri]
    if output := _describe_output(tool):
        details.append(f"structured result: {output}")
    details += (*_describe_objects(tool), *_list_ways(tool.options))
    if hosts:
        details.append(f"its view may load from {', '.join(hosts)}")
    if tags := meta.get(meta_keys.TAGS):
        details.append(f"tags: {', '.join(tags)}")
    if priority := meta.get(meta_keys.PRIORITY):
        details.append(f"priority {priority:g}")
    if related := meta.get(meta_keys.RELATED):
        details.append(f"see also: {', '.join(related)}")
    return tuple(details)


def _describe_objects(tool: DeclaredTool) -> Iterator[str]:
    """Yield which objects of the notebook it uses, and which its `functools.partial` holds."""
    if not isinstance(tool.schema, FunctionSchema):
        return
    if used := ", ".join(f"`{name}`" for name in tool.schema.bound):
        yield f"uses your {used}; a type hint makes it a parameter"
    if isinstance(function := tool.function, functools.partial):
        held = (*function.keywords.values(), *function.args)
        names = zip(list_fixed_parameters(function), held, strict=False)
        if frozen := ", ".join(f"`{name}`" for name, value in names if is_object(value)):
            yield f"holds its own {frozen}, not the notebook's"


def _takes_turns(tool: DeclaredTool) -> bool:
    is_default = tool.info.kind == "tool" and tool.options.run_mode == "main"
    return is_default and not inspect.iscoroutinefunction(tool.function)


def _list_ways(options: ToolOptions) -> Iterator[str]:
    """Yield how calls run, if that differs from the default."""
    if options.executor is not None:
        is_dask = find_client(options.executor) is not None
        yield "runs on Dask" if is_dask else f"runs in {type(options.executor).__name__}"
    elif options.run in _PLACES:
        yield _PLACES[options.run]
    if options.task:
        yield _TASKS[options.task]
    if options.requires:
        yield f"only for clients with {', '.join(options.requires)}"


def _describe_output(tool: DeclaredTool) -> str:
    """Describe the structured results of a tool; "" if it has none."""
    if tool.output is None:
        return ""
    return describe_schema(tool.output.schema, tool.output.schema, PLAIN_WORDS)


def _list_parameters(tool: DeclaredTool) -> tuple[ParameterFacts, ...]:
    schema = tool.schema.input_schema
    required = schema.get("required", ())
    parameters = []
    for name, item in schema.get("properties", {}).items():
        keywords = item if isinstance(item, dict) else {}
        presence = "required" if name in required else _describe_default(keywords, schema)
        allowed = describe_schema(item, schema, PLAIN_WORDS)
        description = keywords.get("description", "")
        parameters.append(ParameterFacts(name, allowed, presence, description))
    return tuple(parameters)


def _describe_default(keywords: dict[str, Any], schema: dict[str, Any]) -> str:
    is_visible = "default" in keywords and not has_secrets(keywords, schema)
    return f"default {format_value(keywords['default'])}" if is_visible else "optional"


# -- the signature ---------------------------------------------------------------------------------


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""In the `repr` of many objects; another one in each kernel."""
_ARRAY = re.compile(r"numpy\.ndarray\[[^()]*?, numpy\.dtype\[(?:numpy\.)?([\w~.]+)\]\]")


def format_signature(tool: DeclaredTool) -> str:
    """Return the tool's name with its parameters as its author wrote them."""
    if not isinstance(tool.schema, FunctionSchema) or tool.options.flatten:
        return _format_schema(tool)
    try:
        signature = inspect.signature(tool.function)
    except (TypeError, ValueError):
        return _format_schema(tool)
    fixed = tool.function.keywords if isinstance(tool.function, functools.partial) else ()
    parameters = [
        parameter.replace(annotation=_strip_annotated(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name
        not in (*tool.schema.injected, *tool.schema.hidden, *tool.schema.bound, *fixed)
    ]
    schema = tool.schema.input_schema
    # In the order of the signature; clients may know them by other names.
    for index, item in enumerate(schema["properties"].values()):
        is_there = index < len(parameters)  # the keys of a TypedDict share `**kwargs`
        if is_there and has_secrets(item, schema) and not _lacks_default(parameters[index]):
            parameters[index] = parameters[index].replace(default=_Omitted())
    visible = signature.replace(parameters=parameters, return_annotation=signature.empty)
    # Before 2.5, numpy writes `NDArray[np.float64]` as a string twice as long as the card is wide.
    text = _ARRAY.sub(r"NDArray[\1]", _ADDRESS.sub("", f"{tool.name}{visible}"))
    return text.replace("NDArray[numpy.", "NDArray[").replace("pydantic.types.Secret", "Secret")


def _lacks_default(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty or parameter.default is None


class _Omitted:
    """Placeholder for a secret default."""

    def __repr__(self) -> str:
        return "..."


def _format_schema(tool: DeclaredTool) -> str:
    """Return a signature with the parameters of the tool's input schema."""
    schema = tool.schema.input_schema
    parameters = [
        name if name in schema.get("required", ()) else f"{name}={_format_default(item)}"
        for name, item in schema.get("properties", {}).items()
        if item is not False
    ]
    return f"{tool.name}({', '.join(parameters)})"


def _format_default(schema: Any) -> str:
    has_default = isinstance(schema, dict) and "default" in schema
    is_visible = has_default and not has_secrets(schema, schema)
    return format_value(schema["default"]) if is_visible else "..."


def _strip_annotated(annotation: Any) -> Any:
    """Return a type hint without `Annotated`; its constraints are in another column."""
    if get_origin(annotation) is Annotated:
        return _strip_annotated(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    options = get_args(annotation)
    plain = [_strip_annotated(option) for option in options]
    is_plain = all(one is other for one, other in zip(options, plain, strict=True))
    return annotation if is_plain else functools.reduce(or_, plain)
