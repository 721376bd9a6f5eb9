"""The states of a call, and a sentence that describes a running or waiting call.

Runs in the user's kernel; pure, no I/O, no threads. The picture of the states in the contributors'
guide is drawn from `MOVES` by ``docs/make_pictures.py``.

A call has ended for its client once its state is one of `ENDED`. Its code may still be running:
C code that does not check for signals, or a thread that does not return to Python. Such a call is
*still stopping* (`Call.is_stopping`), and `describe` mentions it to the calls that wait behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import Any

from mcp_notebook.kernel.tools.options import RunMode


class CallState(StrEnum):
    """Where a call is between its arrival and its answer."""

    QUEUED = "queued"
    """Waits for its turn, behind a cell or other calls."""
    RUNNING = "running"
    """Its function runs."""
    WAITING = "waiting"
    """Has begun, and waits for a free worker of its executor, for the executor's result, or for the
    user's answer."""
    DONE = "done"
    """Answered with the function's value."""
    FAILED = "failed"
    """Answered with an error in its arguments, its function or its result."""
    CANCELLED = "cancelled"
    """Stopped by the client or the user."""
    TIMED_OUT = "timed out"
    """Stopped by its time limit."""
    LOST = "lost"
    """The kernel ended, or the extension was unloaded, before the call did."""


_STOPPED = frozenset({CallState.CANCELLED, CallState.TIMED_OUT, CallState.LOST})
MOVES: Mapping[CallState, frozenset[CallState]] = {
    CallState.QUEUED: _STOPPED | {CallState.RUNNING, CallState.FAILED},
    CallState.RUNNING: _STOPPED | {CallState.WAITING, CallState.DONE, CallState.FAILED},
    CallState.WAITING: _STOPPED | {CallState.RUNNING, CallState.FAILED},
    CallState.DONE: frozenset(),
    CallState.FAILED: frozenset(),
    CallState.CANCELLED: frozenset(),
    CallState.TIMED_OUT: frozenset(),
    CallState.LOST: frozenset(),
}
"""The states that may follow each state."""
ENDED = frozenset(state for state, following in MOVES.items() if not following)
"""The states in which a call is answered."""


class IllegalMove(RuntimeError):
    """A transition that the table of states does not have; a bug in mcp-notebook.

    Args:
        call: The call, unchanged.
        to: The state that it cannot enter.
    """

    def __init__(self, call: "Call", to: CallState) -> None:
        super().__init__(f"A call of {call.tool!r} cannot go from {call.state!s} to {to!s}.")


