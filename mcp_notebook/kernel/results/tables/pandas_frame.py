"""Tables of pandas as frames: DataFrame, Series, Index and Styler.

Runs in the user's kernel, on the threads of `Frame`. pandas is never imported here: if there is one
of its tables, it is loaded.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

from typing_extensions import override

from mcp_notebook.kernel.results.tables.cell_text import format_cell, looks_missing, quote_unclear
from mcp_notebook.kernel.results.tables.column_facts import Facts, find_pandas_facts
from mcp_notebook.kernel.results.tables.frame import (
    MAX_COLUMNS,
    MAX_COPY,
    SAMPLE_ROWS,
    Column,
    Frame,
    select_ends,
)
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.tabular_data import shorten_floats
from mcp_notebook.kernel.safe.text import clean_text

MAX_CATEGORIES = 12
"""Maximum categories of a column that are named."""
MAX_CATEGORY = 40
"""Maximum characters of the name of a category or a coordinate system."""


def wrap_pandas_table(value: Any) -> Frame | None:
    """Return the frame of a DataFrame, Series or Styler; None for other values."""
    if is_instance(value, "pandas.DataFrame"):
        return PandasFrame(value)
    if is_instance(value, "pandas.Series"):
        return PandasSeries(value)
    if is_instance(value, "pandas.io.formats.style.Styler"):
        return StylerFrame(value)
    return None


def wrap_pandas_index(value: Any) -> Frame:
    """Return the frame of an Index."""
    if is_instance(value, "pandas.MultiIndex"):
        return MultiIndexFrame(value)
    return IndexFrame(value)


class PandasFrame(Frame):
    """A DataFrame."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self._index = table.index
        self.kind = type(table).__name__
        self.height = len(table.index)
        self.width = self._count_columns()
        self.counts_rows = _only_counts_rows(self._index)
        """Whether the index only counts rows; it is then no label."""
        self._columns: dict[int, Any] = {}
        """Cache of columns, which pandas makes slowly; unused if they may change or are many."""

    @property
    @override
    def title(self) -> str:
        names = () if self.is_single else self.table.columns.names
        named = " / ".join(quote_unclear(format_cell(name)) for name in names if name is not None)
        return f"{super().title} by {named}" if named else super().title

    @override
    def column_name(self, position: int) -> Any:
        return self.table.columns[position]

    @override
    def column_type(self, position: int) -> str:
        return _describe_type(self.column_data(position))

    @override
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        column = self.column_data(position)
        if stop - start < self.height:
            # A slice: selecting by row numbers would copy a whole Arrow column.
            column = column.iloc[start:stop]
        return list(shorten_floats(column.tolist(), column.dtype))

    @override
    def column_data(self, position: int) -> Any:
        column = self._columns.get(position)
        if column is None:
            column = self.table.iloc[:, position]
            if not self.is_live and self.width <= MAX_COLUMNS:
                self._columns[position] = column
        return column

    @override
    def find_facts(self, position: int) -> Facts | None:
        return find_pandas_facts(self.column_data(position))

    @override
    def labels(self, start: int, stop: int) -> list[Column]:
        if self.counts_rows:
            return []
        rows = self._index[start:stop]
        levels = range(rows.nlevels)
        return [Column(rows.names[level], list(rows.get_level_values(level))) for level in levels]

    @override
    def label_data(self) -> list[tuple[Any, Any]]:
        index = self._index
        levels = range(0 if self.counts_rows else index.nlevels)
        return [(index.names[level], index.get_level_values(level)) for level in levels]

    @override
    def estimate_bytes(self) -> int:
        # The columns of the preview represent all columns.
        sample = select_ends(self.width, MAX_COLUMNS)
        size = sum(_estimate_series_bytes(self.column_data(position)) for position in sample)
        return int(self._index.nbytes) + size * self.width // max(len(sample), 1)

    @override
    def snapshot(self) -> Self:
        snapshot = type(self)(_snapshot_table(self.table, self.estimate_bytes()))
        snapshot.is_live = snapshot.table is self.table
        return snapshot

    @override
    def renew(self) -> Self:
        if not self.is_live:
            return self
        renewed = type(self)(self.table)
        renewed.is_live = True
        return renewed

    @override
    def take(self, positions: Any) -> Self:
        taken = type(self)(self.table.iloc[positions])
        taken.counts_rows = self.counts_rows
        return taken

    def _count_columns(self) -> int:
        return len(self.table.columns)


