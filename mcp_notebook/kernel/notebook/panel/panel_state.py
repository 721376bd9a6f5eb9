"""The state of the live panel, as plain values.

Runs on any thread; pure. Times are formatted strings, so that two states are equal if and only if
they look the same.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Thumbnail:
    """A call's result in small."""

    text: str
    """A short line."""
    picture: bytes | None = field(default=None, repr=False)
    """A small picture, encoded."""
    mime_type: str = ""
    """The picture's MIME type."""


@dataclass(frozen=True, kw_only=True)
class ClientLine:
    """The connected clients of one program."""

    name: str
    """The program's name and version."""
    number: int = 1
    """The number of clients."""


@dataclass(frozen=True, kw_only=True)
class ToolLine:
    """A tool, with counts of its calls."""

    name: str
    listed_as: str | None = None
    """The name that clients see, if it is different."""
    calls: int = 0
    """Ended calls since the extension was loaded."""
    errors: int = 0
    """How many of them ended with an error."""
    last: str = ""
    """When and how the last call ended; "" if there was none."""


@dataclass(frozen=True, kw_only=True)
class OpenCall:
    """A call that runs or waits."""

    number: int
    """Its number in the log of calls."""
    tool: str
    client: str
    """The client; "" if unknown."""
    doing: str
    """Its state, and since when."""
    is_stopping: bool = False
    """Whether it was asked to stop."""
    on_main_thread: bool = True
    """Whether the notebook's interrupt stops it."""


@dataclass(frozen=True, kw_only=True)
class EndedCall:
    """A call that was answered."""

    number: int
    at: str
    """When it was answered."""
    text: str
    """The call in Python, shortened and without secrets."""
    client: str
    outcome: str
    """How it ended, and after how long."""
    is_error: bool = False
    thumbnail: Thumbnail


@dataclass(frozen=True, kw_only=True)
class PanelState:
    """Everything that the panel shows."""

    notebook: str
    """Its name."""
    kernel: str
    """The id of its kernel's record, which the stop buttons send."""
    addresses: tuple[str, ...] = ()
    """Where clients reach the notebook over HTTP; empty if it is not served."""
    clients: tuple[ClientLine, ...] = ()
    tools: tuple[ToolLine, ...] = ()
    missing: tuple[str, ...] = ()
    """Tools that clients do not see, with the reason, a sentence or two each."""
    open_calls: tuple[OpenCall, ...] = ()
    """Oldest first."""
    ended_calls: tuple[EndedCall, ...] = ()
    """The last ones, latest first."""
    more_calls: int = 0
    """The number of earlier ended calls."""
    departure: str | None = None
    """A sentence on why the panel has ended; None while it is live."""
