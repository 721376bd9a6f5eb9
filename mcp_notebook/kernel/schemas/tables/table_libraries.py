"""Builds tables and series of pandas, polars and pyarrow from lists.

Runs in the user's kernel, wherever a call runs. A library is found through one of its classes in
`sys.modules`; it is never imported here.
"""

import datetime as dt
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, structs
from pydantic_core import PydanticCustomError

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.safe.tabular_data import is_missing
from mcp_notebook.kernel.safe.text import safe_repr
from mcp_notebook.kernel.schemas.tables.column_types import (
    Column,
    find_dtype_name,
    get_library_name,
)

Lists = Mapping[str, tuple[list[Any], Column | None]]
"""Columns by name: the values, and the author's declaration."""
INT64 = range(-(2**63), 2**63)
_EXACT = 2**53
"""Up to here floats represent all whole numbers."""
_SAFE = (int, bool, str)
"""Types whose values are never changed silently by a dtype."""


class TableLibrary(Struct, frozen=True):
    """How a library builds a table or a series."""

    make_table: Callable[[Lists], Any] | None
    """None if the class is a series."""
    make_series: Callable[[list[Any], list[str] | None], Any]
    """Takes values, and labels or None."""
    has_labels: bool
    """Whether its series have labels."""
    find_dtype: Callable[[Any], Any]
    """Returns the library's dtype for its own dtype, numpy's dtype, or a name."""

    def adapt(self, column: Column) -> Column:
        """Return a column with its dtype translated to this library.

        Raises:
            DefinitionError: The library has no such dtype.
        """
        if self.make_table is None:
            return column
        try:
            if column.dtype is not None:
                column = structs.replace(column, dtype=self.find_dtype(column.dtype))
            self.make_table({column.name: ([], column)})
        except Exception as error:
            what = column.hint if column.dtype is None else column.dtype
            raise DefinitionError(
                f"`Columns`: the type of `{column.name}`, {what!r}, does not exist in the table's "
                "library: use a type hint (`float`, `str | None`), a dtype of that library or its "
                "name (`'float32'`)."
            ) from error
        return column


def find_library(kind: Any) -> TableLibrary | None:
    """Return the library that builds a class; None unless it is a table or a series."""
    module, name = getattr(kind, "__module__", ""), getattr(kind, "__name__", "")
    library = find_imported(str(module).partition(".")[0])
    if library is None or getattr(library, name, None) is not kind:
        return None
    build = _BUILDERS.get((library.__name__, name))
    return None if build is None else build(library)


def _refuse_changed(values: list[Any], stored: list[Any]) -> None:
    """Refuse a column if a stored value differs from the value that was sent, or is missing."""
    if set(map(type, values)) == {float} and values == stored:  # many times faster
        return
    for value, other in zip(values, stored, strict=True):
        if not _is_kept(value, other):
            changed = "a missing value" if _is_gap(other) else safe_repr(other)
            raise PydanticCustomError(
                "changed", "the column's dtype would change it to {changed}", {"changed": changed}
            )


def _is_kept(value: Any, stored: Any) -> bool:
    """Return whether a value is stored as sent, apart from missing fields and ints as floats."""
    if isinstance(value, dict):
        return isinstance(stored, dict) and all(
            _is_kept(part, stored.get(name)) for name, part in value.items()
        )
    if isinstance(value, list):
        is_list = isinstance(stored, list) and len(value) == len(stored)
        return is_list and all(map(_is_kept, value, stored))
    if _is_gap(stored):
        return _is_gap(value)
    if isinstance(value, bool) is not isinstance(stored, bool):
        return False
    if type(value) is float and type(stored) is float:  # float32 has fewer decimals
        is_whole = value.is_integer() and abs(value) <= _EXACT
        return value == stored if is_whole else math.isinf(value) == math.isinf(stored)
    return bool(value == stored)


def _is_gap(value: Any) -> bool:
    return value is None or is_missing(value) or (type(value) is float and math.isnan(value))


