"""What happens to a call, as it is reported to those who write it down or count it.

Runs on the bridge's event loop; pure. `server` reports a start and then exactly one end, or a
refusal and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

Outcome: TypeAlias = Literal["ok", "error", "cancelled", "timed out", "lost"]
"""How a call ended: with a result, with an error (of the tool or its arguments), stopped by the
client or the user, stopped by its time limit, or not at all, because its kernel is gone."""


@dataclass(frozen=True, kw_only=True)
class CallStart:
    """A call that is sent to its kernel."""

    id: str
    """Unique among all calls of the bridge."""
    at: float
    """When, in seconds since the epoch."""
    caller: str
    """The name of the caller: see `access.caller.Caller`."""
    alias: str = ""
    """What people call it."""
    client: str
    """Name and version of the client's program, as it says; empty if it does not say."""
    kernel: str
    """The id of the kernel's record."""
    notebook: str
    """The notebook's part of the tool's full name."""
    tool: str
    """The tool's name in the kernel."""
    arguments: dict[str, Any] | bytes
    """The arguments; if large, as the client's JSON."""
    input_schema: dict[str, Any]
    """The tool's, which says what is secret."""
    may_have_escapes: bool = True
    """Whether texts in the arguments may have characters that JSON escapes; non-ASCII
    characters are checked separately."""


@dataclass(frozen=True, kw_only=True)
class CallEnd:
    """A call that has ended."""

    start: CallStart
    outcome: Outcome
    seconds: float
    """From the start to the end, as the bridge measures it."""
    queue_seconds: float | None = None
    """How long it waited for its turn in the kernel; None: nobody says, as the kernel has an older
    version or is gone."""
    run_seconds: float | None = None
    """How long it ran then; waiting for an executor's worker or for an answer is part of it."""
    error: str | None = None
    """The error's text; None if there is none."""
    size: int = 0
    """Characters and bytes of all content blocks."""
    task: str | None = None
    """The id of the task that it became; its result went to whoever asked for that."""


@dataclass(frozen=True, kw_only=True)
class CallRefusal:
    """A call that the bridge did not send to any kernel."""

    at: float
    """When, in seconds since the epoch."""
    caller: str
    alias: str = ""
    client: str
    tool: str
    """The tool's name in its kernel; if none was found, the name in the client's request."""
    reason: str
    """Why, as the client is told."""
    kernel: str | None = None
    """The id of the kernel's record; None if no tool was found."""
    notebook: str | None = None
    """The notebook's part of the tool's full name."""
    arguments: dict[str, Any] | bytes | None = None
    """As those of a `CallStart`; None if no tool was found."""
    input_schema: dict[str, Any] = field(default_factory=dict)
    """The tool's, which says what is secret."""


class CallObserver(Protocol):
    """Takes what happens to calls. It must not wait, and not raise."""

    def note_start(self, start: CallStart) -> None:
        """Take the start of a call."""

    def note_end(self, end: CallEnd) -> None:
        """Take the end of a call that was started."""

    def note_refusal(self, refusal: CallRefusal) -> None:
        """Take a call that was refused."""


class CallObservers:
    """Several observers as one.

    Args:
        observers: The observers, told in this order.
    """

    def __init__(self, observers: Sequence[CallObserver] = ()) -> None:
        self._observers = tuple(observers)

    def note_start(self, start: CallStart) -> None:
        """Tell all of them of the start of a call."""
        for observer in self._observers:
            observer.note_start(start)

    def note_end(self, end: CallEnd) -> None:
        """Tell all of them of the end of a call."""
        for observer in self._observers:
            observer.note_end(end)

    def note_refusal(self, refusal: CallRefusal) -> None:
        """Tell all of them of a refused call."""
        for observer in self._observers:
            observer.note_refusal(refusal)
