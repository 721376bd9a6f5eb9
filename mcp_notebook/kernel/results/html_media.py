"""Finds what HTML shows besides text and pictures: videos, sounds at an address, embedded pages.

Runs in the user's kernel, on the thread of the call. Pure: nothing is fetched, addresses are only
reported. The text of HTML, and the pictures and sounds that it contains, come from `html`.
"""

import base64
import binascii
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote_to_bytes

MAX_ADDRESS = 500
"""Characters of an address that are reported."""
_KINDS = {
    "video": "a video",
    "audio": "a sound",
    "iframe": "a page within the page",
    "embed": "something embedded",
    "object": "something embedded",
}


@dataclass(frozen=True)
class Medium:
    """A video, a sound, or a page within the page."""

    note: str
    """What it is, and its address or size."""
    page: str = ""
    """The HTML of an embedded page."""
    data: bytes = field(default=b"", repr=False)
    """The bytes of an embedded video."""
    mime_type: str = ""
    """The MIME type of the bytes."""


def find_media(html: str) -> list[Medium]:
    """Return the videos, sounds at an address and embedded pages of a document, in order."""
    parser = _MediaParser()
    parser.feed(html)
    parser.close()
    return parser.media


class _MediaParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.media: list[Medium] = []
        self._parent = ""
        """The video or audio element that sources now belong to."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        if tag in {"video", "audio"}:
            self._parent = tag
        kind = self._parent if tag == "source" else tag
        if kind not in _KINDS:
            return
        if page := values.get("srcdoc", ""):
            self.media.append(Medium("a page within the page", page=page))
            return
        source = (values.get("src") or values.get("data", "")).strip()
        if source.startswith("data:"):
            # An embedded sound has its own block.
            self.media += [] if kind == "audio" else [_decode_medium(kind, source)]
        elif source:
            note = f"{_KINDS[kind]}, which is not fetched: {source[:MAX_ADDRESS]}"
            self.media.append(Medium(note))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._parent:
            self._parent = ""


def _decode_medium(kind: str, source: str) -> Medium:
    header, _, data = source.removeprefix("data:").partition(",")
    mime_type = header.partition(";")[0] or "text/plain"
    try:
        content = base64.b64decode(data) if header.endswith(";base64") else unquote_to_bytes(data)
    except (binascii.Error, ValueError):
        content = b""
    note = f"{_KINDS[kind]}, {mime_type}, {len(content):,} bytes"
    return Medium(note, data=content, mime_type=mime_type)
