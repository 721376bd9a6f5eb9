"""What one result may take, and where the whole of it goes that did not fit.

Runs in the user's kernel, on the thread of the call. `Budget` goes through the whole conversion of
a value; keeping all blocks of a result to it together is `kernel.whole`'s business.
"""

from dataclasses import dataclass, field
from typing import Self

from mcp_notebook.kernel.originals import Keep, keep_nothing
from mcp_notebook.kernel.renderers import Renderers
from mcp_notebook.settings import Settings, TableFormat


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What one result may take; `keep` takes the originals of what did not fit."""

    chars: int
    """Characters of all texts together."""
    pictures: int
    """Pictures of one result."""
    picture_side: int
    """Pixels on the longer side of a picture."""
    picture_bytes: int
    """Bytes of one encoded picture; of a sound or document, too."""
    result_bytes: int
    """Bytes of all pictures, sounds and documents of one result together."""
    table_rows: int
    """Rows of one table."""
    table_format: TableFormat
    """How tables are written."""
    keep: Keep = keep_nothing
    renderers: Renderers = field(default_factory=Renderers, compare=False, repr=False)
    """Draw plots; they remember what has failed, so the budgets of a kernel share them."""

    @classmethod
    def of(cls, settings: Settings, keep: Keep = keep_nothing, *, chars: int | None = None) -> Self:
        """Return the budget that the settings give.

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
