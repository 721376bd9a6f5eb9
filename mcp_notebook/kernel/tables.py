"""A pandas table as Markdown that a model can read: its shape, its types, its head and tail.

Runs in the user's kernel, on the thread of the call. pandas is never imported here: who has a table
has imported it. Only the rows that are shown are touched, so that a table of ten million rows costs
no more than one of fifty. numpy arrays get the same one line of shape and type.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.patience import TookTooLong, bounded
from mcp_notebook.kernel.texts import clean, is_instance, safe_repr, slow_text

MAX_COLUMNS = 30
"""Columns of a table; wider ones show their first and last, and name the others."""
MAX_CELL = 200
"""Characters of one cell."""
MAX_NAMES = 1_000
"""Characters of the list of columns that are left out."""
_MIDNIGHT = " 00:00:00"
_EXACT = 1e15
"""Above this, a float's decimals are noise."""
_SMALL = 1e-4


def is_table(value: Any) -> bool:
    """Tell whether `table_text` can show the value."""
    return is_instance(value, "pandas.DataFrame") or is_instance(value, "pandas.Series")


def table_text(value: Any, budget: Budget) -> str:
    """Show a DataFrame or Series.

    Args:
        value: The table.
        budget: How many rows to show, of a longer table half from its head, half from its tail;
            and how many characters: fewer rows are shown if need be.
    """
    series = is_instance(value, "pandas.Series")
    frame = value.to_frame("value" if value.name is None else value.name) if series else value
    height, width = frame.shape
    positions = _ends(width, MAX_COLUMNS)
    names = [_name(frame.columns[position]) for position in positions]
    rows = _ends(height, budget.table_rows)
    columns = [*_index_columns(frame, rows), *_data_columns(frame, positions, names, rows)]

    types = ", ".join(
        f"{name} {frame.dtypes.iloc[position]}"
        for name, position in zip(names, positions, strict=True)
    )
    title = f"{type(value).__name__}: {_count(height, 'row')}"
    title += (
        f", {types}" if series else f" x {_count(width, 'column')}" + (f"; {types}" * (width > 0))
    )
    notes = [title]
    if width > len(positions):
        notes.append(_columns_left_out(frame))
    return _fitting(notes, columns if width else [], height, budget.chars)


def array_text(value: Any) -> str:
    """Show a numpy array as numpy itself abbreviates it, under a line of its shape and type."""
    numpy = sys.modules["numpy"]
    text = numpy.array2string(value, threshold=1_000, max_line_width=100)
    return f"array of shape {value.shape}, {value.dtype}\n{clean(text)}"


def _columns_left_out(frame: Any) -> str:
    left_out = _between(frame.shape[1], MAX_COLUMNS)
    names: list[str] = []
    for position in left_out:
        if sum(map(len, names)) > MAX_NAMES:
            names.append(f"and {len(left_out) - len(names):,} more")
            break
        names.append(_name(frame.columns[position]))
    return f"{_count(len(left_out), 'column')} left out: {', '.join(names)}"


@dataclass(frozen=True)
class _Column:
    name: str
    cells: list[str]


def _fitting(notes: list[str], columns: Sequence[_Column], height: int, max_chars: int) -> str:
    shown = len(columns[0].cells) if columns else 0
    while True:
        text = _markdown(notes, columns, height, shown)
        if len(text) <= max_chars or shown <= 1:
            return text
        shown //= 2


def _markdown(notes: list[str], columns: Sequence[_Column], height: int, shown: int) -> str:
    lines = list(notes)
    if not columns:
        return "\n".join(lines)
    head, tail = shown - shown // 2, shown // 2
    if shown < height:
        ends = f"first {head:,}" + (f" and last {tail:,}" if tail else "")
        lines.append(
            f"Only the {ends} rows are shown; {height - shown:,} between them are left out."
        )
    lines += ["", _line(column.name for column in columns), "|" + "---|" * len(columns)]
    cells = list(zip(*(column.cells for column in columns), strict=True))
    if shown < height:
        lines += [_line(row) for row in cells[:head]]
        lines.append(_line("..." for _ in columns))
        lines += [_line(row) for row in cells[len(cells) - tail :]]
    else:
        lines += [_line(row) for row in cells]
    return "\n".join(lines)


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def _index_columns(frame: Any, rows: Sequence[int]) -> list[_Column]:
    index = frame.index
    if _is_plain(index):
        return []  # row numbers say nothing
    part = index.take(list(rows))
    levels = [part.get_level_values(level) for level in range(index.nlevels)]
    return [
        _Column("" if level.name is None else _name(level.name), _cells(list(level)))
        for level in levels
    ]


def _is_plain(index: Any) -> bool:
    is_range = is_instance(index, "pandas.RangeIndex")
    return is_range and index.start == 0 and index.step == 1 and index.name is None


def _data_columns(
    frame: Any, positions: Sequence[int], names: Sequence[str], rows: Sequence[int]
) -> list[_Column]:
    part = frame.iloc[list(rows)].iloc[:, list(positions)]
    return [_Column(name, _cells(list(part.iloc[:, i]))) for i, name in enumerate(names)]


def _cells(values: list[Any]) -> list[str]:
    cells = [_cell(value) for value in values]
    times = [is_instance(value, "pandas.Timestamp") for value in values]
    if any(times) and all(
        cell.endswith(_MIDNIGHT) for cell, time in zip(cells, times, strict=True) if time
    ):
        return [cell.removesuffix(_MIDNIGHT) for cell in cells]
    return cells


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return _decimal(value)
    try:
        text = clean(bounded(str, value)).strip()
    except KeyboardInterrupt:
        raise
    except TookTooLong as error:
        text = slow_text(value, error)
    except BaseException:  # noqa: BLE001 - an object in a cell may do anything
        text = safe_repr(value)
    text = text if len(text) <= MAX_CELL else text[: MAX_CELL - 4] + " ..."
    return text.replace("|", "\\|").replace("\r", "").replace("\n", " ")


def _decimal(value: float) -> str:
    precision = 6
    option = getattr(sys.modules.get("pandas"), "get_option", None)
    if option is not None:
        precision = option("display.precision")
        style = option("display.float_format")
        if callable(style):
            return clean(str(style(value)))
    if value != value or abs(value) >= _EXACT or 0 < abs(value) < _SMALL:  # noqa: PLR0124 - NaN
        return "NaN" if value != value else f"{value:.{precision}g}"  # noqa: PLR0124
    text = f"{value:.{precision}f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}" if decimals else whole


def _name(name: Any) -> str:
    parts = name if isinstance(name, tuple) else (name,)
    return " / ".join(text for part in parts if (text := _cell(part)))


def _ends(size: int, limit: int) -> Sequence[int]:
    if size <= limit:
        return range(size)
    return [*range(limit - limit // 2), *range(size - limit // 2, size)]


def _between(size: int, limit: int) -> Sequence[int]:
    return range(limit - limit // 2, size - limit // 2)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
