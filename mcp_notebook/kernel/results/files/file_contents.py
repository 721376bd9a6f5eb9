"""Renders the content of an open file, by its first bytes and its name.

Runs in the user's kernel, on the thread of the call. Only what is shown or sent is read.
"""

import codecs
import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mcp_notebook.content import Audio, Image, Resource, Text
from mcp_notebook.kernel.results.blocks import audio, author_blocks
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import link_original
from mcp_notebook.kernel.results.blocks.originals import Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.blocks.truncation import LINK
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.files.shared_folders import OpenPath
from mcp_notebook.kernel.safe.magic_numbers import detect_audio_type, detect_image_type
from mcp_notebook.kernel.safe.text import (
    clean_text,
    cut_text,
    find_gap_after,
    find_gap_before,
)
from mcp_notebook.text.wording import format_size

MAX_READ = 100 * 2**20
"""Bytes of the largest file that a client can read through a link."""
MAX_CONVERTED = 2**20
"""Bytes of the largest HTML or SVG file that is converted."""
MAX_IMAGE = 64 * 2**20
"""Bytes of the largest image file that is read."""

_SAMPLE_BYTES = 8_192
"""Bytes at both ends of a file that are read to recognize its format and encoding."""
_DISPLAYED = {
    "text/html": "text/html",
    "application/xhtml+xml": "text/html",
    "image/svg+xml": "image/svg+xml",
}
_TYPES = {  # MIME types that some systems lack or define differently
    ".arrow": "application/vnd.apache.arrow.file",
    ".csv": "text/csv",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".ipynb": "application/x-ipynb+json",
    **dict.fromkeys((".md", ".markdown"), "text/markdown"),
    ".parquet": "application/vnd.apache.parquet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".py": "text/x-python",
    ".toml": "application/toml",
    ".ts": "text/plain",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    **dict.fromkeys((".yaml", ".yml"), "application/yaml"),
}
_BYTES_PER_CHAR = 4
"""Most bytes of a character in these encodings."""
_CONTROL_BYTES = frozenset(range(0x20)) - frozenset(b"\t\n\r\f\x1b") | {0x7F}


DescribeOriginal: TypeAlias = Callable[[str | None], Original]
"""Describes the whole file; with an encoding, as text."""


def find_mime_type(path: Path) -> str | None:
    """Return the MIME type of a file by its name."""
    guess, compression = mimetypes.guess_type(path.name, strict=False)
    compressed = f"application/{compression}" if compression else guess
    return _TYPES.get(path.suffix.lower()) or compressed


def render_file(
    file: BinaryIO, info: OpenPath, budget: Budget, describe_original: DescribeOriginal
) -> list[Piece]:
    """Render the content of a file.

    Args:
        file: The open file, at its beginning.
        info: What is known of the file.
        budget: The limits of the result.
        describe_original: Describes the whole file, for one that is shown in part.
    """
    beginning = file.read(_SAMPLE_BYTES)
    if not beginning:
        return [Piece(Text(f"[The file {info.name} is empty.]"))]
    by_name = find_mime_type(info.path) or ""
    file.seek(max(info.size - _SAMPLE_BYTES, 0))
    encoding = detect_encoding(beginning, file.read(_SAMPLE_BYTES))
    is_image = detect_image_type(beginning) or (by_name.startswith("image/") and encoding is None)
    if is_image and info.size <= MAX_IMAGE:
        pieces = author_blocks.render_encoded_image(_read_all(file, info.size), budget)
        has_image = any(isinstance(piece.block, Image) for piece in pieces)
        if has_image or (encoding is None and detect_image_type(beginning)):
            return pieces
    audio_type = detect_audio_type(beginning)
    if audio_type is not None and info.size <= budget.picture_bytes:
        return audio.render_audio(Audio(_read_all(file, info.size), audio_type), budget)
    if encoding is None or by_name == "application/pdf" or beginning.startswith(b"%PDF-"):
        return _render_binary(file, info, budget, describe_original(None))
    return _render_text(file, info, encoding, budget, describe_original)


