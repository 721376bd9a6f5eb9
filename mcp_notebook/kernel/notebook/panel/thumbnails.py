"""What a call returned, small enough to look at beside others.

Runs on the panel's thread. A result goes in, a text of one line and perhaps a picture of a
few kilobytes come out. PIL is never imported here: where it is not loaded, only a picture that is
small already is shown.
"""

import io
import logging
from typing import Any

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.notebook.panel.panel_state import Thumbnail
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.text.wording import count, strip_escapes

logger = logging.getLogger(__name__)

MAX_TEXT = 80
"""Characters."""
MAX_BYTES = 6_000
"""Bytes of a picture."""
MAX_PIXELS = 50_000_000
"""Of a picture that is decoded for its thumbnail."""
SIDES = (128, 64)
"""Pixels, at most: width and height."""
_SMALLER = (1.0, 0.75, 0.5)
"""Factors of the sides that are tried until the bytes fit."""


def make_thumbnail(result: Result) -> Thumbnail:
    """Return what a result looks like from afar."""
    text = _describe(result)
    picture = next((block for block in result.content if isinstance(block, Image)), None)
    if picture is None or result.is_error:
        return Thumbnail(text)
    data = _shrink(picture.data)
    return Thumbnail(text) if data is None else Thumbnail(text, *data)


def _describe(result: Result) -> str:
    """Return the first line of text, and the number of other things."""
    texts = [block.text for block in result.content if isinstance(block, Text)]
    lines = (line.strip() for text in texts for line in strip_escapes(text[:2_000]).splitlines())
    first = next(filter(None, lines), "")
    others = [block for block in result.content if not isinstance(block, Text)]
    kinds = dict.fromkeys(map(_name_kind, others))
    counts = [count(sum(_name_kind(block) == kind for block in others), kind) for kind in kinds]
    return ", ".join(filter(None, [*counts, shorten(first)]))


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


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text of one line that is not longer than that."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _shrink(data: Any) -> tuple[bytes, str] | None:
    """Return an encoded picture that is small, and its type; None if it cannot be made."""
    if not isinstance(data, bytes):
        return None
    pil = find_imported("PIL.Image")
    if pil is None:
        is_small_png = data.startswith(b"\x89PNG") and len(data) <= MAX_BYTES
        return (data, "image/png") if is_small_png else None
    try:
        with pil.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                return None  # decoded, it would take a hundred times the memory of its file
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
