"""The libraries of tables, each with how its tables and series are made of lists.

Runs in the user's kernel, wherever a call runs. A library is found by one of its classes and taken
from `sys.modules`: it is never imported here.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from pydantic_core import PydanticCustomError

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.schemas.tables.column_shapes import NO_SHAPE, Shape, is_kept, to_plain
from mcp_notebook.kernel.schemas.tables.column_types import Column
from mcp_notebook.kernel.schemas.tables.dtypes import (
    find_common_name,
    find_dtype_name,
    get_library_name,
    is_dictionary,
)
from mcp_notebook.kernel.schemas.tables.exact_moments import count_if_precise, has_zones

Lists = Mapping[str, tuple[list[Any], Column | None]]
"""Columns: the values of each, and what the author says of it."""
INT64 = range(-(2**63), 2**63)
_EXACT = 2**53
"""Up to here floats have all whole numbers."""


@dataclass(frozen=True)
class TableLibrary:
    """How one library makes a table or a series."""

    make_table: Callable[[Lists], Any] | None
    """None: the class is that of a series."""
    make_series: Callable[[list[Any], list[str] | None], Any]
    """Of values, and labels if there are any."""
    has_labels: bool
    """Whether its series have labels."""
    has_objects: bool
    """Whether a column holds any Python values, as those of pandas do."""
    find_dtype: Callable[[Column], Any]
    """Returns its own dtype for that of a column, which may be another library's; None: none."""

    def adapt(self, column: Column) -> Column:
        """Return a column with a dtype of this library.

        Raises:
            DefinitionError: The library has no such dtype.
        """
        if not self.has_objects and column.shape is NO_SHAPE:
            raise DefinitionError(
                "`Columns`: no column of the table's library holds the values of "
                f"`{column.name}`, {column.hint!r}: use a type of one kind (`float`, `list[str]`), "
                "or a DataFrame of pandas."
            )
        if column.dtype is None or self.make_table is None:
            return column
        try:
            adapted = replace(column, dtype=self.find_dtype(column))
            self.make_table({column.name: ([], adapted)})
        except Exception as error:
            raise DefinitionError(
                f"`Columns`: the dtype of `{column.name}`, {column.dtype!r}, is none of the "
                "table's library: use a type hint (`float`, `str | None`) or a dtype of that "
                "library."
            ) from error
        return adapted


def find_library(kind: Any) -> TableLibrary | None:
    """Return how values of a class are made; None if it is no table and no series."""
    module, name = getattr(kind, "__module__", ""), getattr(kind, "__name__", "")
    library = find_imported(str(module).partition(".")[0])
    if library is None or getattr(library, name, None) is not kind:
        return None
    build = _BUILDERS.get((library.__name__, name))
    return None if build is None else build(library)


def _require_common_name(column: Column) -> str:
    name = find_common_name(find_dtype_name(column.dtype) or "")
    if name is None:
        raise ValueError(f"{column.dtype!r} is another library's")
    return "category" if name == "string" and is_dictionary(column.dtype) else name


# -- pandas ----------------------------------------------------------------------------------------


def _use_pandas(library: Any, *, is_table: bool) -> TableLibrary:
    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return library.Series(values, dtype=_choose_free_dtype(values))
        if column.is_time and (counts := count_if_precise(values)) is not None:
            zone = "UTC" if has_zones(values) else None
            is_moment = column.kind is dt.datetime
            series = _make_precise_series(library, counts, zone, is_moment=is_moment)
            return series if column.dtype is None else _convert(series, column.dtype)
        if column.dtype is not None and column.kind is int:
            return library.Series(values, dtype=column.dtype)  # `astype` wraps -1 around
        series = library.Series(values, dtype=_choose_pandas_dtype(values, column))
        if column.kind is dt.date:
            series = library.to_datetime(series)
        return series if column.dtype is None else _convert(series, column.dtype)

    def make_table(columns: Lists) -> Any:
        return library.DataFrame({name: make_column(*item) for name, item in columns.items()})

    def make_series(values: list[Any], labels: list[str] | None) -> Any:
        return library.Series(values, index=labels, dtype=_choose_free_dtype(values))

    return TableLibrary(
        make_table if is_table else None,
        make_series,
        has_labels=True,
        has_objects=True,
        find_dtype=_find_for_pandas,
    )


def _make_precise_series(
    library: Any, counts: list[int | None], zone: str | None, *, is_moment: bool
) -> Any:
    make = partial(library.Timestamp, tz=zone) if is_moment else library.Timedelta
    return library.Series([None if count is None else make(count, unit="ns") for count in counts])


