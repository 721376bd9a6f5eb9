"""Tables of polars, pyarrow, modin and cuDF as frames, read by narwhals.

Runs in the user's kernel, on the threads of `Frame`. narwhals is imported with the first such
table, the libraries themselves never. pandas has its own frames, in `tables.pandas_frame`:
narwhals does not know its index.
"""

import sys
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

from typing_extensions import override

from mcp_notebook.kernel.results.tables.column_facts import Facts, find_series_facts
from mcp_notebook.kernel.results.tables.frame import MAX_COPY, Frame, format_name
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.tabular_data import (
    is_plain_series,
    list_elements,
    name_uniquely,
    shorten_floats,
)
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.text.wording import count

MAX_SCHEMA = 2_000
"""Maximum characters of a LazyFrame's schema."""
_TABLES = (
    *("polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch"),
    *("modin.pandas.DataFrame", "cudf.DataFrame"),
)
_SERIES = (
    *("polars.Series", "pyarrow.ChunkedArray", "pyarrow.Array"),
    *("modin.pandas.Series", "cudf.Series"),
)
_WITH_NULL = ("polars", "pyarrow")
"""Libraries that distinguish missing values from NaN."""


def is_narwhals_table(value: Any) -> bool:
    """Return whether a value is a table or series of one of these libraries."""
    return any(is_instance(value, path) for path in (*_TABLES, *_SERIES))


def wrap_narwhals_table(value: Any) -> Frame | None:
    """Return the frame of a table or series of these libraries; None for other values."""
    for path in (*_TABLES, *_SERIES):
        if is_instance(value, path):
            library = path.partition(".")[0]
            return NarwhalsFrame(value, f"{library} {type(value).__name__}", path in _SERIES)
    return None


def describe_lazy_frame(value: Any) -> str | None:
    """Describe a polars LazyFrame without running its query; return None for other values."""
    if not is_instance(value, "polars.LazyFrame"):
        return None
    return guard(
        lambda: _describe_schema(value.collect_schema()),
        recover=lambda error: f"polars LazyFrame whose query cannot run: {describe_error(error)}",
    )


def _describe_schema(schema: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{format_name(name)} {dtype}" for name, dtype in schema.items())
    return (
        f"polars LazyFrame: {count(len(schema), 'column')}; {columns}\n"
        "This query has not run: return its `.collect()` to see rows."
    )


class NarwhalsFrame(Frame):
    """A table that narwhals can read, or one column of such a table.

    Args:
        value: The library's own table or series.
        kind: The name that users know it by.
        is_single: Whether it is a series.
    """

    def __init__(self, value: Any, kind: str, is_single: bool) -> None:  # noqa: FBT001
        import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - few kernels need it

        self.kind = kind
        self.is_single = is_single
        self.nan_is_missing = not kind.startswith(_WITH_NULL)
        self._names: list[str] | None = None
        """The original names of a pyarrow table with repeated names, which narwhals refuses."""
        if is_single:
            series = narwhals.from_native(_to_chunked_array(value), series_only=True)
            self.frame = series.alias(series.name or "value").to_frame()
        else:
            table, self._names = _make_names_unique(value)
            self.frame = narwhals.from_native(table, eager_only=True)
        self.height, self.width = self.frame.shape
        self._columns = self.frame.columns

    @override
    def column_name(self, position: int) -> str:
        return (self._names or self._columns)[position]

    @override
    def column_type(self, position: int) -> str:
        native = self.get_series(position).to_native()
        return str(native.type if hasattr(native, "type") else native.dtype)

    @override
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        series = self.get_series(position)[start:stop]
        native = series.to_native()
        if is_plain_series(native):
            return list(list_elements(native))
        return list(shorten_floats(series.to_list(), native.dtype))

    def get_series(self, position: int) -> Any:
        """Return a column as a narwhals Series."""
        return self.frame.get_column(self._columns[position])

    @override
    def column_data(self, position: int) -> Any:
        series = self.get_series(position)
        # Arrow would get the addresses of Python objects in polars.
        return series.to_list() if str(series.dtype) == "Object" else series.to_arrow()

    @override
    def find_facts(self, position: int) -> Facts | None:
        return find_series_facts(self.get_series(position), nan_is_missing=self.nan_is_missing)

    @override
    def count_missing(self, position: int) -> int | None:
        return int(self.get_series(position).null_count())

    @override
    def estimate_bytes(self) -> int:
        return int(self.frame.estimated_size())

    @override
    def take(self, positions: Any) -> Self:
        taken = copy(self)
        rows = [int(position) for position in positions]
        try:
            taken.frame = self.frame[rows]
        except NotImplementedError:  # Arrow cannot pick rows of a string view, for one
            import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - loaded with the table

            parts = [self.frame[row : row + 1] for row in rows]
            taken.frame = narwhals.concat(parts) if parts else self.frame[:0]
        taken.height = len(positions)
        return taken

    @override
    def renew(self) -> Self:
        if not self.is_live:
            return self
        renewed = type(self)(self.frame.to_native(), self.kind, is_single=False)
        renewed.is_single, renewed.is_live = self.is_single, True
        return renewed

    @override
    def snapshot(self) -> Self:
        snapshot = copy(self)
        if self.kind.startswith("polars"):
            # Only tables change in place, not their columns, so a clone is free.
            snapshot.frame = self.frame.clone()
        elif not self.kind.startswith("pyarrow"):  # which never changes
            snapshot.is_live = self.estimate_bytes() > MAX_COPY
            snapshot.frame = self.frame if snapshot.is_live else self.frame.clone()
        return snapshot


def _to_chunked_array(value: Any) -> Any:
    if not is_instance(value, "pyarrow.Array"):
        return value
    return sys.modules["pyarrow"].chunked_array([value])


def _make_names_unique(value: Any) -> tuple[Any, list[str] | None]:
    """Return a table with unique names, and its original names if these repeat."""
    if is_instance(value, "pyarrow.RecordBatch"):
        value = sys.modules["pyarrow"].Table.from_batches([value])
    if not is_instance(value, "pyarrow.Table"):
        return value, None
    names = list(value.column_names)
    if len(set(names)) == len(names):
        return value, None
    return value.rename_columns(list(name_uniquely((name, None) for name in names))), names
