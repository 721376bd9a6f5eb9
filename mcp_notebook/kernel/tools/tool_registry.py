"""The registry of a notebook's tools: adds, replaces and removes them, and follows variables.

Runs in the user's kernel, on any thread: cells declare tools, and so do tools that run in threads.
Readers get immutable snapshots. For some minutes, the registry remembers why a tool was dropped.

A tool follows a variable only if the variable held the tool's function when the tool's cell ended.
Until then the variable is a guess from the function's name: a loop may declare several functions
with the same name, and ``functools.wraps`` copies names.
"""

import operator
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, structs

from mcp_notebook.discovery.departures import is_recent
from mcp_notebook.errors import DefinitionError, ResourceFailed
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.tools.declared_tool import (
    RESULT_VIEW,
    DeclaredTool,
    ToolOrigin,
    make_tool,
    read_mark,
    renew,
    write_subject,
)
from mcp_notebook.kernel.tools.own_views import OwnViews, is_own
from mcp_notebook.text.missing_tools import DEFINE_AGAIN, RUN_AGAIN, DroppedTool

MAX_ICON_CHARS = 16 * 2**20
"""Maximum characters of all icons of a notebook's tools."""

_MAX_DECORATORS = 100

_Tools = Mapping[str, DeclaredTool]


class Drop(Struct, frozen=True):
    """Tools that are dropped together, for one reason."""

    tools: Sequence[DeclaredTool]
    reason: str
    """Why they are dropped, as a sentence."""
    next_step: str = DEFINE_AGAIN
    """What the user can do, as a sentence."""
    new_tools: Sequence[DeclaredTool] = ()
    """Tools added by the same change, which may be the dropped ones under new names."""


