"""The cards below the cells of the notebook, and the marks of ``%mcp check`` on them.

Runs on the kernel's main thread. A card is an output that can be replaced in its place, wherever
the frontend shows it. A mark names the rules that the last check found broken; it goes with a
later check that does not find them, or when the cell runs again.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from IPython.display import display, update_display
from msgspec import Struct

from mcp_notebook.kernel.notebook.cards.tool_view import build_card
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool


class _Card(Struct):
    display_id: str
    tools: Sequence[DeclaredTool]
    current: set[str]
    """The names of the tools that no later card shows."""
    marks: Mapping[str, Sequence[str]]


class ShownCards:
    """The cards of this session.

    Args:
        list_hosts: Returns the origins that a tool's own view may load from.
    """

    def __init__(self, list_hosts: Callable[[DeclaredTool], Sequence[str]]) -> None:
        self._list_hosts = list_hosts
        self._cards: list[_Card] = []

    def show(self, tools: Sequence[DeclaredTool]) -> None:
        """Show a card of tools as a part of the cell's output."""
        names = {tool.name for tool in tools}
        for card in self._cards:
            card.current -= names
        card = _Card(f"mcp-notebook-{secrets.token_hex(8)}", tools, names, {})
        self._cards = [*filter(lambda card: card.current, self._cards), card]
        display(self._build(card), raw=True, display_id=card.display_id)

    def mark(self, marks: Mapping[str, Sequence[str]]) -> None:
        """Mark the tools that a check has found something about.

        Args:
            marks: The names of rules, by the names of all tools that were checked.
        """
        for card in self._cards:
            found = {**card.marks, **{name: marks[name] for name in marks if name in card.current}}
            own = {name: rules for name, rules in found.items() if rules}
            if own != card.marks:
                card.marks = own
                update_display(self._build(card), raw=True, display_id=card.display_id)

    def _build(self, card: _Card) -> dict[str, Any]:
        return dict(build_card(card.tools, self._list_hosts, card.marks))