def _split_name(dtype: Any) -> tuple[str, str]:
    """Return the lower-case name of a dtype, and its unit.

    Raises:
        ValueError: It belongs to another library, or has a time zone.
    """
    if get_library_name(dtype) in ("polars", "pyarrow"):
        raise ValueError(f"{dtype!r} is another library's")
    word, _, unit = (find_dtype_name(dtype) or "").partition("[")
    if "," in unit or "pyarrow" in unit:
        raise ValueError(f"{dtype!r} is pandas' own")
    names = {"boolean": "bool", "str": "string", "object": "string"}
    return names.get(word.lower(), word.lower()), unit.removesuffix("]")


# -- pandas ----------------------------------------------------------------------------------------


def _use_pandas(library: Any, *, is_table: bool) -> TableLibrary:
    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return library.Series(values, dtype=_choose_free_dtype(values))
        if column.dtype is not None and column.kind is int:
            return library.Series(values, dtype=column.dtype)  # `astype` wraps -1 around
        series = library.Series(values, dtype=_choose_pandas_dtype(values, column))
        if column.kind is dt.date:
            return library.to_datetime(series)
        if column.dtype is None:
            return series
        converted = _convert(series, column.dtype)
        if column.kind not in _SAFE:
            _refuse_changed(values, converted.tolist())
        return converted

    def make_table(columns: Lists) -> Any:
        return library.DataFrame({name: make_column(*item) for name, item in columns.items()})

    def make_series(values: list[Any], labels: list[str] | None) -> Any:
        return library.Series(values, index=labels, dtype=_choose_free_dtype(values))

    return TableLibrary(
        make_table if is_table else None,
        make_series,
        has_labels=True,
        find_dtype=_find_for_pandas,
    )


def _find_for_pandas(dtype: Any) -> Any:
    if get_library_name(dtype) in ("polars", "pyarrow"):
        raise ValueError(f"{dtype!r} is another library's")
    return dtype


def _convert(series: Any, dtype: Any) -> Any:
    categories = getattr(dtype, "categories", None)
    # Unknown categories would become missing values.
    if categories is not None and not (series.isna() | series.isin(categories)).all():
        raise PydanticCustomError("lost", "it is not a value of this column's dtype")
    numpy: Any = find_imported("numpy")  # pandas has loaded it
    with numpy.errstate(over="ignore"):  # infinity is refused by the caller
        return series.astype(dtype)


def _choose_free_dtype(values: list[Any]) -> Any:
    """Infer the dtype of a column without one; None lets pandas choose."""
    if not values:
        return object
    kinds = set(map(type, values))
    if int not in kinds or kinds == {int} or not kinds <= {int, float, type(None)}:
        return None
    # pandas would choose a float, which rounds.
    if kinds == {int, type(None)} and all(item is None or item in INT64 for item in values):
        return "Int64"
    return None if all(type(item) is not int or abs(item) <= _EXACT for item in values) else object


def _choose_pandas_dtype(values: list[Any], column: Column) -> Any:
    """Return a dtype that loses no value: integers with missing values do not become floats."""
    kinds: dict[Any, Any] = {
        int: "Int64" if column.is_optional else "int64",
        bool: "boolean" if column.is_optional else "bool",
        float: "float64",
        dt.date: object,
    }
    if column.kind in kinds:
        return kinds[column.kind]
    if any(value is not None for value in values):
        return _choose_free_dtype(values)  # pandas' choice differs between versions
    if column.dtype is not None:
        return object  # converts to any dtype
    names = {dt.datetime: "datetime64[ns]", dt.timedelta: "timedelta64[ns]"}
    if not values:
        names[str] = "str"  # it would turn None into a string
    return names.get(column.kind, object)


# -- polars ----------------------------------------------------------------------------------------

_POLARS_NAMES: Mapping[Any, str] = {
    int: "Int64",
    float: "Float64",
    bool: "Boolean",
    str: "String",
    bytes: "Binary",
    dt.date: "Date",
    dt.datetime: "Datetime",
    dt.timedelta: "Duration",
    dt.time: "Time",
}


