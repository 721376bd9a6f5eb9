"""Tables and series as parameters, and `Columns`, which declares a table's columns.

Runs in the user's kernel: schemas at definition, conversions wherever a call runs. pydantic checks
rows and columns; the table's own library applies the types and makes the table. No library is
imported: it is found through the class in the type hint.
"""

import datetime as dt
import itertools
import types
from bisect import bisect_left
from collections.abc import Callable, Mapping
from enum import Enum
from math import isnan
from typing import Annotated, Any, Optional, Union, cast, get_args, get_origin

from msgspec import Struct
from pydantic import TypeAdapter
from pydantic_core import (
    InitErrorDetails,
    PydanticCustomError,
    PydanticKnownError,
    ValidationError,
    core_schema,
)
from typing_extensions import TypedDict

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.schemas.annotations import translate_hint
from mcp_notebook.kernel.schemas.tables.arrays import ElementType, make_failure

_UNIONS = (Union, types.UnionType)
_KINDS = (int, float, bool, str, bytes, dt.date, dt.datetime, dt.timedelta, dt.time)
"""Types that every library has a dtype for."""
_PANDAS_DTYPES: Mapping[Any, tuple[str, str]] = {
    int: ("int64", "Int64"),
    bool: ("bool", "boolean"),
    float: ("float64", "float64"),
}
"""Dtypes of columns without and with missing values; pandas would choose them by the values."""
_MOMENTS = {"Timestamp": dt.datetime, "Timedelta": dt.timedelta}
"""Classes of pandas' values, which are not its dtypes."""
_NAMES = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "Series"),
    "pyarrow": ("Table",),
}


class Columns:
    """Declares the columns of a table that clients send.

    ::

        def add_rain(
            days: Annotated[pd.DataFrame, Columns(city=str, mm=float, note=str | None)],
        ): ...

    Clients see the columns, and send a list of rows or an object of columns. Each value is checked,
    and the function gets a table with exactly these columns, in this order. A column may have
    missing values, or be left out, if its type allows None. Works with DataFrames of pandas and
    polars, and with Tables of pyarrow.

    Args:
        columns: Columns whose names are not valid keywords: ``{"max temp": float}``.
        more: Further columns. A type hint (``float``, ``date``, ``Literal["a", "b"]``...), a dtype
            of numpy or its name (``np.int8``, ``"float32"``), or one of the table's own library
            (``"category"``, ``pl.Int16``).

    Raises:
        DefinitionError: There are no columns, or one is neither a type hint nor a dtype.
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        is_mapping = columns is None or isinstance(columns, Mapping)
        listed = {**(columns or {}), **more} if is_mapping else {}
        if not listed or not all(isinstance(name, str) and name for name in listed):
            raise DefinitionError(
                "`Columns` needs the table's columns by name: `Columns(city=str, mm=float)`."
            )
        self.columns = {name: _read_column(name, kind) for name, kind in listed.items()}

    def make_row_type(self) -> Any:
        """Return a row's type for pydantic."""
        return _make_dict_type({name: column.hint for name, column in self.columns.items()})

    def __repr__(self) -> str:
        return f"Columns({', '.join(self.columns)})"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the core schema of a table with these columns."""
        options = get_args(source) if get_origin(source) in _UNIONS else (source,)
        [table, *others] = [option for option in options if option is not type(None)]
        library = _find_library(table)
        if others or library is None or table.__name__ == "Series":
            raise TypeError(
                "`Columns` is for a DataFrame of pandas or polars, or a Table of pyarrow"
            )
        columns, cells = {}, {}
        for name, column in self.columns.items():
            try:
                cells[name] = handler.generate_schema(column.hint), not column.is_optional
            except Exception as error:
                raise _make_refusal(name, column.hint) from error
            columns[name] = _adapt(name, column, library)
        schema = _make_table_schema(table, library, *_make_forms(cells), columns)
        return schema if len(options) == 1 else core_schema.nullable_schema(schema)


class _Column(Struct, frozen=True):
    """One column of a table."""

    hint: Any = Any
    """The type of each value, for pydantic."""
    dtype: Any = None
    """The author's; None: the library's own for such values."""

    @property
    def is_optional(self) -> bool:
        """Whether values may be missing."""
        return self.hint is Any or type(None) in get_args(_unwrap(self.hint))

    @property
    def kind(self) -> Any:
        """The type of the values that are not missing; None if there are several, or others."""
        hint = _unwrap(self.hint)
        options = get_args(hint) if get_origin(hint) in _UNIONS else (hint,)
        kinds = [_unwrap(option) for option in options if option is not type(None)]
        return kinds[0] if len(kinds) == 1 and kinds[0] in _KINDS else None


def _unwrap(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def find_columns(annotation: Any) -> Columns | None:
    """Return the `Columns` in an annotation, if there are any."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Columns)), None)


