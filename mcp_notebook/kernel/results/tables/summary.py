"""Summarizes a table that is too long to be shown: one line for each column.

Runs in the user's kernel, on the thread of the call. The time limit of the result does not apply,
as neither a comparison nor any other method of the values runs. The cost is bounded: of more cells
than `MAX_NUMBERS` or `MAX_VALUES`, only those of some rows are read, spread over the table, and the
line says "about". A column that cannot be read has a line with its type only.
"""

import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from mcp_notebook.kernel.results.tables.cell_text import format_column, quote_unclear
from mcp_notebook.kernel.results.tables.column_facts import (
    Facts,
    find_array_facts,
    find_list_facts,
    find_pandas_facts,
)
from mcp_notebook.kernel.results.tables.frame import Frame, format_name
from mcp_notebook.kernel.safe.foreign_code import run_guarded

MAX_NUMBERS = 10_000_000
"""Cells of numbers and times that are read; of more, those of some rows, or some of an array."""
MAX_VALUES = 100_000
"""Cells of other values that are read."""
MAX_LABELED = 1_000_000
"""Rows of a table whose labels are read; of more, those of some rows."""
MIN_SAMPLE = 1_000
"""Fewest rows that are read of a long table."""
AT_LEAST = "at least "
"""Marks how many distinct values some of the rows have."""
MAX_SHOWN = 40
"""Characters of a value or a name."""
_LARGE = 1e4
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
    """Summarize an array of numpy of any shape; empty if it holds no numbers, times or bools."""
    sample = array if array.size <= MAX_NUMBERS else _take_spread(array)
    facts = _guard(lambda: find_array_facts(sample))
    if facts is None:
        return ""
    format_values = partial(format_column, nan_is_missing=False)
    return write_facts(facts, sample.size, array.size, format_values)


def _take_spread(array: Any) -> Any:
    """Return some elements of a large array, spread over all its dimensions."""
    places = _spread(array.size - 1, MAX_VALUES)
    return array[sys.modules["numpy"].unravel_index(places, array.shape)]


class _Reader:
    """Reads the columns of one table; a sample of its rows is taken once, when it is needed."""

    def __init__(self, frame: Frame, positions: Sequence[int]) -> None:
        self._frame, self._positions = frame, positions
        self._rows = max(MAX_VALUES // max(len(positions), 1), MIN_SAMPLE)
        """Rows of which all values are read."""
        self._sample: Frame | None = None

    def summarize(self) -> Summary:
        # The labels of all rows may take far more memory than the index that they are made of.
        source = self._choose_rows(MAX_LABELED)
        labels = [
            self._write_label(source, level, *label)
            for level, label in enumerate(source.label_data())
        ]
        lines = [*labels, *map(self._write_column, self._positions)]
        if self._sample is None:
            return Summary(lines)
        note = (
            f'"about", "at least", %: of {self._sample.height:,} rows spread over the table; rare '
            "values and gaps may be missing there."
        )
        return Summary(lines, note)

    def _write_label(self, source: Frame, level: int, name: Any, data: Any) -> str:
        title = "index" if name is None else f"{_shorten(format_name(name))} (index)"
        read, facts = source, _guard(lambda: find_pandas_facts(data))
        if facts is None:
            read = self._choose_rows(self._rows)
            facts = _guard(lambda: _count_values(read, _list_labels(read, level)))
        return self._write_line(f"{title} {data.dtype}", read, facts)

    def _write_column(self, position: int) -> str:
        frame = self._frame
        read = self._choose_rows(MAX_NUMBERS // max(len(self._positions), 1))
        facts = _guard(lambda: read.find_facts(position))
        if facts is None:
            read = self._choose_rows(self._rows)
            facts = _guard(lambda: _count_values(read, _list_values(read, position)))
        title = _shorten(format_name(frame.column_name(position))) if frame.has_names else ""
        return self._write_line(f"{title} {frame.column_type(position)}".strip(), read, facts)

    def _write_line(self, name: str, read: Frame, facts: Facts | None) -> str:
        frame = self._frame
        said = facts and write_facts(facts, read.height, frame.height, frame.format_column)
        return f"{name}: {said}" if said else name

    def _choose_rows(self, most: int) -> Frame:
        """Return the table, or a sample of it if it has more rows than this."""
        last, count = self._frame.height - 1, self._rows
        if last < max(most, count):
            return self._frame
        if self._sample is None:
            self._sample = self._frame.take(_spread(last, count))
        return self._sample


def _spread(last: int, count: int) -> list[int]:
    """Return so many places from the first to the last, always the same, at uneven distances.

    Even ones would see only one half of rows that alternate.
    """
    draw = random.Random(0).random  # noqa: S311 - no secret
    step = (last - 1) / (count - 2)
    between = (1 + int(place * step) + int(draw() * int(step)) for place in range(count - 2))
    return [0, *between, last]


def _list_values(frame: Frame, position: int) -> list[Any]:
    return frame.column_values(position, 0, frame.height)


def _guard(find: Callable[[], Facts | None]) -> Facts | None:
    # Not `run_bounded`: its watchdog is a thread, and no code of the values runs.
    return run_guarded(find, lambda _error: None)


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
    if facts.missing:
        all_or_some = "all" if facts.missing == rows else write_number(facts.missing)
        parts.append(f"{all_or_some} missing")
    if facts.nan:
        parts.append(f"{write_number(facts.nan)} NaN")
    if facts.least is not None:
        parts += _write_ends(facts, format_values)
    if facts.distinct is not None and (facts.least is None or facts.least != facts.most):
        if facts.distinct == present and present > 1:
            parts.append("all distinct")
        elif facts.distinct == 1 and facts.top:
            parts.append(f"always {_shorten(format_values([facts.top[0][0]])[0])}")
        else:
            parts.append(f"{'' if is_whole else AT_LEAST}{facts.distinct:,} distinct")
            parts += _write_top(facts, format_values, write_number)
    if facts.types:
        parts.append(f"values of type {', '.join(facts.types)}")
    text = ", ".join(parts)
    needs_no_mark = is_whole or not text or text.startswith(AT_LEAST)
    return text if needs_no_mark else f"about {text}"


def _write_percent(rows: int, number: int) -> str:
    return f"{100 * number / rows:.2g}%"


def _write_ends(facts: Facts, format_values: FormatValues) -> list[str]:
    least, most = map(_shorten, format_values([facts.least, facts.most]))
    if facts.least == facts.most:
        return [f"always {least}"]
    mean = [] if facts.mean is None else format_values([_round(facts.mean)])
    return [f"{least} to {most}", *(f"mean {text}" for text in mean)]


def _round(mean: float) -> float:
    """Return a mean with the digits that a reader wants."""
    return float(f"{mean:.5g}") if abs(mean) < _LARGE else float(round(mean))


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
