"""Text for a model: cleaned of what no client can take, and cut to size.

Runs in the user's kernel, on the thread of the call. Pure functions; what a value becomes is
`kernel.results.converter`' business.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any

from mcp_notebook.kernel.safe.deadline import DeadlineExceeded, run_bounded

MAX_REPR = 2_000
"""Characters of the repr of an object that is part of a larger value."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])")
_CODE_AHEAD = 4_096
"""Characters before a cut in which an ANSI code may begin."""
_NEAR = 200
"""Characters that are given up to cut at the end of a line."""


def clean_text(text: str) -> str:
    """Remove ANSI codes, and replace control characters and lone surrogates."""
    # str.__str__ turns a str of a subclass, whose methods may do anything, into a plain one.
    text = str.__str__(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _UNSENDABLE.sub("\ufffd", text)


def clean_printed(text: str) -> str:
    """Clean what was printed, and keep of each line what a terminal would still show.

    A progress bar prints one line hundreds of times, with a carriage return in between.
    """
    text = clean_text(text)
    if "\r" not in text:
        return text
    return _OVERWRITTEN.sub("", text.replace("\r\n", "\n")).replace("\r", "")


def is_sendable(text: str) -> bool:
    """Tell whether a text has anything to say: models' APIs refuse blocks of white space."""
    # Not `strip`, which copies; `str.`: a subclass may say anything.
    return str.__len__(text) > 0 and not str.isspace(text)


def cut_text(text: str, size: int, note: str = "", *, cleaned: bool = True) -> str:
    """Cut a text in the middle to at most `size` characters, saying what was cut.

    Args:
        text: Of any size: only what is kept is copied.
        size: Characters that are left.
        note: What else is said at the cut.
        cleaned: It is clean already; otherwise what is kept is cleaned.
    """
    tidy = str if cleaned else clean_text
    if len(text) <= size:
        return tidy(text)
    total = len(text), text.count("\n") + 1
    longest = len(_marker(*total, total, note))
    keep = size - longest
    if keep < longest:
        return tidy(text[: max(size, 0)])
    head, tail = _ends(text, keep, cleaned=cleaned)
    marker = _marker(tail - head, text.count("\n", head, tail), total, note)
    return f"{tidy(text[:head])}{marker}{tidy(text[tail:])}"


def _marker(gone: int, lines: int, total: tuple[int, int], note: str) -> str:
    of_lines = f", {lines:,} of {total[1]:,} lines," if lines else ""
    return f"\n[... {gone:,} of {total[0]:,} characters{of_lines} left out{note} ...]\n"


def _ends(text: str, keep: int, *, cleaned: bool) -> tuple[int, int]:
    """Return where the part to leave out begins and ends: at ends of lines, if they are near."""
    tail_size = keep // 2
    head, tail = keep - tail_size, len(text) - tail_size
    near = min(_NEAR, keep // 8)
    line_end, line_start = text.rfind("\n", head - near, head), text.find("\n", tail, tail + near)
    head = line_end if line_end > 0 else head
    tail = line_start + 1 if line_start >= 0 else tail
    return (head, tail) if cleaned else (_outside(text, head)[0], _outside(text, tail)[1])


def _outside(text: str, position: int) -> tuple[int, int]:
    """Return the positions around an ANSI code that a position is in; twice itself if in none."""
    start, end = max(position - _CODE_AHEAD, 0), position + _CODE_AHEAD
    for code in _ANSI.finditer(text, start, end):
        if code.start() < position < code.end():
            return code.span()
    return position, position


def compute_share(lengths: Sequence[int], total: int) -> int:
    """Return the length to which all texts must be cut so that together they keep to `total`."""
    for index, length in enumerate(ordered := sorted(lengths)):
        share = total // (len(ordered) - index)
        if length > share:
            return share
        total -= length
    return max(ordered, default=0)


def safe_repr(value: Any, size: int = MAX_REPR) -> str:
    """Return an object's repr, bounded in size and time; a sentence if it has none that works."""
    try:
        return cut_text(str.__str__(run_bounded(repr, value)), size, cleaned=False)
    except KeyboardInterrupt:
        raise
    except DeadlineExceeded as error:
        return describe_slow_value(value, error)
    except BaseException as error:  # noqa: BLE001 - the user's code may raise anything
        name = get_type_name(value)
        return f"<an object of type {name} whose repr failed: {describe_error(error)}>"


def describe_slow_value(value: Any, error: DeadlineExceeded) -> str:
    """Return the sentence for an object whose code took too long."""
    return f"[an object of type {get_type_name(value)} {error}]"


def get_type_name(value: Any) -> str:
    """Return the name of a value's type, without running the code of either."""
    return clean_text(type.__dict__["__name__"].__get__(type(value)))


def describe_error(error: BaseException) -> str:
    """Return an exception's type and message on one line, whatever its ``__str__`` does."""
    name = get_type_name(error)
    try:
        text = cut_text(" ".join(clean_text(run_bounded(str, error)).split()), MAX_REPR)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the user's code may raise anything
        return f"{name} (whose message cannot be read)"
    return f"{name}: {text}" if text else name


def is_instance(value: Any, path: str) -> bool:
    """Tell whether a value is of a type of a library, without importing the library.

    Args:
        value: Anything.
        path: Where the type is found: ``"pandas.DataFrame"``.
    """
    module, _, name = path.rpartition(".")
    wanted = getattr(sys.modules.get(module), name, None)
    # A module that another thread is importing just now has no such name yet.
    return isinstance(wanted, type) and isinstance(value, wanted)
