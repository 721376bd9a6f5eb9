"""Answers the queries of a table's live view: a page of rows, and the summary of a column.

Runs in the user's kernel, on the threads of the resource store, several queries at a time: none
waits for that of another caller. The table is the one that the result was made of; a live one is
read anew for each query. A page costs what its rows and its columns cost; the last order is kept,
so that the next page is found at once.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mcp_notebook.kernel.results.tables.frame import Frame, format_name
from mcp_notebook.kernel.results.tables.summary import is_mean_known, round_mean
from mcp_notebook.kernel.results.views.table_columns import Column, read_column
from mcp_notebook.kernel.results.views.table_query import (
    MAX_LISTED_COLUMNS,
    MAX_SHOWN_COLUMNS,
    ColumnsQuery,
    InvalidQuery,
    PageQuery,
    Rows,
    SummaryQuery,
    read_query,
)
from mcp_notebook.kernel.safe.text import replace_surrogates

MIME_TYPE = "application/json"
MAX_CELL = 1_000
"""Characters of a cell."""
_MAX_EXACT = 2**53
"""The largest number of which a page's JavaScript keeps all digits."""
_FIRST = 10_000
"""Rows at least that are put in order at once."""
BINS = 24
"""Bars of a histogram."""
TOP = 5
"""Most frequent values of a summary."""


class _Order(Struct, frozen=True):
    rows: Rows
    positions: Any
    """The rows of the table that match, in this order; None for all of them in the table's own."""
    count: int
    """How many rows match."""
    stop: int
    """How many of these are in order."""


class TableView:
    """Answers the queries of the views of one table; safe to use from any thread.

    Args:
        read_table: See `Original.read_table`.
    """

    def __init__(self, read_table: Callable[[], Frame]) -> None:
        self._read_table = read_table
        self._order: _Order | None = None
        """The last order, so that the next page is found at once; replaced, never changed."""

    def answer(self, text: str) -> str:
        """Answer a query, as JSON; one that cannot be answered gets ``{"error": ...}``."""
        try:
            answer = self._answer(read_query(text))
        except InvalidQuery as error:
            answer = {"error": str(error)}
        return replace_surrogates(json.dumps(answer, ensure_ascii=False))

    def forget(self) -> None:
        """Drop what was read of the table."""
        self._order = None

    def _answer(self, query: PageQuery | SummaryQuery | ColumnsQuery) -> dict[str, Any]:
        frame = self._read_table()
        match query:
            case PageQuery():
                stop = query.start + query.count
                return _read_page(frame, query, self._find_order(frame, query.rows, stop))
            case SummaryQuery():
                return _summarize(frame, query)
            case ColumnsQuery():
                return _list_columns(frame, query)

    def _find_order(self, frame: Frame, rows: Rows, stop: int) -> "_Order":
        """Find the rows that match, in their order; keep them, unless the table may change."""
        kept = self._order
        is_known = kept is not None and kept.rows == rows and min(stop, kept.count) <= kept.stop
        if kept is not None and is_known and not frame.is_live:
            return kept
        order = _find_order(frame, rows, max(_FIRST, 8 * stop))
        self._order = None if frame.is_live else order
        return order


# -- pages -----------------------------------------------------------------------------------------


def _read_page(frame: Frame, query: PageQuery, order: _Order) -> dict[str, Any]:
    stop = min(query.start + query.count, order.count)
    start = min(query.start, stop)
    if order.positions is None:
        page, begin = frame, start
    else:
        page, begin = frame.take(order.positions[start:stop]), 0
    end = begin + stop - start
    labels = page.labels(begin, end)
    count = len(frame.label_data())
    width = count + frame.width
    shown = query.columns
    if shown is None:
        shown = tuple(range(min(width, MAX_SHOWN_COLUMNS)))
    asked = (query.rows.sort, *(condition.column for condition in query.rows.conditions))
    named = {column for column in (*shown, *asked) if column is not None and column < width}
    texts = [
        page.format_column(labels[column].values)
        if column < count
        else page.format_column(page.column_values(column - count, begin, end))
        for column in shown
        if column < width
    ]
    return {
        "title": frame.title,
        "live": frame.is_live,
        "height": frame.height,
        "matching": order.count,
        "start": start,
        "width": width,
        "columns": {column: _describe(frame, column, count) for column in named},
        "shown": list(shown),
        "rows": [[str(cell)[:MAX_CELL] for cell in row] for row in zip(*texts, strict=True)],
    }


