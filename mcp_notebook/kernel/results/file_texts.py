"""Text out of files: in which encoding, and no more than is shown.

Runs in the user's kernel, on the thread of the call. Pure functions over open files; which files
may be opened is `kernel.results.files`' business.
"""

import codecs
from typing import BinaryIO

from mcp_notebook.kernel.safe.text import cut

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
        return cut(text, most), len(text) <= most
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
