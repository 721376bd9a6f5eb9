"""A call's result in small: a line of text, and a picture of a few kilobytes.

Runs on any thread. Pure. PIL is never imported for that: if the notebook has not loaded it, only
small pictures are shown.
"""

import io
import logging
from typing import Any

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.text.wording import count, shorten, strip_escapes

logger = logging.getLogger(__name__)

MAX_TEXT = 80
"""Characters of a thumbnail's text."""
MAX_BYTES = 6_000
"""Bytes of a thumbnail's picture."""
MAX_PIXELS = 50_000_000
"""Pixels of a picture that is decoded for its thumbnail."""
SIDES = (128, 64)
"""Maximal width and height of a thumbnail's picture, in pixels."""
_SMALLER = (1.0, 0.75, 0.5)
"""Scale factors to try until the picture has at most `MAX_BYTES`."""


def summarize(result: Result) -> str:
    """Return the first line of text, and counts of the other content blocks."""
    texts = [block.text for block in result.content if isinstance(block, Text)]
    lines = (line.strip() for text in texts for line in strip_escapes(text[:2_000]).splitlines())
    first = next(filter(None, lines), "")
    others = [block for block in result.content if not isinstance(block, Text)]
    kinds = dict.fromkeys(map(_name_kind, others))
    counts = [count(sum(_name_kind(block) == kind for block in others), kind) for kind in kinds]
    return ", ".join(filter(None, [*counts, shorten(first, MAX_TEXT)]))


def _name_kind(block: ContentBlock) -> str:
    match block:
        case Image():
            return "picture"
        case Audio():
            return "sound"
        case ResourceLink():
            return "link"
        case Resource():
            return "document"
    return "text"


def shrink(data: Any) -> tuple[bytes, str] | None:
    """Return a small encoded picture and its MIME type; None if that is not possible."""
    if not isinstance(data, bytes):
        return None
    pil = find_imported("PIL.Image")
    if pil is None:
        is_small_png = data.startswith(b"\x89PNG") and len(data) <= MAX_BYTES
        return (data, "image/png") if is_small_png else None
    try:
        with pil.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                return None  # a decompression bomb, perhaps
            return _encode(image.convert("RGBA"))
    except Exception:  # a picture of a kind that this PIL cannot read
        logger.debug("a picture has no thumbnail", exc_info=True)
        return None


def _encode(image: Any) -> tuple[bytes, str] | None:
    for factor in _SMALLER:
        small = image.copy()
        small.thumbnail(tuple(int(side * factor) for side in SIDES))
        buffer = io.BytesIO()
        small.save(buffer, format="PNG", optimize=True)
        if len(buffer.getvalue()) <= MAX_BYTES:
            return buffer.getvalue(), "image/png"
    return None
