"""The whole of what a result shows only in part, described before it is made.

Pure data, made on the thread of the call where something did not fit: a long text, a large image, a
table. Its content is made when a client reads it, on another thread.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from mcp_notebook.content import ResourceLink


@dataclass(frozen=True)
class FileFormat:
    """One way to read an original: a table as CSV, say."""

    extension: str
    """Of the file's name, with its dot: ``".csv"``."""
    mime_type: str
    content: Callable[[], str | bytes] = field(repr=False)
    """Makes the content; called on another thread each time that a client reads it."""
    size: int | None = None
    """Bytes, where known before the content is made."""


@dataclass(frozen=True)
class Original:
    """The whole of something that is shown only in part, or smaller than it is."""

    name: str
    """A file's name without its extension: ``"table"``."""
    title: str
    """What it is, for people: ``"The whole table: 1,000 rows x 3 columns"``."""
    formats: tuple[FileFormat, ...]
    """The ways to read it; the first is what most readers want."""
    cost: int
    """Bytes of memory that are held for as long as it is kept."""


OriginalSink: TypeAlias = Callable[[Original], tuple[ResourceLink, ...]]
"""Keeps an original; returns a link for each of its formats, none if it is too large to be kept."""


def discard_original(_original: Original) -> tuple[ResourceLink, ...]:
    """Keep no original: there is nobody who could read it."""
    return ()
