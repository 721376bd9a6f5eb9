"""Writes the cells of a column as the short strings of a preview, whatever their values are.

Runs in the user's kernel, on the thread of the call. A missing value is an empty cell, and nothing
else is: a string that looks like a missing value, or has spaces around it, is quoted
(`QuotedText`). Exported files follow the same rule.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded, guard
from mcp_notebook.kernel.safe.libraries import find_imported, is_instance
from mcp_notebook.kernel.safe.stand_ins import format_object
from mcp_notebook.kernel.safe.tabular_data import is_missing
from mcp_notebook.kernel.safe.text import (
    clean_text,
    describe_slow_value,
    find_gap_before,
    format_rest,
    safe_repr,
)

MAX_CELL = 200
"""Characters of the text of one cell."""
_CUT = re.compile(r" \[\+(?:[\d,]+|more)\]$")
_MAX_ARRAY = 1_000
"""Elements up to which numpy prints an array in full."""
_MIDNIGHT = " 00:00:00"
_MAX_DECIMAL = 1e15
"""Above this, the decimals of a float are noise."""
_MIN_DECIMAL = 1e-4
_LARGEST_EXACT = 2**53
"""Largest integer up to which floats are exact."""
_PRECISION = 6
"""Decimals of a float above 1, and digits of smaller ones, unless pandas' options differ."""
_MOST_DIGITS = 15
"""Significant digits of a float; the rest is rounding noise."""
_LIKE_MISSING = frozenset(
    {"", "nan", "-nan", "none", "null", "nat", "<na>", "na", "n/a", "#na", "#n/a"}
)
_MAX_WORD = max(map(len, _LIKE_MISSING))
ABSENT: Any = object()
"""Stands in a column for a row that has no value there."""
_NEVER_MISSING = frozenset({str, int, bool})
_WRITTEN_BY_STR = frozenset({int, bool, Decimal, UUID, date, datetime, time, timedelta})
"""Types whose ``str`` is short and clean."""


class QuotedText(str):
    """A string that needs quotes: it looks like a missing value, or has spaces around it."""

    __slots__ = ()


def format_column(values: Sequence[Any], *, nan_is_missing: bool) -> list[str]:
    """Return the strings of the cells of a column.

    What the cells share (their type, pandas' options) is looked up once.

    Args:
        values: The values of the cells.
        nan_is_missing: As for `find_missing`.
    """
    are_missing = find_missing(values, nan_is_missing=nan_is_missing)
    if True not in are_missing:
        return _format_present(values)
    present = [value for value, no in zip(values, are_missing, strict=True) if not no]
    texts = iter(_format_present(present))
    return ["" if no else next(texts) for no in are_missing]


def find_missing(values: Sequence[Any], *, nan_is_missing: bool) -> list[bool]:
    """Return for each value of a column whether it is a missing value, without running its code.

    Args:
        values: The values of the column.
        nan_is_missing: Whether NaN of a float or a Decimal is a missing value, as in pandas.
    """
    examples = {type(value): value for value in values}
    if examples.keys() <= _NEVER_MISSING:
        return [False] * len(values)
    marks = {kind for kind, value in examples.items() if is_missing(value)}
    floats = {kind for kind in examples if nan_is_missing and issubclass(kind, float)}
    decimals = {Decimal} if nan_is_missing else set()
    times = {kind for kind, value in examples.items() if _is_numpy_time(value)}
    return [
        value is None
        or value is ABSENT
        or (kind := type(value)) in marks
        or (kind in floats and math.isnan(value))
        or (kind in decimals and value.is_nan())
        or (kind in times and bool(value != value))  # noqa: PLR0124 - only NaT differs
        for value in values
    ]


def _is_numpy_time(value: Any) -> bool:
    return is_instance(value, "numpy.datetime64") or is_instance(value, "numpy.timedelta64")


def _format_present(values: Sequence[Any]) -> list[str]:
    kinds = set(map(type, values))
    timestamp = getattr(find_imported("pandas"), "Timestamp", None)
    texts = _format_alike(values, kinds, timestamp)
    if texts is None:
        texts = list(map(format_cell, values))
    if any(issubclass(kind, float) for kind in kinds):
        texts = separate_floats(values, texts)
    return strip_midnights(values, texts) if timestamp in kinds else texts


def _format_alike(values: Sequence[Any], kinds: set[type], timestamp: Any) -> list[str] | None:
    """Return the strings of values of one simple type; None for other columns."""
    try:
        if kinds == {str}:
            texts = _format_texts(values)
        elif kinds <= _WRITTEN_BY_STR or kinds == {timestamp}:
            texts = list(map(str, values))
        elif all(issubclass(kind, float) for kind in kinds):
            texts = list(map(_make_float_format(), values))
        else:
            return None
    except Exception:  # noqa: BLE001 - a time zone's code, the user's format of floats
        return None
    return texts if max(map(len, texts), default=0) <= MAX_CELL else None


def _format_texts(values: Sequence[str]) -> list[str]:
    whole = "".join(values)
    texts = values if clean_text(whole) == whole else list(map(clean_text, values))
    quoted = find_quoted_texts(texts)
    return [quoted.get(text, text) for text in texts]


def mark_text(text: str) -> str:
    """Return a string as a cell: a `QuotedText` if it needs quotes."""
    return QuotedText(text) if _needs_quotes(text) else text


def find_quoted_texts(texts: Iterable[str]) -> dict[str, QuotedText]:
    """Return the strings that need quotes as `QuotedText`."""
    return {text: QuotedText(text) for text in texts if _needs_quotes(text)}


