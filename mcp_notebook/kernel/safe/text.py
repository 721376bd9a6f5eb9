"""Text for a model: cleans it, cuts it to size, and reads it from any object.

Runs in the user's kernel, on the thread of the call. Pure functions; those that run the code of
an object (its repr, its message) do not fail whatever that code does.
"""

import base64
import collections
import re
from collections.abc import Sequence
from typing import Any

from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded, guard
from mcp_notebook.kernel.safe.libraries import get_members, get_mro
from mcp_notebook.text.wording import escape_around, strip_escapes

MAX_REPR = 2_000
"""Maximum characters of the repr of an object within a larger value."""

_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CONTROLS = bytes(number for number in range(128) if _UNSENDABLE.match(chr(number)))
_LONG = 2**8
"""Length from which a check before the search is worth it."""
_SLICE = 2**16
"""Characters that are checked at a time; they fit into the CPU cache."""
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_MAX_CONTINUATION = 3
"""Bytes of a character of UTF-8 after its first one."""
MAX_HEX = 16
"""Bytes of binary data that are written out."""
_NEAR = 200
"""Characters that may be given up to cut at the end of a line."""
_ADDRESS = re.compile(r"<.* at (?:0x)?[0-9a-fA-F]{6,}>", re.DOTALL)
"""A repr that is little more than an address in memory."""
_PLACE = re.compile(r" at 0x[0-9a-fA-F]{8,16}(?=[>);,\s]|$)")
"""An address within the repr of an object: it says nothing, and is another one each time."""
_GENERAL = frozenset(
    {"builtins", "collections", "pydantic.main", "pydantic._internal._repr", "msgspec._core"}
)
"""Modules whose classes have generic reprs, which say little about subclasses."""
_GENERATED = ("<string>", "<attrs generated", collections.__file__)
"""Prefixes of the file names of reprs that dataclasses, attrs and named tuples generate."""
_GAPS = (" ", "\n", "\t", ",", ";", "|")
"""Characters between words, numbers or items."""


# -- cleaning --------------------------------------------------------------------------------------


def clean_text(text: str) -> str:
    """Remove ANSI codes, and replace control characters and lone surrogates."""
    # str.__str__ makes a plain str of a subclass, whose methods could do anything.
    text = strip_escapes(str.__str__(text))
    return text if len(text) >= _LONG and _is_clean(text) else _UNSENDABLE.sub("\ufffd", text)


def _is_clean(text: str) -> bool:
    """Return whether a string needs no replacements, in a tenth of the time of a search."""
    for start in range(0, len(text), _SLICE):
        try:
            data = text[start : start + _SLICE].encode()
        except UnicodeEncodeError:  # a lone surrogate
            return False
        if len(data.translate(None, _CONTROLS)) < len(data):
            return False
    return True


