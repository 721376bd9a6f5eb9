"""What one result may take, and where the whole of it goes that did not fit.

Runs in the user's kernel, on the thread of the call. `Budget` goes through the whole conversion of
a value; `within_budget` is its last step, which looks at all blocks of a result together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from mcp_notebook.content import ContentBlock, Text
from mcp_notebook.kernel.excerpts import shortened
from mcp_notebook.kernel.originals import Keep, keep_nothing
from mcp_notebook.kernel.renderers import Renderers
from mcp_notebook.kernel.shown import finished, within_count, without_twins
from mcp_notebook.settings import Settings, TableFormat

MAX_BLOCKS = 100
"""Blocks of one result."""


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
    """Bytes of one encoded picture."""
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
            picture_bytes=settings.max_picture_bytes,
            table_rows=settings.max_table_rows,
            table_format=settings.table_format,
            keep=keep,
        )


def within_budget(blocks: Sequence[ContentBlock], budget: Budget) -> list[ContentBlock]:
    """Keep a result to what a model can take.

    The same picture is sent once (a figure that was shown and returned); of too many pictures the
    first ones and the last one, which is the tool's value, are shown, the others become links. What
    was done to a picture, and the link to its original, comes after it. All texts and links
    together keep to `budget.chars`: the longest texts are cut, links to the whole of them added.
    """
    kept, notes = within_count(list(without_twins(blocks)), budget.pictures, budget.keep)
    kept, more = _within_blocks(list(finished(kept, budget.keep)))
    notes += more
    chars = budget.chars - sum(len(note.text) for note in notes)
    return [*shortened(kept, chars, budget.keep), *notes]


def _within_blocks(blocks: list[ContentBlock]) -> tuple[list[ContentBlock], list[Text]]:
    if len(blocks) <= MAX_BLOCKS:
        return blocks, []
    gone = len(blocks) - MAX_BLOCKS
    note = Text(f"[{gone:,} of {len(blocks):,} parts of the result are left out.]")
    return [*blocks[: MAX_BLOCKS // 2], *blocks[-MAX_BLOCKS // 2 :]], [note]
