"""The cards that a notebook's cells show, and what each of them says now.

Cards are shown on the thread of their cell. They are looked at again after each cell, and after
changes that come from elsewhere, on the thread that made the change; only those are sent anew that
say something else then.
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
"""Tools that are gone and whose cards are remembered, should they return."""


def _make_stamp() -> str:
    """Return when and in which kernel something is made, as a sentence for stored outputs."""
    when = time.strftime("%Y-%m-%d %H:%M")
    return f"Made on {when} in kernel {os.getpid()}. After a restart, run the cell again."


@dataclass(eq=False)
class Card:
    """One card, and what it says now."""

    output: LiveDisplay
    stamp: str
    is_remote: bool
    """Whether the notebook is on Binder or a JupyterHub."""
    facts: dict[str, ToolFacts]
    """What it says of its tools, by name."""
    states: dict[str, ToolState]
    cells: dict[str, str | None]
    """The cells that had declared the tools, when the card was made."""
    bundle: dict[str, str] = field(default_factory=dict)
    """What it shows."""


class ToolCards:
    """The cards of one notebook; its tools' cards are known by the tools' names.

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
        """The tools as the cards say they are; None for those that are gone."""
        self.listed_names: Mapping[str, messages.ListedName] = {}
        """The tools that clients see under other names, by their own."""
        self._unloaded_at: float | None = None

    def has(self, name: str) -> bool:
        """Return whether there is a card of a tool."""
        return name in self.cards

    def show(self, names: Collection[str]) -> None:
        """Show one card of these tools below the cell that runs, in place of their earlier cards.

        Args:
            names: The tools' names; those that are no longer there are ignored.
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
        # As a part of the cell: after all that it has printed.
        display(card.bundle, raw=True, display_id=card.output.id)
        self._send(others)

    def _take_over(self, card: Card, tools: Sequence[DeclaredTool]) -> list[Card]:
        """Make a card that of these tools, and return the others that say something else now."""
        others = {}
        for tool in tools:
            other = self.cards.pop(tool.name, None)  # the newest come last
            self.cards[tool.name] = card
            self._last[tool.name] = tool
            # A cell that runs again clears its outputs.
            if other is not None and (tool.cell is None or other.cells[tool.name] != tool.cell):
                other.states[tool.name] = describe_moved_tool(tool.name)
                others[other.output.id] = other
        return [other for other in others.values() if _refresh_bundle(other)]

    def refresh(self) -> None:
        """Look at the tools again, and show the cards anew that say something else now."""
        with self._lock:
            cards = self._look_at(self._find_changes())
            lost = [name for name in self.cards if self._last[name] is None]
            for name in lost[:-MAX_LOST]:
                del self.cards[name], self._last[name]
        self._send(cards)

    def set_listed_names(self, names: Mapping[str, messages.ListedName]) -> None:
        """Say on the cards which names clients see.

        Args:
            names: The tools that clients see under other names, by their own.
        """
        with self._lock:
            before, self.listed_names = self.listed_names, names
            changed = [name for name in self.cards if before.get(name) != names.get(name)]
            cards = self._look_at(changed)
        self._send(cards)

    def close(self) -> None:
        """Say on all cards that the notebook no longer offers its tools."""
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
        """Return whether a related tool exists by now that the card calls missing."""
        missing = self.cards[name].facts[name].missing
        return any(self._exists(other) for other in missing)

    def _look_at(self, names: Collection[str]) -> list[Card]:
        """Look at these tools, and return the cards that say something else now."""
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
            # Only if they may differ: it runs code of the author's, the `repr` of a default.
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
    """Render a card, and return whether it says something else than before."""
    before = card.bundle
    card.bundle = build_card(
        tuple(card.facts.values()), card.states, card.stamp, is_remote=card.is_remote
    )
    return card.bundle != before
