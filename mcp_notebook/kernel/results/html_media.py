"""What HTML shows besides text: videos, sounds at an address, pages within the page.

Runs in the user's kernel, on the thread of the call. Pure: nothing is fetched, an address is only
told. The text of HTML, and the pictures and sounds that it carries in itself, are
`kernel.results.html`'s business.
"""

import base64
import binascii
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote_to_bytes

MAX_ADDRESS = 500
"""Characters of an address that are told."""
_KINDS = {
    "video": "a video",
    "audio": "a sound",
    "iframe": "a page within the page",
    "embed": "something embedded",
    "object": "something embedded",
}


@dataclass(frozen=True)
class Medium:
    """One of these."""

    note: str
    """What it is, and where."""
    page: str = ""
    """The HTML of a page that is there in full."""
    data: bytes = field(default=b"", repr=False)
    """The bytes of a video that is there in full."""
    mime_type: str = ""
    """Of the bytes."""


def find_media(html: str) -> list[Medium]:
    """Return the videos, sounds at an address, and pages within a page, in order."""
    parser = _MediaParser()
    parser.feed(html)
    parser.close()
    return parser.media


class _MediaParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.media: list[Medium] = []
        self._within = ""
        """The video or audio element whose sources come now."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        if tag in {"video", "audio"}:
            self._within = tag
        kind = self._within if tag == "source" else tag
        if kind not in _KINDS:
            return
        if page := values.get("srcdoc", ""):
            self.media.append(Medium("a page within the page", page=page))
            return
        source = (values.get("src") or values.get("data", "")).strip()
        if source.startswith("data:"):
            # A sound in the document is a block of its own.
            self.media += [] if kind == "audio" else [_in_document(kind, source)]
        elif source:
            what = _KINDS[kind]
            self.media.append(Medium(f"{what}, which is not fetched: {source[:MAX_ADDRESS]}"))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._within:
            self._within = ""


def _in_document(kind: str, source: str) -> Medium:
    header, _, data = source.removeprefix("data:").partition(",")
    mime_type = header.partition(";")[0] or "text/plain"
    try:
        content = base64.b64decode(data) if header.endswith(";base64") else unquote_to_bytes(data)
    except (binascii.Error, ValueError):
        content = b""
    note = f"{_KINDS[kind]}, {mime_type}, {len(content):,} bytes"
    return Medium(note, data=content, mime_type=mime_type)