def clean_printed(text: str) -> str:
    """Clean printed text, and keep only what a terminal would still show of each line.

    A progress bar prints one line hundreds of times, with a carriage return in between.
    """
    text = clean_text(text)
    if "\r" not in text:
        return text
    return _OVERWRITTEN.sub("", text.replace("\r\n", "\n")).replace("\r", "")


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be sent, and nothing else."""
    return str.__str__(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_sendable(text: str) -> bool:
    """Return whether a string is more than white space, which model APIs refuse as a block."""
    # Not `strip`, which copies. `str.` since a subclass may answer anything.
    return str.__len__(text) > 0 and not str.isspace(text)


# -- cutting ---------------------------------------------------------------------------------------


def cut_text(
    text: str, size: int, note: str = "", *, whole: str = "", is_clean: bool = True
) -> str:
    """Cut a string in the middle to at most `size` characters, with a note on how much is left out.

    A string is cut at the end of a line, or between words, numbers or items: half a number would be
    wrong. Only a word longer than a fourth of the kept text is cut itself. Without room for both
    ends, the beginning is kept, followed by ``[+4,800]``.

    Args:
        text: A string of any length; only the kept part is copied.
        size: Maximum characters of the result.
        note: More text for the note.
        whole: What the text is a part of, instead of a number of characters: "9 items".
        is_clean: Whether the text is clean; if not, the kept part is cleaned.
    """
    tidy = str if is_clean else clean_text
    if len(text) <= size:
        return tidy(text)
    total = len(text), text.count("\n") + 1
    longest = len(_format_marker(*total, total, note, whole))
    room = size - longest
    if room < longest:
        return _keep_beginning(text, size, whole, is_clean=is_clean)
    head, tail = _choose_ends(text, room, is_clean=is_clean)
    marker = _format_marker(tail - head, text.count("\n", head, tail), total, note, whole)
    return f"{tidy(text[:head])}{marker}{tidy(text[tail:])}"


def format_rest(left_out: int | None) -> str:
    """Return the mark at the end of a cut text.

    Args:
        left_out: Number of characters left out; None if unknown.
    """
    return " [+more]" if left_out is None else f" [+{left_out:,}]"


def _keep_beginning(text: str, size: int, whole: str, *, is_clean: bool) -> str:
    tidy = str if is_clean else clean_text
    room = size - len(format_rest(None if whole else len(text)))
    if room <= 0:
        return tidy(text[: max(size, 0)])
    head = find_gap_before(text, room, room // 2)
    head = head if is_clean else escape_around(text, head)[0]
    return tidy(text[:head]) + format_rest(None if whole else len(text) - head)


def _format_marker(
    characters: int, lines: int, total: tuple[int, int], note: str, whole: str
) -> str:
    if whole:
        return f"\n[... the middle of {whole} left out{note} ...]\n"
    of_lines = f", {lines:,} of {total[1]:,} lines," if lines else ""
    return f"\n[... {characters:,} of {total[0]:,} characters{of_lines} left out{note} ...]\n"


def _choose_ends(text: str, room: int, *, is_clean: bool) -> tuple[int, int]:
    """Return start and end of the part to leave out; at line ends if they are near."""
    tail_size = room // 2
    head, tail = room - tail_size, len(text) - tail_size
    near, reach = min(_NEAR, room // 8), room // 4
    line_end, line_start = text.rfind("\n", head - near, head), text.find("\n", tail, tail + near)
    head = line_end if line_end > 0 else find_gap_before(text, head, reach)
    tail = line_start + 1 if line_start >= 0 else find_gap_after(text, tail, reach)
    return (
        (head, tail) if is_clean else (escape_around(text, head)[0], escape_around(text, tail)[1])
    )


def find_gap_before(text: str, end: int, reach: int) -> int:
    """Return where to end a string so that no word is cut, at most `reach` characters earlier."""
    start = max(end - reach, 0)
    gap = max(text.rfind(mark, start, end + 1) for mark in _GAPS[:3])
    if gap > 0:
        return gap
    # After such a mark, the next word is complete; the mark stays with the text before it.
    gap = max(text.rfind(mark, start, end) for mark in _GAPS)
    return gap + 1 if gap >= 0 else end


def find_gap_after(text: str, start: int, reach: int) -> int:
    """Return where to begin a string so that no word is cut, like `find_gap_before`."""
    end = min(start + reach, len(text))
    for marks in (_GAPS[:3], _GAPS):
        found = [at for mark in marks if (at := text.find(mark, max(start - 1, 0), end)) >= 0]
        if found:
            return min(found) + 1
    return start


def compute_share(lengths: Sequence[int], total: int) -> int:
    """Return the maximum length of each text so that all together fit into `total`."""
    for index, length in enumerate(ordered := sorted(lengths)):
        share = total // (len(ordered) - index)
        if length > share:
            return share
        total -= length
    return max(ordered, default=0)


# -- bytes -----------------------------------------------------------------------------------------


def encode_bytes(data: bytes | bytearray) -> str:
    """Return bytes as text if they are UTF-8, else as base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii")


