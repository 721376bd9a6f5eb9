"""What a tool may return when it wants full control: content blocks and ``Result``.

Used in the kernel (a tool returns these, `kernel.results.converter` makes them from other values)
and in the bridge (which turns them into MCP content). Pure data, no I/O. What a block says about
itself is checked where its author makes it; its content is made fit to be sent by
`kernel.results.blocks.author_blocks`, and what travels how is `wire`'s business.
"""

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from mcp_notebook.wording import suggest

Audience: TypeAlias = Literal["user", "assistant"]
_AUDIENCES: tuple[Audience, ...] = ("user", "assistant")
_MAX_SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """What every content block can say about itself (MCP annotations).

    Raises:
        ValueError: One of them is nothing that clients understand.
    """

    audience: Audience | Sequence[Audience] = ()
    """For whom the block is meant, one or a list; kept as a tuple. Empty means everybody."""
    priority: float | None = None
    """0 (optional) to 1 (required)."""
    last_modified: datetime | str | None = None
    """Time of the last change; kept as ISO 8601 text. A datetime without a zone is local time."""

    def __post_init__(self) -> None:
        # A frozen dataclass has no other way to keep its fields in one form.
        object.__setattr__(self, "audience", _audience(self.audience))
        object.__setattr__(self, "priority", _priority(self.priority))
        object.__setattr__(self, "last_modified", _time(self.last_modified))


@dataclass(frozen=True)
class Text(Annotated):
    """A block of text, plain or Markdown."""

    text: str
    brief: str | None = field(default=None, kw_only=True)
    """What is sent in its place to clients that get the same as structured content."""


@dataclass(frozen=True)
class Image(Annotated):
    """A picture.

    A tool may give encoded bytes, a PIL image, a matplotlib figure, or an array: height x width
    (grey), or height x width x 3 or 4 (RGB, RGBA), of uint8, of floats from 0 to 1, or of bool. On
    the link, and in the bridge, it is always encoded bytes of PNG, JPEG, WebP or GIF.
    """

    data: Any = field(repr=False)
    mime_type: str = "image/png"
    """What encoded bytes are is seen from them; for an image or array, the format that is tried
    first: ``image/jpeg`` and ``image/webp`` are smaller for photos."""


@dataclass(frozen=True)
class Audio(Annotated):
    """A sound: encoded bytes (WAV, MP3, Ogg, FLAC, M4A...), or samples with their rate.

    Samples are a numpy array or a list, of one channel or two (in rows or in columns): floats from
    -1 to 1, or integers of the array's type.
    """

    data: bytes = field(repr=False)
    mime_type: str = "audio/wav"
    rate: float | None = None
    """Samples per second; of samples only, encoded bytes know theirs."""


@dataclass(frozen=True)
class Resource(Annotated):
    """A document that is part of the result: its text, or its bytes."""

    uri: str
    data: str | bytes = field(repr=False)
    mime_type: str = "text/plain"


@dataclass(frozen=True)
class ResourceLink(Annotated):
    """A pointer to a document that the client may fetch."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes, where known."""

    @property
    def about(self) -> str:
        """What it leads to, in a few words for people: title, type and size."""
        size = None if self.size is None else f"{self.size:,} bytes"
        details = ", ".join(filter(None, (self.mime_type, size)))
        return f"{self.title or self.name} ({details})" if details else self.title or self.name


ContentBlock: TypeAlias = Text | Image | Audio | Resource | ResourceLink


@dataclass(frozen=True)
class Result:
    """The whole result of a call, made by hand or by `kernel.results.converter`."""

    content: Sequence[ContentBlock] = ()
    structured: Any = None
    """A JSON value for programs; None means none."""
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    """``_meta`` of the result; keys with a reverse-DNS prefix."""


def _audience(given: Any) -> tuple[Audience, ...]:
    if given is None:
        return ()
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for name in names:
        if not isinstance(name, str) or name not in _AUDIENCES:
            near = name if isinstance(name, str) else ""
            close = suggest(near, _AUDIENCES)
            hint = f"; did you mean {close!r}?" if close else "."
            raise ValueError(
                f"`audience` is 'user', 'assistant' or a list of them, not {_shown(name)}{hint}"
            )
    return tuple(dict.fromkeys(_AUDIENCES[_AUDIENCES.index(name)] for name in names))


def _priority(given: Any) -> float | None:
    if given is None:
        return None
    usable = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not usable or not 0 <= given <= 1:
        raise ValueError(
            f"`priority` is a number from 0 (optional) to 1 (required), not {_shown(given)}."
        )
    return float(given)


def _time(given: Any) -> str | None:
    if given is None:
        return None
    try:
        text = given
        if isinstance(given, datetime):
            text = (given if given.tzinfo else given.astimezone()).isoformat()
        datetime.fromisoformat(text)
    except (TypeError, ValueError, OverflowError, OSError):  # pandas.NaT is a datetime
        raise ValueError(
            "`last_modified` is a datetime or an ISO 8601 text such as '2025-01-12T15:00:58Z', not "
            f"{_shown(given)}; of a file: `datetime.fromtimestamp(path.stat().st_mtime)`."
        ) from None
    return str.__str__(text)


def _shown(given: Any) -> str:
    try:
        text = repr(given)
    except Exception:  # noqa: BLE001 - anything may have been given
        text = ""
    return text if 0 < len(text) <= _MAX_SHOWN else f"a {type(given).__name__}"