def _render_text(
    file: BinaryIO,
    info: OpenPath,
    encoding: str,
    budget: Budget,
    describe_original: DescribeOriginal,
) -> list[Piece]:
    is_whole = False
    if info.size > MAX_CONVERTED and find_mime_type(info.path) in _DISPLAYED:
        return _link_file(
            info, describe_original(encoding), budget
        )  # the source says little to a model
    pieces = _convert_text(file, info, encoding, budget)
    if not pieces:
        text, is_whole = read_text(file, info.size, encoding, budget.chars)
        text = clean_text(text)
        if not is_whole:
            text, _ = read_text(file, info.size, encoding, budget.chars - LINK)
            text = clean_text(text)
        pieces = [Piece(Text(text), has_links=not is_whole)]
        if not text.strip():
            return [Piece(Text(f"[The file {info.name} contains only white space.]"))]
    if is_whole:
        return pieces
    if info.size > MAX_READ:
        limit = format_size(MAX_READ)
        return [*pieces, Piece(Text(f"[A file of more than {limit} cannot be read whole.]"))]
    return [*pieces, *map(Piece, budget.keep(describe_original(encoding)))]


def _convert_text(
    file: BinaryIO, info: OpenPath, encoding: str, budget: Budget
) -> list[Piece] | None:
    """Render text in a format with a better view than its source; None for others."""
    kind = _DISPLAYED.get(find_mime_type(info.path) or "")
    if info.size > MAX_CONVERTED or not kind:
        return None
    source = _read_all(file, info.size).decode(encoding, "replace")
    return render_mime_bundle({kind: source}, budget)


def _render_binary(
    file: BinaryIO, info: OpenPath, budget: Budget, original: Original
) -> list[Piece]:
    mime_type = original.formats[0].mime_type
    if info.size <= budget.picture_bytes:
        return [Piece(Resource(info.path.as_uri(), _read_all(file, info.size), mime_type))]
    return _link_file(info, original, budget)


def _link_file(info: OpenPath, original: Original, budget: Budget) -> list[Piece]:
    if info.size > MAX_READ:
        limit = format_size(MAX_READ)
        return [Piece(Text(f"[{original.title} is too large to be sent: the limit is {limit}.]"))]
    return link_original(original.title, original, budget)


def _read_all(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    return file.read(size)  # without later additions


# -- text --------------------------------------------


def detect_encoding(beginning: bytes, end: bytes) -> str | None:
    """Return the encoding of a text file; None for a binary file.

    Args:
        beginning: Its first bytes.
        end: Its last bytes, since binary data may follow a text header.
    """
    if beginning.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if 0 in beginning or 0 in end:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning, final=beginning == end)
    except UnicodeDecodeError:
        return _detect_legacy_encoding(beginning)
    return "utf-8"


def read_text(file: BinaryIO, size: int, encoding: str, most: int) -> tuple[str, bool]:
    """Read a text file; of a long one, only both ends.

    Args:
        file: The open file.
        size: Bytes of the file.
        encoding: The encoding from `detect_encoding`.
        most: Maximum characters to return.

    Returns:
        The text, and whether it is complete.
    """
    file.seek(0)
    if size <= most * _BYTES_PER_CHAR:
        text = file.read(size).decode(encoding, "replace")
        return cut_text(text, most), len(text) <= most
    marker = f"\n[... the middle of {size:,} bytes is left out ...]\n"
    half = max((most - len(marker)) // 2, 0)
    length = half * _BYTES_PER_CHAR
    # Parts of characters at the cuts are ignored.
    head = file.read(length).decode(encoding, "ignore")[:half]
    start = (size - length) // _BYTES_PER_CHAR * _BYTES_PER_CHAR
    file.seek(start)
    tail = file.read(size - start).decode(encoding.removesuffix("-sig"), "ignore")
    tail = tail[len(tail) - min(half, len(tail)) :]
    if len(marker) > most:
        return head, False
    # Whole lines, as most long files are tables or logs.
    head = head[: head.rfind("\n") + 1 or find_gap_before(head, half, half // 2)]
    head = head.removesuffix("\n")
    tail = tail[tail.find("\n") + 1 or find_gap_after(tail, 0, half // 2) :]
    return f"{head}{marker}{tail}", False


def _detect_legacy_encoding(beginning: bytes) -> str | None:
    """Return whether bytes are text in a legacy encoding, as spreadsheets write it."""
    controls = sum(byte in _CONTROL_BYTES for byte in beginning)
    ascii_bytes = sum(byte < 0x80 for byte in beginning)  # noqa: PLR2004 - the end of ASCII
    if controls or ascii_bytes < len(beginning) / 2:
        return None
    return "cp1252"
