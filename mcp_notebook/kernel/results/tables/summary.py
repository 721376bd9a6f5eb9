"""Summarizes a table that is too long to be shown: one line for each column.

Runs in the user's kernel, on the thread of the call. The time limit of the result does not apply,
as neither a comparison nor any other method of the values runs. The cost is bounded: of more cells
than `MAX_NUMBERS` or `MAX_VALUES`, only those of some rows are read, spread over the table, and the
line says "about". A column that cannot be read has a line with its type only. Of the columns that a
wide table leaves out, those of one type share a line.
"""

import math
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from msgspec import Struct, structs

from mcp_notebook.kernel.results.tables.cell_text import (
    find_missing,
    format_column,
    quote_unclear,
)
from mcp_notebook.kernel.results.tables.column_facts import (
    Facts,
    find_array_facts,
    find_list_facts,
    find_pandas_facts,
)
from mcp_notebook.kernel.results.tables.frame import Frame, format_name
from mcp_notebook.kernel.safe.foreign_code import guard

MAX_NUMBERS = 25_000_000
"""Cells of numbers and times that are read, in about a second; of more, those of some rows, or some
elements of an array."""
MAX_VALUES = 100_000
"""Cells of other values that are read."""
MAX_LABELED = 1_000_000
"""Rows of a table whose labels are read if they have levels; of more, those of some rows."""
MIN_SAMPLE = 1_000
"""Fewest rows that are read of a long table."""
AT_LEAST = "at least "
"""Marks how many distinct values some of the rows have."""
MAX_GROUPED = 1_000
"""Columns that are left out of a wide table, of which the types and the gaps are told."""
MAX_NAMED = 10
"""Columns of them that a line names."""
MAX_SHOWN = 40
"""Characters of a value or a name."""
_NEARLY_ALL = 99
"""Percent from which a share of some rows is not told apart from all of them."""
_LARGE = 1e4
"""Means from here on have all the digits of their whole part."""
_MEAN_DIGITS, _ALL_DIGITS = 5, 18
"""Fewest significant digits of a mean, and more than any float has."""
_LARGEST_EXACT = 2**53
"""Up to here, a float is an integer's own value."""
_MEAN_SHARE = 10_000
"""A mean is rounded by at most this part of the range of the values."""
FormatValues: TypeAlias = Callable[[list[Any]], list[str]]
"""Returns the texts of values, as the cells of a column."""


class Summary(Struct, frozen=True):
    """The lines of a summary."""

    lines: list[str]
    """One for each column, labels first."""
    note: str = ""
    """Says what "about" means in them; empty if all rows were read."""


def summarize_columns(frame: Frame, positions: Sequence[int]) -> Summary:
    """Summarize some columns of a table, and its labels.

    Args:
        frame: A table with at least one row.
        positions: The columns.
    """
    return _Reader(frame, positions).summarize()


def summarize_array(array: Any) -> str:
    """Summarize an array of numpy of any shape; empty if that says nothing about its elements."""
    sample = array if array.size <= MAX_NUMBERS else _take_spread(array)
    facts = _guard(lambda: find_array_facts(sample))
    if facts is None and array.dtype.kind not in "cV":
        sample = array if array.size <= MAX_VALUES else _take_spread(array)
        facts = _guard(lambda: _count_elements(sample))
    if facts is None:
        return ""
    format_values = partial(format_column, nan_is_missing=False)
    said = write_facts(facts, sample.size, array.size, format_values)
    return said if sample is array else f"{said} (of {sample.size:,} elements spread over it)"


def summarize_left_out(frame: Frame, positions: Sequence[int]) -> list[str]:
    """Summarize the columns of a wide table that are not shown, those of one type on one line.

    Args:
        frame: A table with at least one row.
        positions: The columns.
    """
    return _Reader(frame, positions[:MAX_GROUPED]).summarize_group(len(positions))


