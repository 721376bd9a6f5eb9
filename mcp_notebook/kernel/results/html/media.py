"""Finds the videos, linked sounds and embedded pages in HTML.

Runs in the user's kernel, on the thread of the call. Pure: nothing is fetched, addresses are only
reported. The text of HTML, and the pictures and sounds that it contains, come from `to_markdown`.
"""

import base64
import binascii
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from mcp_notebook.kernel.results.html.tags import iterate_tags

MAX_ADDRESS = 500
"""Maximum characters of a reported address."""
_KINDS = {
    "video": "a video",
    "audio": "a sound",
    "iframe": "a page within the page",
    "embed": "something embedded",
    "object": "something embedded",
}
_PARENTS = frozenset({"video", "audio"})
_TAGS = frozenset({*_KINDS, "source", "/video", "/audio"})


class Medium(Struct, frozen=True):
    """A video, a sound, or a nested page."""

    note: str
    """Its kind, and its address or size."""
    page: str = ""
    """The HTML of an embedded page."""
    data: bytes = b""
    """The bytes of an embedded video."""
    mime_type: str = ""
    """The MIME type of the bytes."""


def find_media(html: str, limit: int | None = None) -> list[Medium]:
    """Return the videos, sounds at an address and embedded pages of a document, in order.

    Args:
        html: A document or part of one, of any size, well-formed or not.
        limit: Maximum media to return; all by default.
    """
    return list(islice(_iterate_media(html), limit))


def _iterate_media(html: str) -> Iterator[Medium]:
    parent = ""  # the open video or audio element
    for tag, attributes in iterate_tags(html, _TAGS):
        if tag == f"/{parent}":
            parent = ""
        elif tag in _PARENTS:
            parent = tag
        kind = parent if tag == "source" else tag
        if kind in _KINDS and (medium := _make_medium(kind, attributes)) is not None:
            yield medium


def _make_medium(kind: str, attributes: dict[str, str]) -> Medium | None:
    if page := attributes.get("srcdoc", ""):
        return Medium("a page within the page", page=page)
    source = (attributes.get("src") or attributes.get("data", "")).strip()
    if source.startswith("data:"):
        # An embedded sound becomes a block of its own.
        return None if kind == "audio" else _decode_medium(kind, source)
    if source:
        return Medium(f"{_KINDS[kind]}, which is not fetched: {source[:MAX_ADDRESS]}")
    return None


def _decode_medium(kind: str, source: str) -> Medium:
    header, _, data = source.removeprefix("data:").partition(",")
    mime_type = header.partition(";")[0] or "text/plain"
    try:
        content = base64.b64decode(data) if header.endswith(";base64") else unquote_to_bytes(data)
    except (binascii.Error, ValueError):
        content = b""
    note = f"{_KINDS[kind]}, {mime_type}, {len(content):,} bytes"
    return Medium(note, data=content, mime_type=mime_type)