class PandasSeries(PandasFrame):
    """A Series: a table with one column."""

    is_single = True

    @override
    def column_name(self, position: int) -> Any:
        name = self.table.name
        return "value" if name is None else name

    @override
    def column_data(self, position: int) -> Any:
        return self.table

    def _count_columns(self) -> int:
        return 1


class IndexFrame(Frame):
    """An Index, which is immutable."""

    is_single = True

    def __init__(self, index: Any) -> None:
        self._index = index
        self.kind = type(index).__name__
        self.height = len(index)
        self.width = index.nlevels

    @override
    def column_name(self, position: int) -> Any:
        name = self._index.names[position]
        return ("value" if self.is_single else f"level {position}") if name is None else name

    @override
    def column_type(self, position: int) -> str:
        return _describe_type(self._index)

    @override
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        return list(self._index[start:stop].get_level_values(position))

    @override
    def column_data(self, position: int) -> Any:
        return self._index.get_level_values(position)

    @override
    def find_facts(self, position: int) -> Facts | None:
        return find_pandas_facts(self.column_data(position))

    @override
    def estimate_bytes(self) -> int:
        return int(self._index.nbytes)

    @override
    def snapshot(self) -> Self:
        return self

    @override
    def take(self, positions: Any) -> Self:
        return type(self)(self._index[positions])


class MultiIndexFrame(IndexFrame):
    """A MultiIndex, with a column for each level."""

    is_single = False

    @override
    def column_type(self, position: int) -> str:
        return _describe_type(self._index.levels[position])


class StylerFrame(Frame):
    """The display of a Styler: formatted values, without the rows and columns that it hides.

    A Styler renders from its first row on, so the tail of a long table would cost its whole length.
    Instead, the function that formats a cell is looked up, as pandas' `StylerRenderer` does. It has
    no summary, which would be of other texts, and of hidden rows.
    """

    has_summary = False

    def __init__(self, styler: Any) -> None:
        self._styler = styler
        self._data = PandasFrame(styler.data)
        self._rows = _list_visible_rows(styler)
        hidden = set(styler.hidden_columns)
        self._columns = [column for column in range(self._data.width) if column not in hidden]
        self._levels = [level for level, hide in enumerate(styler.hide_index_) if not hide]
        self.kind = "Styler"
        self.height = sum(len(rows) for _, rows in self._rows)
        self.width = len(self._columns)

    @property
    @override
    def title(self) -> str:
        caption = self._styler.caption
        caption = caption[0] if isinstance(caption, tuple) else caption
        return super().title + (f', "{format_cell(caption)}"' if caption else "")

    @override
    def column_name(self, position: int) -> Any:
        column = self._columns[position]
        name = self._data.column_name(column)
        formats = _get_formats(self._styler, "_columns")
        parts = name if isinstance(name, tuple) else (name,)
        return tuple(
            _apply_format(formats.get((level, column)), part)
            for level, part in enumerate(parts)
            if not self._styler.hide_columns_[level]
        )

    @override
    def column_type(self, position: int) -> str:
        return self._data.column_type(self._columns[position])

    @override
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        column = self._columns[position]
        values: list[Any] = []
        for styler, row in self._find_rows(start, stop):
            formats = _get_formats(styler)
            default = getattr(formats, "default_factory", None)
            format_ = formats.get((row, column)) or (default() if default else None)
            values.append(_apply_format(format_, styler.data.iloc[row, column]))
        return values

    @override
    def labels(self, start: int, stop: int) -> list[Column]:
        index = self._styler.index
        if _only_counts_rows(index) and not _get_formats(self._styler, "_index"):
            return []
        return [
            Column(index.names[level], self._read_level(level, start, stop))
            for level in self._levels
        ]

    def _read_level(self, level: int, start: int, stop: int) -> list[Any]:
        values: list[Any] = []
        for styler, row in self._find_rows(start, stop):
            label = styler.index[row]
            label = label[level] if isinstance(label, tuple) else label
            values.append(_apply_format(_get_formats(styler, "_index").get((row, level)), label))
        return values

    def _find_rows(self, start: int, stop: int) -> list[tuple[Any, int]]:
        """Return, for each of these positions, a Styler and the number of one of its rows."""
        matches: list[tuple[Any, int]] = []
        for styler, rows in self._rows:
            matches += [(styler, int(row)) for row in rows[max(start, 0) : max(stop, 0)]]
            start, stop = start - len(rows), stop - len(rows)
        return matches

    @override
    def column_data(self, position: int) -> Any:
        return self._data.column_data(self._columns[position])

    @override
    def estimate_bytes(self) -> int:
        return self._data.estimate_bytes()

    @override
    def snapshot(self) -> Self:
        return self

    @override
    def take(self, positions: Any) -> Frame:
        return self._data.take(positions)

    @property
    @override
    def source(self) -> Frame:
        """The data itself: unformatted, with the hidden rows and columns."""
        return self._data


