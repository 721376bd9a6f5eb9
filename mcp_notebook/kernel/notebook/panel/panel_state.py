"""What the live panel shows, as plain values.

Runs on any thread; pure. Times are texts as the panel shows them, so that two states are equal if
and only if they look the same.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Thumbnail:
    """What a call returned, small."""

    text: str
    """In a few words, on one line."""
    picture: bytes | None = field(default=None, repr=False)
    """A small picture, encoded."""
    mime_type: str = ""
    """Of the picture."""


@dataclass(frozen=True, kw_only=True)
class ClientLine:
    """The clients of one program that are connected."""

    name: str
    """Name and version, as the program says."""
    number: int = 1
    """How many there are."""


@dataclass(frozen=True, kw_only=True)
class ToolLine:
    """A tool, and what became of its calls."""

    name: str
    listed_as: str | None = None
    """The name that clients see, if it is another one."""
    calls: int = 0
    """Calls that have ended, since the extension was loaded."""
    errors: int = 0
    """Those of them that were answered with an error."""
    last: str = ""
    """When the last call ended, and how; "" if there was none."""


@dataclass(frozen=True, kw_only=True)
class OpenCall:
    """A call that runs or waits."""

    number: int
    """Its number in the log of calls."""
    tool: str
    client: str
    """Who called; "" if nobody says."""
    doing: str
    """What it does or waits for, and since when."""
    is_stopping: bool = False
    """It was asked to stop."""
    on_main_thread: bool = True
    """The notebook's own interrupt stops it, once it runs."""


@dataclass(frozen=True, kw_only=True)
class EndedCall:
    """A call that was answered."""

    number: int
    at: str
    """When it was answered."""
    text: str
    """As one would write it in Python, short and without secrets."""
    client: str
    outcome: str
    """How it ended, and how long that took."""
    is_error: bool = False
    thumbnail: Thumbnail


@dataclass(frozen=True, kw_only=True)
class PanelState:
    """All that a panel shows."""

    notebook: str
    """Its name."""
    kernel: str
    """The id of its kernel's record, which the stop buttons send."""
    addresses: tuple[str, ...] = ()
    """Where clients reach the notebook over HTTP; empty if they do not."""
    clients: tuple[ClientLine, ...] = ()
    tools: tuple[ToolLine, ...] = ()
    missing: tuple[str, ...] = ()
    """Why clients miss tools, a sentence or two each."""
    open_calls: tuple[OpenCall, ...] = ()
    """Oldest first."""
    ended_calls: tuple[EndedCall, ...] = ()
    """The last ones, latest first."""
    more_calls: int = 0
    """Calls that have ended and are not among them."""
    departure: str | None = None
    """Why the panel has ended, as a sentence; None while it is live."""
