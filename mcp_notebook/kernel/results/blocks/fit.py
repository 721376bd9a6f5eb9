"""Fits all pieces of a result to its budget: the last step of a conversion.

Runs in the user's kernel, on the thread of the call. Each piece already fits on its own. This step
limits the number of pieces, drops repeated images, and limits the total bytes and characters.
"""

import json
import sys
from collections.abc import Sequence

from msgspec import structs

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Text
from mcp_notebook.kernel.results.blocks import images
from mcp_notebook.kernel.results.blocks.audio import render_audio
from mcp_notebook.kernel.results.blocks.author_blocks import copy_annotations, render_image
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import render_resource
from mcp_notebook.kernel.results.blocks.image_block import (
    finish_images,
    fit_image_count,
    skip_repeated_images,
)
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original, OriginalSink
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.blocks.truncation import is_short_text, truncate_texts
from mcp_notebook.kernel.safe.text import compute_share

MAX_BLOCKS = 100
"""Maximum blocks of a result."""
_LONGEST = 12
"""Most bytes that one character takes in ASCII JSON: an emoji."""


def fit_pieces(pieces: Sequence[Piece], budget: Budget) -> list[ContentBlock]:
    """Fit a result to what models can read and clients accept.

    An image is sent once, even if it was both displayed and returned. Of too many images, the first
    ones and the last one (the tool's value) are sent; the others become links.
    If there are too many bytes, the largest images are downsized, and the largest sounds and
    documents become links. Notes on an image and the link to its original follow it. All texts and
    links together keep to `budget.chars`: the longest texts are cut, and followed by links.
    """
    if len(pieces) == 1 and is_short_text(pieces[0], budget.chars):  # as most results
        return [pieces[0].block]
    remaining = list(skip_repeated_images(pieces))
    notes: list[ContentBlock] = []
    remaining, said = fit_image_count(remaining, budget.pictures, budget.keep)
    notes += said
    remaining, more = _limit_count(remaining, budget.keep)
    notes += more
    remaining = fit_bytes(remaining, budget)
    remaining, more = _limit_count(list(finish_images(remaining, budget.keep)), budget.keep)
    notes += more
    chars = budget.chars - sum(len(note.text) for note in notes if isinstance(note, Text))
    return [*truncate_texts(remaining, chars, budget.keep), *notes]


def fit_bytes(pieces: Sequence[Piece], budget: Budget) -> list[Piece]:
    """Downsize images, and replace sounds and documents by links, until all bytes fit together.

    Each gets a fair share; the unused room of small pieces goes to the large ones.
    """
    sizes = [_count_bytes(piece.block) for piece in pieces]
    if sum(sizes) <= budget.result_bytes:
        return list(pieces)
    share = compute_share(sizes, budget.result_bytes)
    # A sound cannot be downsized: its share goes to the others.
    staying = [
        size
        for piece, size in zip(pieces, sizes, strict=True)
        if size <= share or isinstance(piece.block, Image)
    ]
    room = structs.replace(budget, picture_bytes=compute_share(staying, budget.result_bytes))
    fitting: list[Piece] = []
    for piece, size in zip(pieces, sizes, strict=True):
        if size <= (room.picture_bytes if isinstance(piece.block, Image) else share):
            fitting.append(piece)
        else:
            fitting += copy_annotations(_shrink(piece, room, share), piece.block)
    return fitting


def _shrink(piece: Piece, room: Budget, share: int) -> list[Piece]:
    block = piece.block
    match block:
        case Image():
            return render_image(lambda: images.shrink_image(piece, room), room)
        case Audio():
            return render_audio(block, structs.replace(room, picture_bytes=share))
        case Resource():
            least = structs.replace(room, picture_bytes=share, chars=share // _LONGEST)
            return render_resource(block, least)
        case _:
            return [piece]


def _count_bytes(block: ContentBlock) -> int:
    """Return the bytes of a block that count; texts and links have other limits."""
    match block:
        case Image() | Audio() | Resource(data=bytes()):
            return len(block.data)
        case Resource():
            return len(json.dumps(block.data))  # some transports send ASCII
        case _:
            return 0


def _limit_count(pieces: list[Piece], keep: OriginalSink) -> tuple[list[Piece], list[ContentBlock]]:
    """Limit the number of pieces: leave out the middle, and link to the texts in it."""
    if len(pieces) <= MAX_BLOCKS:
        return pieces, []
    half = MAX_BLOCKS // 2
    left_out = pieces[half:-half]
    note = Text(f"[{len(left_out):,} of {len(pieces):,} parts of the result are left out.]")
    links = keep(_describe_parts(left_out))
    return [*pieces[:half], *pieces[-half:]], [note, *links]


def _describe_parts(pieces: Sequence[Piece]) -> Original:
    """Describe pieces that are left out: their texts, and a line for each other block."""

    def write() -> str:
        return "\n\n".join(_write_part(piece) for piece in pieces)

    form = FileFormat(".txt", "text/plain", write)
    cost = sum(sys.getsizeof(piece.text) for piece in pieces)
    return Original("parts", f"The texts of the {len(pieces):,} parts", (form,), cost)


def _write_part(piece: Piece) -> str:
    block = piece.block
    match block:
        case Text():
            text = piece.original.formats[0].content() if piece.original else block.text
            return text if isinstance(text, str) else block.text
        case ResourceLink():
            return f"[{block.about}: {block.uri}]"
        case _:
            return f"[{type(block).__name__}, {block.mime_type}, {len(block.data):,} bytes]"