def make_data_schema(kind: Any) -> Any:
    """Return the core schema of a table or a series; None for any other class."""
    library = _find_library(kind)
    if library is None:
        return None
    name = kind.__name__
    if name == "Series":
        return _make_series_schema(kind, library)
    rows = core_schema.list_schema(core_schema.dict_schema())
    columns = core_schema.dict_schema(values_schema=core_schema.list_schema())
    return _make_table_schema(kind, library, rows, columns, {})


# -- types -----------------------------------------------------------------------------------------


def _find_library(kind: Any) -> Any:
    """Return the library of a table or a series; None for any other class."""
    package, name = _get_package(kind), getattr(kind, "__name__", "")
    library = find_imported(package) if name in _NAMES.get(package, ()) else None
    return library if getattr(library, name, None) is kind else None


def _get_package(kind: Any) -> str:
    owner = kind if isinstance(kind, type) else type(kind)
    return owner.__module__.partition(".")[0]


def _read_column(name: str, kind: Any) -> _Column:
    """Return the column that a type hint or a dtype describes.

    Raises:
        DefinitionError: It is the name of no dtype.
    """
    package = _get_package(kind)
    try:
        if package == "polars":
            return _Column(Optional[kind.to_python()], kind)  # noqa: UP045 - a class, or Any
        if package == "pyarrow":
            return _read_arrow_type(kind)
        if package == "pandas" and (moment := _MOMENTS.get(getattr(kind, "__name__", ""))):
            return _Column(moment)
        if not isinstance(kind, str) and package not in ("numpy", "pandas"):
            return _Column(translate_hint(kind))
        return _read_dtype(kind)
    except Exception as error:
        raise _make_refusal(name, kind) from error


def _read_dtype(kind: Any) -> _Column:
    pandas, numpy = find_imported("pandas"), find_imported("numpy")
    dtype = numpy.dtype(kind) if pandas is None else pandas.api.types.pandas_dtype(kind)
    hint: Any = dtype.type
    if issubclass(hint, numpy.generic):
        hint = Any if hint is numpy.object_ else Annotated[Any, ElementType(hint)]
    elif issubclass(hint, dt.datetime):
        hint = dt.datetime
    elif hint not in _KINDS:
        hint = Any
    # Only numpy's own dtypes have no missing values.
    is_optional = not isinstance(dtype, numpy.dtype)
    return _Column(Optional[hint] if is_optional else hint, dtype)  # noqa: UP045 - may be Any


def _read_arrow_type(dtype: Any) -> _Column:
    try:
        hint = _read_dtype(dtype.to_pandas_dtype()).hint
    except (NotImplementedError, ImportError):  # it has none; pandas is missing
        hint = Any
    return _Column(Optional[hint], dtype)  # noqa: UP045 - may be Any


def _adapt(name: str, column: _Column, library: Any) -> _Column:
    """Return a column with its dtype as one of the table's library.

    Raises:
        DefinitionError: The library has no such dtype.
    """
    dtype, package = column.dtype, library.__name__
    try:
        if dtype is not None and _get_package(dtype) != package:
            numpy: Any = find_imported("numpy")
            dtype = _read_numpy_dtype(dtype)
            if package == "polars":
                dtype = library.Series(numpy.empty(0, dtype)).dtype
            elif package == "pyarrow":
                dtype = library.from_numpy_dtype(dtype)
        adapted = _Column(column.hint, dtype)
        _FILLS[package](library, adapted)([])
    except Exception as error:
        raise _make_refusal(name, column.hint if column.dtype is None else column.dtype) from error
    return adapted


def _read_numpy_dtype(dtype: Any) -> Any:
    if _get_package(dtype) not in ("numpy", "pandas"):  # numpy takes any class for an object
        raise TypeError(dtype)
    return find_imported("numpy").dtype(dtype)


def _make_refusal(name: str, kind: Any) -> DefinitionError:
    return DefinitionError(
        f"`Columns`: the type of `{name}`, {kind!r}, is neither a type hint that JSON can express "
        "nor a dtype of numpy or the table's own library: use `float`, `str | None`, `date`, "
        "`'float32'`..."
    )


def _make_dict_type(hints: Mapping[str, Any]) -> Any:
    return cast("Any", TypedDict)("Row", dict(hints))


# -- from JSON to a table --------------------------------------------------------------------------