def _needs_quotes(text: str) -> bool:
    """Return whether a reader would take a string for a missing value, or lose its spaces."""
    return text != text.strip() or (len(text) <= _MAX_WORD and text.casefold() in _LIKE_MISSING)


def quote_unclear(text: str) -> str:
    """Return a string for one line, as JSON if its line ends or outer spaces would be lost."""
    is_clear = (
        type(text) is str
        and text == text.strip()
        and not (text[:1] == text[-1:] == '"')
        and "\n" not in text
        and "\r" not in text
    )
    return text if is_clear else json.dumps(text, ensure_ascii=False)


def format_cell(value: Any) -> str:
    """Return the text of a value, on one or more lines, shortened if it is long."""
    # No `recover` of `guard`: its closure takes as long as formatting a cell.
    try:
        if isinstance(value, float):
            return _make_float_format()(value)
        is_int = type(value) is int  # whose text is clean
        text = str(value) if is_int else clean_text(guard(format_object, _shorten(value)))
    except KeyboardInterrupt:
        raise
    except DeadlineExceeded as error:
        text = describe_slow_value(value, error)
    except BaseException:  # noqa: BLE001 - the code of an object in a cell may raise anything
        text = safe_repr(value)
    if len(text) > MAX_CELL:
        text = _cut_cell(value, text)
    elif is_instance(value, "numpy.ndarray") and value.size > _MAX_ARRAY:
        text += format_rest(None)
    return mark_text(text) if isinstance(value, str) else text


def has_cut_cells(texts: Iterable[str]) -> bool:
    """Return whether a string of a column shows only a part of its value."""
    return any(text.endswith("]") and _CUT.search(text) is not None for text in texts)


def _cut_cell(value: Any, text: str) -> str:
    """Cut the text of a cell between two words, and say how many characters follow."""
    is_text = isinstance(value, str)
    size = str.__len__(value) if is_text else len(text) if _shorten(value) is value else None
    room = MAX_CELL - len(format_rest(size))
    end = find_gap_before(text, room, room // 4)
    return text[:end] + format_rest(None if size is None else size - end)


def strip_midnights(values: Sequence[Any], texts: list[str]) -> list[str]:
    """Remove the time of day from the strings of a column if it is midnight in each row."""
    are_times = [is_instance(value, "pandas.Timestamp") for value in values]
    if any(are_times) and all(
        text.endswith(_MIDNIGHT) for text, is_time in zip(texts, are_times, strict=True) if is_time
    ):
        return [
            text.removesuffix(_MIDNIGHT) if is_time else text
            for text, is_time in zip(texts, are_times, strict=True)
        ]
    return texts


def separate_floats(values: Sequence[Any], texts: list[str]) -> list[str]:
    """Write floats of a column with all digits if they differ but would look the same."""
    alike: dict[str, set[float]] = {}
    for value, text in zip(values, texts, strict=True):
        if isinstance(value, float) and value == value:  # noqa: PLR0124 - not NaN
            alike.setdefault(text, set()).add(value)
    if max(map(len, alike.values()), default=0) < 2 or _has_own_format():  # noqa: PLR2004
        return texts
    return [
        text if len(alike.get(text, ())) < 2 or not isinstance(value, float) else _write_all(value)  # noqa: PLR2004
        for value, text in zip(values, texts, strict=True)
    ]


def _write_all(value: float) -> str:
    text = repr(float(value)) if abs(value) >= _MAX_DECIMAL else f"{value:.{_MOST_DIGITS}g}"
    return text if "." in text or "e" in text else f"{text}.0"


def _shorten(value: Any) -> Any:
    """Shorten a value to about what a cell shows: its whole text could take minutes."""
    if type(value) in (str, list, tuple, bytes, bytearray) and len(value) > MAX_CELL:
        return value[: MAX_CELL + 1]
    if type(value) is dict and len(value) > MAX_CELL:
        return dict(islice(value.items(), MAX_CELL))
    return value


def _make_float_format() -> Callable[[float], str]:
    """Return the function that writes floats; it follows pandas' options if pandas is imported."""
    get_option = getattr(find_imported("pandas"), "get_option", None)
    if get_option is None:
        return partial(_format_float, precision=_PRECISION)
    own_format = get_option("display.float_format")
    if callable(own_format):
        return lambda value: clean_text(str(own_format(value)))
    return partial(_format_float, precision=get_option("display.precision"))


def _format_float(value: float, *, precision: int) -> str:
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        return "NaN"
    if value.is_integer() and abs(value) <= _LARGEST_EXACT:
        return f"{value:.{min(precision, 1)}f}"
    if abs(value) >= _MAX_DECIMAL or abs(value) < _MIN_DECIMAL:
        return f"{value:.{precision}g}"
    text = f"{value:.{precision}{'g' if abs(value) < 1 else 'f'}}"
    integer, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0")
    if not decimals and precision >= _PRECISION:  # it is not whole: 0.9999999
        text = f"{value:.{_MOST_DIGITS}g}"
        return text if "." in text else f"{text}.0"
    return f"{integer}.{decimals or '0'}" if precision else integer


def _has_own_format() -> bool:
    """Return whether the user set how pandas shows floats."""
    get_option = getattr(find_imported("pandas"), "get_option", None)
    return get_option is not None and (
        get_option("display.precision") != _PRECISION
        or get_option("display.float_format") is not None
    )