def _describe_type(column: Any) -> str:
    """Return the type of a column or index, with its categories or its coordinate system."""
    dtype = column.dtype
    if is_instance(dtype, "pandas.CategoricalDtype"):
        return f"{dtype} ({_list_categories(dtype)})"
    if is_instance(dtype, "geopandas.array.GeometryDtype"):
        system = column.array.crs
        if system is None:
            return f"{dtype} (no CRS)"
        name = str(system)  # which may be a long WKT definition
        return f"{dtype} ({name if len(name) <= MAX_CATEGORY else format_cell(system.name)})"
    return str(dtype)


def _list_categories(dtype: Any) -> str:
    categories = dtype.categories
    if categories is None:
        return "none"
    first = [_shorten_category(name) for name in categories[:MAX_CATEGORIES]]
    if len(categories) > MAX_CATEGORIES:
        first.append(f"... {len(categories) - MAX_CATEGORIES:,} more")
    return (" < " if dtype.ordered else ", ").join(first)


def _shorten_category(name: Any) -> str:
    text = quote_unclear(format_cell(name))
    return text if len(text) <= MAX_CATEGORY else f"{text[: MAX_CATEGORY - 3]}..."


def _get_formats(styler: Any, part: str = "") -> Mapping[tuple[int, int], Any]:
    """Return the functions that format cells, labels (``_index``) or names (``_columns``)."""
    formats: Mapping[tuple[int, int], Any] = getattr(styler, f"_display_funcs{part}", {})
    return formats


def _list_visible_rows(styler: Any) -> list[tuple[Any, Sequence[int]]]:
    """Return the rows that a Styler shows, and the Stylers that are concatenated to it."""
    hidden = {int(row) for row in styler.hidden_rows}
    rows: Sequence[int] = range(len(styler.index))
    rows = [row for row in rows if row not in hidden] if hidden else rows
    visible = [(styler, rows)]
    for other in styler.concatenated:
        visible += _list_visible_rows(other)
    return visible


def _apply_format(format_: Any, value: Any) -> Any:
    """Format a value with a Styler's function, which may be the author's."""
    if format_ is None:
        return value
    formatted = run_guarded(lambda: format_(value), lambda _error: value)
    if isinstance(value, str) or not isinstance(formatted, str):
        return formatted
    text = clean_text(formatted).strip()
    return None if looks_missing(text) else text


def _only_counts_rows(index: Any) -> bool:
    """Return whether an index is the default one, which says nothing about the rows."""
    is_range = is_instance(index, "pandas.RangeIndex")
    return is_range and index.start == 0 and index.step == 1 and index.name is None


def _estimate_series_bytes(series: Any) -> int:
    size = int(series.nbytes)
    if series.dtype == object and len(series):
        sample = series.iloc[:SAMPLE_ROWS]
        size += sum(map(sys.getsizeof, sample)) * len(series) // len(sample)
    return size


def _snapshot_table(table: Any, size: int) -> Any:
    """Return a copy that later changes do not affect; the table itself if it is too large."""
    if _copies_on_write():
        return table.copy(deep=False)
    return table.copy() if size <= MAX_COPY else table


def _copies_on_write() -> bool:
    pandas = sys.modules["pandas"]
    major = str(pandas.__version__).partition(".")[0]
    return (major.isdigit() and int(major) >= 3) or (  # noqa: PLR2004 - always since pandas 3
        pandas.get_option("mode.copy_on_write") is True
    )
