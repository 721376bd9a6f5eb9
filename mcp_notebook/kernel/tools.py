"""A tool, the registry of all tools of a notebook, and the ``@mcp_tool`` mark.

Runs in the user's kernel. The registry is written on the main thread (cells declare tools) and read
from the endpoint's thread, which only ever sees whole snapshots. Who tells bridges about a change
is the subscriber's business (`kernel.extension` connects the two).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.context import Context
from mcp_notebook.kernel.options import ToolOptions, check_name, check_options
from mcp_notebook.kernel.schema import FunctionSchema, function_schema
from mcp_notebook.kernel.schema_cache import SchemaCache
from mcp_notebook.kernel.texts import safe_message
from mcp_notebook.wire import ToolInfo

_F = TypeVar("_F", bound=Callable[..., Any])

MARK = "__mcp_tool__"
"""Attribute of a function that ``@mcp_tool`` marked: its `ToolOptions`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """One function that clients can call."""

    info: ToolInfo
    """What clients are told; its `name` identifies the tool in this kernel."""
    function: Callable[..., Any]
    schema: FunctionSchema
    options: ToolOptions
    variable: str | None
    """Name in the notebook's namespace that the tool follows; None: it follows nothing."""

    @property
    def name(self) -> str:
        """The tool's name for clients."""
        return self.info.name

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its author should know, for the card."""
        return self.schema.warnings


def make_tool(
    function: Callable[..., Any],
    options: ToolOptions | None = None,
    *,
    variable: str | None = None,
    schemas: SchemaCache | None = None,
) -> Tool:
    """Build a tool from a function.

    Args:
        function: Any callable with a signature.
        options: What the author says about it.
        variable: Name in the notebook's namespace that the tool will follow.
        schemas: Those of earlier starts.

    Raises:
        DefinitionError: The name or the signature cannot be offered to clients.
    """
    options = options or _mark_of(function) or ToolOptions()
    if not callable(function):
        raise DefinitionError(
            f"{variable or function!r} is not a function, but of type {type(function).__name__}: "
            "only what can be called can be a tool."
        )
    own_name = getattr(function, "__name__", None)  # of any type, if a proxy answers
    name = options.name or (own_name if isinstance(own_name, str) else None) or variable or ""
    check_name(name)
    schema = function_schema(function, hidden_types=(Context,), cache=schemas)
    check_options(options, name, takes_context=bool(schema.injected))
    info = ToolInfo(
        name=name,
        title=options.title,
        description=schema.description if options.description is None else options.description,
        input_schema=schema.input_schema,
    )
    return Tool(info=info, function=function, schema=schema, options=options, variable=variable)


class ToolRegistry:
    """The tools of one notebook, in the order of their definition.

    Written on the kernel's main thread only; `tools` may be read from any thread.

    Args:
        on_change: Called on the main thread after each change that clients can see.
        schemas: Schemas of earlier starts, for who makes tools.
    """

    def __init__(self, on_change: Callable[[], None], schemas: SchemaCache | None = None) -> None:
        self.schemas = schemas
        self._tools: dict[str, Tool] = {}
        self._on_change = on_change

    @property
    def tools(self) -> tuple[Tool, ...]:
        """A snapshot of all tools, in order."""
        return tuple(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, if there is one."""
        return self._tools.get(name)

    def add(self, *tools: Tool) -> None:
        """Add tools; one whose name exists takes the place of the old one in the order."""
        # A new dict each time: a reader on another thread keeps iterating over the old one.
        self._replace({**self._tools, **{tool.name: tool for tool in tools}})

    def remove(self, *names: str) -> None:
        """Remove tools; names that are no tool's are ignored."""
        self._replace({name: tool for name, tool in self._tools.items() if name not in names})

    def follow(self, namespace: dict[str, Any]) -> tuple[str, ...]:
        """Let tools follow their names after a cell ran.

        A tool whose name now holds another function gets that function; one whose name is gone, or
        holds something that cannot be a tool, goes.

        Args:
            namespace: The notebook's variables.

        Returns:
            A sentence for each tool that went although its name still exists.
        """
        tools: dict[str, Tool] = {}
        lost = []
        for tool in self.tools:
            try:
                followed = _followed(tool, namespace, self.schemas)
            except DefinitionError as error:
                lost.append(f"The tool {tool.name!r} is gone: {error}")
                continue
            except Exception as error:  # noqa: BLE001 - a proxy may raise whatever it is asked
                lost.append(f"The tool {tool.name!r} is gone: {safe_message(error)}")
                continue
            if followed is not None:
                tools[followed.name] = followed
        if list(tools.values()) != list(self.tools):
            self._replace(tools)
        return tuple(lost)

    def _replace(self, tools: dict[str, Tool]) -> None:
        changed = [tool.info for tool in tools.values()] != [tool.info for tool in self.tools]
        self._tools = tools
        if changed:
            self._on_change()


def _followed(tool: Tool, namespace: dict[str, Any], schemas: SchemaCache | None) -> Tool | None:
    """Return the tool as its name has it now: None if the name is gone."""
    if tool.variable is None:
        return tool
    if tool.variable not in namespace:
        return None
    current = namespace[tool.variable]
    if current is tool.function:
        return tool
    if not callable(current):
        kind = type(current).__name__
        raise DefinitionError(f"`{tool.variable}` is a {kind} now, no function.")
    # A decorated redefinition says all its options anew.
    options = None if _mark_of(current) else tool.options
    return make_tool(current, options, variable=tool.variable, schemas=schemas)


def marked(values: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Callable[..., Any]]]:
    """Yield the functions among a namespace's items that carry the mark of ``@mcp_tool``."""
    for name, value in values:
        # Not `_mark_of`: a proxy that loads lazily should not load for being asked.
        try:
            options = vars(value).get(MARK)
        except Exception:  # noqa: BLE001, S112 - a proxy that is not bound may raise anything
            continue
        if type(options) is ToolOptions:
            yield name, value


def _mark_of(function: Any) -> ToolOptions | None:
    """Return the options that ``@mcp_tool`` left, if it did: a mock answers to any name."""
    options = getattr(function, MARK, None)
    return options if type(options) is ToolOptions else None


def mark(function: _F, options: ToolOptions) -> _F:
    """Remember the options on the function itself, so that it is a tool wherever it is loaded.

    Raises:
        DefinitionError: The object takes no attributes (a builtin, say).
    """
    try:
        setattr(function, MARK, options)
    except (AttributeError, TypeError):
        raise DefinitionError(
            f"{function!r} takes no attributes, so it cannot be decorated. "
            "Use `%mcp_tool` with its name instead."
        ) from None
    return function