def _list_columns(frame: Frame, query: ColumnsQuery) -> dict[str, Any]:
    """List the first columns whose names contain a text, with their positions."""
    labels = len(frame.label_data())
    wanted, found = query.find.lower(), []
    for position in range(labels + frame.width):
        if position < labels:
            name = _describe(frame, position, labels)["name"]
        else:
            name = format_name(frame.column_name(position - labels))
        if wanted in name.lower():
            found.append([position, name])
            if len(found) == MAX_LISTED_COLUMNS:
                break
    return {"columns": found}


def _describe(frame: Frame, position: int, labels: int) -> dict[str, Any]:
    if position < labels:
        name, data = frame.label_data()[position]
        unnamed = "index" if labels == 1 else f"index {position + 1}"
        name = unnamed if name is None else format_name(name)
        return {"name": name, "type": str(data.dtype), "label": True}
    position -= labels
    name = frame.column_name(position)
    return {"name": format_name(name), "type": frame.column_type(position)}


# -- rows ------------------------------------------------------------------------------------------


def _find_order(frame: Frame, rows: Rows, most: int) -> _Order:
    matches, positions = _match(frame, rows), None
    if rows.sort is not None:
        positions = read_column(frame, rows.sort).sort(matches, most, descending=rows.descending)
    elif matches is not None:
        positions = matches.nonzero()[0]
    if positions is not None:
        positions = positions.astype("uint32")
    count = frame.height if matches is None else int(matches.sum())
    is_part = rows.sort is not None and most < count
    return _Order(rows, positions, count, most if is_part else count)


def _match(frame: Frame, rows: Rows) -> Any:
    """Return which rows match, as an array of bools; None for all of them."""
    matches = None
    for condition in rows.conditions:
        found = read_column(frame, condition.column).match(condition)
        matches = found if matches is None else matches & found
    if rows.search:
        import numpy as np  # noqa: PLC0415 - when a person searches

        found = np.zeros(frame.height, bool)
        for position in range(len(frame.label_data()) + frame.width):
            found |= read_column(frame, position).contain(rows.search)
        matches = found if matches is None else matches & found
    return matches


# -- summaries -------------------------------------------------------------------------------------


def _summarize(frame: Frame, query: SummaryQuery) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 - when a person asks for a summary

    column = read_column(frame, query.column)
    matches = _match(frame, query.rows)
    count = frame.height if matches is None else int(matches.sum())
    missing, unordered = column.missing, column.unordered
    if matches is not None:
        missing, unordered = missing & matches, unordered | ~matches
    positions = np.flatnonzero(~unordered)
    summary: dict[str, Any] = {"rows": count, "missing": int(missing.sum())}
    if nan := count - summary["missing"] - len(positions):
        summary["NaN"] = nan
    summary["kind"] = column.kind
    if not len(positions):
        return summary
    numbers = column.list_numbers(positions)
    if numbers is None:
        summary["kind"] = "text"
        counts = Counter(column.list_texts(positions))
        top = [[text[:MAX_CELL], number] for text, number in counts.most_common(TOP)]
        summary |= {"distinct": len(counts), "top": top}
    else:
        summary |= _describe_numbers(column, numbers)
    return summary


def _describe_numbers(column: Column, keys: Any) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 - loaded with the keys

    if column.kind == "bool":
        true = int(np.count_nonzero(keys))
        return {"top": [["true", true], ["false", len(keys) - true]]}
    least, most = keys.min(), keys.max()
    if column.kind == "time":
        numbers = keys.astype("datetime64[us]").astype(np.int64)
        ends = {"min": column.write_time(least), "max": column.write_time(most)}
        return ends | {"histogram": _make_histogram(numbers)}
    summary: dict[str, Any] = {"min": _to_json(least), "max": _to_json(most)}
    with np.errstate(all="ignore"):  # infinities of both signs have no mean
        mean = float(keys.mean(dtype=np.float64))
    if is_mean_known(mean, least.item(), most.item()):
        summary["mean"] = _to_json(np.float64(round_mean(mean, least.item(), most.item())))
    return summary | {"histogram": _make_histogram(keys)}


def _make_histogram(numbers: Any) -> list[int]:
    """Count the numbers in bins of the same width, leaving out the infinite ones."""
    import numpy as np  # noqa: PLC0415 - loaded with the numbers

    finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
    if not len(finite):
        return []
    try:
        with np.errstate(all="ignore"):
            return [int(count) for count in np.histogram(finite, BINS)[0]]
    except ValueError:  # too close together, or too far apart, for bins between them
        return [len(finite)]


def _to_json(number: Any) -> Any:
    plain = number.item()
    is_exact = math.isfinite(plain) if isinstance(plain, float) else abs(plain) <= _MAX_EXACT
    return plain if is_exact else str(plain)
