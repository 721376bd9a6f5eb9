"""What is in a file, as content: by its first bytes, then by its name.

Runs in the user's kernel, on the thread of the call. No more of a file is read than is shown or
sent. Which files may be opened at all is `kernel.results.files`' business.
"""

import codecs
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mcp_notebook.content import Audio, Image, Resource, Text
from mcp_notebook.kernel.results.blocks import audio, author_blocks
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import format_size, link_original
from mcp_notebook.kernel.results.blocks.originals import Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.blocks.truncation import LINK
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.notebook_files import render_notebook
from mcp_notebook.kernel.safe.magic_numbers import detect_audio_type, detect_image_type
from mcp_notebook.kernel.safe.text import clean_text, cut_text

MAX_READ = 100 * 2**20
"""Bytes of a file that a client can read by a link."""
MAX_CONVERTED = 2**20
"""Bytes of HTML, a notebook or an SVG that are read to show what is in them."""
MAX_PICTURE = 64 * 2**20
"""Bytes of a picture's file that are read to show it."""

_BEGINNING = 8_192
_DISPLAYED = {
    "text/html": "text/html",
    "application/xhtml+xml": "text/html",
    "image/svg+xml": "image/svg+xml",
}
_TYPES = {  # what not every system knows, or knows as something else
    ".arrow": "application/vnd.apache.arrow.file",
    ".csv": "text/csv",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".ipynb": "application/x-ipynb+json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".py": "text/x-python",
    ".toml": "application/toml",
    ".ts": "text/plain",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_BYTES_PER_CHAR = 4
"""At most, in the encodings that are recognised."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ODD = frozenset(range(0x20)) - frozenset(b"\t\n\r\f\x1b") | {0x7F}


@dataclass(frozen=True)
class File:
    """A file that may be shown."""

    said: str
    """As the author wrote it."""
    path: Path
    """Where it really is."""
    size: int
    identity: tuple[int, ...]
    """Changes when the file does."""

    @property
    def mime_type(self) -> str | None:
        """What its name says."""
        guess, packed = mimetypes.guess_type(self.path.name, strict=False)
        return _TYPES.get(self.path.suffix.lower()) or (
            f"application/{packed}" if packed else guess
        )


MakeOriginal: TypeAlias = Callable[[str | None], Original]
"""Makes a file's original, given the encoding of a text."""


def render_file(file: BinaryIO, found: File, budget: Budget, original: MakeOriginal) -> list[Piece]:
    """Make blocks of a file's content.

    Args:
        file: Open, at its beginning.
        found: What is known of it.
        budget: What the result may take.
        original: Makes what stands for the whole of it.
    """
    beginning = file.read(_BEGINNING)
    if not beginning:
        return [Piece(Text(f"[The file {found.said} is empty.]"))]
    by_name = found.mime_type or ""
    file.seek(max(found.size - _BEGINNING, 0))
    encoding = text_encoding(beginning, file.read(_BEGINNING))
    is_picture = detect_image_type(beginning) or (by_name.startswith("image/") and encoding is None)
    if is_picture and found.size <= MAX_PICTURE:
        made = author_blocks.render_encoded_image(_all(file, found.size), budget)
        shown = any(isinstance(piece.block, Image) for piece in made)
        if shown or (encoding is None and detect_image_type(beginning)):
            return made
    sound = detect_audio_type(beginning)
    if sound is not None and found.size <= budget.picture_bytes:
        return audio.render_audio(Audio(_all(file, found.size), sound), budget)
    if encoding is None or by_name == "application/pdf" or beginning.startswith(b"%PDF-"):
        return _binary(file, found, budget, original(None))
    return _text(file, found, encoding, budget, original)


def _text(
    file: BinaryIO, found: File, encoding: str, budget: Budget, original: MakeOriginal
) -> list[Piece]:
    text, whole = "", False
    if found.size > MAX_CONVERTED and found.mime_type in _DISPLAYED:
        return _left_out(found, original(encoding), budget)  # its source says little to a model
    made = _converted(file, found, encoding, budget)
    if not made:
        text, whole = read_text(file, found.size, encoding, budget.chars)
        text = clean_text(text)
        if not whole:
            text, _ = read_text(file, found.size, encoding, budget.chars - LINK)
            text = clean_text(text)
        made = [Piece(Text(text), has_links=not whole)]
        if not text.strip():
            return [Piece(Text(f"[The file {found.said} holds nothing but white space.]"))]
    links = budget.keep(original(encoding)) if not whole and found.size <= MAX_READ else ()
    return [*made, *map(Piece, links)]


def _converted(file: BinaryIO, found: File, encoding: str, budget: Budget) -> list[Piece] | None:
    """Make blocks of a text that is more to its readers than its source."""
    kind = _DISPLAYED.get(found.mime_type or "")
    is_notebook = found.path.suffix == ".ipynb"
    if found.size > MAX_CONVERTED or not (kind or is_notebook):
        return None
    source = _all(file, found.size).decode(encoding, "replace")
    if kind is None:
        return render_notebook(source, budget)
    return render_mime_bundle({kind: source}, budget)


def _binary(file: BinaryIO, found: File, budget: Budget, original: Original) -> list[Piece]:
    mime_type = original.formats[0].mime_type
    if found.size <= budget.picture_bytes:
        return [Piece(Resource(found.path.as_uri(), _all(file, found.size), mime_type))]
    return _left_out(found, original, budget)


def _left_out(found: File, original: Original, budget: Budget) -> list[Piece]:
    if found.size > MAX_READ:
        most = format_size(MAX_READ)
        return [Piece(Text(f"[{original.title} is too large to be sent, at most {most}.]"))]
    return link_original(original.title, original, budget)


def _all(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    return file.read(size)  # not what has been added meanwhile


# -- text: in which encoding, and no more than is shown --------------------------------------------


def text_encoding(beginning: bytes, end: bytes) -> str | None:
    """Tell the encoding of a text by its first bytes; None if it is none.

    Args:
        beginning: The first bytes of a file.
        end: The last: what begins with a header of text may hold numbers.
    """
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return encoding
    if 0 in beginning or 0 in end:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning, final=beginning == end)
    except UnicodeDecodeError:
        return _old_encoding(beginning)
    return "utf-8"


def read_text(file: BinaryIO, size: int, encoding: str, most: int) -> tuple[str, bool]:
    """Read a text, of a long one only its beginning and end.

    Args:
        file: An open file.
        size: Its bytes.
        encoding: As `text_encoding` tells.
        most: Characters to return.

    Returns:
        The text, and whether it is all of it.
    """
    file.seek(0)
    if size <= most * _BYTES_PER_CHAR:
        text = file.read(size).decode(encoding, "replace")
        return cut_text(text, most), len(text) <= most
    marker = f"\n[... the middle of {size:,} bytes is left out ...]\n"
    half = max((most - len(marker)) // 2, 0)
    length = half * _BYTES_PER_CHAR
    # Cut anywhere, a text's ends may hold parts of characters: those are left out, too.
    head = file.read(length).decode(encoding, "ignore")[:half]
    start = (size - length) // _BYTES_PER_CHAR * _BYTES_PER_CHAR
    file.seek(start)
    tail = file.read(size - start).decode(_without_mark(encoding, file), "ignore")
    tail = tail[len(tail) - min(half, len(tail)) :]
    if len(marker) > most:
        return head, False
    # Whole lines read better: most such files are tables and logs.
    head = head[: head.rfind("\n") + 1 or len(head)].removesuffix("\n")
    tail = tail[tail.find("\n") + 1 :]
    return f"{head}{marker}{tail}", False


def _without_mark(encoding: str, file: BinaryIO) -> str:
    """Return the encoding of a part that does not begin with the mark of the byte order."""
    if encoding not in ("utf-16", "utf-32"):
        return encoding.removesuffix("-sig")
    here = file.tell()
    file.seek(0)
    little = file.read(2) == codecs.BOM_UTF16_LE
    file.seek(here)
    return f"{encoding}-{'le' if little else 'be'}"


def _old_encoding(beginning: bytes) -> str | None:
    """Tell a text that is no Unicode, as spreadsheets write them, from binary data."""
    odd = sum(byte in _ODD for byte in beginning)
    letters = sum(byte < 0x80 for byte in beginning)  # noqa: PLR2004 - the end of ASCII
    if odd or letters < len(beginning) / 2:
        return None
    return "cp1252"
