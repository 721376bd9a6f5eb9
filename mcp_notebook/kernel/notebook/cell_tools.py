"""Tracks which cell declares which tools: a cell's tools are those that its last run declared.

When the author renames a function and runs its cell again, the tool with the old name is removed.
Runs on the thread of the cell. JupyterLab and VS Code send the cell's id with each run; without an
id, as in a terminal or a headless notebook, tools stay until they are removed. The tools of a
deleted cell stay as well, as its variables do: JupyterLab and Notebook 7 report deleted cells with
the next run of another cell, and the author is told how to remove them.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from types import MethodType
from typing import Any

import msgspec
from msgspec import Struct, structs

from mcp_notebook.kernel.calls.capture import current_capture
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, write_subject
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


class _Run(Struct):
    """One run of a cell."""

    cell: str | None
    """The cell's id, if the frontend sent it."""
    declared: set[str] = msgspec.field(default_factory=set)
    """The names of the tools that it has declared."""
    new: set[str] = msgspec.field(default_factory=set)
    """Those of them that did not exist before."""
    added: set[str] = msgspec.field(default_factory=set)
    """The names of the tools that it has added and that do not belong to it."""
    notes: dict[str, str] = msgspec.field(default_factory=dict)
    """Notes for the author on replaced tools and on functions that are no tools, by name."""


class EndedRun(Struct, frozen=True):
    """The changes by a cell."""

    added: frozenset[str] = frozenset()
    """The names of the tools that it has declared or added."""
    dropped: tuple[DeclaredTool, ...] = ()
    """The tools that an earlier run declared and this run did not."""
    notes: tuple[str, ...] = ()
    """Sentences for the author."""


class CellTools:
    """Adds the tools that cells declare, and removes those that their cells no longer declare.

    Each thread has its own stack: a cell may run others within itself (``%%capture``), and
    subshells run cells on threads of their own.

    Args:
        registry: The notebook's tools.
        previous: From the extension that is replaced while a cell runs.
    """

    def __init__(self, registry: ToolRegistry, previous: "CellTools | None" = None) -> None:
        self.registry = registry
        self.runs: dict[int, list[_Run]] = {} if previous is None else previous.runs
        self._reported: frozenset[str] = frozenset()
        """The deleted cells that the frontend named last."""

    def note_deleted(self, cells: Any) -> None:
        """Note that cells were deleted.

        Args:
            cells: Their ids, as the frontend sent them.
        """
        if isinstance(cells, list):
            deleted = frozenset(cell for cell in cells if isinstance(cell, str))
            # A cell that was cut and pasted is named again until a run has ended.
            self.registry.deleted_cells |= deleted - self._reported
            self._reported = deleted

    def begin_run(self, cell: str | None) -> None:
        """Note that a cell starts; a nested cell belongs to the outer cell.

        Args:
            cell: Its id; None if the frontend did not send one.
        """
        if cell is not None:  # its deletion was undone
            self.registry.deleted_cells -= {cell}
        runs = self.runs.setdefault(threading.get_ident(), [])
        runs.append(_Run(cell or (runs[-1].cell if runs else None)))

    def end_run(self, result: Any) -> EndedRun:
        """Remove the tools that an earlier run of the cell declared and this one did not.

        A cell that failed may not have reached its declarations, so its tools stay. Declarations of
        a nested cell count for the outer cell.

        Args:
            result: IPython's; None if the cell was cancelled.
        """
        info = getattr(result, "info", None)
        if info is not None and not (info.raw_cell or "").strip():
            # IPython reports only the end of an empty cell.
            self.begin_run(getattr(info, "cell_id", None))
        runs = self.runs.get(threading.get_ident())
        if not runs:
            return EndedRun()  # the extension was loaded while the cell ran
        run = runs.pop()
        if not runs:
            del self.runs[threading.get_ident()]
        elif runs[-1].cell == run.cell:
            runs[-1].declared |= run.declared
            runs[-1].new |= run.new
            runs[-1].added |= run.added
            runs[-1].notes |= run.notes
            return EndedRun()
        added, notes = frozenset(run.declared | run.added), tuple(run.notes.values())
        if run.cell is None or not getattr(result, "success", False):
            return EndedRun(added, notes=notes)
        names = ", ".join(f"`{name}`" for name in sorted(run.declared))
        reason = f"Its cell now declares {names}." if names else "Its cell no longer declares it."
        dropped = self.registry.retain(run.cell, run.declared, reason, run.new)
        return EndedRun(added, dropped, notes)

    def add(self, *tools: DeclaredTool) -> bool:
        """Add tools to the registry; they belong to the cell that runs here, if one does.

        Returns:
            Whether the tools were added.

        Raises:
            DefinitionError: As `ToolRegistry.add`.
        """
        run = self._find_run()
        names = {tool.name for tool in tools}
        notes = {tool.name: note for tool in tools if (note := self._explain_loss(tool, run))}
        new = {name for name in names if self.registry.get(name) is None}
        self.registry.add(*(structs.replace(tool, cell=run.cell) for tool in tools))
        run.declared |= names
        run.new |= new
        run.notes |= notes
        return True

    def note_refused(self, refusals: Mapping[str, str]) -> None:
        """Note which functions cannot be tools, to say so at the end of the cell's output.

        Args:
            refusals: Sentences for the author, by the function's name.
        """
        self._find_run().notes.update(refusals)

    def _explain_loss(self, tool: DeclaredTool, run: _Run) -> str | None:
        """Return a note for the author if a new tool replaces an existing tool of another cell.

        None if the same cell runs again, or if the cells have no ids.
        """
        old = self.registry.get(tool.name)
        if old is None or _unbind(old.function) is _unbind(tool.function):
            return None
        if tool.name in run.declared:
            kind = tool.kind_word
            how = "." if kind == "skill" else f", `@mcp_{kind}(name=...)`."
            return (
                f"This cell declares `{tool.name}` more than once, and only the last one is a "
                f"{kind}: give each a name of its own{how}"
            )
        is_same_cell = old.cell is None or run.cell is None or old.cell == run.cell
        if is_same_cell and old.info.kind == tool.info.kind:
            return None
        return (
            f"`{tool.name}` replaces the {old.kind_word} of that name from another cell. If you "
            "need both, rename one of them."
        )

    def note_added(self, names: Iterable[str]) -> None:
        """Note that the cell that runs here, if any, added tools.

        They do not belong to the cell: they stay when it runs again without adding them.

        Args:
            names: The tools' names.
        """
        self._find_run().added.update(names)

    def _find_run(self) -> _Run:
        runs = self.runs.get(threading.get_ident())
        # A call that runs while a cell awaits something does not belong to that cell.
        return runs[-1] if runs and current_capture() is None else _Run(None)


def _unbind(function: Any) -> Any:
    """Return the function of a bound method: each access makes another method object."""
    return function.__func__ if isinstance(function, MethodType) else function


def describe_undeclared(tools: Sequence[DeclaredTool]) -> str:
    """Return the note for the author of a cell that no longer declares these tools."""
    subject = write_subject(tools, [f"`{tool.name}`" for tool in tools])
    return f"{subject} gone: this cell no longer declares {'it' if len(tools) == 1 else 'them'}."