def decode_text(data: bytes | bytearray) -> str | None:
    """Return bytes as text; None if they are not text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if _is_clean(text) else None


def describe_bytes(data: bytes) -> str:
    """Return bytes as text if they are text, else their length and first bytes."""
    text = decode_text(data)
    return describe_binary(data) if text is None else text


def describe_beginning(data: bytes | bytearray, size: int) -> str:
    """Return the first bytes of many as text if they are text, without reading the others."""
    for cut in range(_MAX_CONTINUATION + 1):  # the last character may be incomplete
        text = decode_text(data[: size - cut])
        if text is not None:
            rest = len(data) - size + cut
            return f"{text}\n[... {rest:,} of {len(data):,} bytes left out ...]"
    return describe_binary(data)


def describe_binary(data: bytes | bytearray) -> str:
    """Return the length and the first bytes of bytes that are not shown as text."""
    more = " ..." if len(data) > MAX_HEX else ""
    return f"<{len(data):,} bytes: {data[:MAX_HEX].hex(' ')}{more}>"


# -- reprs and names of objects --------------------------------------------------------------------


def safe_repr(value: Any, size: int = MAX_REPR) -> str:
    """Return an object's repr within limits of size and time, or a sentence if it fails.

    An object whose class defines only ``__str__``, or beside it a ``__repr__`` with an address, is
    represented by its ``str``.
    """

    def describe_failure(error: BaseException) -> str:
        if isinstance(error, DeadlineExceeded):
            return describe_slow_value(value, error)
        name = get_type_name(value)
        return f"<an object of type {name} whose repr failed: {describe_error(error)}>"

    return guard(
        lambda: cut_text(guard(_represent, value), size, is_clean=False),
        recover=describe_failure,
    )


def drop_addresses(text: str) -> str:
    """Return the repr of an object without the addresses of objects in memory."""
    return _PLACE.sub("", text) if " at 0x" in text else text


def find_member(kind: type, name: str) -> Any:
    """Return an attribute of a class or one of its parents; None if there is none.

    The metaclass is not asked, since it may answer anything.
    """
    for parent in get_mro(kind):
        members = get_members(parent)
        if name in members:
            return members[name]
    return None


def is_written(kind: type, name: str) -> bool:
    """Return whether a class's ``__repr__`` or ``__str__`` is hand-written, or its IPython repr.

    The generic ones of `object`, built-in classes, dataclasses, attrs and pydantic list internals,
    and say less.
    """
    names = {name, "_repr_pretty_"} if name == "__repr__" else {name}
    for parent in get_mro(kind):
        members = get_members(parent)
        if found := names & members.keys():
            return "_repr_pretty_" in found or not _is_generated(parent, members[name])
    return False


def _is_generated(owner: type, method: Any) -> bool:
    if owner.__module__ in _GENERAL:
        return True
    function = getattr(method, "__wrapped__", method)  # dataclasses wrap theirs against recursion
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    return str(file).startswith(_GENERATED)


def str_says_more(value: Any, text: str) -> bool:
    """Return whether an object has a hand-written ``__str__`` that says more than its repr.

    Args:
        value: The object.
        text: Its repr.
    """
    kind = type(value)
    if not is_written(kind, "__str__"):
        return False
    lists_fields = text.startswith(f"{get_type_name(value)}(") and not is_written(kind, "__repr__")
    return lists_fields or _ADDRESS.fullmatch(text) is not None


def _represent(value: Any) -> str:
    text = repr(value)
    text = str.__str__(str(value) if str_says_more(value, text) else text)
    if BaseException in get_mro(type(value)):
        text += "".join(f"\n{note}" for note in list_notes(value))
    return drop_addresses(text)


def list_notes(error: Any) -> list[str]:
    """Return what was added to an exception, and to those in a group, with ``add_note``."""
    notes = getattr(error, "__notes__", ())
    found = list(map(str, notes)) if isinstance(notes, Sequence) else []
    if BaseExceptionGroup in get_mro(type(error)):
        found += [note for part in error.exceptions for note in list_notes(part)]
    return found


def describe_slow_value(value: Any, error: DeadlineExceeded) -> str:
    """Return the sentence for an object whose code took too long."""
    return f"[an object of type {get_type_name(value)} {error}]"


def describe_error(error: BaseException) -> str:
    """Return an exception's type and message on one line, whatever its ``__str__`` does."""
    name = get_type_name(error)
    text = guard(
        lambda: cut_text(" ".join(clean_text(guard(str, error)).split()), MAX_REPR),
        recover=lambda _: None,
    )
    if text is None:
        return f"{name} (whose message cannot be read)"
    return f"{name}: {text}" if text else name


def get_type_name(value: Any) -> str:
    """Return the name of a value's type, without running foreign code."""
    return clean_text(type.__dict__["__name__"].__get__(type(value)))
