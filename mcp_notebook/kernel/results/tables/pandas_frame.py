"""Tables of pandas as frames: DataFrame, Series and Index.

Runs in the user's kernel, on the threads of `Frame`. pandas is never imported here: if there is one
of its tables, it is loaded.
"""

import sys
from typing import Any, Self

from typing_extensions import override

from mcp_notebook.kernel.results.tables.cell_text import format_cell, quote_unclear
from mcp_notebook.kernel.results.tables.column_facts import Facts, find_pandas_facts
from mcp_notebook.kernel.results.tables.frame import (
    MAX_COLUMNS,
    MAX_COPY,
    SAMPLE_ROWS,
    Column,
    Frame,
    select_ends,
)
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.tabular_data import list_column

MAX_OBJECTS = 5_000_000
"""Cells of a table whose columns of objects are searched for missing ones, at 0.1 s a million."""
MAX_CATEGORIES = 12
"""Maximum categories of a column that are named."""
MAX_CATEGORY = 40
"""Maximum characters of the name of a category or a coordinate system."""


def wrap_pandas_table(value: Any) -> Frame | None:
    """Return the frame of a DataFrame, Series or Index; None for other values."""
    if is_instance(value, "pandas.DataFrame"):
        return PandasFrame(value)
    if is_instance(value, "pandas.Series"):
        return PandasSeries(value)
    if is_instance(value, "pandas.Index"):
        return _wrap_index(value)
    return None


def _wrap_index(value: Any) -> Frame:
    """Return the frame of an Index, with a column for each level."""
    if is_instance(value, "pandas.MultiIndex"):
        names = [f"level {n}" if name is None else name for n, name in enumerate(value.names)]
        frame = PandasFrame(value.to_frame(index=False, name=names, allow_duplicates=True))
    else:
        frame = PandasSeries(value.to_series().reset_index(drop=True))
    frame.kind = type(value).__name__
    return frame


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
        return list(list_column(column))

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
    def count_missing(self, position: int) -> int | None:
        data = self.column_data(position)
        is_slow = data.dtype == object and self.height * self.width > MAX_OBJECTS
        return None if is_slow else int(data.isna().sum())

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