def _find_for_pandas(column: Column) -> Any:
    if get_library_name(column.dtype) not in ("polars", "pyarrow"):
        return column.dtype
    name = _require_common_name(column)
    if name == "date":
        return None  # dates are moments there
    name = name.replace("datetime[", "datetime64[").replace("duration[", "timedelta64[")
    if not column.is_optional:
        return name
    if column.kind is int:
        return name.replace("uint", "UInt").replace("int", "Int")
    return "boolean" if column.kind is bool else name


def _choose_free_dtype(values: list[Any]) -> Any:
    """Return the dtype for values of which nothing is said; None: pandas' own choice."""
    if not values:
        return object
    kinds = set(map(type, values))
    if int not in kinds or kinds == {int} or not kinds <= {int, float, type(None)}:
        return None
    # pandas would choose a float, which rounds.
    if kinds == {int, type(None)} and all(item is None or item in INT64 for item in values):
        return "Int64"
    return None if all(type(item) is not int or abs(item) <= _EXACT for item in values) else object


def _convert(series: Any, dtype: Any) -> Any:
    """Return a series in the author's dtype, in which no value may become missing."""
    categories = getattr(dtype, "categories", None)
    # Others become missing, with a warning of newer versions.
    is_kept = categories is None or (series.isna() | series.isin(categories)).all()
    converted = series.astype(dtype) if is_kept else None
    if converted is None or (converted.isna() & series.notna()).any():
        raise PydanticCustomError("lost", "it is not a value of this column's dtype")
    return converted


def _choose_pandas_dtype(values: list[Any], column: Column) -> Any:
    """Return the dtype in which no value is lost: a whole number with a gap is not a float."""
    kinds: dict[Any, Any] = {
        int: "Int64" if column.is_optional else "int64",
        bool: "boolean" if column.is_optional else "bool",
        float: "float64",
        dt.date: object,
    }
    if column.kind in kinds:
        return kinds[column.kind]
    if any(value is not None for value in values):
        return _choose_free_dtype(values)  # pandas' own choice differs between its versions
    if column.dtype is not None:
        return object  # which becomes any
    names = {dt.datetime: "datetime64[ns]", dt.timedelta: "timedelta64[ns]"}
    if not values:
        names[str] = "str"  # of None it would make a text
    return names.get(column.kind, object)


# -- polars ----------------------------------------------------------------------------------------


def _use_polars(library: Any, *, is_table: bool) -> TableLibrary:
    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return _make_free_series(library, values)
        dtype = column.dtype
        if dtype is None and column.kind in _POLARS_NAMES:  # a Decimal's scale is by its values
            dtype = _make_polars_dtype(library, column.kind)
        if dtype is None:
            return _make_free_series(library, list(map(to_plain, values)), column.shape)
        if column.is_time and (counts := count_if_precise(values)) is not None:
            zone = "UTC" if has_zones(values) else None
            is_moment = column.kind is dt.datetime
            free = library.Datetime("ns", zone) if is_moment else library.Duration("ns")
            return library.Series(counts, dtype=library.Int64).cast(column.dtype or free)
        series = library.Series(values, dtype=dtype)
        # Older versions wrap around what nanoseconds cannot count.
        if getattr(dtype, "time_unit", None) == "ns" and not is_kept(values, series.to_list()):
            raise PydanticCustomError("lost", "it is out of bounds for this column's dtype")
        return series

    def make_table(columns: Lists) -> Any:
        return library.DataFrame({name: make_column(*item) for name, item in columns.items()})

    def make_series(values: list[Any], _labels: list[str] | None) -> Any:
        return _make_free_series(library, values)

    return TableLibrary(
        make_table if is_table else None,
        make_series,
        has_labels=False,
        has_objects=False,
        find_dtype=partial(_find_for_polars, library),
    )


def _make_free_series(library: Any, values: list[Any], shape: Shape = None) -> Any:
    """Return a series of values without a dtype, none of which is dropped or changed."""
    series = library.Series(values, strict=False)
    dtype = _fill_polars_dtype(library, series.dtype, shape)
    if dtype != series.dtype:
        series = library.Series(values, dtype=dtype)
    kinds = set(map(type, values)) - {type(None)}
    is_plain = len(kinds) == 1 and kinds <= {str, bool, int, float}
    is_plain = is_plain and (kinds == {float} or not series.dtype.is_float())
    if is_plain and series.null_count() == values.count(None):
        return series
    if not is_kept(values, series.to_list()):
        raise PydanticCustomError("mixture", "its values are of several types, or too large")
    return series


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


def _make_polars_dtype(library: Any, shape: Shape) -> Any:
    if isinstance(shape, list):
        return library.List(_make_polars_dtype(library, shape[0]))
    if isinstance(shape, dict):
        return library.Struct({name: _make_polars_dtype(library, shape[name]) for name in shape})
    return library.Decimal(38) if shape is Decimal else getattr(library, _POLARS_NAMES[shape])


