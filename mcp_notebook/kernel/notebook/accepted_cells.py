"""The accepted cells of clients, and how what their run has defined is taken back.

`before_run`, `after_run` and `undo` run on the main thread, between other cells; the rest on any.
What a cell has changed otherwise (files, values, the world) stays, and the page says so before.
"""

from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any

import msgspec
from msgspec import Struct

from mcp_notebook.kernel.notebook.proposals import Proposal
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.wire import messages

MAX_ACCEPTED = 20
"""The accepted cells that can be taken back; the oldest are forgotten."""
_UNDONE = "The user took back the cell that declares it."


class _Accepted(Struct, eq=False):
    proposal: Proposal
    former: DeclaredTool | None
    """The tool that its cell replaces, as it was."""
    has_run: bool = False
    before: frozenset[str] | None = None
    """The variables before its run that it does not own; None unless it runs now."""
    names: dict[str, Any] = msgspec.field(default_factory=dict)
    """What only its runs have defined, by name."""
    tools: tuple[str, ...] = ()
    """The tools that it declares."""


class AcceptedCells:
    """The cells that a person has accepted, in one notebook.

    Args:
        namespace: The notebook's variables.
        registry: Its tools.
    """

    def __init__(self, namespace: MutableMapping[str, Any], registry: ToolRegistry) -> None:
        self._namespace = namespace
        self._registry = registry
        self._cells: OrderedDict[int, _Accepted] = OrderedDict()
        """By the proposals' numbers, the oldest first."""

    def add(self, proposal: Proposal) -> None:
        """Note a cell that a page has inserted."""
        former = self._registry.get(proposal.draft.tool)
        self._cells[proposal.number] = _Accepted(proposal, former)
        if len(self._cells) > MAX_ACCEPTED:
            self._cells.popitem(last=False)

    def before_run(self, cell: str) -> None:
        """Note the variables, if this cell is about to run."""
        for each in tuple(self._cells.values()):
            if each.proposal.cell == cell:
                each.has_run, each.before = True, frozenset(self._namespace) - each.names.keys()

    def after_run(self) -> None:
        """Note what the cell that has just run, if it is one of these, has defined.

        Whatever has another value than an accepted cell gave it is forgotten: it is not that
        cell's any more, and is not kept alive.
        """
        for each in tuple(self._cells.values()):
            if each.before is not None:
                each.names = {
                    name: value
                    for name, value in tuple(self._namespace.items())
                    if name not in each.before and not name.startswith("_")
                }
                each.before = None
                each.tools = tuple(
                    tool.name for tool in self._registry.tools if tool.cell == each.proposal.cell
                )
            each.names = {
                name: value
                for name, value in each.names.items()
                if self._namespace.get(name) is value
            }

    def describe(self) -> list[messages.AcceptedProposal]:
        """Return what pages show of them, the newest first."""
        return [
            messages.AcceptedProposal(
                number=number,
                cell=each.proposal.cell,
                client=each.proposal.client,
                digest=each.proposal.digest,
                tool=each.tools[0] if each.tools else "",
                replaced=each.proposal.draft.base,
                names=list(each.names),
                ran=each.has_run,
            )
            for number, each in reversed(tuple(self._cells.items()))
        ]

    def list_undone(self, number: int) -> list[str] | None:
        """Return the names that `undo` would take back; None if the cell is not known any more."""
        accepted = self._cells.get(number)
        return None if accepted is None else list(dict.fromkeys([*accepted.tools, *accepted.names]))

    def undo(self, number: int) -> None:
        """Take back the tools and the variables of an accepted cell, once."""
        accepted = self._cells.pop(number, None)
        if accepted is None:
            return
        for name, value in accepted.names.items():
            if self._namespace.get(name) is value:
                del self._namespace[name]
        former = accepted.former
        self._registry.remove(
            *(name for name in accepted.tools if former is None or name != former.name),
            reason=_UNDONE,
        )
        if former is not None and former.name in accepted.tools:
            if former.variable is not None:
                self._namespace[former.variable] = former.function
            self._registry.add(former)
