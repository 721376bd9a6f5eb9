"""A content block on its way into a result, with what only the result's last step can use.

Runs in the user's kernel, on the thread of the call. Each step of a conversion takes and returns
pieces; `fit` turns them into the blocks that are sent. Only then is it known whether a text is cut
or an image left out, and with that whether its original must be kept.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcp_notebook.content import ContentBlock, Text
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.safe.text import clean_text

CLEANED_WHOLE = 1_000_000
"""Characters of a text that is cleaned before it is cut: codes may be most of it."""


NOT_KEPT = ", and too large to be kept"
"""What is said where a text is cut that has no link to the whole."""


@dataclass(frozen=True)
class Piece:
    """A content block, and what is known of it."""

    block: ContentBlock
    original: Original | None = field(default=None, repr=False)
    """The whole of what the block shows only in part, or smaller than it is. A text without one
    that is cut is its own original."""
    notes: tuple[str, ...] = ()
    """Sentences about what was done to an image."""
    is_partial: bool = False
    """The text is only a part: its original is kept even if it is not cut any further."""
    whole: str = ""
    """What the text is a part of, in words, if it has more than the text has characters."""
    is_raw: bool = False
    """The text has not been cleaned: what is sent and what is kept will be."""
    repeats_data: bool = False
    """The text says what the structured content says."""
    has_links: bool = False
    """Links to the whole of the text follow, or nothing more of it can be read."""
    is_refusal: bool = False
    """The text says why something may not be shown: the result is an error."""

    @property
    def text(self) -> str:
        """The text of the block; none if it is of another kind."""
        return self.block.text if isinstance(self.block, Text) else ""


def make_text_piece(text: str, extension: str = ".txt", mime_type: str = "text/plain") -> Piece:
    """Make a text of any size fit to be sent, without a copy of one that will be cut anyway.

    Args:
        text: Not cleaned yet.
        extension: Of the file that the whole of it would be.
        mime_type: Of the same.
    """
    is_raw = str.__len__(text) > CLEANED_WHOLE
    text = str.__str__(text) if is_raw else clean_text(text)
    original = None if extension == ".txt" else describe_text_original(text, extension, mime_type)
    return Piece(Text(text), original, is_raw=is_raw)


def describe_text_original(
    text: str, extension: str = ".txt", mime_type: str = "text/plain", what: str = "text"
) -> Original:
    """Describe the whole of a text; it is not copied, and cleaned when it is read."""
    return Original(
        name=what.lower(),
        title=f"The whole {what}: {len(text):,} characters",
        formats=(FileFormat(extension, mime_type, lambda: clean_text(text)),),
        cost=sys.getsizeof(text),
    )


def join_texts(pieces: Iterable[Piece]) -> list[Piece]:
    """Join plain neighbouring texts, so that a list of many words is one block."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and _is_plain_text(piece) and _is_plain_text(joined[-1]):
            last = joined[-1].text
            gap = "\n\n" if "\n" in last else "\n"  # ends a Markdown table
            joined[-1] = make_text_piece(last + gap + piece.text)
        else:
            joined.append(piece)
    return joined


def _is_plain_text(piece: Piece) -> bool:
    """Tell whether a piece is nothing but its text."""
    block = piece.block
    return (
        isinstance(block, Text)
        and (block.audience, block.priority, block.last_modified, block.brief)
        == ((), None, None, None)
        and not (piece.is_partial or piece.is_raw or piece.repeats_data or piece.has_links)
        and not piece.is_refusal
    )
