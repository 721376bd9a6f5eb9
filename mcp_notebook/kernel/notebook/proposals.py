"""The cells that clients propose: the queue of one notebook, and what each is waiting for.

Used on any thread: `proposing` adds and waits, on a call's thread; side panels decide on the
link's, ``%mcp propose`` on the main one. All changes are made here, under one lock, and this module
inserts and runs nothing: pages insert what a person has accepted. `hidden_text` says what a person
may miss in a source, and `accepted_cells` takes an accepted one back.

The states, and what leads to them::

    open ──── a page takes it ───▶ taken ──── its cell is there ───▶ inserted ── it runs ─▶ ran
     ▲                              │
     └──────── stale, or late ──────┘

In each of them, a proposal can end: it is answered, and forgotten here.
"""

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from mcp_notebook.errors import ProposalError, ToolError
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.wire import messages

State: TypeAlias = Literal["open", "taken", "inserted", "ran"]
_Outputs: TypeAlias = Sequence[Mapping[str, Any]]
LIMITS: Mapping[State, tuple[float, str]] = {
    "open": (600.0, "Nobody has decided about it in time."),
    "taken": (30.0, "The page that took it has not inserted it."),
    "inserted": (600.0, "It has not run yet."),
    "ran": (5.0, "It has run; its outputs were not reported."),
}
"""Seconds in a state, and what is said when they are over. A person has as long as for consent."""
MAX_OF_CLIENT = 5
"""Proposals of one client that may be open at the same time. Those of all are calls that wait."""


class Proposal(Struct, eq=False, kw_only=True):
    """One proposal; written by `Proposals`, under its lock, and by `AcceptedCells` afterwards."""

    shown: messages.OpenProposal
    """What pages show of it, but for its state."""
    owner: str
    """Identifies the client, as far as that is possible."""
    is_task: Callable[[], bool]
    """Returns whether its client follows it as a task, which stays open."""
    state: State = "open"
    since: float = msgspec.field(default_factory=time.time)
    """When it entered its state."""
    edited: str | None = None
    """What is inserted, if it is the person's version."""
    run: bool = False
    """Whether the person wants it to run."""
    cell: str = ""
    """The id of its cell, once that is there."""
    changes: list[str] = msgspec.field(default_factory=list)
    """Why it could not be inserted so far; sentences."""
    outputs: _Outputs | None = None
    """What the person saw below the cell, in nbformat's form; None if she has not accepted it."""
    answer: Future[str] = msgspec.field(default_factory=Future)
    """A sentence or two for its client."""
    former: DeclaredTool | None = None
    """The tool that its cell has replaced, as it was."""
    names: dict[str, Any] = msgspec.field(default_factory=dict)
    """What only the runs of its cell have defined, by name."""

    def enter(self, state: State) -> None:
        """Change the state."""
        self.since = time.time()  # first: `look` may come in between
        self.state = state


