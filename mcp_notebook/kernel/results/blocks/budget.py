"""The limits of one result, and where the originals of what exceeds them are kept.

Pure data. A `Budget` is passed through the whole conversion of a value, on the thread of the call.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self

import msgspec
from msgspec import Struct

from mcp_notebook.kernel.results.blocks.originals import OriginalSink, discard_original
from mcp_notebook.settings.settings import Settings, TableFormat


class NotDrawn(Exception):
    """A plot could not be drawn; the message says why and what to do."""


class PlotRenderer(Protocol):
    """Draws plots; implemented by `results.plots.renderer`."""

    seconds: float
    """Time limit of one attempt."""

    def draw(self, library: str, source: str, **options: Any) -> bytes:
        """Return the encoded picture, or raise `NotDrawn`."""


class NoRenderer:
    """Draws nothing; for budgets of values without plots."""

    seconds = 0.0

    def draw(self, library: str, source: str, **options: Any) -> bytes:  # noqa: ARG002
        """Raise `NotDrawn`."""
        raise NotDrawn("nothing here draws plots")


def ignore_table(_frame: Any) -> None:
    """Do nothing, where the result has no live view."""


class Budget(Struct, frozen=True, kw_only=True):
    """The limits of one result; `keep` takes the originals of what exceeds them."""

    chars: int
    """Total characters of all texts."""
    pictures: int
    """Maximum number of pictures."""
    picture_side: int
    """Maximum pixels on the longer side of a picture."""
    picture_bytes: int
    """Maximum bytes of one encoded picture, sound or document."""
    result_bytes: int
    """Total bytes of all pictures, sounds and documents."""
    table_rows: int
    """Maximum rows of a table."""
    table_format: TableFormat
    """How tables are written."""
    keep: OriginalSink = discard_original
    note_table: Callable[[Any], None] = ignore_table
    """Takes the frame of each table that is shown whole."""
    renderer: PlotRenderer = msgspec.field(default_factory=NoRenderer)
    """Draws plots. It remembers failures, so all budgets of a kernel share it."""

    @classmethod
    def from_settings(
        cls, settings: Settings, keep: OriginalSink = discard_original, *, chars: int | None = None
    ) -> Self:
        """Return the budget that the settings allow.

        Args:
            settings: The notebook's.
            keep: Keeps originals.
            chars: The tool's own limit, which overrides `max_result_chars`.
        """
        return cls(
            chars=settings.max_result_chars if chars is None else chars,
            pictures=settings.max_pictures,
            picture_side=settings.max_picture_side,
            # At most the total, or it would be encoded twice.
            picture_bytes=min(settings.max_picture_bytes, settings.max_result_bytes),
            result_bytes=settings.max_result_bytes,
            table_rows=settings.max_table_rows,
            table_format=settings.table_format,
            keep=keep,
        )