class DroppedTools:
    """Explains the tools dropped in the last minutes; `ToolRegistry` writes under its lock.

    Args:
        clock: Returns the time in seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._dropped: Mapping[str, DroppedTool] = {}

    def read(self) -> dict[str, DroppedTool]:
        """Return the dropped tools, by name."""
        return {name: dropped for name, dropped in self._dropped.items() if is_recent(dropped.at)}

    def update(self, drops: Iterable[Drop], tools: Mapping[str, DeclaredTool]) -> None:
        """Add dropped tools, and forget those whose names are in use again.

        Args:
            drops: The dropped tools.
            tools: The present tools.
        """
        known = self.read()
        for drop in drops:
            known |= {tool.name: self._make(tool, drop) for tool in drop.tools}
        self._dropped = {name: dropped for name, dropped in known.items() if name not in tools}

    def _make(self, tool: DeclaredTool, drop: Drop) -> DroppedTool:
        same = [
            other.name
            for other in drop.new_tools
            if other.info.description
            and other.info.description == tool.info.description
            and other.info.input_schema == tool.info.input_schema
        ]
        new_name = same[0] if len(same) == 1 else None
        return DroppedTool(drop.reason, self._clock(), drop.next_step, new_name)


class ToolRegistry:
    """The tools of one notebook, in the order of their declaration; safe to use from any thread.

    Args:
        on_change: Called after each change that clients can see, on the thread that made it.
        schemas: Schemas of earlier starts, for code that makes tools.
        views: The tools' own pages.
    """

    def __init__(
        self,
        on_change: Callable[[], None],
        schemas: SchemaCache | None = None,
        views: OwnViews | None = None,
    ) -> None:
        self.schemas = schemas
        self.views = views or OwnViews()
        """The tools' own pages."""
        self.built_in: Mapping[str, DeclaredTool] = {}
        """The extension's own declarations, by name. They can be called, and are not in `tools`."""
        self._on_change = on_change
        self._lock = threading.Lock()
        self._tools: _Tools = {}
        self.unsettled: frozenset[DeclaredTool] = frozenset()
        """The tools whose cell has not ended, so that their variable is a guess."""
        self._dropped = DroppedTools()
        self._switched_off: Mapping[str, float] = {}
        self.deleted_cells: frozenset[str] = frozenset()
        """The ids of cells that were deleted, as far as frontends say so; `CellTools` writes it."""
        self._sources = _list_sources(())
        self._batches = 0
        self._announced: tuple[DeclaredTool, ...] = ()
        self._announced_drops: Mapping[str, DroppedTool] = {}

    @property
    def tools(self) -> tuple[DeclaredTool, ...]:
        """A snapshot of all tools, in order."""
        return tuple(self._tools.values())

    @property
    def dropped(self) -> dict[str, DroppedTool]:
        """The dropped tools, by name.

        Each is kept for some minutes, or until there is a tool of that name again.
        """
        return self._dropped.read()

    @property
    def switched_off(self) -> Mapping[str, float]:
        """The names of tools that are hidden from clients, with the times since when."""
        return self._switched_off

    @property
    def orphans(self) -> tuple[DeclaredTool, ...]:
        """The tools whose cells were deleted."""
        return tuple(tool for tool in self.tools if tool.cell in self.deleted_cells)

    def switch(self, name: str, *, on: bool) -> bool:
        """Hide a tool from clients, or show it again; return False if there is no such tool.

        The name stays switched off when its cell runs again.
        """
        if self.get(name) is None:
            return False
        with Shield(), self._lock:
            off = {other: at for other, at in self._switched_off.items() if other != name}
            self._switched_off = off if on else {**off, name: time.time()}
        self._on_change()
        return True

    def find_new_name(self, dropped: DroppedTool) -> str | None:
        """Return the name of the tool that replaced a dropped one, if it exists."""
        return dropped.new_name if dropped.new_name in self._tools else None

    def get(self, name: str) -> DeclaredTool | None:
        """Return the tool of that name, if there is one; also one that is built in."""
        return self._tools.get(name) or self.built_in.get(name)

    def add(self, *tools: DeclaredTool) -> None:
        """Add tools; one whose name exists replaces the old one in its place.

        Raises:
            DefinitionError: All icons together are too large for one list of tools, or a tool's own
                page does not exist; none is added.
        """
        for tool in tools:
            self.views.check(tool.options.ui, tool.name)
        self._add(tools)

    def _add(self, tools: Sequence[DeclaredTool]) -> None:

        def add_to(now: _Tools) -> _Tools:
            new = {tool.name: _keep_time(tool, now.get(tool.name)) for tool in tools}
            together = {**now, **new}
            if any(tool.info.icons for tool in tools):
                _check_icons(together.values())
            if any(tool.info.uri for tool in tools):
                _check_uris(together.values())
            return together

        with Shield(), self._lock:
            self.unsettled |= {tool for tool in tools if tool.variable and tool.origin is None}
        self._change(add_to)

    def take_over(self, previous: "ToolRegistry") -> None:
        """Take over the state of the registry that this one replaces."""
        self._switched_off = previous.switched_off
        self.views.take_over(previous.views)
        self.deleted_cells = previous.deleted_cells
        self._add(previous.tools)
        with Shield(), self._lock:
            self.unsettled &= previous.unsettled

    def replace(self, old: DeclaredTool, new: DeclaredTool) -> None:
        """Replace a tool by another in the same place; does nothing if the old one is gone.

        Raises:
            DefinitionError: All icons together are too large for one list of tools, or the tool's
                own page does not exist.
        """
        self.views.check(new.options.ui, new.name)

        def replace_in(now: _Tools) -> _Tools:
            if now.get(old.name) is not old:
                return now
            tools = [new if tool is old else tool for tool in now.values()]
            _check_icons(tools)
            _check_uris(tools)
            if old in self.unsettled:
                self.unsettled |= {new}
            return {tool.name: tool for tool in tools}

        drops = []
        if new.name != old.name and self.get(old.name) is old:
            drops = [Drop([old], f"It was renamed to `{new.name}`.", new_tools=[new])]
        self._change(replace_in, drops)

    def note_view(self, tool: DeclaredTool) -> None:
        """Note that a tool's result has a live view, so that its next ones are shown with it.

        Clients learn from the list of tools which results have one. Nothing changes if they already
        know, or if the author has said that they have none.
        """
        if tool.info.view is None and tool.options.ui is None and tool.info.kind == "tool":
            info = structs.replace(tool.info, view=RESULT_VIEW)
            self.replace(tool, structs.replace(tool, info=info))

    def list_hosts(self, tool: DeclaredTool) -> tuple[str, ...]:
        """Return the origins that a tool's own page may load from."""
        return self.views.list_hosts(tool.options.ui, tool.options.allow)

    def make_page(self, name: str) -> str:
        """Return a tool's own page; see `OwnViews.make_page`.

        Raises:
            ResourceFailed: There is no such tool or page, or the page cannot be made.
        """
        tool = self.get(name)
        if tool is None or not is_own(tool.options.ui):
            raise ResourceFailed(f"The tool `{name}` has no page of its own: list the tools again.")
        return self.views.make_page(tool.options.ui, tool.options.allow, name)

    def remove(self, *names: str, reason: str | None = None) -> None:
        """Remove tools; names without a tool are ignored.

        Args:
            names: The tools.
            reason: Why they are removed, as a sentence; None if no explanation is needed.
        """
        removed = [tool for tool in self.tools if tool.name in names]
        functions = [tool.function for tool in removed]
        others = [
            tool
            for tool in self.tools
            if tool.name not in names and any(tool.function is function for function in functions)
        ]
        self._change(
            lambda now: {name: now[name] for name in now if name not in names},
            [] if reason is None else [Drop(removed, reason, RUN_AGAIN, others)],
        )

    def retain(
        self, cell: str, names: Collection[str], reason: str, new_names: Collection[str] = ()
    ) -> tuple[DeclaredTool, ...]:
        """Remove the tools of a cell except those with these names.

        Args:
            cell: The cell's id.
            names: The tools that its last run declared.
            reason: Why the others are gone, as a sentence.
            new_names: Those of `names` that did not exist before the run.

        Returns:
            The tools that were removed.
        """
        others = [tool for tool in self.tools if tool.cell == cell and tool.name not in names]
        new_tools = [tool for tool in self.tools if tool.name in new_names]
        self._change(
            lambda now: {name: tool for name, tool in now.items() if tool not in others},
            [Drop(others, reason, new_tools=new_tools)],
        )
        return tuple(others)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Announce all changes of all threads during the block only when it ends."""
        is_counted = False
        try:
            with Shield(), self._lock:
                self._batches += 1
                is_counted = True
            yield
        finally:
            if is_counted:
                with Shield(), self._lock:
                    self._batches -= 1
            self._announce()

    def is_current(self, namespace: Mapping[str, Any]) -> bool:
        """Return whether the variables still hold the tools' values; fast, for use after each call.

        Args:
            namespace: The notebook's variables.
        """
        variables, functions, origins = self._sources
        return all(map(operator.is_, map(namespace.get, variables), functions)) and all(
            origin.is_current(namespace) for origin in origins
        )

    def follow(self, namespace: Mapping[str, Any]) -> tuple[str, ...]:
        """Update the tools from the notebook's variables, after a cell ran.

        A tool whose variable now holds another function gets that function. A tool whose variable
        is gone, or holds something that cannot be a tool, is dropped.

        Args:
            namespace: The notebook's variables.

        Returns:
            A sentence for each tool that was dropped although its variable still exists, and for
            each that does not follow the variable of its name.
        """
        notes = self._settle(namespace)
        # Without the lock, so that others need not wait: this can run code of the user's objects.
        updates = [
            update
            for tools in _group(self.tools)
            if (update := _compare(tools, namespace, self.schemas)) is not None
        ]
        if updates:
            self._change(lambda now: _apply(updates, now), map(_make_drop, updates))
        return (*notes, *(update.warning for update in updates if update.warning))

    def _settle(self, namespace: Mapping[str, Any]) -> Sequence[str]:
        """Find the variables of the tools that were declared since the last time."""
        with Shield(), self._lock:
            tools = [tool for tool in self._tools.values() if tool in self.unsettled]
            self.unsettled = frozenset()
        functions = {id(tool.function) for tool in self.tools}
        changes = {
            tool: structs.replace(tool, variable=variable)
            for tool in tools
            if (variable := _find_variable(tool, namespace, functions)) != tool.variable
        }
        if changes:
            self._change(lambda now: {name: changes.get(tool, tool) for name, tool in now.items()})
        return [
            f"The {old.kind_word} {old.name!r} runs the function that was declared, but "
            f"`{old.variable}` holds something else at the end of the cell."
            for old, new in changes.items()
            if old.name == old.variable
            and new.variable is None
            and old.name in namespace
            and id(namespace[old.name]) not in functions
        ]

    def _change(self, make: Callable[[_Tools], _Tools], drops: Iterable[Drop] = ()) -> None:
        with Shield(), self._lock:
            # A new dict each time: a reader on another thread may be iterating over the old one.
            self._tools = make(self._tools)
            self._dropped.update(drops, self._tools)
            self._sources = _list_sources(self._tools.values())
        self._announce()

    def _announce(self) -> None:
        with Shield(), self._lock:
            if self._batches:
                return
            before, self._announced = self._announced, self.tools
            drops_before, self._announced_drops = self._announced_drops, self._dropped.read()
            is_change = drops_before != self._announced_drops or (
                [tool.info for tool in self._announced] != [tool.info for tool in before]
            )
        if is_change:
            self._on_change()


def _keep_time(tool: DeclaredTool, old: DeclaredTool | None) -> DeclaredTool:
    """Return a tool that replaces another; the same text was not modified."""
    is_same = old is not None and tool.info.text is not None and tool.info == old.info
    return (
        structs.replace(tool, declared_at=old.declared_at) if old is not None and is_same else tool
    )


def _check_uris(tools: Iterable[DeclaredTool]) -> None:
    names: dict[str, str] = {}
    for tool in tools:
        uri = tool.info.uri
        if uri is not None and names.setdefault(uri, tool.name) != tool.name:
            raise DefinitionError(
                f"`{names[uri]}` and `{tool.name}` both have the URI {uri!r}: change one of them, "
                f"or remove the first: `from mcp_notebook import registry; registry.remove("
                f'"{names[uri]}")`.'
            )


def _check_icons(tools: Iterable[DeclaredTool]) -> None:
    # All icons are sent in one message to the bridge, and in one to each client.
    size = sum(len(icon["src"]) for tool in tools for icon in tool.info.icons or ())
    if size > MAX_ICON_CHARS:
        raise DefinitionError(
            f"The icons of this notebook's tools have {size:,} characters together, more than "
            f"{MAX_ICON_CHARS:,}: use smaller ones, or https addresses."
        )


# -- following the notebook's variables ------------------------------------------------------------


class _Update(Struct, frozen=True):
    """How a cell changed the tools of one variable or origin."""

    before: Sequence[DeclaredTool]
    after: Sequence[DeclaredTool]
    reason: str
    """Why tools of `before` are missing in `after`."""
    is_failure: bool = False
    """Whether their variable still exists, but cannot become tools."""

    @property
    def warning(self) -> str | None:
        """The sentence for the author; None if they removed the tools themselves."""
        kept = {tool.name for tool in self.after}
        lost = [tool for tool in self.before if tool.name not in kept]
        if not lost or not (self.after or self.is_failure):
            return None
        # Messages about a declaration begin with the tool's name.
        reason = self.reason.removeprefix(f"`{lost[0].name}`: ") if len(lost) == 1 else self.reason
        return f"{write_subject(lost, [repr(tool.name) for tool in lost])} gone: {reason}"


def _find_variable(
    tool: DeclaredTool, namespace: Mapping[str, Any], functions: Collection[int]
) -> str | None:
    """Return the variable that holds a tool's function; None if none does.

    Args:
        tool: The tool; its variable is a guess.
        namespace: The notebook's variables.
        functions: The ids of all tools' functions.
    """
    function = tool.function
    value = namespace.get(tool.variable or "")
    if value is function or (id(value) not in functions and _is_wrapped_in(function, value)):
        return tool.variable
    # Not IPython's own variables: `_` holds the last result of a cell.
    names = (name for name, other in tuple(namespace.items()) if other is function)
    return next((name for name in names if not name.startswith("_")), None)


def _is_wrapped_in(function: Any, value: Any) -> bool:
    """Return whether a value wraps a function by decorators that use ``functools.wraps``."""
    for _ in range(_MAX_DECORATORS):
        try:
            value = value.__wrapped__
        except Exception:  # noqa: BLE001 - a proxy may raise anything
            return False
        if value is function:
            return True
    return False  # a proxy that has every attribute


def _list_sources(
    tools: Iterable[DeclaredTool],
) -> tuple[Sequence[str], Sequence[Any], Collection[ToolOrigin]]:
    """Return the variables that tools follow, their values, and the tools' origins."""
    origins = {id(tool.origin): tool.origin for tool in tools if tool.origin is not None}
    followers = [tool for tool in tools if tool.origin is None and tool.variable is not None]
    variables = [tool.variable or "" for tool in followers]
    return variables, [tool.function for tool in followers], tuple(origins.values())


