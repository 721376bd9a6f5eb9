"""A tool, the registry of all tools of a notebook, and the ``@mcp_tool`` mark.

Runs in the user's kernel. The registry may be written on any thread (cells declare tools, and so do
tools that run in threads) and read from any: readers only ever see whole snapshots. Who tells
bridges about a change is the subscriber's business (`kernel.extension` connects the two).

What an author declares at run time is `kernel.notebook.registry.Tool`; what becomes of that, and of
a decorated function, is a `DeclaredTool`.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.input_schema import FunctionSchema, function_schema
from mcp_notebook.kernel.schemas.output_schema import OutputSchema, make_output_schema
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.tools.context import Context
from mcp_notebook.kernel.tools.icons import icon_again
from mcp_notebook.kernel.tools.metadata import add_result_size, make_metadata
from mcp_notebook.kernel.tools.options import ToolOptions, check_name, check_options
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    from mcp_notebook.kernel.schemas.author_schema import AuthorSchema

_F = TypeVar("_F", bound=Callable[..., Any])

MARK = "__mcp_tool__"
"""Attribute of a function that ``@mcp_tool`` marked: its `ToolOptions`."""
MAX_ICON_CHARS = 16 * 2**20
"""Characters of all icons of a notebook's tools."""


class ToolOrigin(Protocol):
    """Where tools come from that follow more than one variable's function (`attribute_tools`)."""

    def is_current(self, namespace: Mapping[str, Any]) -> bool:
        """Tell whether the notebook still has what the tools were made from."""

    def with_options(self, options: ToolOptions) -> "ToolOrigin":
        """Return the same place, with something else to say about the tool that is made there."""

    def make_tools(self, namespace: Mapping[str, Any]) -> "Sequence[DeclaredTool]":
        """Make the tools anew from what the notebook has now; none if it is gone.

        Raises:
            DefinitionError: What it has cannot be tools.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredTool:
    """One function that clients can call."""

    info: messages.ToolInfo
    """What clients are told; its `name` identifies the tool in this kernel."""
    function: Callable[..., Any]
    schema: "FunctionSchema | AuthorSchema"
    """By its signature, or by the author's own."""
    options: ToolOptions
    variable: str | None
    """Name in the notebook's namespace that the tool follows; None: it follows none."""
    origin: ToolOrigin | None = None
    """What it follows in place of one variable."""
    output: OutputSchema | None = None
    """What its results are for a program."""
    notes: tuple[str, ...] = ()
    """What its author should know, besides what `schema` says."""

    @property
    def name(self) -> str:
        """The tool's name for clients."""
        return self.info.name

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its author should know, for the card."""
        return (*self.schema.warnings, *self.notes)


def make_tool(
    function: Callable[..., Any],
    options: ToolOptions | None = None,
    *,
    variable: str | None = None,
    schemas: SchemaCache | None = None,
) -> DeclaredTool:
    """Build a tool from a function.

    Args:
        function: Any callable with a signature.
        options: What the author says about it.
        variable: Name in the notebook's namespace that the tool will follow, and be called by.
        schemas: Those of earlier starts.

    Raises:
        DefinitionError: The name or the signature cannot be offered to clients.
    """
    options = options or read_mark(function) or ToolOptions()
    if not callable(function):
        raise DefinitionError(
            f"{variable or function!r} is not a function, but of type {type(function).__name__}: "
            "only what can be called can be a tool."
        )
    own_name = getattr(function, "__name__", None)  # of any type, if a proxy answers
    name = variable or (own_name if isinstance(own_name, str) else None) or ""
    name = name if options.name is None else options.name
    check_name(name)
    schema = _schema(function, name, options, schemas)
    check_options(options, name, takes_context=bool(schema.injected))
    output, notes = make_output_schema(function, options, name)
    said = make_metadata(options, name, schema)
    info = messages.ToolInfo(
        name=name,
        title=said.title,
        description=said.description,
        input_schema=schema.input_schema,
        output_schema=None if output is None else output.schema,
        annotations=said.annotations,
        icons=said.icons,
        meta=said.meta,
    )
    info = add_result_size(info, options.max_result_chars or 0)
    options = replace(
        options,
        # A tool that follows its name is made again: from the pictures as they were, not the files.
        icons=tuple(map(icon_again, said.icons or ())),
        # The author's own dict may change; what was checked does not.
        input_schema=None if options.input_schema is None else deepcopy(schema.input_schema),
    )
    return DeclaredTool(
        info=info,
        function=function,
        schema=schema,
        options=options,
        variable=variable,
        output=output,
        notes=notes,
    )


def _schema(
    function: Callable[..., Any], name: str, options: ToolOptions, schemas: SchemaCache | None
) -> "FunctionSchema | AuthorSchema":
    if options.flatten and options.input_schema is not None:
        raise DefinitionError(
            f"`{name}`: `flatten` makes the schema from a model, and `input_schema` gives one: "
            "leave one of them out."
        )
    if options.input_schema is None:
        return function_schema(
            function,
            name=name,
            hidden_types=(Context,),
            flatten=options.flatten,
            described=bool(options.description),
            cache=schemas,
        )
    # Late: it loads jsonschema, which most notebooks do not need.
    from mcp_notebook.kernel.schemas.author_schema import read_author_schema  # noqa: PLC0415

    return read_author_schema(function, options.input_schema, name, hidden_types=(Context,))


class ToolRegistry:
    """The tools of one notebook, in the order of their definition; for any thread.

    Args:
        on_change: Called after each change that clients can see, on the thread that made it.
        schemas: Schemas of earlier starts, for who makes tools.
    """

    def __init__(self, on_change: Callable[[], None], schemas: SchemaCache | None = None) -> None:
        self.schemas = schemas
        self._tools: dict[str, DeclaredTool] = {}
        self._on_change = on_change
        self._lock = threading.Lock()
        self._batches = 0
        self._told: tuple[DeclaredTool, ...] = ()

    @property
    def tools(self) -> tuple[DeclaredTool, ...]:
        """A snapshot of all tools, in order."""
        return tuple(self._tools.values())

    def get(self, name: str) -> DeclaredTool | None:
        """Return the tool of that name, if there is one."""
        return self._tools.get(name)

    def add(self, *tools: DeclaredTool) -> None:
        """Add tools; one whose name exists takes the place of the old one in the order.

        Raises:
            DefinitionError: Their icons are too much for one list of tools; none is added.
        """

        def added(now: dict[str, DeclaredTool]) -> dict[str, DeclaredTool]:
            together = {**now, **{tool.name: tool for tool in tools}}
            if any(tool.info.icons for tool in tools):
                _check_icons(together.values())
            return together

        self._change(added)

    def replace(self, old: DeclaredTool, new: DeclaredTool) -> None:
        """Put a tool in the place of another; nothing happens if that has gone meanwhile.

        Raises:
            DefinitionError: All icons together are too much for one list of tools.
        """

        def replaced(now: dict[str, DeclaredTool]) -> dict[str, DeclaredTool]:
            if now.get(old.name) is not old:
                return now
            swapped = [new if tool is old else tool for tool in now.values()]
            _check_icons(swapped)
            return {tool.name: tool for tool in swapped}

        self._change(replaced)

    def remove(self, *names: str) -> None:
        """Remove tools; names that are no tool's are ignored."""
        self._change(lambda now: {name: now[name] for name in now if name not in names})

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Tell of all changes in the block, of all threads, when it ends."""
        with self._lock:
            self._batches += 1
        try:
            yield
        finally:
            with self._lock:
                self._batches -= 1
            self._tell()

    def follow(self, namespace: dict[str, Any]) -> tuple[str, ...]:
        """Let tools follow their names after a cell ran.

        A tool whose name now holds another function gets that function; one whose name is gone, or
        holds something that cannot be a tool, goes.

        Args:
            namespace: The notebook's variables.

        Returns:
            A sentence for each tool that went although its name still exists.
        """
        changed: dict[DeclaredTool, Sequence[DeclaredTool]] = {}
        lost = []
        remade: list[ToolOrigin] = []
        for tool in self.tools:
            origin = tool.origin
            if origin is not None and any(origin is done for done in remade):
                changed[tool] = ()  # the first of them brought all that there are now
                continue
            try:
                if origin is None or origin.is_current(namespace):
                    followed = _followed(tool, namespace, self.schemas)
                else:
                    remade.append(origin)
                    followed = origin.make_tools(namespace)
            except Exception as error:  # noqa: BLE001 - a proxy may raise whatever it is asked
                changed[tool] = ()
                lost.append(self._lost(tool, error))
            else:
                if list(followed) != [tool]:
                    changed[tool] = followed

        def followed_up(now: dict[str, DeclaredTool]) -> dict[str, DeclaredTool]:
            tools = [item for tool in now.values() for item in changed.get(tool, (tool,))]
            return {tool.name: tool for tool in tools}

        if changed:  # the user's code was looked at; without the lock, which others wait for
            self._change(followed_up)
        return tuple(lost)

    def _lost(self, tool: DeclaredTool, error: Exception) -> str:
        reason = str(error) if isinstance(error, DefinitionError) else describe_error(error)
        same = tool.origin is not None
        names = [repr(other.name) for other in self.tools if same and other.origin is tool.origin]
        if len(names) > 1:
            return f"The tools {', '.join(names)} are gone: {reason}"
        return f"The tool {tool.name!r} is gone: {reason}"

    def _change(self, make: Callable[[dict[str, DeclaredTool]], dict[str, DeclaredTool]]) -> None:
        with self._lock:
            # A new dict each time: a reader on another thread keeps iterating over the old one.
            self._tools = make(self._tools)
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            if self._batches:
                return
            before, self._told = self._told, self.tools
            changed = [tool.info for tool in self._told] != [tool.info for tool in before]
        if changed:
            self._on_change()


def _check_icons(tools: Iterable[DeclaredTool]) -> None:
    # All of them are one message to the bridge and one to each client.
    size = sum(len(icon["src"]) for tool in tools for icon in tool.info.icons or ())
    if size > MAX_ICON_CHARS:
        raise DefinitionError(
            f"The icons of this notebook's tools have {size:,} characters together, more than "
            f"{MAX_ICON_CHARS:,}: use smaller ones, or https addresses."
        )


def _followed(
    tool: DeclaredTool, namespace: dict[str, Any], schemas: SchemaCache | None
) -> Sequence[DeclaredTool]:
    """Return the tool as its name has it now: none if the name is gone."""
    if tool.variable is None:
        return [tool]
    if tool.variable not in namespace:
        return []
    current = namespace[tool.variable]
    if current is tool.function:
        return [tool]
    if not callable(current):
        kind = type(current).__name__
        raise DefinitionError(f"`{tool.variable}` is a {kind} now, no function.")
    # A decorated redefinition says all its options anew.
    options = None if read_mark(current) else tool.options
    return [make_tool(current, options, variable=tool.variable, schemas=schemas)]


def find_marked(values: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Callable[..., Any]]]:
    """Yield the functions among a namespace's items that carry the mark of ``@mcp_tool``."""
    for name, value in values:
        # Not `read_mark`: a proxy that loads lazily should not load for being asked.
        if read_own_mark(value) is not None:
            yield name, value


def read_own_mark(value: Any) -> ToolOptions | None:
    """Return the options that ``@mcp_tool`` left on this very object, if it did."""
    try:
        options = vars(value).get(MARK)
    except Exception:  # noqa: BLE001 - a proxy that is not bound may raise anything
        return None
    return options if type(options) is ToolOptions else None


def read_mark(function: Any) -> ToolOptions | None:
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
