"""An image block of a result, with its notes and its original.

Runs in the user's kernel, on the thread of the call. An image may repeat, or be one too many, so
its notes and original are only used when the result is complete.
"""

from collections.abc import Iterator, Sequence

from msgspec import structs

from mcp_notebook.content import Image, Text
from mcp_notebook.kernel.results.blocks.originals import (
    FileFormat,
    Original,
    OriginalSink,
    discard_original,
)
from mcp_notebook.kernel.results.blocks.piece import Piece

NOT_KEPT = "The original is too large to be kept."
EXTENSIONS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/bmp": ".bmp",
    "image/tiff": ".tif",
    "image/x-icon": ".ico",
}


class Unshowable(ValueError):
    """A picture cannot be shown; the message says why.

    Args:
        sentence: The message for the reader of the result.
        original: The original that can be kept instead.
    """

    def __init__(self, sentence: str, original: Original | None = None) -> None:
        super().__init__(sentence)
        self.original = original


def describe_encoded_original(
    data: bytes, mime_type: str, size: tuple[int, int] | None = None
) -> Original:
    """Describe an encoded picture as its own original."""
    pixels = f": {size[0]}x{size[1]} pixels" if size else ""
    form = FileFormat(EXTENSIONS.get(mime_type, ""), mime_type, lambda: data, len(data))
    return Original("picture", f"The original picture{pixels}", (form,), len(data))


def is_picture(piece: Piece) -> bool:
    """Return whether a piece is a picture, drawn or not."""
    return isinstance(piece.block, Image) or piece.draw is not None


def fit_image_count(
    pieces: Sequence[Piece], most: int, keep: OriginalSink
) -> tuple[list[Piece], list[Text]]:
    """Limit the number of pictures: keep the first ones and the last one (the tool's value).

    Those that were not drawn are left out anyway.

    Returns:
        The pieces, with links in place of the omitted pictures; and a note on these.
    """
    places = [index for index, piece in enumerate(pieces) if is_picture(piece)]
    undrawn = {index for index in places if pieces[index].draw is not None}
    drawn = [index for index in places if index not in undrawn]
    left_out = undrawn | (set(drawn[most - 1 : -1]) if len(drawn) > most else set())
    if not left_out:
        return list(pieces), []
    remaining: list[Piece] = []
    linked = 0
    for index, piece in enumerate(pieces):
        block = piece.block
        if index not in left_out or not isinstance(block, Image):
            remaining.append(piece)
            continue
        original = piece.original or describe_encoded_original(block.data, block.mime_type)
        title = f"Picture {places.index(index) + 1} of {len(places)}"
        links = keep(structs.replace(original, title=title))
        linked += bool(links)
        remaining += map(Piece, links)
    lost = len(left_out) - linked - len(undrawn)
    text = f"{len(left_out)} of {len(places)} pictures are left out"
    if undrawn:
        text += f", {len(undrawn)} of them not drawn" if lost or linked else " and not drawn"
    if linked:
        replaced = "them" if linked == len(left_out) else f"{linked} of them"
        text += f"; links replace {replaced}"
    if lost and keep is not discard_original:
        text += f"; {'they' if not linked else 'the others'} are too large to be kept"
    return remaining, [Text(f"[{text}.]")]


def finish_images(pieces: Sequence[Piece], keep: OriginalSink) -> Iterator[Piece]:
    """Add to each picture the notes on its changes and the links to its original."""
    for piece in pieces:
        if not isinstance(piece.block, Image):
            yield piece
            continue
        yield Piece(piece.block)
        links = keep(piece.original) if piece.original is not None else ()
        is_lost = piece.original is not None and not links
        notes = (*piece.notes, NOT_KEPT) if is_lost else piece.notes
        if notes:
            yield Piece(Text(f"[{' '.join(notes)}]"))
        yield from map(Piece, links)
