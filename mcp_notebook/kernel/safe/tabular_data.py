"""Converts tables, series and arrays of data libraries to plain lists and dicts.

Runs in the user's kernel, on the thread of the call. Pure functions. No library is imported:
a value of one exists only where the user imported it.
"""

import math
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from types import NoneType
from typing import Any

from mcp_notebook.kernel.safe.libraries import find_imported, get_module_name, is_instance
from mcp_notebook.kernel.safe.moments import restore_nanoseconds
from mcp_notebook.kernel.safe.text import find_member

_MISSING = (
    *("pandas.api.typing.NAType", "pandas.api.typing.NaTType"),
    "numpy.ma.core.MaskedConstant",
)
_PANDAS_ARRAYS = ("pandas.Index", "pandas.api.extensions.ExtensionArray")
_RELATION = "duckdb.DuckDBPyRelation"
_FLOAT_CODES = {2: "e", 4: "f"}
"""Format characters of `struct` by the size of a float in bytes."""
_DIGITS = {"e": (3, 5), "f": (6, 9)}
"""For each format, the digits that it keeps, and those that distinguish any two values."""
_ARRAY_METHODS = ("__array__", "__array_interface__", "__array_function__")
_MAGNITUDES = ("magnitude", "value")
"""Where arrays with a unit have their numbers. Asked for an array, some of them warn."""
MAX_READ = 10_000_000
"""Elements of the largest array of another library that is read as one of numpy."""
_MANY = 50
"""Length of a list of floats from which numpy is faster."""
_BUILT_IN = frozenset({NoneType, bool, int, float, str, bytes, list, tuple, dict})


def is_missing(value: Any) -> bool:
    """Return whether a value marks a missing one: ``pd.NA``, ``pd.NaT``, ``np.ma.masked``."""
    # Most elements of a long list are of these types and need no lookup.
    return type(value) not in _BUILT_IN and any(is_instance(value, path) for path in _MISSING)


def is_pandas_text(value: Any) -> bool:
    """Return whether a pandas value is best written as text: a ``Period`` or an ``Interval``."""
    return is_instance(value, "pandas.Period") or is_instance(value, "pandas.Interval")


def is_plain_table(value: Any) -> bool:
    """Return whether a value is a table without an index."""
    paths = ("polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch", _RELATION)
    is_structured = is_instance(value, "numpy.ndarray") and value.ndim == 1 and value.dtype.names
    return bool(is_structured) or any(is_instance(value, path) for path in paths)


def is_plain_series(value: Any) -> bool:
    """Return whether a value is a series without an index."""
    paths = ("polars.Series", "pyarrow.Array", "pyarrow.ChunkedArray")
    return any(is_instance(value, path) for path in (*paths, *_PANDAS_ARRAYS))


def is_array_like(value: Any) -> bool:
    """Return whether a value is an array of elements of a class that is not numpy's own."""
    kind: type = type(value)
    if kind in _BUILT_IN or all(find_member(kind, name) is None for name in _ARRAY_METHODS):
        return False
    shape = getattr(value, "shape", None)
    library = get_module_name(kind).partition(".")[0]
    return isinstance(shape, tuple) and len(shape) > 0 and library not in ("numpy", "pandas")


def read_numbers(value: Any) -> Any:
    """Return the elements of an array-like value as an array of numpy; None if that may be costly.

    An array with a unit has its numbers in an attribute. One that computes or loads its elements
    when they are asked for, as dask's does, is not asked.
    """
    numpy = find_imported("numpy")
    if numpy is None:
        return None
    if is_instance(value, "numpy.ndarray"):
        return value.view(numpy.ndarray)
    for name in _MAGNITUDES:
        numbers: Any = getattr(value, name, None)
        if type(numbers) is numpy.ndarray and numbers.shape == value.shape:
            return numbers
    if hasattr(value, "compute") or math.prod(value.shape) > MAX_READ:
        return None
    return numpy.asarray(value)


def list_elements(array: Any) -> Any:
    """Return an array or series as nested lists; datetimes and timedeltas are Python's.

    Datetimes keep their nanoseconds (`safe.moments`), which the libraries' own lists drop or turn
    into ints, and floats have only the digits of their type (`shorten_floats`).
    """
    if is_instance(array, "polars.Series"):
        return shorten_floats(_list_polars(array), array.dtype)
    if is_plain_series(array):
        is_pandas = any(is_instance(array, path) for path in _PANDAS_ARRAYS)
        if is_pandas:
            return shorten_floats(list(array), array.dtype)
        return shorten_floats(_list_arrow(array), array.type)
    if array.dtype.kind in "mM":
        return _list_times(array)
    return shorten_floats(array.tolist(), array.dtype)


def list_column(column: Any) -> list[Any]:
    """Return a pandas Series as a list; pandas drops the nanoseconds of Arrow's times of day."""
    if str(column.dtype).startswith("time64[ns]"):
        return list(_list_arrow(column.array.__arrow_array__()))
    values: list[Any] = shorten_floats(column.tolist(), column.dtype)
    return values


def shorten_floats(values: Any, dtype: Any) -> Any:
    """Return 16- and 32-bit floats with their own digits: 0.1, not 0.10000000149011612.

    Args:
        values: A column or array as a list, or one of its values.
        dtype: Its dtype in numpy, pandas, polars or Arrow.
    """
    code = _find_float_code(dtype)
    return values if code is None else _shorten(values, code)