def _group(tools: Iterable[DeclaredTool]) -> Iterable[Sequence[DeclaredTool]]:
    """Group the tools by origin: those with the same one change together."""
    groups: dict[int, list[DeclaredTool]] = {}
    for tool in tools:
        groups.setdefault(id(tool if tool.origin is None else tool.origin), []).append(tool)
    return groups.values()


def _compare(
    tools: Sequence[DeclaredTool], namespace: Mapping[str, Any], schemas: SchemaCache | None
) -> _Update | None:
    """Return how the tools of one variable or origin have changed; None if they have not."""
    try:
        current = _make_current(tools, namespace, schemas)
    except DefinitionError as error:
        return _Update(tools, (), str(error), is_failure=True)
    except Exception as error:  # noqa: BLE001 - a proxy may raise anything
        return _Update(tools, (), describe_error(error), is_failure=True)
    if list(current) == list(tools):
        return None
    first = tools[0]
    current = [structs.replace(tool, cell=first.cell) for tool in current]
    source = first.variable if first.origin is None else first.origin.word
    names = ", ".join(f"`{tool.name}`" for tool in current)
    reason = f"`{source}` now offers {names}." if current else f"`{source}` was deleted."
    return _Update(tools, current, reason)


def _make_current(
    tools: Sequence[DeclaredTool], namespace: Mapping[str, Any], schemas: SchemaCache | None
) -> Sequence[DeclaredTool]:
    """Return the tools from their variable's present value; none if it was deleted.

    The same tools if neither the value nor its code is another one.

    Raises:
        Exception: The value cannot become a tool.
    """
    first = tools[0]
    if first.origin is not None and not first.origin.is_current(namespace):
        return first.origin.make_tools(namespace)
    if first.origin is not None or first.variable is None:
        return [renew(tool, schemas) for tool in tools]
    if first.variable not in namespace:
        return ()
    current = namespace[first.variable]
    if current is first.function:
        return [renew(tool, schemas) for tool in tools]
    if not callable(current):
        raise DefinitionError(
            f"`{first.variable}` was set to a value of type {type(current).__name__}, which is not "
            "a function."
        )
    # A decorated redefinition has its own options.
    options = None if read_mark(current) else first.options
    return (make_tool(current, options, variable=first.variable, schemas=schemas),)


def _apply(updates: Iterable[_Update], now: _Tools) -> _Tools:
    """Return the tools after all updates; new ones take the place of the first old one."""
    replacements: dict[DeclaredTool, Sequence[DeclaredTool]] = {}
    for update in updates:
        first, *others = update.before
        replacements |= {first: update.after, **dict.fromkeys(others, ())}
    tools = [new for tool in now.values() for new in replacements.get(tool, (tool,))]
    return {tool.name: tool for tool in tools}


def _make_drop(update: _Update) -> Drop:
    return Drop(update.before, update.reason, new_tools=update.after)