def _count_elements(array: Any) -> Facts:
    values = array.ravel().tolist()
    facts = find_list_facts(values, find_missing(values, nan_is_missing=False))
    return structs.replace(facts, types=())  # they say no more than that it holds objects


def _take_spread(array: Any) -> Any:
    """Return some elements of a large array, spread over all its dimensions."""
    places = spread(array.size, MAX_VALUES)
    return array[sys.modules["numpy"].unravel_index(places, array.shape)]


class _Found(Struct, frozen=True):
    """What was found in a column that shares its line with others."""

    name: str
    facts: Facts
    rows: int
    """How many rows were read."""


class _Reader:
    """Reads the columns of one table; a sample of its rows is taken once, when it is needed."""

    def __init__(self, frame: Frame, positions: Sequence[int]) -> None:
        self._frame, self._positions = frame, positions
        self._rows = max(MAX_VALUES // max(len(positions), 1), MIN_SAMPLE)
        """Rows of which all values are read."""
        self._sample: Frame | None = None

    def summarize(self) -> Summary:
        lines = []
        if levels := len(self._frame.labels(0, 1)):
            # The labels of all rows may take far more memory than the levels they are made of.
            source = self._choose_rows(MAX_NUMBERS if levels == 1 else MAX_LABELED)
            data = source.label_data()
            lines = [self._write_label(source, level, *label) for level, label in enumerate(data)]
        return Summary([*lines, *map(self._write_column, self._positions)], self._note)

    @property
    def _note(self) -> str:
        if self._sample is None:
            return ""
        return (
            f'"about", "at least", %: of {self._sample.height:,} rows spread over the table; rare '
            "values and gaps may be missing there."
        )

    def summarize_group(self, total: int) -> list[str]:
        """Summarize the columns together.

        Args:
            total: How many columns there are, these among them.
        """
        frame = self._frame
        kinds: dict[str, list[_Found]] = {}
        for position in self._positions:
            read, facts = self._find_facts(position)
            name = _shorten(format_name(frame.column_name(position)))
            found = _Found(name, facts or Facts(), read.height)
            kinds.setdefault(frame.column_type(position), []).append(found)
        lines = [
            _write_kind(kind, found, frame)
            if len(found) > 1
            else self._write_line(f"{found[0].name} {kind}", found[0].rows, found[0].facts)
            for kind, found in kinds.items()
        ]
        if total > len(self._positions):
            lines.insert(0, f"of the first {len(self._positions):,} of them:")
        return [*lines, *([self._note] if self._note else [])]

    def _write_label(self, source: Frame, level: int, name: Any, data: Any) -> str:
        title = "index" if name is None else f"{_shorten(format_name(name))} (index)"
        read, facts = source, _guard(lambda: find_pandas_facts(data))
        if facts is None:
            read = self._choose_rows(self._rows)
            facts = _guard(lambda: _count_values(read, _list_labels(read, level)))
        return self._write_line(f"{title} {data.dtype}", read.height, facts)

    def _write_column(self, position: int) -> str:
        frame = self._frame
        read, facts = self._find_facts(position)
        title = _shorten(format_name(frame.column_name(position))) if frame.has_names else ""
        name = f"{title} {frame.column_type(position)}".strip()
        return self._write_line(name, read.height, facts)

    def _find_facts(self, position: int) -> tuple[Frame, Facts | None]:
        """Return what is in a column, and the frame of the rows that were read."""
        frame = self._frame
        read = self._choose_rows(MAX_NUMBERS // max(len(self._positions), 1))
        facts = _guard(lambda: read.find_facts(position))
        if facts is None:
            read = self._choose_rows(self._rows)
            facts = _guard(lambda: _count_values(read, _list_values(read, position)))
        if facts is not None and read is not frame:
            gaps = guard(lambda: frame.count_missing(position), recover=lambda _error: None)
            facts = structs.replace(facts, all_missing=gaps)
        return read, facts

    def _write_line(self, name: str, rows: int, facts: Facts | None) -> str:
        frame = self._frame
        said = facts and write_facts(facts, rows, frame.height, frame.format_column)
        return f"{name}: {said}" if said else name

    def _choose_rows(self, most: int) -> Frame:
        """Return the table, or a sample of it if it has more rows than this."""
        height = self._frame.height
        if height <= max(most, self._rows):
            return self._frame
        if self._sample is None:
            self._sample = self._frame.take(spread(height, self._rows))
        return self._sample


def spread(size: int, places: int) -> list[int]:
    """Return so many of the places below `size`, always the same, at uneven distances.

    Even ones would see only one half of rows that alternate. The ends have no place of their own:
    a total in the last row would weigh far too much.
    """
    draw = random.Random(0).random  # noqa: S311 - no secret
    limits = [place * size // places for place in range(places + 1)]
    return [start + int(draw() * (stop - start)) for start, stop in pairwise(limits)]


def _list_values(frame: Frame, position: int) -> list[Any]:
    return frame.column_values(position, 0, frame.height)


def _guard(find: Callable[[], Facts | None]) -> Facts | None:
    # Without a time limit: its watchdog is a thread, and no code of the values runs.
    return guard(find, recover=lambda _error: None)


def _list_labels(frame: Frame, level: int) -> list[Any]:
    return frame.labels(0, frame.height)[level].values


def _count_values(frame: Frame, values: list[Any]) -> Facts:
    return find_list_facts(values, frame.find_missing(values))


# -- the text of a line ----------------------------------------------------------------------------


def write_facts(facts: Facts, rows: int, height: int, format_values: FormatValues) -> str:
    """Write the facts about a column.

    Args:
        facts: What was found in it.
        rows: Number of rows that were read.
        height: Number of rows of the table.
        format_values: Returns the texts of values as cells of the column.
    """
    is_whole = rows == height
    write_number = "{:,}".format if is_whole else partial(_write_percent, rows)
    present = rows - facts.missing - facts.nan
    parts = []
    exact = facts.all_missing
    if facts.missing and exact is None:
        all_or_some = "all" if facts.missing == rows else write_number(facts.missing)
        parts.append(f"{all_or_some} missing")
    if facts.nan:
        parts.append(f"{write_number(facts.nan)} NaN")
    if facts.least is not None:
        parts += _write_ends(facts, format_values)
    if facts.distinct is not None and (facts.least is None or facts.least != facts.most):
        if facts.distinct == present and present > 1 and is_whole:
            parts.append("all distinct")
        elif facts.distinct == 1 and facts.top:
            parts.append(f"always {_shorten(format_values([facts.top[0][0]])[0])}")
        else:
            parts.append(f"{'' if is_whole else AT_LEAST}{facts.distinct:,} distinct")
            parts += _write_top(facts, format_values, write_number)
    if facts.types:
        parts.append(f"values of type {', '.join(facts.types)}")
    text = ", ".join(parts)
    if not (is_whole or not text or text.startswith(AT_LEAST)):
        text = f"about {text}"
    if exact:
        gaps = f"{'all' if exact == height else f'{exact:,}'} missing"
        text = f"{gaps}, {text}" if text and exact < height else gaps
    return text


def _write_percent(rows: int, number: int) -> str:
    share = 100 * number / rows
    return f"{share:.2g}%" if share < _NEARLY_ALL or number == rows else f"over {_NEARLY_ALL}%"


def _write_kind(kind: str, found: Sequence[_Found], frame: Frame) -> str:
    """Write what is in several columns of one type: their range, and which have gaps."""
    is_whole = all(column.rows == frame.height for column in found)
    parts = []
    ends = guard(lambda: _find_ends(found), recover=lambda _error: None)  # of mixed objects
    if ends is not None:
        least, most = map(_shorten, frame.format_column(ends))
        span = f"{least} to {most}" if ends[0] != ends[1] else f"always {least}"
        parts.append(span if is_whole else f"about {span}")
    gaps = [f"{column.name} ({text})" for column in found if (text := _write_gaps(column, frame))]
    if gaps:
        parts.append(f"missing: {_list_some(gaps)}")
    elif is_whole or all(column.facts.all_missing == 0 for column in found):
        parts.append("none missing")
    return f"{len(found):,} {_shorten(kind)} columns: {'; '.join(parts)}".removesuffix(": ")


def _find_ends(found: Sequence[_Found]) -> list[Any] | None:
    facts = [column.facts for column in found if column.facts.least is not None]
    return [min(f.least for f in facts), max(f.most for f in facts)] if facts else None


def _write_gaps(column: _Found, frame: Frame) -> str:
    facts = column.facts
    missing = facts.missing if facts.all_missing is None else facts.all_missing
    is_exact = column.rows == frame.height or facts.all_missing is not None
    if missing == (frame.height if is_exact else column.rows):
        return "all" if is_exact else "about all"
    if is_exact:
        return f"{missing:,}" if missing else ""
    return f"about {_write_percent(column.rows, missing)}" if missing else ""


def _list_some(texts: Sequence[str]) -> str:
    more = len(texts) - MAX_NAMED
    return ", ".join([*texts[:MAX_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


def _write_ends(facts: Facts, format_values: FormatValues) -> list[str]:
    least, most = map(_shorten, format_values([facts.least, facts.most]))
    if facts.least == facts.most:
        return [f"always {least}"]
    is_known = facts.mean is not None and is_mean_known(facts.mean, facts.least, facts.most)
    mean = [f"mean {_write_mean(facts, facts.mean, format_values)}"] if is_known else []
    return [f"{least} to {most}", *mean]


def _write_mean(facts: Facts, mean: Any, format_values: FormatValues) -> str:
    least, most = facts.least, facts.most
    rounded = round_mean(mean, least, most)
    *_, text = format_values([least, most, rounded])
    try:
        shown = float(text)
    except ValueError:  # the user has a format of floats
        return text
    if _is_close(shown, mean, least, most):
        return text
    return repr(rounded)


def is_mean_known(mean: float, least: Any, most: Any) -> bool:
    """Return whether a float can tell the mean of integers or decimals from their ends.

    That of 64-bit identifiers that are close to each other, it cannot.
    """
    if isinstance(least, float) or abs(mean) < _LARGEST_EXACT:
        return True
    return bool((most - least) / _MEAN_SHARE > math.ulp(mean))


def round_mean(mean: float, least: Any, most: Any) -> float:
    """Return a mean with the digits that the range of the values asks for, never outside it.

    Args:
        mean: The mean; one that is not finite is returned as it is.
        least: The smallest of the values.
        most: The largest one.
    """
    if not math.isfinite(mean):
        return mean
    mean = min(max(mean, float(least)), float(most))  # a sum of many floats is not exact
    fewest = _MEAN_DIGITS if abs(mean) < _LARGE else len(str(abs(int(mean))))
    by_digits = (float(f"{mean:.{digits}g}") for digits in range(fewest, _ALL_DIGITS))
    return next((number for number in by_digits if _is_close(number, mean, least, most)), mean)


def _is_close(number: float, mean: float, least: Any, most: Any) -> bool:
    allowed = (float(most) - float(least)) / _MEAN_SHARE
    return bool(least <= number <= most) and abs(number - mean) <= allowed


def _write_top(
    facts: Facts, format_values: FormatValues, write_number: Callable[[int], str]
) -> list[str]:
    if not facts.top:
        return []
    texts = map(_shorten, format_values([value for value, _ in facts.top]))
    counts = [write_number(number) for _, number in facts.top]
    listed = ", ".join(f"{text} ({n})" for text, n in zip(texts, counts, strict=True))
    return [listed if len(facts.top) == facts.distinct else f"most often {listed}"]


def _shorten(text: str) -> str:
    text = quote_unclear(text)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