def _use_polars(library: Any, *, is_table: bool) -> TableLibrary:
    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return _make_free_series(library, values)
        dtype = column.dtype
        if dtype is None and (name := _POLARS_NAMES.get(column.plain_kind)):
            dtype = getattr(library, name)
        plain = column.make_plain(values)
        if dtype is None:
            return _make_free_series(library, plain)
        series = library.Series(plain, dtype=dtype)
        if column.dtype is not None and column.kind not in _SAFE:
            _refuse_changed(plain, series.to_list())
        return series

    def make_table(columns: Lists) -> Any:
        return library.DataFrame({name: make_column(*item) for name, item in columns.items()})

    def make_series(values: list[Any], _labels: list[str] | None) -> Any:
        return _make_free_series(library, values)

    return TableLibrary(
        make_table if is_table else None,
        make_series,
        has_labels=False,
        find_dtype=partial(_find_for_polars, library),
    )


def _make_free_series(library: Any, values: list[Any]) -> Any:
    """Return a series of values without a declared dtype; refuse values that it would change."""
    series = library.Series(values, strict=False)
    kinds = set(map(type, values)) - {type(None)}
    is_plain = len(kinds) == 1 and kinds <= {str, bool, int, float}
    is_plain = is_plain and (kinds == {float} or not series.dtype.is_float())
    if is_plain and series.null_count() == values.count(None):
        return series
    try:
        _refuse_changed(values, series.to_list())
    except PydanticCustomError:
        raise PydanticCustomError(
            "mixture", "its values are of several types, or too large"
        ) from None
    return series


def _find_for_polars(library: Any, dtype: Any) -> Any:
    if get_library_name(dtype) == "polars":
        return dtype
    name, unit = _split_name(dtype)
    if unit:
        return (library.Datetime if name.startswith("date") else library.Duration)(unit)
    special = {"bool": "Boolean", "category": "Categorical"}
    return getattr(library, special.get(name) or name.title().replace("Uint", "UInt"))


# -- pyarrow ---------------------------------------------------------------------------------------

_ARROW_NAMES: Mapping[Any, str] = {
    int: "int64",
    float: "float64",
    bool: "bool",
    str: "string",
    bytes: "binary",
    dt.date: "date32",
    dt.timedelta: "duration[us]",
    dt.time: "time64[us]",
}


def _use_pyarrow(library: Any) -> TableLibrary:
    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return library.array(values)
        kind, plain = column.dtype, column.make_plain(values)
        if kind is None and column.plain_kind is dt.datetime:
            is_aware = any(value is not None and value.tzinfo is not None for value in values)
            kind = library.timestamp("us", tz="UTC" if is_aware else None)
        elif kind is None and (name := _ARROW_NAMES.get(column.plain_kind)):
            kind = library.type_for_alias(name)
        array = library.array(plain, type=kind)
        if column.dtype is not None and column.kind not in _SAFE:
            _refuse_changed(plain, array.to_pylist())
        return array

    def make_table(columns: Lists) -> Any:
        return library.table({name: make_column(*item) for name, item in columns.items()})

    return TableLibrary(
        make_table,
        lambda values, _labels: library.array(values),
        has_labels=False,
        find_dtype=partial(_find_for_pyarrow, library),
    )


def _find_for_pyarrow(library: Any, dtype: Any) -> Any:
    if get_library_name(dtype) == "pyarrow":
        return dtype
    name, unit = _split_name(dtype)
    if unit:
        return library.type_for_alias(
            f"{'timestamp' if name.startswith('date') else 'duration'}[{unit}]"
        )
    if name == "category":
        return library.dictionary(library.int32(), library.string())
    return library.type_for_alias({"date": "date32"}.get(name, name))


_BUILDERS: Mapping[tuple[str, str], Callable[[Any], TableLibrary]] = {
    ("pandas", "DataFrame"): partial(_use_pandas, is_table=True),
    ("pandas", "Series"): partial(_use_pandas, is_table=False),
    ("polars", "DataFrame"): partial(_use_polars, is_table=True),
    ("polars", "Series"): partial(_use_polars, is_table=False),
    ("pyarrow", "Table"): _use_pyarrow,
}
"""Functions by library and class; each takes the library's module."""
