"""The cells that clients propose: the queue of one notebook, and what each is waiting for.

Used on any thread: `proposal_tool` adds and waits, on a call's thread; side panels decide on the
link's, ``%mcp propose`` on the main one. All changes are made here, under one lock, and this module
inserts and runs nothing: pages insert what a person has accepted. `hidden_text` says what a person
may miss in a source, and `accepted_cells` takes an accepted one back.

The states, and what leads to them::

    open ──── a page takes it ───▶ taken ──── its cell is there ───▶ inserted ──▶ settled
     ▲ │                            │                                  (it has run, or need not)
     │ │◀── stale, failed, or no ───┘
     │ │    word for `CLAIM_LIMIT`
     │ └───▶ rejected | expired | withdrawn (by its client, or for its newer proposal)
"""

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from mcp_notebook.errors import ProposalError, ToolError
from mcp_notebook.wire import messages

Kind: TypeAlias = Literal["code", "markdown", "tool"]
State: TypeAlias = Literal[
    "open", "taken", "inserted", "settled", "rejected", "expired", "withdrawn"
]
MOVES: Mapping[State, frozenset[State]] = {
    "open": frozenset({"taken", "settled", "rejected", "expired", "withdrawn"}),
    "taken": frozenset({"open", "inserted", "withdrawn"}),
    "inserted": frozenset({"settled", "withdrawn"}),
}
"""The states that may follow; from all others, none does."""
MAX_OF_CLIENT = 5
"""Proposals of one client that may be open at the same time."""
MAX_OPEN = 20
"""Proposals of all clients."""
ANSWER_LIMIT = 600.0
"""Seconds that a person has to decide, as for consent, and then for the cell to run."""
CLAIM_LIMIT = 30.0
"""Seconds that a page has to insert the cell of a proposal that it has taken."""
OUTPUTS_LIMIT = 5.0
"""Seconds that a page has to report the outputs of a cell, after it has run."""
_GONE = (
    "Proposal {} is not open any more: it was decided elsewhere, its time is over, or its client "
    "has withdrawn it."
)


class Draft(Struct, frozen=True, kw_only=True):
    """What a client proposes, and where it would go; as in `messages.OpenProposal`."""

    source: str
    reason: str
    kind: Kind = "code"
    after: str | None = None
    """Until the draft is checked, the client's word for that cell."""
    replaces: str | None = None
    tool: str = ""
    """Likewise, the client's word for that tool."""
    base: str | None = None
    warnings: Sequence[str] = ()


class Ending(Struct, frozen=True):
    """How a proposal ended, for its client."""

    state: State
    text: str
    """A sentence or two."""
    source: str | None = None
    """The final source, if the person has edited it."""
    outputs: Sequence[Mapping[str, Any]] = ()
    """What the person saw below the cell, in nbformat's form."""


class Proposal(Struct, eq=False, kw_only=True):
    """One proposal; written by `Proposals`, under its lock."""

    number: int
    draft: Draft
    client: str
    """The label of the program."""
    owner: str
    """Identifies the caller, who cannot choose it."""
    is_task: Callable[[], bool]
    """Returns whether its client follows it as a task, which stays open."""
    asked: float = msgspec.field(default_factory=time.time)
    state: State = "open"
    since: float = msgspec.field(default_factory=time.monotonic)
    """When it entered its state, on the monotonic clock."""
    source: str = ""
    """What is inserted: the draft's source, or the edited one."""
    run: bool = False
    """Whether the person wants it to run."""
    cell: str = ""
    """The id of its cell, once that is there."""
    ran_at: float | None = None
    """When the kernel has run this cell, on the monotonic clock."""
    changes: list[str] = msgspec.field(default_factory=list)
    """Why it could not be inserted so far; sentences."""
    ending: Future[Ending] = msgspec.field(default_factory=Future)

    @property
    def digest(self) -> str:
        """The digest of what was proposed."""
        return hashlib.sha256(self.draft.source.encode()).hexdigest()


