"""Answers the queries of a table's live view: a page of rows, and the summary of a column.

Runs in the user's kernel, on the threads of the resource store, one query after another. The table
is the one that the result was made of; a live one is read anew for each query. A page costs what
its rows cost; the columns that are filtered and sorted by are read once, and the last selection and
the last order are kept, so that the next page is found at once.
"""

import json
import math
import threading
from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

from mcp_notebook.kernel.results.tables.frame import Frame, format_name
from mcp_notebook.kernel.results.views.row_order import find_first
from mcp_notebook.kernel.results.views.table_columns import (
    ArrayColumn,
    CodedColumn,
    Column,
    read_column,
)
from mcp_notebook.kernel.results.views.table_query import (
    MAX_SHOWN_COLUMNS,
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
MAX_KEPT_BYTES = 2**28
"""Bytes of the columns that are kept between queries; the last one is kept whatever its size."""
FIRST_ORDER = 1_000
"""Rows of an order that are found at first; then ten times as many, as pages are turned."""
_MAX_EXACT = 2**53
"""The largest number of which a page's JavaScript keeps all digits."""
_MAX_WAIT = 30.0
"""Seconds that a query waits for those before it: meanwhile it holds one of the few readers."""
BINS = 24
"""Bars of a histogram."""
TOP = 5
"""Most frequent values of a summary."""


class _Order(Struct, frozen=True):
    rows: Rows
    positions: Any
    """The first rows of the table in this order, or all that match."""
    count: int
    """How many rows match."""


class TableView:
    """Answers the queries of the views of one table.

    Args:
        read_table: See `Original.read_table`.
    """

    def __init__(self, read_table: Callable[[], Frame]) -> None:
        self._read_table = read_table
        self._frame: Frame
        """The table, while a query is answered."""
        self._lock = threading.Lock()
        self._columns: dict[int, Column] = {}
        self._matches: tuple[Rows, Any] | None = None
        """The rows that match the last conditions, as an array of bools."""
        self._order: _Order | None = None

    def answer(self, text: str) -> str:
        """Answer a query, as JSON; one that cannot be answered gets ``{"error": ...}``."""
        try:
            answer = self._answer(read_query(text))
        except InvalidQuery as error:
            answer = {"error": str(error)}
        return replace_surrogates(json.dumps(answer, ensure_ascii=False))

    def forget(self) -> None:
        """Drop what was read of the table, unless a query is being answered."""
        if self._lock.acquire(blocking=False):
            self._clear()
            self._lock.release()

    def _clear(self) -> None:
        self._columns.clear()
        self._matches = self._order = None

    def _answer(self, query: PageQuery | SummaryQuery) -> dict[str, Any]:
        if not self._lock.acquire(timeout=_MAX_WAIT):
            raise InvalidQuery("The table is busy with other queries. Try again.")
        try:
            self._frame = self._read_table()
            try:
                if isinstance(query, PageQuery):
                    return self._read_page(query)
                return self._summarize(query)
            finally:
                if self._frame.is_live:
                    self._clear()
                del self._frame  # a live table may be held by the notebook alone
        finally:
            self._lock.release()

    # -- pages -------------------------------------------------------------------------------------

    def _read_page(self, query: PageQuery) -> dict[str, Any]:
        frame = self._frame
        order = self._find_order(query.rows, query.start + query.count)
        stop = min(query.start + query.count, order.count)
        start = min(query.start, stop)
        if order.positions is None:
            page, begin = frame, start
        else:
            page, begin = frame.take(order.positions[start:stop]), 0
        end = begin + stop - start
        labels = page.labels(begin, end)
        count = len(frame.label_data())
        shown = query.columns
        if shown is None:
            shown = tuple(range(min(count + frame.width, MAX_SHOWN_COLUMNS)))
        texts = [
            page.format_column(labels[column].values)
            if column < count
            else page.format_column(page.column_values(column - count, begin, end))
            for column in shown
            if column < count + frame.width
        ]
        return {
            "title": frame.title,
            "live": frame.is_live,
            "height": frame.height,
            "matching": order.count,
            "start": start,
            "columns": [self._describe(column, count) for column in range(count + frame.width)],
            "shown": list(shown),
            "rows": [[str(cell)[:MAX_CELL] for cell in row] for row in zip(*texts, strict=True)],
        }

    def _describe(self, position: int, labels: int) -> dict[str, Any]:
        frame = self._frame
        if position < labels:
            name, data = frame.label_data()[position]
            unnamed = "index" if labels == 1 else f"index {position + 1}"
            name = unnamed if name is None else format_name(name)
            return {"name": name, "type": str(data.dtype), "label": True}
        position -= labels
        name = frame.column_name(position)
        return {"name": format_name(name), "type": frame.column_type(position)}

    # -- rows --------------------------------------------------------------------------------------

    def _find_order(self, rows: Rows, least: int) -> "_Order":
        """Find at least so many of the rows that match, in their order."""
        kept = self._order
        if kept is not None and kept.rows == rows:
            enough = kept.positions is None or len(kept.positions) >= min(least, kept.count)
            if enough:
                return kept
        is_sorted = rows.sort is not None
        if not is_sorted and not rows.conditions and not rows.search:
            self._order = _Order(rows, None, self._frame.height)
            return self._order
        import numpy as np  # noqa: PLC0415 - when a person filters or sorts

        matches = self._match(rows)
        if rows.sort is None:
            positions = np.flatnonzero(matches).astype(np.uint32)
            self._order = _Order(rows, positions, len(positions))
            return self._order
        column = self._read_column(rows.sort)
        keys, missing, found = column.keys, column.missing, None
        if matches is not None:
            found = np.flatnonzero(matches)
            keys, missing = keys[found], missing[found]
        count = FIRST_ORDER
        while count < least:
            count *= 10
        first = find_first(keys, missing, count, descending=rows.descending)
        positions = (first if found is None else found[first]).astype(np.uint32)
        self._order = _Order(rows, positions, len(keys))
        return self._order

    def _match(self, rows: Rows) -> Any:
        """Return which rows match, as an array of bools; None for all of them."""
        wanted = structs.replace(rows, sort=None, descending=False)
        if self._matches is not None and self._matches[0] == wanted:
            return self._matches[1]
        matches = None
        for condition in rows.conditions:
            found = self._read_column(condition.column).match(condition)
            matches = found if matches is None else matches & found
        if rows.search:
            found = None
            for position in range(len(self._frame.label_data()) + self._frame.width):
                part = self._read_column(position).contain(rows.search)
                found = part if found is None else found | part
            matches = found if matches is None else matches & found
        self._matches = (wanted, matches)
        return matches

    def _read_column(self, position: int) -> Column:
        column = self._columns.pop(position, None) or read_column(self._frame, position)
        self._columns[position] = column  # the last one used is the last one dropped
        size = sum(kept.size for kept in self._columns.values())
        while size > MAX_KEPT_BYTES and len(self._columns) > 1:
            size -= self._columns.pop(next(iter(self._columns))).size
        return column

    # -- summaries ---------------------------------------------------------------------------------

    def _summarize(self, query: SummaryQuery) -> dict[str, Any]:
        import numpy as np  # noqa: PLC0415 - when a person asks for a summary

        column = self._read_column(query.column)
        present = ~column.missing
        matches = self._match(query.rows)
        count = self._frame.height if matches is None else int(matches.sum())
        if matches is not None:
            present &= matches
        positions = np.flatnonzero(present)
        summary: dict[str, Any] = {"rows": count, "missing": count - len(positions)}
        summary["kind"] = column.kind
        if isinstance(column, CodedColumn):
            summary |= _count_texts(column, positions)
        elif isinstance(column, ArrayColumn) and len(positions):
            summary |= _describe_array(column, column.keys[positions])
        return summary


def _count_texts(column: CodedColumn, positions: Any) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 - loaded with the codes

    counts = np.bincount(column.codes[positions], minlength=len(column.texts))
    top = np.argsort(-counts, kind="stable")[:TOP]
    return {
        "distinct": int(np.count_nonzero(counts)),
        "top": [[column.texts[code][:MAX_CELL], int(counts[code])] for code in top if counts[code]],
    }


def _describe_array(column: ArrayColumn, keys: Any) -> dict[str, Any]:
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
        summary["mean"] = _to_json(keys.mean(dtype=np.float64))
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
