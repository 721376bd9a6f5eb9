"""What one result may take, and where the whole of it goes that did not fit.

Runs in the user's kernel, on the thread of the call. `Budget` goes through the whole conversion of
a value; `within_budget` is its last step, which looks at all blocks of a result together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from mcp_notebook.content import ContentBlock, Image, Text
from mcp_notebook.kernel.originals import Keep, keep_nothing
from mcp_notebook.kernel.renderers import Renderers
from mcp_notebook.kernel.texts import cut, fair_share, is_sendable
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
    first ones and the last one, which is the tool's value, are kept; all texts together keep to
    `budget.chars`, the longest are cut.
    """
    kept, notes = _within_counts(list(_without_twins(blocks)), budget.pictures)
    lengths = [len(block.text) for block in kept if isinstance(block, Text)]
    share = fair_share(lengths, budget.chars - sum(len(note.text) for note in notes))
    cut_down = (
        replace(block, text=cut(block.text, share)) if isinstance(block, Text) else block
        for block in kept
    )
    return [*(b for b in cut_down if not isinstance(b, Text) or is_sendable(b.text)), *notes]


def _within_counts(
    blocks: list[ContentBlock], pictures: int
) -> tuple[list[ContentBlock], list[Text]]:
    notes = []
    shown = [index for index, block in enumerate(blocks) if isinstance(block, Image)]
    left_out = set(shown[pictures - 1 : -1]) if len(shown) > pictures else set()
    if left_out:
        notes.append(Text(f"[{len(left_out)} of {len(shown)} pictures are left out.]"))
        blocks = [block for index, block in enumerate(blocks) if index not in left_out]
    if len(blocks) > MAX_BLOCKS:
        gone = len(blocks) - MAX_BLOCKS
        notes.append(Text(f"[{gone:,} of {len(blocks):,} parts of the result are left out.]"))
        blocks = [*blocks[: MAX_BLOCKS // 2], *blocks[-MAX_BLOCKS // 2 :]]
    return blocks, notes


def _without_twins(blocks: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    seen: set[bytes] = set()
    for block in blocks:
        if isinstance(block, Image):
            if block.data in seen:
                continue
            seen.add(block.data)
        yield block
