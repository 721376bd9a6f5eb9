"""Tables of polars, pyarrow, modin and cuDF, all through narwhals.

Runs in the user's kernel. narwhals is imported when the first of these comes, since a kernel
without one needs it not; the libraries themselves never are. pandas has a way of its own
(`kernel.results.tables.pandas_frame`): narwhals knows no index.
"""

import sys
from copy import copy
from typing import Any, Self

from typing_extensions import override

from mcp_notebook.kernel.results.tables.frame import MAX_COPY, Frame, count, name_text
from mcp_notebook.kernel.safe.text import cut_text, describe_error, is_instance
from mcp_notebook.kernel.safe.to_json import find_free_name

MAX_SCHEMA = 2_000
"""Characters of the columns of a LazyFrame."""
_TABLES = (
    *("polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch"),
    *("modin.pandas.DataFrame", "cudf.DataFrame"),
)
_SERIES = (
    *("polars.Series", "pyarrow.ChunkedArray", "pyarrow.Array"),
    *("modin.pandas.Series", "cudf.Series"),
)


def is_column_frame(value: Any) -> bool:
    """Tell whether `column_frame` takes a value."""
    return any(is_instance(value, path) for path in (*_TABLES, *_SERIES))


def column_frame(value: Any) -> Frame | None:
    """Return a table or series of these libraries as a `Frame`, None if it is none."""
    for path in (*_TABLES, *_SERIES):
        if is_instance(value, path):
            library = path.partition(".")[0]
            return ColumnFrame(value, f"{library} {type(value).__name__}", path in _SERIES)
    return None


def lazy_text(value: Any) -> str | None:
    """Describe a polars LazyFrame without running its query; None if it is none."""
    if not is_instance(value, "polars.LazyFrame"):
        return None
    to_do = "It is a query that has not run: return `.collect()` of it to see rows."
    try:
        schema = value.collect_schema()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a query may be wrong in any way
        return f"polars LazyFrame whose query cannot run: {describe_error(error)}"
    columns = ", ".join(f"{name_text(name)} {dtype}" for name, dtype in schema.items())
    listed = cut_text(columns, MAX_SCHEMA)
    return f"polars LazyFrame: {count(len(schema), 'column')}; {listed}\n{to_do}"


class ColumnFrame(Frame):
    """A table that narwhals knows, or one column of it.

    Args:
        value: As the library made it.
        kind: What its user calls it.
        is_single: It is a series.
    """

    def __init__(self, value: Any, kind: str, is_single: bool) -> None:  # noqa: FBT001
        import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - needed by few

        self.kind = kind
        self.is_single = is_single
        self._names: list[str] | None = None
        """Where narwhals must not see them: a table of pyarrow's may have one twice."""
        if is_single:
            series = narwhals.from_native(_chunked(value), series_only=True)
            self.frame = series.alias(series.name or "value").to_frame()
        else:
            table, self._names = _with_own_names(value)
            self.frame = narwhals.from_native(table, eager_only=True)
        self.height, self.width = self.frame.shape
        self._columns = self.frame.columns

    @override
    def name(self, position: int) -> str:
        return (self._names or self._columns)[position]

    @override
    def dtype(self, position: int) -> str:
        return str(self.whole_series(position).dtype)

    @override
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        return list(self.whole_series(position)[start:stop].to_list())

    def whole_series(self, position: int) -> Any:
        """Return a column as narwhals has it."""
        return self.frame.get_column(self._columns[position])

    @override
    def whole_column(self, position: int) -> Any:
        series = self.whole_series(position)
        # Python's objects in polars: Arrow would get their addresses.
        return series.to_list() if str(series.dtype) == "Object" else series.to_arrow()

    @override
    def text(self, value: Any) -> str:
        return "null" if value is None else super().text(value)

    @override
    def cost(self) -> int:
        return int(self.frame.estimated_size())

    @override
    def snapshot(self) -> Self:
        kept = copy(self)
        if self.kind.startswith("polars"):
            # A table can be changed in place; its columns cannot, so that a clone costs nothing.
            kept.frame = self.frame.clone()
        elif not self.kind.startswith("pyarrow"):  # whose tables never change
            kept.is_live = self.cost() > MAX_COPY
            kept.frame = self.frame if kept.is_live else self.frame.clone()
        return kept


def _chunked(value: Any) -> Any:
    if not is_instance(value, "pyarrow.Array"):
        return value
    return sys.modules["pyarrow"].chunked_array([value])


def _with_own_names(value: Any) -> tuple[Any, list[str] | None]:
    """Return a table whose names differ, and the names that it has if they do not."""
    if is_instance(value, "pyarrow.RecordBatch"):
        value = sys.modules["pyarrow"].Table.from_batches([value])
    if not is_instance(value, "pyarrow.Table"):
        return value, None
    names = list(value.column_names)
    if len(set(names)) == len(names):
        return value, None
    own: dict[str, None] = {}
    for name in names:
        own[find_free_name(name, own)] = None
    return value.rename_columns(list(own)), names
