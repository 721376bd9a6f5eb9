"""How much one result may hold, and where the whole of what does not fit is kept.

Pure data. A `Budget` is passed through the whole conversion of a value, on the thread of the call.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from mcp_notebook.kernel.results.blocks.originals import OriginalSink, discard_original
from mcp_notebook.settings.settings import Settings, TableFormat


class NotDrawn(Exception):
    """A plot could not be drawn; the message says why, and what to do."""


class PlotRenderer(Protocol):
    """Draws plots by other libraries: `results.plots.renderer` has the one that really does."""

    seconds: float
    """That one attempt may take."""

    def draw(self, library: str, source: str, **options: Any) -> bytes:
        """Return the encoded picture, or raise `NotDrawn`."""


class NoRenderer:
    """Draws nothing: for budgets of what holds no plots."""

    seconds = 0.0

    def draw(self, library: str, source: str, **options: Any) -> bytes:  # noqa: ARG002
        """Raise `NotDrawn`."""
        raise NotDrawn("nothing here draws plots")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much one result may hold; `keep` takes the originals of what does not fit."""

    chars: int
    """Characters of all texts together."""
    pictures: int
    """Pictures of one result."""
    picture_side: int
    """Pixels on the longer side of a picture."""
    picture_bytes: int
    """Maximum bytes of one encoded picture, sound or document."""
    result_bytes: int
    """Bytes of all pictures, sounds and documents of one result together."""
    table_rows: int
    """Rows of one table."""
    table_format: TableFormat
    """How tables are written."""
    keep: OriginalSink = discard_original
    renderer: PlotRenderer = field(default_factory=NoRenderer, compare=False, repr=False)
    """Draw plots; they remember what has failed, so the budgets of a kernel share them."""

    @classmethod
    def from_settings(
        cls, settings: Settings, keep: OriginalSink = discard_original, *, chars: int | None = None
    ) -> Self:
        """Return the budget that the settings allow.

        Args:
            settings: The notebook's.
            keep: Takes originals.
            chars: In place of the settings' `max_result_chars`: the tool's own.
        """
        return cls(
            chars=settings.max_result_chars if chars is None else chars,
            pictures=settings.max_pictures,
            picture_side=settings.max_picture_side,
            # Not more than all together have: it would be encoded twice.
            picture_bytes=min(settings.max_picture_bytes, settings.max_result_bytes),
            result_bytes=settings.max_result_bytes,
            table_rows=settings.max_table_rows,
            table_format=settings.table_format,
            keep=keep,
        )