class Proposals:
    """The proposals of one notebook."""

    def __init__(self) -> None:
        self.limits = dict(LIMITS)
        """How long a proposal may be in each state."""
        self.on_late: Callable[[], None] = lambda: None
        """Called when the time of one was over, on any thread."""
        self._numbers = itertools.count(1)
        self._open: dict[int, Proposal] = {}
        """Those without an ending."""
        self._lock = threading.RLock()

    @property
    def undecided(self) -> tuple[Proposal, ...]:
        """Those that a person or a page has to act on, oldest first; on any thread."""
        every = tuple(self._open.values())
        return tuple(each for each in every if each.state in ("open", "taken"))

    def describe(self) -> list[messages.OpenProposal]:
        """Return what pages show of the undecided ones, oldest first; on any thread."""
        return [
            structs.replace(
                each.shown,
                state=each.state,
                ends=0.0 if each.is_task() else round(each.since + self.limits["open"][0], 1),
                warnings=[*each.shown.warnings, *each.changes],
            )
            for each in self.undecided
        ]

    # -- clients -----------------------------------------------------------------------------------

    def add(
        self, shown: messages.OpenProposal, *, owner: str, is_task: Callable[[], bool] = bool
    ) -> Proposal:
        """Add a proposal, with its number; it replaces one of the same program for its place.

        Raises:
            ToolError: Too many are open.
        """
        with self._lock:
            place = owner, shown.client, shown.tool, shown.after
            for each in tuple(self._open.values()):
                self.look(each)  # perhaps nobody waits for it
                other = each.owner, each.shown.client, each.shown.tool, each.shown.after
                if other == place and (shown.tool or shown.after) and each.state == "open":
                    self.end(each, "It was replaced by your newer one.")
            if sum(each.owner == owner for each in self._open.values()) >= MAX_OF_CLIENT:
                raise ToolError(
                    f"{MAX_OF_CLIENT} proposals of yours wait: propose no more before an answer."
                )
            shown = structs.replace(shown, number=next(self._numbers))
            proposal = Proposal(shown=shown, owner=owner, is_task=is_task)
            self._open[shown.number] = proposal
            return proposal

    def look(self, proposal: Proposal) -> None:
        """End or reopen a proposal whose time is over; its client's call looks now and then."""
        with self._lock:
            state, (seconds, late) = proposal.state, self.limits[proposal.state]
            if (state == "open" and proposal.is_task()) or time.time() - proposal.since < seconds:
                return
            if state == "open":
                self.end(proposal, late, *proposal.changes)
            elif state == "taken":
                self._reopen(proposal, late)
            else:
                self._settle(proposal, late)
        self.on_late()

    def end(self, proposal: Proposal, *sentences: str, outputs: _Outputs | None = None) -> None:
        """Answer a proposal's client; does nothing if it has ended."""
        with self._lock:
            if self._open.pop(proposal.shown.number, None) and not proposal.answer.done():
                proposal.outputs = outputs
                proposal.answer.set_result(" ".join(sentences))

    # -- a person's decisions ----------------------------------------------------------------------

    def take(
        self,
        request: messages.TakeProposal,
        place_again: Callable[[messages.OpenProposal], tuple[messages.OpenProposal, str]],
    ) -> str:
        """Claim a proposal for a page.

        Args:
            request: The page's request.
            place_again: Returns what is shown, with its place as it is now, and what has changed.

        Raises:
            ProposalError: It is not open, not the one that the person saw, or its place has
                changed, so that she looks again.
        """
        with self._lock:
            proposal = self._find(request.number, "open")
            if request.digest != proposal.shown.digest:
                raise ProposalError(
                    f"Proposal {request.number} is not the one that you saw: look at it again."
                )
            proposal.shown, why = place_again(proposal.shown)
            if why:
                proposal.changes.append(why)
                raise ProposalError(f"{why} Look at it again.")
            proposal.edited = request.source
            proposal.run = request.run and proposal.shown.kind != "markdown"
            proposal.enter("taken")
        return f"Inserting the cell that {proposal.shown.client} proposes."

    def settle(self, request: messages.SettleProposal) -> Proposal:
        """Note what a page has done with a proposal that it has taken.

        Raises:
            ProposalError: It is not taken, or was not inserted.
        """
        with self._lock:
            if request.outcome == "ran":
                proposal = self._find(request.number, "inserted", "ran")
                self._settle(proposal, "The user ran it.", request.outputs or ())
                return proposal
            proposal = self._find(request.number, "taken")
            if request.outcome != "inserted":
                self._reopen(proposal, request.message or "Its place has changed.")
                return proposal
            proposal.cell = request.cell
            if request.replaced is not None or request.cell != proposal.shown.replaces:
                proposal.shown = structs.replace(proposal.shown, base=request.replaced)
            proposal.enter("inserted")
            if not proposal.run:
                self._settle(proposal, "The user has not run it.")
            return proposal

    def accept_by_hand(self, number: int) -> messages.OpenProposal:
        """Accept and return a proposal whose source the person gets in a new cell.

        Raises:
            ProposalError: It is not open.
        """
        with self._lock:
            proposal = self._find(number, "open")
            self._settle(proposal, "The user has not run it.")
        return proposal.shown

    def reject(self, number: int, word: str) -> str:
        """Reject a proposal.

        Args:
            number: Its number.
            word: The person's reason; "" if she gives none.

        Raises:
            ProposalError: It is not open.
        """
        with self._lock:
            proposal = self._find(number, "open")
            said = f"She said: {word}" if word else "She gave no reason."
            self.end(proposal, "The user has rejected it.", said, *proposal.changes)
        return f"Rejected the cell that {proposal.shown.client} proposed."

    # -- under the lock ----------------------------------------------------------------------------

    def _find(self, number: int, *states: State) -> Proposal:
        proposal = self._open.get(number)
        if proposal is not None:
            self.look(proposal)
        if proposal is None or number not in self._open or proposal.state not in states:
            raise ProposalError(
                f"Proposal {number} is not open any more: another page decides or has decided "
                "about it, its time is over, or its client has withdrawn it."
            )
        return proposal

    def _reopen(self, proposal: Proposal, why: str) -> None:
        proposal.edited = None
        proposal.enter("open")
        if why not in proposal.changes:
            proposal.changes.append(why)

    def _settle(self, proposal: Proposal, text: str, outputs: _Outputs = ()) -> None:
        how = "as it is" if proposal.edited is None else "with changes"
        accepted = f"The user has accepted your cell {how}, and it is in the notebook."
        self.end(proposal, accepted, text, outputs=outputs)
