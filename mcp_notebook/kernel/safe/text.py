"""Text for a model: cleaned of what no client can take, cut to size, and read from any object.

Runs in the user's kernel, on the thread of the call. Pure functions; those that run code of an
object (its repr, its message) never fail on what that code does.
"""

import base64
import re
import sys
from collections.abc import Sequence
from typing import Any

from mcp_notebook.kernel.safe.deadline import DeadlineExceeded, run_bounded
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.wording import escape_around, strip_escapes

MAX_REPR = 2_000
"""Characters of the repr of an object that is part of a larger value."""

_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CONTROLS = bytes(number for number in range(128) if _UNSENDABLE.match(chr(number)))
_LONG = 2**8
"""Characters from which a look before the search is worth it."""
_SLICE = 2**16
"""Characters that are looked at together: they fit into the processor's cache."""
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_MAX_HEX = 16
"""Bytes that are written out of data that is not text."""
_NEAR = 200
"""Characters that are given up to cut at the end of a line."""


# -- cleaning --------------------------------------------------------------------------------------


def clean_text(text: str) -> str:
    """Remove ANSI codes, and replace control characters and lone surrogates."""
    # str.__str__ turns a str of a subclass, whose methods may do anything, into a plain one.
    text = strip_escapes(str.__str__(text))
    return text if len(text) >= _LONG and _is_clean(text) else _UNSENDABLE.sub("\ufffd", text)


def _is_clean(text: str) -> bool:
    """Tell whether a text has nothing that is to be replaced; a tenth of a search's time."""
    for start in range(0, len(text), _SLICE):
        try:
            data = text[start : start + _SLICE].encode()
        except UnicodeEncodeError:  # a lone surrogate
            return False
        if len(data.translate(None, _CONTROLS)) < len(data):
            return False
    return True


def clean_printed(text: str) -> str:
    """Clean what was printed, and keep of each line what a terminal would still show.

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
    """Tell whether a text has anything to say: models' APIs refuse blocks of white space."""
    # Not `strip`, which copies; `str.`: a subclass may say anything.
    return str.__len__(text) > 0 and not str.isspace(text)


# -- cutting ---------------------------------------------------------------------------------------


def cut_text(text: str, size: int, note: str = "", *, is_clean: bool = True) -> str:
    """Cut a text in the middle to at most `size` characters, and say there how much is left out.

    Args:
        text: A text of any length; only what is kept of it is copied.
        size: Characters of the result.
        note: What else is said at the cut.
        is_clean: Whether the text is clean already; if not, what is kept of it is cleaned.
    """
    tidy = str if is_clean else clean_text
    if len(text) <= size:
        return tidy(text)
    total = len(text), text.count("\n") + 1
    longest = len(_format_marker(*total, total, note))
    room = size - longest
    if room < longest:
        return tidy(text[: max(size, 0)])
    head, tail = _choose_ends(text, room, is_clean=is_clean)
    marker = _format_marker(tail - head, text.count("\n", head, tail), total, note)
    return f"{tidy(text[:head])}{marker}{tidy(text[tail:])}"


def _format_marker(characters: int, lines: int, total: tuple[int, int], note: str) -> str:
    of_lines = f", {lines:,} of {total[1]:,} lines," if lines else ""
    return f"\n[... {characters:,} of {total[0]:,} characters{of_lines} left out{note} ...]\n"


def _choose_ends(text: str, room: int, *, is_clean: bool) -> tuple[int, int]:
    """Return where the part to leave out begins and ends: at ends of lines, if they are near."""
    tail_size = room // 2
    head, tail = room - tail_size, len(text) - tail_size
    near = min(_NEAR, room // 8)
    line_end, line_start = text.rfind("\n", head - near, head), text.find("\n", tail, tail + near)
    head = line_end if line_end > 0 else head
    tail = line_start + 1 if line_start >= 0 else tail
    return (
        (head, tail) if is_clean else (escape_around(text, head)[0], escape_around(text, tail)[1])
    )


def compute_share(lengths: Sequence[int], total: int) -> int:
    """Return the length to which all texts must be cut so that together they keep to `total`."""
    for index, length in enumerate(ordered := sorted(lengths)):
        share = total // (len(ordered) - index)
        if length > share:
            return share
        total -= length
    return max(ordered, default=0)


# -- bytes -----------------------------------------------------------------------------------------


def encode_bytes(data: bytes) -> str:
    """Return bytes as text where they are UTF-8, else as base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii")


def describe_bytes(data: bytes) -> str:
    """Return bytes as text where they are text, else their length and beginning."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and _is_clean(text):
        return text
    more = " ..." if len(data) > _MAX_HEX else ""
    return f"<{len(data):,} bytes: {data[:_MAX_HEX].hex(' ')}{more}>"


# -- what objects say about themselves -------------------------------------------------------------


def safe_repr(value: Any, size: int = MAX_REPR) -> str:
    """Return an object's repr, bounded in size and time; a sentence if it has none that works.

    An object whose class defines only ``__str__`` is represented by that.
    """

    def describe_failure(error: BaseException) -> str:
        if isinstance(error, DeadlineExceeded):
            return describe_slow_value(value, error)
        name = get_type_name(value)
        return f"<an object of type {name} whose repr failed: {describe_error(error)}>"

    return run_guarded(
        lambda: cut_text(str.__str__(run_bounded(_represent, value)), size, is_clean=False),
        describe_failure,
    )


def has_only_str(value: Any) -> bool:
    """Tell whether an object's class defines ``__str__``, but no ``__repr__``."""
    kind: Any = type(value)
    return kind.__repr__ is object.__repr__ and kind.__str__ is not object.__str__


def _represent(value: Any) -> str:
    return str(value) if has_only_str(value) else repr(value)


def describe_slow_value(value: Any, error: DeadlineExceeded) -> str:
    """Return the sentence for an object whose code took too long."""
    return f"[an object of type {get_type_name(value)} {error}]"


def describe_error(error: BaseException) -> str:
    """Return an exception's type and message on one line, whatever its ``__str__`` does."""
    name = get_type_name(error)
    text = run_guarded(
        lambda: cut_text(" ".join(clean_text(run_bounded(str, error)).split()), MAX_REPR),
        lambda _: None,
    )
    if text is None:
        return f"{name} (whose message cannot be read)"
    return f"{name}: {text}" if text else name


def get_type_name(value: Any) -> str:
    """Return the name of a value's type, without running the code of either."""
    return clean_text(type.__dict__["__name__"].__get__(type(value)))


def is_instance(value: Any, path: str) -> bool:
    """Tell whether a value is of a type of a library, without importing the library.

    Args:
        value: Anything.
        path: Where the type is found: ``"pandas.DataFrame"``.
    """
    module, _, name = path.rpartition(".")
    kind = getattr(sys.modules.get(module), name, None)
    # A module that another thread is importing just now has no such name yet.
    return isinstance(kind, type) and isinstance(value, kind)