def _make_forms(cells: Mapping[str, tuple[Any, bool]]) -> tuple[Any, Any]:
    """Return the core schemas of rows and of columns.

    Args:
        cells: By name, the core schema of each value, and whether it is required.
    """

    def make_object(wrap: Callable[[Any], Any]) -> Any:
        fields = {
            name: core_schema.typed_dict_field(wrap(cell), required=is_required)
            for name, (cell, is_required) in cells.items()
        }
        return core_schema.typed_dict_schema(fields, extra_behavior="forbid")

    rows = core_schema.list_schema(make_object(lambda cell: cell))
    return rows, make_object(core_schema.list_schema)


def _make_table_schema(
    kind: Any, library: Any, rows: Any, columns: Any, declared: Mapping[str, _Column]
) -> Any:
    """Return the core schema of a table that clients send as rows or as columns.

    Args:
        kind: The library's class.
        library: Its module.
        rows: The core schema of rows.
        columns: The core schema of columns.
        declared: By name, as the author declared them; if empty, any columns are accepted.
    """
    fill = _FILLS[library.__name__]
    make = kind.from_pydict if library.__name__ == "pyarrow" else kind
    fills = {name: fill(library, column) for name, column in declared.items()}
    free = fill(library, _Column())

    def convert(sent: Any, validate: Any) -> Any:
        if isinstance(sent, kind):  # a default
            return sent
        checked = validate(sent)
        is_rows = isinstance(checked, list)
        lists = _turn(checked, declared) if is_rows else _align(checked, declared)
        made = {}
        for name, values in lists.items():
            try:
                made[name] = _fill(fills.get(name, free), values)
            except _CellError as error:
                cell = sent[error.row].get(name) if is_rows else sent.get(name, values)[error.row]
                place = (error.row, name) if is_rows else (name, error.row)
                raise error.locate(place, cell) from None
        try:
            return make(made)
        except Exception as error:  # noqa: BLE001 - a library's
            raise make_failure(error) from None

    forms = core_schema.tagged_union_schema(
        {"rows": rows, "columns": columns},
        discriminator=lambda sent: "columns" if isinstance(sent, dict) else "rows",
    )
    return core_schema.no_info_wrap_validator_function(convert, forms)


def _make_series_schema(kind: Any, library: Any) -> Any:
    """Return the core schema of a series: a list of values, or an object of values by label."""
    has_labels = library.__name__ == "pandas"
    fill = _FILLS[library.__name__](library, _Column())

    def convert(sent: Any) -> Any:
        if isinstance(sent, kind):
            return sent
        if not isinstance(sent, list) and not (has_labels and isinstance(sent, dict)):
            raise PydanticKnownError("list_type")
        values = sent if isinstance(sent, list) else list(sent.values())
        try:
            series = _fill(fill, values)
        except _CellError as error:
            place = (error.row if isinstance(sent, list) else list(sent)[error.row],)
            raise error.locate(place, values[error.row]) from None
        return series if isinstance(sent, list) else series.set_axis(list(sent))

    forms: list[dict[str, Any]] = [
        {"type": "array", "items": {}},  # OpenAI's API requires `items`
        {"type": "object"},
    ]
    schema = {"anyOf": forms} if has_labels else forms[0]
    return core_schema.no_info_plain_validator_function(
        convert, metadata={"pydantic_js_functions": [lambda _core, _handler: schema]}
    )


