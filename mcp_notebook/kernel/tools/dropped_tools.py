"""The tools that a notebook had some minutes ago, and what became of each.

Runs in the user's kernel; `ToolRegistry` writes here, under its lock. What is old is forgotten, and
what became of a tool's successor, or of its cell's next run, is what became of the tool.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mcp_notebook.discovery.departures import is_recent
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.missing_tools import DEFINE_AGAIN, DroppedTool


@dataclass(frozen=True)
class Drop:
    """Tools that go together, for one reason."""

    tools: Sequence[DeclaredTool]
    reason: str
    """Why they go, as a sentence."""
    next_step: str = DEFINE_AGAIN
    """What the user can do, as a sentence."""
    new_tools: Sequence[DeclaredTool] = ()
    """Those that came with the same change, and may be the same under new names."""
    cell: str | None = None
    """The cell whose run this is; its reason replaces those of the cell's earlier runs."""


@dataclass(frozen=True)
class _Entry:
    dropped: DroppedTool
    cell: str | None
    """The cell that had declared the tool."""


class DroppedTools:
    """What became of the tools of the last minutes; readers get snapshots.

    Args:
        clock: Returns the time in seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._entries: Mapping[str, _Entry] = {}

    def read(self) -> dict[str, DroppedTool]:
        """Return what became of the tools, by their names."""
        return {name: entry.dropped for name, entry in _select_recent(self._entries).items()}

    def update(self, drops: Iterable[Drop], tools: Mapping[str, DeclaredTool]) -> None:
        """Take what has just gone, and forget those whose names are tools again.

        Args:
            drops: The tools that went.
            tools: Those that there are now.
        """
        entries = dict(_select_recent(self._entries))
        for drop in drops:
            for name, entry in entries.items():
                if entry.cell is not None and entry.cell == drop.cell:
                    changes = replace(entry.dropped, reason=drop.reason, next_step=drop.next_step)
                    entries[name] = replace(entry, dropped=changes)
            new = {tool.name: _Entry(self._make(tool, drop), tool.cell) for tool in drop.tools}
            for name, entry in entries.items():
                successor = new.get(entry.dropped.new_name or "")
                if successor is not None:
                    dropped = replace(successor.dropped, at=entry.dropped.at)
                    entries[name] = replace(entry, dropped=dropped)
            entries |= new
        self._entries = {name: entry for name, entry in entries.items() if name not in tools}

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


def _select_recent(entries: Mapping[str, _Entry]) -> dict[str, _Entry]:
    return {name: entry for name, entry in entries.items() if is_recent(entry.dropped.at)}
