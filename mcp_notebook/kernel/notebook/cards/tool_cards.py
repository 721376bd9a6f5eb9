"""Shows a notebook's cards and keeps them up to date.

Cards are shown on the thread of their cell. They are refreshed after each cell, and after changes
from elsewhere on the thread that made the change; only cards whose contents have changed are sent.
"""

import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from IPython.display import display

from mcp_notebook.kernel.notebook.cards.tool_facts import ToolFacts, gather_facts
from mcp_notebook.kernel.notebook.cards.tool_state import (
    ToolState,
    describe_dropped_tool,
    describe_live_tool,
    describe_moved_tool,
    describe_removed_tool,
    describe_unloaded_tool,
)
from mcp_notebook.kernel.notebook.cards.tool_view import build_card
from mcp_notebook.kernel.notebook.live_display import LiveDisplay
from mcp_notebook.kernel.notebook.public_address import find_public_address
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.wire import messages

MAX_LOST = 500
"""Removed tools whose cards are remembered in case they return."""


def _make_stamp() -> str:
    """Return when and in which kernel a card was made, as a sentence for stored outputs."""
    when = time.strftime("%Y-%m-%d %H:%M")
    return f"Made on {when} in kernel {os.getpid()}. After a restart, run the cell again."


@dataclass(eq=False)
class Card:
    """One card and its current contents."""

    output: LiveDisplay
    stamp: str
    is_remote: bool
    """Whether the notebook is on Binder or a JupyterHub."""
    facts: dict[str, ToolFacts]
    """Its tools, by name."""
    states: dict[str, ToolState]
    cells: dict[str, str | None]
    """The cells that declared the tools when the card was made."""
    bundle: dict[str, str] = field(default_factory=dict)
    """The MIME bundle that it shows."""


class ToolCards:
    """The cards of one notebook, by the names of its tools.

    Args:
        registry: The notebook's tools.
        shell: The notebook's IPython.
        previous: The cards of the extension that was loaded before, if one was.
    """

    def __init__(
        self, registry: ToolRegistry, shell: Any, previous: "ToolCards | None" = None
    ) -> None:
        self._registry = registry
        self._shell = shell
        self._lock = threading.Lock()
        self.cards: dict[str, Card] = {} if previous is None else previous.cards
        """The last card of each tool, by the tool's name."""
        self._last: dict[str, DeclaredTool | None] = dict.fromkeys(self.cards)
        """The tools that the cards show; None for removed tools."""
        self.listed_names: Mapping[str, messages.ListedName] = {}
        """The tools that clients see under other names, by their own names."""
        self._unloaded_at: float | None = None

    def has(self, name: str) -> bool:
        """Return whether there is a card of a tool."""
        return name in self.cards

    def show(self, names: Collection[str]) -> None:
        """Show one card of these tools below the running cell; it replaces their earlier cards.

        Args:
            names: The tools' names; unknown ones are ignored.
        """
        tools = [tool for tool in self._registry.tools if tool.name in names] if names else ()
        if not tools:
            return
        card = Card(
            output=LiveDisplay(self._shell),
            stamp=_make_stamp(),
            is_remote=find_public_address(os.environ) is not None,
            facts={tool.name: self._gather(tool) for tool in tools},
            states={tool.name: self._describe_live(tool.name) for tool in tools},
            cells={tool.name: tool.cell for tool in tools},
        )
        with self._lock:
            others = self._take_over(card, tools)
            _refresh_bundle(card)
        # As a part of the cell's output, after everything that it has printed.
        display(card.bundle, raw=True, display_id=card.output.id)
        self._send(others)

    def _take_over(self, card: Card, tools: Sequence[DeclaredTool]) -> list[Card]:
        """Register a card for these tools, and return the other cards that have changed."""
        others = {}
        for tool in tools:
            other = self.cards.pop(tool.name, None)  # moves the tool to the end
            self.cards[tool.name] = card
            self._last[tool.name] = tool
            # A cell that runs again clears its outputs.
            if other is not None and (tool.cell is None or other.cells[tool.name] != tool.cell):
                other.states[tool.name] = describe_moved_tool(tool.name)
                others[other.output.id] = other
        return [other for other in others.values() if _refresh_bundle(other)]

    def refresh(self) -> None:
        """Update all cards whose contents have changed."""
        with self._lock:
            cards = self._look_at(self._find_changes())
            lost = [name for name in self.cards if self._last[name] is None]
            for name in lost[:-MAX_LOST]:
                del self.cards[name], self._last[name]
        self._send(cards)

    def set_listed_names(self, names: Mapping[str, messages.ListedName]) -> None:
        """Show on the cards which names clients see.

        Args:
            names: The tools that clients see under other names, by their own names.
        """
        with self._lock:
            before, self.listed_names = self.listed_names, names
            changed = [name for name in self.cards if before.get(name) != names.get(name)]
            cards = self._look_at(changed)
        self._send(cards)

    def close(self) -> None:
        """Show on all cards that the notebook no longer offers its tools."""
        self._unloaded_at = time.time()
        with self._lock:
            cards = self._look_at(tuple(self.cards))
        self._send(cards)

    def _find_changes(self) -> list[str]:
        find = self._registry.get
        return [
            name
            for name, tool in self._last.items()
            if find(name) is not tool or (tool is not None and self._has_come(name))
        ]

    def _has_come(self, name: str) -> bool:
        """Return whether a related tool exists now that the card shows as missing."""
        missing = self.cards[name].facts[name].missing
        return any(self._exists(other) for other in missing)

    def _look_at(self, names: Collection[str]) -> list[Card]:
        """Refresh these tools, and return the cards that have changed."""
        cards = {self.cards[name].output.id: self.cards[name] for name in names}
        for name in names:
            self._look_again(name)
        return [card for card in cards.values() if _refresh_bundle(card)]

    def _look_again(self, name: str) -> None:
        card = self.cards[name]
        tool = None if self._unloaded_at is not None else self._registry.get(name)
        was_live, before = card.states[name].is_live, self._last[name]
        self._last[name] = tool
        if tool is not None:
            # Only if they may differ: gathering runs the author's code, the `repr` of a default.
            if tool is not before or self._has_come(name):
                card.facts[name] = self._gather(tool)
            card.states[name] = self._describe_live(name)
        elif was_live:
            card.states[name] = self._describe_end(name)

    def _describe_live(self, name: str) -> ToolState:
        return describe_live_tool(self.listed_names.get(name))

    def _describe_end(self, name: str) -> ToolState:
        if self._unloaded_at is not None:
            return describe_unloaded_tool(self._unloaded_at)
        dropped = self._registry.dropped.get(name)
        if dropped is None:
            return describe_removed_tool(time.time())
        return describe_dropped_tool(dropped, self._registry.find_new_name(dropped))

    def _gather(self, tool: DeclaredTool) -> ToolFacts:
        return gather_facts(tool, self._exists)

    def _exists(self, name: str) -> bool:
        return self._registry.get(name) is not None

    def _send(self, cards: Sequence[Card]) -> None:
        for card in cards:
            card.output.update(card.bundle)


def _refresh_bundle(card: Card) -> bool:
    """Render a card, and return whether it has changed."""
    before = card.bundle
    card.bundle = build_card(
        tuple(card.facts.values()), card.states, card.stamp, is_remote=card.is_remote
    )
    return card.bundle != before
