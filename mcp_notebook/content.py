"""What a tool may return when it wants full control: content blocks and ``Result``.

Used in the kernel (a tool returns these, `kernel.results` makes them from other values) and in the
bridge (which turns them into MCP content). Pure data: no I/O, no validation beyond types; what
travels how is `wire`'s business.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Audience: TypeAlias = Literal["user", "assistant"]


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """What every content block can say about itself (MCP annotations)."""

    audience: tuple[Audience, ...] = ()
    """For whom the block is meant; empty means everybody."""
    priority: float | None = None
    """0 (optional) to 1 (required)."""
    last_modified: str | None = None
    """ISO 8601 time of the last change."""


@dataclass(frozen=True)
class Text(Annotated):
    """A block of text, plain or Markdown."""

    text: str


@dataclass(frozen=True)
class Image(Annotated):
    """A picture as encoded bytes (PNG, JPEG, WebP or GIF)."""

    data: bytes = field(repr=False)
    mime_type: str = "image/png"


@dataclass(frozen=True)
class Audio(Annotated):
    """A sound as encoded bytes."""

    data: bytes = field(repr=False)
    mime_type: str = "audio/wav"


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
    """The whole result of a call, made by hand or by `kernel.results`."""

    content: Sequence[ContentBlock] = ()
    structured: Any = None
    """A JSON value for programs; None means none."""
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    """``_meta`` of the result; keys with a reverse-DNS prefix."""