def _turn(rows: list[dict[str, Any]], declared: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the columns of rows; missing cells are None."""
    names = declared or dict.fromkeys(itertools.chain.from_iterable(rows))
    return {name: [row.get(name) for row in rows] for name in names}


def _align(columns: dict[str, list[Any]], declared: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return columns in order; missing columns have no values.

    Raises:
        PydanticCustomError: They have different lengths.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} has {size}" for name, size in [*lengths.items()][:10])
        raise PydanticCustomError(
            "ragged", "its columns are of different lengths: {lengths}", {"lengths": listed}
        )
    size = next(iter(lengths.values()), 0)
    return {name: columns.get(name, [None] * size) for name in declared or columns}


class _CellError(Exception):
    """A value that its column does not take."""

    def __init__(self, row: int, reason: PydanticCustomError) -> None:
        super().__init__(row, reason)
        self.row = row
        self._reason = reason

    def locate(self, place: tuple[int | str, ...], value: Any) -> ValidationError:
        """Return the error for a place in the argument, and the value that was sent there."""
        problem = InitErrorDetails(type=self._reason, loc=place, input=value)
        return ValidationError.from_exception_data("table", [problem])


_Fill = Callable[[list[Any]], tuple[Any, int]]
"""Makes a library's column of values, and counts the missing ones in it."""


def _fill(fill: _Fill, values: list[Any]) -> Any:
    """Return a library's column of values.

    Raises:
        _CellError: It does not take one of them, or would drop it.
    """
    try:
        return _fill_all(fill, values)
    except Exception as error:  # noqa: BLE001 - a library's: another type, out of bounds...
        sizes = range(1, len(values))
        row = bisect_left(sizes, True, key=lambda size: _is_refused(fill, values[:size]))
        raise _CellError(row, make_failure(error)) from None


def _fill_all(fill: _Fill, values: list[Any]) -> Any:
    column, missing = fill(values)
    if missing > sum(value is None or (type(value) is float and isnan(value)) for value in values):
        raise ValueError("it is not a value of this column's dtype")
    return column


def _is_refused(fill: _Fill, values: list[Any]) -> bool:
    try:
        _fill_all(fill, values)
    except Exception:  # noqa: BLE001 - as in `_fill`
        return True
    return False


# -- libraries -------------------------------------------------------------------------------------


def _fill_pandas(library: Any, column: _Column) -> _Fill:
    dtype = column.dtype
    if dtype is None and column.kind in _PANDAS_DTYPES:
        dtype = _PANDAS_DTYPES[column.kind][column.is_optional]
    is_moment = column.dtype is None and column.kind in (dt.date, dt.datetime)

    def fill(values: list[Any]) -> tuple[Any, int]:
        is_typed = dtype is not None or is_moment or column.kind is dt.timedelta
        series = library.Series(
            _align_zones(values), dtype=object if is_typed or not values else None
        )
        if is_moment:
            series = library.to_datetime(series)
        elif dtype is not None:
            series = series.astype(dtype)
        elif column.kind is dt.timedelta:
            series = library.to_timedelta(series)
        return series, series.isna().sum()

    return fill


def _fill_polars(library: Any, column: _Column) -> _Fill:
    make_plain = _choose_dump(column)
    dtype = column.kind if column.dtype is None else column.dtype

    def fill(values: list[Any]) -> tuple[Any, int]:
        plain = make_plain(values)
        kinds = set(map(type, plain)) - {type(None)}
        # Whole numbers and fractions, or lists of them, are not of one type to it.
        is_mixed = dtype is None and kinds in ({int, float}, {list}, {dict})
        if dtype is None and dict in kinds and len(kinds) > 1:  # before 1.38, others became null
            raise TypeError("the column's other values are of another type")
        series = library.Series(plain, dtype=dtype, strict=not is_mixed)
        return series, series.null_count() + _count_wrapped(library, series, plain)

    return fill


def _count_wrapped(library: Any, series: Any, plain: list[Any]) -> int:
    """Return how many moments polars before 2.1 has wrapped, as nanoseconds cannot hold them."""
    if series.dtype.base_type() is not library.Datetime or series.dtype.time_unit != "ns":
        return 0
    exact = library.Series(plain, dtype=library.Datetime("us", series.dtype.time_zone))
    return int((series.dt.cast_time_unit("us") != exact).sum())


def _fill_arrow(library: Any, column: _Column) -> _Fill:
    make_plain, kind = _choose_dump(column), column.kind

    def fill(values: list[Any]) -> tuple[Any, int]:
        dtype = column.dtype
        if dtype is None and kind is not None and values.count(None) == len(values):
            dtype = library.infer_type([getattr(kind, "min", None) or kind()])
        array = library.array(make_plain(values), type=dtype)
        return array, array.null_count

    return fill


_FILLS: Mapping[str, Callable[[Any, _Column], _Fill]] = {
    "pandas": _fill_pandas,
    "polars": _fill_polars,
    "pyarrow": _fill_arrow,
}


def _choose_dump(column: _Column) -> Callable[[list[Any]], list[Any]]:
    """Return what writes checked values without models and enumerations."""
    if column.kind is not None or column.dtype is not None or column.hint is Any:
        return _align_zones
    list_of: Any = list
    dump = TypeAdapter(list_of[column.hint]).dump_python
    return lambda values: list(map(_make_plain, dump(values, warnings=False)))


def _make_plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {_make_plain(key): _make_plain(item) for key, item in value.items()}
    is_several = isinstance(value, (list, tuple, set, frozenset))
    return list(map(_make_plain, value)) if is_several else value


def _align_zones(values: list[Any]) -> list[Any]:
    """Return timestamps all in UTC or all without a time zone; other values unchanged.

    Raises:
        ValueError: Some have one and some have none, which libraries mix.
    """
    if dt.datetime not in set(map(type, values)):
        return values
    zones = {moment.tzinfo is None for moment in values if moment is not None}
    if len(zones) > 1:
        raise ValueError("some values of this column have a time zone and some have none")
    return values if True in zones else [item and item.astimezone(dt.UTC) for item in values]
