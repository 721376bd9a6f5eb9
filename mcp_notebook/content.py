"""Content blocks and ``Result``, for tools that control exactly what they return.

Pure data, in every process. The kernel converts all other values to these, and the bridge turns
them into MCP content. A block's annotations are validated when it is created, its data when it is
sent.
"""

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from mcp_notebook.text.wording import suggest

Role: TypeAlias = Literal["user", "assistant"]
"""Who says a message of a prompt."""
Audience: TypeAlias = Literal["user", "assistant"]
_AUDIENCES: tuple[Audience, ...] = ("user", "assistant")
_EVERYBODY: Sequence[Audience] = ()
_MAX_VALUE = 80


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """The annotations that every content block can have.

    Raises:
        ValueError: A value is not one that MCP allows.
    """

    audience: Audience | Sequence[Audience] = _EVERYBODY
    """Whom the block is for: one audience or several, stored as a tuple. Empty means everybody."""
    priority: float | None = None
    """0 (optional) to 1 (required)."""
    last_modified: datetime | str | None = None
    """Time of the last change, stored as ISO 8601 text. A naive datetime is local time."""
    role: Role | None = None
    """In a prompt, who says it; None: the user. `Message` sets it for any value."""

    def __post_init__(self) -> None:
        if self.role is not None:
            _check_role(self.role)
        if self.audience is _EVERYBODY and self.priority is None and self.last_modified is None:
            return  # the common case
        # The way to normalise fields of a frozen dataclass.
        object.__setattr__(self, "audience", _normalize_audience(self.audience))
        object.__setattr__(self, "priority", _normalize_priority(self.priority))
        object.__setattr__(self, "last_modified", _normalize_time(self.last_modified))


@dataclass(frozen=True)
class Text(Annotated):
    """A block of text, plain or Markdown."""

    text: str


@dataclass(frozen=True)
class Image(Annotated):
    """A picture.

    Its data can be encoded bytes, a PIL image, a matplotlib figure, or an array: height x width
    (grey) or height x width x 3 or 4 (RGB, RGBA) of uint8, of floats from 0 to 1, or of bool. It is
    sent as PNG, JPEG, WebP or GIF.
    """

    data: Any = field(repr=False)
    mime_type: str = "image/png"
    """The preferred format of an image, figure or array; ``image/jpeg`` and ``image/webp`` are
    smaller for photos. The format of encoded bytes is detected."""


@dataclass(frozen=True)
class Audio(Annotated):
    """A sound: encoded bytes (WAV, MP3, Ogg, FLAC, M4A...).

    ``IPython.display.Audio(samples, rate=44_100)`` is a sound, too: it encodes samples.
    """

    data: bytes = field(repr=False)
    mime_type: str = "audio/wav"


@dataclass(frozen=True)
class Resource(Annotated):
    """A document embedded in the result, as text or bytes."""

    uri: str
    data: str | bytes = field(repr=False)
    mime_type: str = "text/plain"


@dataclass(frozen=True)
class ResourceLink(Annotated):
    """A link to a document that the client can read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes, if known."""

    @property
    def about(self) -> str:
        """A short description for people: title, type and size."""
        size = None if self.size is None else f"{self.size:,} bytes"
        details = ", ".join(filter(None, (self.mime_type, size)))
        return f"{self.title or self.name} ({details})" if details else self.title or self.name


@dataclass(frozen=True)
class Message:
    """One message of a prompt: whatever a tool may return, and who says it."""

    content: Any
    role: Role = "user"

    def __post_init__(self) -> None:
        _check_role(self.role)


ContentBlock: TypeAlias = Text | Image | Audio | Resource | ResourceLink


def measure_content(content: Iterable[ContentBlock]) -> int:
    """Return the characters and bytes of content blocks."""
    size = 0
    for block in content:
        match block:
            case Text():
                size += len(block.text)
            case Image() | Audio() | Resource():
                size += len(block.data)
            case ResourceLink():
                size += len(block.uri)
    return size


@dataclass(frozen=True)
class Result:
    """The whole result of a call."""

    content: Sequence[ContentBlock] = ()
    structured: Any = None
    """Structured content: a JSON value for programs; None for none. Some assistants show their
    model nothing else. What is not an object becomes the property ``result`` of one, and what
    `content` says its property ``about_this_result``."""
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    """The result's ``_meta``; its keys are defined by a client, or begin with your reversed domain
    name."""


def _normalize_audience(value: Any) -> tuple[Audience, ...]:
    if value is None:
        return ()
    names = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    for name in names:
        if not isinstance(name, str) or name not in _AUDIENCES:
            near = name if isinstance(name, str) else ""
            close = suggest(near, _AUDIENCES)
            hint = f"; did you mean {close!r}?" if close else "."
            raise ValueError(
                "`audience` is 'user', 'assistant' or a list of them, not "
                f"{_format_value(name)}{hint}"
            )
    return tuple(dict.fromkeys(_AUDIENCES[_AUDIENCES.index(name)] for name in names))


def _check_role(role: Any) -> None:
    if role not in _AUDIENCES:
        close = suggest(role, _AUDIENCES) if isinstance(role, str) else None
        hint = f"; did you mean {close!r}?" if close else "."
        raise ValueError(f"`role` is 'user' or 'assistant', not {_format_value(role)}{hint}")


def _normalize_priority(value: Any) -> float | None:
    if value is None:
        return None
    usable = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not usable or not 0 <= value <= 1:
        raise ValueError(
            f"`priority` is a number from 0 (optional) to 1 (required), not {_format_value(value)}."
        )
    return float(value)


def _normalize_time(value: Any) -> str | None:
    if value is None:
        return None
    try:
        text = value
        if isinstance(value, datetime):
            text = (value if value.tzinfo else value.astimezone()).isoformat()
        datetime.fromisoformat(text)
    except (TypeError, ValueError, OverflowError, OSError):  # pandas.NaT is a datetime
        raise ValueError(
            "`last_modified` is a datetime or an ISO 8601 text such as '2025-01-12T15:00:58Z', not "
            f"{_format_value(value)}; of a file: `datetime.fromtimestamp(path.stat().st_mtime)`."
        ) from None
    return str.__str__(text)


def _format_value(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr may raise anything
        text = ""
    return text if 0 < len(text) <= _MAX_VALUE else f"a {type(value).__name__}"