@dataclass(eq=False)
class Call:
    """A call from its arrival until its code has ended.

    Not thread-safe: callers of `move` hold a lock.
    """

    tool: str
    """Name of the tool."""
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    """The arguments as the client sent them."""
    run: RunMode = "main"
    """Where it runs, or will."""
    arrived: float = field(default_factory=monotonic)
    """When it arrived, on the monotonic clock, in seconds."""
    since: float = field(init=False)
    """When it entered its state."""
    began: float | None = field(default=None, init=False)
    """When its function started; None if it has not."""
    waits_for: str = field(default="a free worker", init=False)
    """The reason for waiting, while it waits."""
    refuses_arguments: bool = field(default=False, init=False)
    """Whether the call failed because its arguments do not fit."""
    missing_capability: str | None = field(default=None, init=False)
    """The MCP capability that its client lacked."""
    details: str | None = field(default=None, init=False)
    """The whole error, if its client got only a part of it."""
    task_id: str | None = field(default=None, init=False)
    """The id of its task; None if its client waits for the call itself."""
    is_stopping: bool = field(default=False, init=False)
    """It is answered, and its code has not ended."""
    _state: CallState = field(default=CallState.QUEUED, init=False)

    def __post_init__(self) -> None:
        self.since = self.arrived

    @property
    def state(self) -> CallState:
        """Its current state."""
        return self._state

    @property
    def has_ended(self) -> bool:
        """Whether it was answered, or is about to be."""
        return self._state in ENDED

    @property
    def runs_code(self) -> bool:
        """Whether its function is running, even if the call was answered."""
        return self._state is not CallState.QUEUED and (not self.has_ended or self.is_stopping)

    @property
    def queue_seconds(self) -> float:
        """How long an ended call waited for its turn."""
        return (self.since if self.began is None else self.began) - self.arrived

    @property
    def run_seconds(self) -> float:
        """How long an ended call took after it began."""
        return 0.0 if self.began is None else self.since - self.began

    def move(self, to: CallState) -> None:
        """Enter another state.

        Raises:
            IllegalMove: The table has no such transition; nothing is changed.
        """
        if to not in MOVES[self._state]:
            raise IllegalMove(self, to)
        self._state = to
        self.since = monotonic()
        if self.began is None and to is CallState.RUNNING:
            self.began = self.since

    def describe_end(self) -> dict[str, Any]:
        """Return how the call ended, as the fields of the link's `Returned` message."""
        is_stopped = self._state in (CallState.CANCELLED, CallState.TIMED_OUT)
        return {
            "lacks": self.missing_capability,
            "refuses_arguments": self.refuses_arguments,
            "queue_seconds": self.queue_seconds,
            "run_seconds": self.run_seconds,
            "stopped": str(self._state) if is_stopped else None,
            "details": self.details,
        }

    def copy_without_arguments(self) -> "Call":
        """Return its current state and times, without its arguments and outputs."""
        copy = Call(self.tool, run=self.run, arrived=self.arrived)
        copy.since, copy.began = self.since, self.began
        copy.missing_capability, copy.task_id = self.missing_capability, self.task_id
        copy.details = self.details
        copy._state = self._state
        return copy


def describe(
    call: Call, others: Sequence[Call], *, cell_since: float | None, now: float | None = None
) -> str:
    """Describe in a few words what a call does, or what it waits for.

    Args:
        call: The call.
        others: All calls of the kernel that have not ended or are still stopping, in the order in
            which they began or will begin.
        cell_since: When the user's running cell started; None if no cell runs.
        now: The monotonic clock's time, in seconds.
    """
    now = monotonic() if now is None else now
    if call.is_stopping:
        return f"still stopping: its code has not reacted for {_seconds(now - call.since)}"
    if call.state is CallState.WAITING:
        return f"waiting for {call.waits_for} for {_seconds(now - call.since)}"
    if call.state is not CallState.QUEUED:
        return f"{call.state!s} for {_seconds(now - call.since)}"
    before = _before(call, others)
    queued = sum(other.state is CallState.QUEUED for other in before)
    reason = _reason(call, before, cell_since, now)
    return f"waiting: {reason}" + (f"; {_calls(queued)} before this one" if queued else "")


def _before(call: Call, others: Sequence[Call]) -> list[Call]:
    """Return the calls that this one waits for."""
    before = []
    for other in others:
        if other is call:
            break
        if other.tool == call.tool or other.run == call.run == "main":
            before.append(other)
    return before


def _reason(call: Call, before: Sequence[Call], cell_since: float | None, now: float) -> str:
    stuck = next((other for other in before if other.is_stopping), None)
    if stuck is not None:
        return f"a stopped call of {stuck.tool!r} has not reacted for {_seconds(now - stuck.since)}"
    if cell_since is not None and call.run == "main":
        return f"a cell has been running for {_seconds(now - cell_since)}"
    running = next((other for other in before if other.state is not CallState.QUEUED), None)
    if running is not None and running.state is CallState.WAITING:
        waits = f"{running.waits_for} for {_seconds(now - running.since)}"
        return f"a call of {running.tool!r} has been waiting for {waits}"
    if running is not None:
        hint = " (tools with `--run thread` take no turns)" if call.run == "main" else ""
        since = _seconds(now - running.since)
        return f"a call of {running.tool!r} has been running for {since}{hint}"
    return "the kernel's main thread is busy"


def _seconds(seconds: float) -> str:
    return f"{max(seconds, 0):.0f} s"


def _calls(number: int) -> str:
    return f"{number} call{'' if number == 1 else 's'}"