def _find_float_code(dtype: Any) -> str | None:
    """Return the format character of `struct` for a dtype; None unless it is of short floats.

    Lists of short floats count, unless the dtype also has 64-bit floats.
    """
    kind = getattr(dtype, "kind", None)  # of numpy and pandas
    if kind is not None:
        return _FLOAT_CODES.get(getattr(dtype, "itemsize", 0)) if kind == "f" else None
    name = str(dtype).lower()
    if "float" not in name or "float64" in name or "double" in name:
        return None
    return "e" if "float16" in name or "halffloat" in name else "f"


def _shorten(value: Any, code: str) -> Any:
    if isinstance(value, list):
        numpy = find_imported("numpy")
        if numpy is not None and len(value) > _MANY and set(map(type, value)) == {float}:
            texts = numpy.array(value, code).astype("S32")  # numpy shortens them all at once
            return texts.astype("d").tolist()
        return [_shorten(item, code) for item in value]
    if isinstance(value, dict):
        return {name: _shorten(item, code) for name, item in value.items()}
    if not isinstance(value, (float, Real)) or isinstance(value, int) or not math.isfinite(value):
        return value
    plain = float(value)
    fewest, most = _DIGITS[code]
    for digits in range(fewest, most + 1):
        with suppress(OverflowError):  # the largest floats, rounded up
            short = float(f"{plain:.{digits}g}")
            if struct.unpack(code, struct.pack(code, short))[0] == plain:
                return short
    return plain


def list_records(table: Any) -> list[dict[Any, Any]]:
    """Return the rows of a table; a pandas index is included unless it only counts rows.

    Repeated names get a number, so that no field is lost.
    """
    columns = _read_columns(table) if is_plain_table(table) else _read_pandas_columns(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def find_free_name(name: Any, names: Mapping[Any, Any]) -> Any:
    """Return a name, with a number if it is taken."""
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    return free


def name_uniquely(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return names and values as a dict; repeated names get a number."""
    named: dict[Any, Any] = {}
    for name, value in pairs:
        named[find_free_name(name, named)] = value
    return named


def name_fields(row: Any) -> dict[Any, Any]:
    """Return a SQLite row as a dict; repeated columns get a number."""
    return name_uniquely(zip(row.keys(), tuple(row), strict=True))


def _list_times(array: Any) -> Any:
    plain = array.astype(f"{array.dtype.kind}8[us]")
    if not array.dtype.str.endswith("[ns]"):
        return plain.tolist()
    objects = plain.astype(object).reshape(-1)
    counts = array.astype("int64").reshape(-1)
    is_there = (array == array).reshape(-1)  # noqa: PLR0124 - NaT differs from itself
    for place in ((counts % 1000 != 0) & is_there).nonzero()[0]:
        objects[place] = restore_nanoseconds(int(counts[place]), objects[place])
    return objects.reshape(array.shape).tolist()


def _list_polars(series: Any) -> list[Any]:
    values: list[Any] = series.to_list()
    if getattr(series.dtype, "time_unit", None) != "ns" and str(series.dtype) != "Time":
        return values
    return list(map(restore_nanoseconds, series.to_physical().to_list(), values))


def _list_arrow(array: Any) -> list[Any]:
    name, _, unit = str(array.type).partition("[")
    if name not in ("timestamp", "duration", "time64") or not unit.startswith("ns"):
        return list(array.to_pylist())
    counts = array.cast("int64").to_pylist()
    if not any(count is not None and count % 1000 for count in counts):
        return list(array.to_pylist())
    zone = {"tz": array.type.tz} if name == "timestamp" else {}
    kind = getattr(sys.modules["pyarrow"], name)("us", **zone)
    plain = array.cast(kind, safe=False).to_pylist()
    return list(map(restore_nanoseconds, counts, plain))


def _read_columns(table: Any) -> dict[Any, list[Any]]:
    if is_instance(table, "numpy.ndarray"):
        return {name: list_elements(table[name]) for name in table.dtype.names}
    if is_instance(table, _RELATION):  # its query runs now
        rows = table.fetchall()
        places = enumerate(table.columns)
        return name_uniquely((name, [row[place] for row in rows]) for place, name in places)
    is_polars = is_instance(table, "polars.DataFrame")
    names = table.columns if is_polars else table.schema.names
    columns = map(table.to_series if is_polars else table.column, range(len(names)))
    return name_uniquely(zip(names, map(list_elements, columns), strict=True))


def _read_pandas_columns(table: Any) -> dict[Any, list[Any]]:
    frame = table
    if is_instance(table, "pandas.Series"):
        frame = table.to_frame("value" if table.name is None else table.name)
    index = frame.index
    levels = range(0 if is_instance(index, "pandas.RangeIndex") else index.nlevels)
    unnamed = ["index"] if len(levels) == 1 else [f"level_{level}" for level in levels]
    labels = [
        (unnamed[level] if index.names[level] is None else index.names[level], level)
        for level in levels
    ]
    return name_uniquely(
        (
            *((name, list(index.get_level_values(level))) for name, level in labels),
            *((name, list_column(frame.iloc[:, n])) for n, name in enumerate(frame.columns)),
        )
    )