def _fill_polars_dtype(library: Any, dtype: Any, shape: Shape) -> Any:
    """Return a dtype in which the parts that no value tells are as the shape says."""
    if shape is not None and dtype == library.Null:
        return _make_polars_dtype(library, shape)
    if isinstance(shape, list) and isinstance(dtype, library.List):
        return library.List(_fill_polars_dtype(library, dtype.inner, shape[0]))
    if not isinstance(shape, dict) or not isinstance(dtype, library.Struct):
        return dtype
    fields = {item.name: item.dtype for item in dtype.fields}
    return library.Struct(
        {name: _fill_polars_dtype(library, fields[name], shape.get(name)) for name in fields}
    )


def _find_for_polars(library: Any, column: Column) -> Any:
    if get_library_name(column.dtype) == "polars":
        return column.dtype
    name, _, unit = _require_common_name(column).partition("[")
    if unit:
        return getattr(library, name.title())(unit.removesuffix("]"))
    special = {"bool": "Boolean", "category": "Categorical"}
    return getattr(library, special.get(name) or name.title().replace("Uint", "UInt"))


# -- pyarrow ---------------------------------------------------------------------------------------


def _use_pyarrow(library: Any) -> TableLibrary:
    def make_column(values: list[Any], column: Column | None) -> Any:
        if column is None:
            return library.array(values)
        if column.is_time:
            counts = count_if_precise(values)
            kind = column.dtype or _choose_arrow_time(library, column, values, counts)
            return library.array(values if counts is None else counts, type=kind)
        if column.dtype is not None:
            return library.array(values, type=column.dtype)
        if column.kind in _ARROW_MAKERS:
            return library.array(values, type=_make_arrow_type(library, column.kind))
        return _make_free_array(library, list(map(to_plain, values)), column.shape)

    def make_table(columns: Lists) -> Any:
        return library.table({name: make_column(*item) for name, item in columns.items()})

    return TableLibrary(
        make_table,
        lambda values, _labels: library.array(values),
        has_labels=False,
        has_objects=False,
        find_dtype=partial(_find_for_pyarrow, library),
    )


def _choose_arrow_time(library: Any, column: Column, values: list[Any], counts: Any) -> Any:
    unit = "us" if counts is None else "ns"
    if column.kind is dt.timedelta:
        return library.duration(unit)
    return library.timestamp(unit, tz="UTC" if has_zones(values) else None)


_ARROW_MAKERS: Mapping[Any, str] = {
    int: "int64",
    float: "float64",
    bool: "bool_",
    str: "string",
    bytes: "binary",
    dt.date: "date32",
}


def _make_free_array(library: Any, values: list[Any], shape: Shape) -> Any:
    array = library.array(values)
    kind = _fill_arrow_type(library, array.type, shape)
    return array if kind == array.type else library.array(values, type=kind)


def _make_arrow_type(library: Any, shape: Shape) -> Any:
    if isinstance(shape, list):
        return library.list_(_make_arrow_type(library, shape[0]))
    if isinstance(shape, dict):
        return library.struct({name: _make_arrow_type(library, shape[name]) for name in shape})
    units = {dt.datetime: "timestamp", dt.timedelta: "duration", dt.time: "time64"}
    if shape in units:
        return getattr(library, units[shape])("us")
    return library.decimal128(38) if shape is Decimal else getattr(library, _ARROW_MAKERS[shape])()


def _fill_arrow_type(library: Any, kind: Any, shape: Shape) -> Any:
    """Return a type in which the parts that no value tells are as the shape says."""
    if shape is not None and library.types.is_null(kind):
        return _make_arrow_type(library, shape)
    if isinstance(shape, list) and library.types.is_list(kind):
        return library.list_(_fill_arrow_type(library, kind.value_type, shape[0]))
    if not isinstance(shape, dict) or not library.types.is_struct(kind):
        return kind
    fields = [kind.field(number) for number in range(kind.num_fields)]
    return library.struct(
        {item.name: _fill_arrow_type(library, item.type, shape.get(item.name)) for item in fields}
    )


def _find_for_pyarrow(library: Any, column: Column) -> Any:
    if get_library_name(column.dtype) == "pyarrow":
        return column.dtype
    name = _require_common_name(column)
    if name == "category":
        return library.dictionary(library.int32(), library.string())
    names = {"date": "date32"}
    return library.type_for_alias(names.get(name, name.replace("datetime[", "timestamp[")))


_BUILDERS: Mapping[tuple[str, str], Callable[[Any], TableLibrary]] = {
    ("pandas", "DataFrame"): partial(_use_pandas, is_table=True),
    ("pandas", "Series"): partial(_use_pandas, is_table=False),
    ("polars", "DataFrame"): partial(_use_polars, is_table=True),
    ("polars", "Series"): partial(_use_polars, is_table=False),
    ("pyarrow", "Table"): _use_pyarrow,
}
"""By library and class; each gets the library's module."""