class Proposals:
    """The proposals of one notebook."""

    def __init__(self) -> None:
        self.wait = ANSWER_LIMIT
        """Seconds that a person has to decide."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after each change, on the thread that made it."""
        self.on_inserted: Callable[[Proposal], None] = lambda _proposal: None
        """Called with each proposal that a page has inserted; before `on_change`."""
        self._numbers = itertools.count(1)
        self._open: dict[int, Proposal] = {}
        """Those without an ending."""
        self._lock = threading.RLock()

    @property
    def undecided(self) -> tuple[Proposal, ...]:
        """Those that a person or a page has to act on, oldest first; on any thread."""
        return tuple(each for each in tuple(self._open.values()) if each.state != "inserted")

    def describe(self) -> list[messages.OpenProposal]:
        """Return what pages show of the undecided ones, oldest first; on any thread."""
        return [
            messages.OpenProposal(
                number=each.number,
                client=each.client,
                digest=each.digest,
                asked=round(each.asked, 1),
                ends=0.0 if each.is_task() else round(each.asked + self.wait, 1),
                state="taken" if each.state == "taken" else "open",
                **structs.asdict(each.draft) | {"warnings": [*each.draft.warnings, *each.changes]},
            )
            for each in self.undecided
        ]

    # -- clients -----------------------------------------------------------------------------------

    def add(
        self, draft: Draft, *, client: str, owner: str, is_task: Callable[[], bool] = bool
    ) -> Proposal:
        """Add a proposal; it replaces one of the same program for the same place.

        Raises:
            ToolError: Too many are open.
        """
        for each in tuple(self._open.values()):  # of one nobody waits for
            self.look(each)
        with self._lock:
            sent = owner, client, draft.tool, draft.after
            for each in self.undecided:
                other = each.owner, each.client, each.draft.tool, each.draft.after
                if sent == other and (draft.tool or draft.after) and each.state == "open":
                    self._end(each, "withdrawn", "It was replaced by your newer one.")
            same_owner = sum(each.owner == owner for each in self._open.values())
            if same_owner >= MAX_OF_CLIENT or len(self._open) >= MAX_OPEN:
                whose = f"{same_owner} proposals of yours"
                if same_owner < MAX_OF_CLIENT:
                    whose = f"{len(self._open)} proposals of all clients"
                raise ToolError(
                    f"Already {whose} wait for the user: wait for an answer before you propose "
                    "more."
                )
            proposal = Proposal(
                number=next(self._numbers),
                draft=draft,
                client=client,
                owner=owner,
                is_task=is_task,
                source=draft.source,
            )
            self._open[proposal.number] = proposal
        self.on_change()
        return proposal

    def withdraw(self, proposal: Proposal, reason: str) -> None:
        """End a proposal whose client no longer waits; does nothing if it has ended."""
        with self._lock:
            if proposal.number in self._open:
                self._end(proposal, "withdrawn", reason)
        self.on_change()

    def look(self, proposal: Proposal) -> None:
        """End or reopen a proposal whose time is over; its client's call looks now and then."""
        now = time.monotonic()
        with self._lock:
            before, waited = proposal.state, now - proposal.since
            if proposal.state == "taken" and waited > CLAIM_LIMIT:
                self._reopen(proposal, "The page that took it has not inserted it.")
            elif proposal.state == "open" and not proposal.is_task():
                if time.time() - proposal.asked > self.wait:
                    self._end(proposal, "expired", "Nobody has decided about it in time.")
            elif proposal.state == "inserted":
                if proposal.ran_at is not None and now - proposal.ran_at > OUTPUTS_LIMIT:
                    self._settle(proposal, "It has run; its outputs were not reported.")
                elif proposal.ran_at is None and waited > self.wait:
                    self._settle(proposal, "It has not run yet.")
        if proposal.state != before:
            self.on_change()

    # -- a person's decisions ----------------------------------------------------------------------

    def take(
        self,
        request: messages.TakeProposal,
        place_again: Callable[[Draft], tuple[Draft, str]],
    ) -> str:
        """Claim a proposal for a page.

        Args:
            request: The page's request.
            place_again: Returns the draft with its place as it is now, and what has changed.

        Raises:
            ProposalError: It is not open, not the one that the person saw, or its place has
                changed, so that she looks again.
        """
        with self._lock:
            proposal = self._find_open(request.number)
            if request.digest != proposal.digest:
                raise ProposalError(
                    f"Proposal {request.number} is not the one that you saw: look at it again."
                )
            proposal.draft, why = place_again(proposal.draft)
            if why:
                proposal.changes.append(why)
                raise ProposalError(f"{why} Look at it again.")
            proposal.source = proposal.draft.source if request.source is None else request.source
            proposal.run = request.run and proposal.draft.kind != "markdown"
            self._move(proposal, "taken")
        self.on_change()
        return f"Inserting the cell that {proposal.client} proposes."

    def settle(self, request: messages.SettleProposal) -> str:
        """Note what a page has done with a proposal that it has taken.

        Raises:
            ProposalError: It is not taken, or was not inserted.
        """
        with self._lock:
            proposal = self._open.get(request.number)
            if request.outcome == "ran":
                if proposal is None:  # answered without outputs, because it took long
                    return "The client has its answer already."
                if proposal.state != "inserted":
                    raise ProposalError(f"The cell of proposal {request.number} is not inserted.")
                self._settle(proposal, "The user ran it.", request.outputs or ())
            elif proposal is None or proposal.state != "taken":
                raise ProposalError(_GONE.format(request.number))
            elif request.outcome == "inserted":
                self._insert(proposal, request.cell)
            else:
                self._reopen(proposal, request.message or "Its place has changed.")
        self.on_change()
        return "Noted."

    def accept_by_hand(self, number: int) -> Proposal:
        """Accept a proposal whose source the person gets in a new cell, which she runs or not.

        Raises:
            ProposalError: It is not open.
        """
        with self._lock:
            proposal = self._find_open(number)
            self._move(proposal, "taken")
            self._insert(proposal, "")
        self.on_change()
        return proposal

    def reject(self, number: int, word: str) -> str:
        """Reject a proposal.

        Args:
            number: Its number.
            word: The person's reason; "" if she gives none.

        Raises:
            ProposalError: It is not open.
        """
        with self._lock:
            proposal = self._find_open(number)
            said = f" She said: {word}" if word else " She gave no reason."
            self._end(proposal, "rejected", f"The user has rejected it.{said}")
        self.on_change()
        return f"Rejected the cell that {proposal.client} proposed."

    # -- the notebook ------------------------------------------------------------------------------

    def note_run(self, cell: str) -> None:
        """Note that the kernel has run a cell."""
        for proposal in tuple(self._open.values()):
            if proposal.state == "inserted" and proposal.cell == cell:
                proposal.ran_at = time.monotonic()

    # -- under the lock ----------------------------------------------------------------------------

    def _find_open(self, number: int) -> Proposal:
        proposal = self._open.get(number)
        if proposal is not None:
            self.look(proposal)
        if proposal is None or proposal.state not in ("open", "taken"):
            raise ProposalError(_GONE.format(number))
        if proposal.state == "taken":
            raise ProposalError(f"Another page is inserting the cell of proposal {number}.")
        return proposal

    def _move(self, proposal: Proposal, state: State) -> None:
        assert state in MOVES[proposal.state], (proposal.state, state)
        proposal.state, proposal.since = state, time.monotonic()

    def _insert(self, proposal: Proposal, cell: str) -> None:
        self._move(proposal, "inserted")
        proposal.cell = cell
        if cell:
            self.on_inserted(proposal)
        if not proposal.run:
            self._settle(proposal, "The user has not run it.")

    def _reopen(self, proposal: Proposal, why: str) -> None:
        self._move(proposal, "open")
        proposal.source = proposal.draft.source
        if why not in proposal.changes:
            proposal.changes.append(why)

    def _settle(
        self, proposal: Proposal, text: str, outputs: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        edited = None if proposal.source == proposal.draft.source else proposal.source
        how = "as it is" if edited is None else "with changes"
        text = f"The user has accepted your cell {how}, and it is in the notebook. {text}"
        self._end(proposal, "settled", text, source=edited, outputs=outputs)

    def _end(self, proposal: Proposal, state: State, text: str, **more: Any) -> None:
        self._move(proposal, state)
        del self._open[proposal.number]
        reasons = [] if state in ("settled", "withdrawn") else proposal.changes
        ending = Ending(state, " ".join([text, *reasons]), **more)
        if not proposal.ending.done():
            proposal.ending.set_result(ending)
