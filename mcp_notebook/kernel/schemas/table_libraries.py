"""The libraries of tables, each with how its tables and series are made of lists.

Runs in the user's kernel, wherever a call runs. A library is found by one of its classes and taken
from `sys.modules`: it is never imported here.
"""

import datetime as dt
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp_notebook.kernel.schemas.column_types import Column

Lists = Mapping[str, tuple[list[Any], Column | None]]
"""Columns: the values of each, and what the author says of it."""


@dataclass(frozen=True)
class TableLibrary:
    """How one library makes a table or a series."""

    make_table: Callable[[Lists], Any] | None
    """None: the class is that of a series."""
    make_series: Callable[[list[Any], list[str] | None], Any]
    """Of values, and labels if there are any."""
    has_labels: bool
    """Whether its series have labels."""


def find_library(kind: Any) -> TableLibrary | None:
    """Return how values of a class are made; None if it is no table and no series."""
    module, name = getattr(kind, "__module__", ""), getattr(kind, "__name__", "")
    library = sys.modules.get(str(module).partition(".")[0])
    if library is None or getattr(library, name, None) is not kind:
        return None
    build = _BUILDERS.get((library.__name__, name))
    return None if build is None else build(library)


def _use_pandas(library: Any, *, is_table: bool) -> TableLibrary:
    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return library.Series(values, dtype=None if values else object)
        series = library.Series(values, dtype=_choose_pandas_dtype(values, column))
        if column.kind is dt.date:
            series = library.to_datetime(series)
        return series if column.dtype is None else series.astype(column.dtype)

    def make_table(columns: Lists) -> Any:
        return library.DataFrame({name: make_column(*item) for name, item in columns.items()})

    def make_series(values: list[Any], labels: list[str] | None) -> Any:
        return library.Series(values, index=labels, dtype=None if values else object)

    return TableLibrary(make_table if is_table else None, make_series, has_labels=True)


def _choose_pandas_dtype(values: list[Any], column: Column) -> Any:
    """Return the dtype in which no value is lost: a whole number with a gap is not a float."""
    has_gaps = None in values
    if column.kind is int:
        return "Int64" if column.is_optional else "int64"
    if column.kind is bool:
        return "boolean" if column.is_optional else "bool"
    if column.kind is float:
        return "float64"
    if column.kind is dt.date:
        return object
    if values and not (has_gaps and len(set(values)) == 1):
        return None  # pandas' own choice, which differs between its versions
    names = {dt.datetime: "datetime64[ns]", dt.timedelta: "timedelta64[ns]"}
    if not values:
        names[str] = "str"  # of None it would make a text
    return names.get(column.kind, object)


def _use_polars(library: Any, *, is_table: bool) -> TableLibrary:
    names = {int: "Int64", float: "Float64", bool: "Boolean", str: "String"} | {
        dt.date: "Date",
        dt.datetime: "Datetime",
        dt.timedelta: "Duration",
    }

    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return library.Series(values, strict=False)
        dtype = column.dtype if _is_of(column.dtype, "polars") else None
        name = names.get(column.kind)
        return library.Series(values, dtype=dtype or (getattr(library, name) if name else None))

    def make_table(columns: Lists) -> Any:
        return library.DataFrame({name: make_column(*item) for name, item in columns.items()})

    def make_series(values: list[Any], _labels: list[str] | None) -> Any:
        return library.Series(values, strict=False)

    return TableLibrary(make_table if is_table else None, make_series, has_labels=False)


def _use_pyarrow(library: Any) -> TableLibrary:
    makers = {int: "int64", float: "float64", bool: "bool_", str: "string", dt.date: "date32"}

    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return library.array(values)
        if _is_of(column.dtype, "pyarrow"):
            return library.array(values, type=column.dtype)
        if column.kind in (dt.datetime, dt.timedelta):
            make = library.timestamp if column.kind is dt.datetime else library.duration
            return library.array(values, type=make("us"))
        name = makers.get(column.kind)
        return library.array(values, type=getattr(library, name)() if name else None)

    def make_table(columns: Lists) -> Any:
        return library.table({name: make_column(*item) for name, item in columns.items()})

    return TableLibrary(make_table, lambda values, _labels: library.array(values), has_labels=False)


def _is_of(dtype: Any, library: str) -> bool:
    owner = dtype if isinstance(dtype, type) else type(dtype)
    return owner.__module__.partition(".")[0] == library


_BUILDERS: Mapping[tuple[str, str], Callable[[Any], TableLibrary]] = {
    ("pandas", "DataFrame"): partial(_use_pandas, is_table=True),
    ("pandas", "Series"): partial(_use_pandas, is_table=False),
    ("polars", "DataFrame"): partial(_use_polars, is_table=True),
    ("polars", "Series"): partial(_use_polars, is_table=False),
    ("pyarrow", "Table"): _use_pyarrow,
}
"""By library and class; each gets the library's module."""
