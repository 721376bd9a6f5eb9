"""Fits all pieces of a result to its budget: the last step of a conversion.

Runs in the user's kernel, on the thread of the call. Each piece already fits on its own. This step
limits the number of pieces, drops repeated images, and limits the total bytes and characters.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import structs

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, Text
from mcp_notebook.kernel.results.blocks import images
from mcp_notebook.kernel.results.blocks.audio import render_audio
from mcp_notebook.kernel.results.blocks.author_blocks import copy_annotations, render_image
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import render_resource
from mcp_notebook.kernel.results.blocks.encoded_text import holds_encoded, replace_encoded
from mcp_notebook.kernel.results.blocks.image_block import (
    finish_images,
    fit_image_count,
    is_picture,
)
from mcp_notebook.kernel.results.blocks.originals import OriginalSink
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.blocks.truncation import (
    link_together,
    truncate_texts,
)
from mcp_notebook.kernel.safe.text import compute_share, is_sendable

MAX_BLOCKS = 100
"""Maximum blocks of a result."""
_LONGEST = 12
"""Most bytes that one character takes in ASCII JSON: an emoji."""


def fit_pieces(pieces: Sequence[Piece], budget: Budget) -> list[ContentBlock]:
    """Fit a result to what models can read and clients accept.

    Pictures written as base64 become pictures.
    An image is sent once, even if it was both displayed and returned. Of too many images, the first
    ones and the last one (the tool's value) are sent; the others become links, or are not drawn.
    If there are too many bytes, the largest images are downsized, and the largest sounds and
    documents become links. Notes on an image and the link to its original follow it. All texts and
    links together keep to `budget.chars`: the longest texts are cut, and followed by links.
    """
    if len(pieces) == 1 and _is_short(pieces[0], budget.chars):  # as most results are
        return [pieces[0].block]
    remaining = list(_draw_images(replace_encoded(pieces, budget), budget.pictures))
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


def _is_short(piece: Piece, chars: int) -> bool:
    """Return whether a piece is a text that no step changes."""
    if type(piece.block) is not Text or piece.is_raw or piece.is_partial or piece.draw is not None:
        return False
    text = piece.block.text
    return len(text) <= chars and not holds_encoded(text) and is_sendable(text)


def _draw_images(pieces: Sequence[Piece], most: int) -> Iterator[Piece]:
    """Draw the pictures that are sent, and drop repeated ones.

    A figure may have been both displayed and returned. Of too many pictures, the first ones and
    the last one are drawn.
    """
    earlier_images: set[bytes] = set()
    earlier_figures: list[Any] = []  # a weak reference to what is gone has no hash
    last = next((piece for piece in reversed(pieces) if is_picture(piece)), None)
    for piece in pieces:
        parts: Sequence[Piece] = [piece]
        if piece.draw is not None and (len(earlier_images) < most - 1 or piece is last):
            parts = copy_annotations([*piece.draw()], piece.block)
        elif piece.draw is not None and piece.figure in earlier_figures:
            continue
        for part in parts:
            if isinstance(part.block, Image):
                earlier_figures.append(part.figure)
                if part.block.data in earlier_images:
                    continue
                earlier_images.add(part.block.data)
            yield part


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
    texts = [piece for piece in left_out if isinstance(piece.block, Text)]
    links = link_together(texts, "texts that are left out", keep) if texts else []
    return [*pieces[:half], *pieces[-half:]], [note, *links]
