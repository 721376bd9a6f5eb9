"""A content block on its way into a result, with data for the result's last step.

Runs in the user's kernel, on the thread of the call. Each step of a conversion takes and returns
pieces; `fit` turns them into the blocks that are sent. Only then is it known whether a text is
cut or an image left out, and so whether its original must be kept.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from mcp_notebook.content import ContentBlock, Text
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.safe.text import clean_text

CLEANED_WHOLE = 1_000_000
"""Characters of the longest text that is cleaned before it is cut: it may be mostly escapes."""


NOT_KEPT = ", and too large to be kept"
"""Said in the gap of a cut text that has no link to the whole."""


class Piece(Struct, frozen=True):
    """A content block, and what is known about it."""

    block: ContentBlock
    original: Original | None = None
    """The whole of what the block shows in part or downsized. A cut text without one is its own
    original."""
    notes: tuple[str, ...] = ()
    """Sentences about the changes to an image."""
    is_partial: bool = False
    """The text is only a part: its original is kept even if the text is not cut."""
    whole: str = ""
    """A name for the whole that the text is a part of; empty if the text is the whole."""
    is_raw: bool = False
    """The text is not cleaned yet; what is sent or kept will be."""
    has_links: bool = False
    """Links to the whole text follow, or no more of it can be read."""
    is_refusal: bool = False
    """The text is a refusal: the result is an error."""
    draw: Callable[[], "Sequence[Piece]"] | None = None
    """Draws the picture that the text stands for, if there is room for it in the result."""
    figure: Any = None
    """A weak reference to the figure that the picture shows."""

    @property
    def text(self) -> str:
        """The text of the block; empty if it is of another kind."""
        return self.block.text if isinstance(self.block, Text) else ""


def make_text_piece(text: str, extension: str = ".txt", mime_type: str = "text/plain") -> Piece:
    """Make a piece of a text of any size, without copying one that will be cut anyway.

    Args:
        text: A text that is not cleaned yet.
        extension: File extension of the whole text.
        mime_type: MIME type of the whole text.
    """
    is_raw = str.__len__(text) > CLEANED_WHOLE
    text = str.__str__(text) if is_raw else clean_text(text)
    original = None if extension == ".txt" else describe_text_original(text, extension, mime_type)
    return Piece(Text(text), original, is_raw=is_raw)


def describe_text_original(
    text: str, extension: str = ".txt", mime_type: str = "text/plain", what: str = "text"
) -> Original:
    """Describe the whole of a text; it is not copied, and is cleaned when a client reads it."""
    return Original(
        name=what.lower(),
        title=f"The whole {what}: {len(text):,} characters",
        formats=(FileFormat(extension, mime_type, lambda: clean_text(text)),),
        cost=sys.getsizeof(text),
    )


def join_texts(pieces: Iterable[Piece]) -> list[Piece]:
    """Join consecutive plain texts, so that a list of words becomes one block."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and _is_plain_text(piece) and _is_plain_text(joined[-1]):
            last = joined[-1].text
            gap = "\n\n" if "\n" in last else "\n"  # an empty line ends a Markdown table
            joined[-1] = make_text_piece(last + gap + piece.text)
        else:
            joined.append(piece)
    return joined


def _is_plain_text(piece: Piece) -> bool:
    """Return whether a piece is only its text."""
    block = piece.block
    return (
        isinstance(block, Text)
        and (block.audience, block.priority, block.last_modified, block.role)
        == ((), None, None, None)
        and not (piece.is_partial or piece.is_raw or piece.has_links)
        and not piece.is_refusal
        and piece.draw is None
    )
