"""The accepted cells of clients, and how what their run has defined is taken back.

`before_run`, `after_run` and `undo` run on the main thread, between other cells; the rest on any.
What a cell has changed otherwise (files, values, the world) stays, and the page says so before.
"""

from collections.abc import Collection, MutableMapping
from typing import Any

from mcp_notebook.errors import ProposalError
from mcp_notebook.kernel.notebook.proposals import Proposal
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.wire import messages

MAX_ACCEPTED = 20
"""The accepted cells that can be taken back; the oldest are forgotten."""
_UNDONE = "The user took back the cell that declares it."


class AcceptedCells:
    """The cells that a person has accepted, in one notebook.

    Args:
        namespace: The notebook's variables.
        registry: Its tools.
    """

    def __init__(self, namespace: MutableMapping[str, Any], registry: ToolRegistry) -> None:
        self._namespace = namespace
        self._registry = registry
        self._cells: dict[str, Proposal] = {}
        """By the cells' ids, the oldest first."""
        self._running: tuple[Proposal, Collection[str]] | None = None
        """The one that runs now, and the variables before that are not its own."""

    def add(self, proposal: Proposal) -> None:
        """Note a cell that a page has inserted."""
        self._cells.pop(proposal.cell, None)
        proposal.former = self._registry.get(proposal.shown.tool)
        self._cells[proposal.cell] = proposal
        if len(self._cells) > MAX_ACCEPTED:
            del self._cells[next(iter(self._cells))]

    def before_run(self, cell: str) -> None:
        """Note the variables, if this cell is about to run."""
        if accepted := self._cells.get(cell):
            self._running = accepted, frozenset(self._namespace) - accepted.names.keys()

    def after_run(self) -> None:
        """Note what the cell that has just run, if it is one of these, has defined.

        Whatever has another value than an accepted cell gave it is forgotten: it is not that
        cell's any more, and is not kept alive.
        """
        if self._running is not None:
            (ran, before), self._running = self._running, None
            ran.enter("ran")
            ran.names = {
                name: value
                for name, value in tuple(self._namespace.items())
                if name not in before and not name.startswith("_")
            }
        for each in tuple(self._cells.values()):
            each.names = self._keep(each.names)

    def describe(self) -> list[messages.AcceptedProposal]:
        """Return what pages show of them, the newest first."""
        return [
            messages.AcceptedProposal(
                number=each.shown.number,
                cell=cell,
                client=each.shown.client,
                tool=next(iter(self._list_tools(each)), ""),
                replaced=each.shown.base,
                names=list(each.names),
                ran=each.state == "ran",
            )
            for cell, each in reversed(tuple(self._cells.items()))
        ]

    def forget(self, number: int) -> Proposal:
        """Return a cell that `undo` takes back, by its proposal's number.

        Raises:
            ProposalError: It is not known any more.
        """
        for cell, each in tuple(self._cells.items()):
            if each.shown.number == number:
                return self._cells.pop(cell)
        raise ProposalError(
            "The notebook has forgotten what this cell defined: delete it, and `del` its names."
        )

    def undo(self, proposal: Proposal) -> None:
        """Take back the tools and the variables of an accepted cell."""
        for name in self._keep(proposal.names):
            del self._namespace[name]
        former, tools = proposal.former, self._list_tools(proposal)
        if former is not None and former.name in tools:
            tools.remove(former.name)
            if former.variable is not None:
                self._namespace[former.variable] = former.function
            self._registry.add(former)
        self._registry.remove(*tools, reason=_UNDONE)

    def _keep(self, names: dict[str, Any]) -> dict[str, Any]:
        return {name: it for name, it in names.items() if self._namespace.get(name, self) is it}

    def _list_tools(self, proposal: Proposal) -> list[str]:
        """Return the tools that a cell declares, if it has run."""
        tools = self._registry.tools if proposal.state == "ran" else ()
        return [tool.name for tool in tools if tool.cell == proposal.cell]
