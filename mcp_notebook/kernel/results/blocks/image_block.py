"""A picture of a result together with what is said about it and with its original.

Runs in the user's kernel, on the thread of the call. Until a result is finished, each of its
pictures is one `Shown`: the same picture can come twice, or be one too many, and only then is it
known whether its original must be kept and what is said. Making pictures is
`kernel.results.blocks.images`' business.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from mcp_notebook.content import ContentBlock, Image, Text
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original, OriginalSink

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
    """A picture cannot be shown: the message says why.

    Args:
        sentence: For the reader of the result.
        original: What can be kept in its place.
    """

    def __init__(self, sentence: str, original: Original | None = None) -> None:
        super().__init__(sentence)
        self.original = original


@dataclass(frozen=True)
class Shown(Image):
    """An encoded picture that fits, with what `finish_images` puts after it."""

    notes: tuple[str, ...] = ()
    """Sentences about what was done to it."""
    original: Original | None = field(default=None, repr=False)
    """The picture before that."""


def describe_encoded_original(
    data: bytes, mime_type: str, size: tuple[int, int] | None = None
) -> Original:
    """Describe an encoded picture as it came."""
    pixels = f": {size[0]}x{size[1]} pixels" if size else ""
    form = FileFormat(EXTENSIONS.get(mime_type, ""), mime_type, lambda: data, len(data))
    return Original("picture", f"The original picture{pixels}", (form,), len(data))


def skip_repeated_images(blocks: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """Let each picture through once: a figure may have been shown and returned."""
    seen: set[bytes] = set()
    for block in blocks:
        if isinstance(block, Image):
            if block.data in seen:
                continue
            seen.add(block.data)
        yield block


def fit_image_count(
    blocks: Sequence[ContentBlock], most: int, keep: OriginalSink
) -> tuple[list[ContentBlock], list[Text]]:
    """Of too many pictures keep the first ones and the last one, which is the tool's value.

    Returns:
        The blocks, with links in the place of the pictures that are left out; and a note on them.
    """
    places = [index for index, block in enumerate(blocks) if isinstance(block, Image)]
    if len(places) <= most:
        return list(blocks), []
    left_out = set(places[most - 1 : -1])
    kept: list[ContentBlock] = []
    linked = 0
    for index, block in enumerate(blocks):
        if index not in left_out or not isinstance(block, Image):
            kept.append(block)
            continue
        original = block.original if isinstance(block, Shown) else None
        original = original or describe_encoded_original(block.data, block.mime_type)
        title = f"Picture {places.index(index) + 1} of {len(places)}"
        links = keep(replace(original, title=title))
        linked += bool(links)
        kept += links
    text = f"{len(left_out)} of {len(places)} pictures are left out"
    if linked:
        which = "their" if linked == len(left_out) else f"{linked} of their"
        text += f"; links to the pictures stand in {which} places"
    return kept, [Text(f"[{text}.]")]


def finish_images(blocks: Sequence[ContentBlock], keep: OriginalSink) -> Iterator[ContentBlock]:
    """Put after each picture what was done to it, and the links to its original."""
    for block in blocks:
        if not isinstance(block, Shown):
            yield block
            continue
        yield Image(**{item.name: getattr(block, item.name) for item in fields(Image)})
        links = keep(block.original) if block.original is not None else ()
        lost = block.original is not None and not links
        notes = (*block.notes, NOT_KEPT) if lost else block.notes
        if notes:
            yield Text(f"[{' '.join(notes)}]")
        yield from links
