"""What is in a column: missing values, the smallest and the largest, the mean, the most frequent.

Runs in the user's kernel, on the thread of the call. Numbers and times are read by their own
library, at the speed of its arrays. Other values are read as a list, and compared and counted only
if their classes are Python's or pandas' own, as both run the code of a class: of the others, only
the names of their types are told. No library is imported.
"""

import math
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from msgspec import Struct

from mcp_notebook.kernel.safe.libraries import find_imported, get_mro, is_instance
from mcp_notebook.kernel.safe.moments import Duration, Moment, TimeOfDay
from mcp_notebook.kernel.safe.stand_ins import is_scalar_class, read_scalar
from mcp_notebook.kernel.safe.tabular_data import is_plain_series, list_elements, shorten_floats
from mcp_notebook.kernel.safe.text import get_type_name

MAX_LISTED = 10
"""Most distinct texts that are all listed, with how often each occurs."""
MAX_NUMBERS_LISTED = 5
"""The same for whole numbers, which also have a smallest and a largest."""
MAX_TOP = 3
"""Most frequent texts of more."""
MAX_COUNTED = 200_000
"""Whole numbers whose distinct ones are counted."""
MAX_SORTED = 50_000
"""The same in a column whose library counts them."""
MAX_CHARS = 10_000_000
"""Characters of texts that are counted."""
MAX_TYPES = 3
"""Types that are named for a column of other values."""
_NUMBERS = frozenset({int, float})
_TEXTS = frozenset({str, bytes})
_TIMES = frozenset({date, datetime, time, timedelta})
_FAMILIES = (datetime, date, time, timedelta)
_WITH_NAN = frozenset({float, Decimal})
_COUNTED = (
    frozenset({str, bool, bytes, Decimal, UUID, Moment, Duration, TimeOfDay}) | _NUMBERS | _TIMES
)
_ZONES = frozenset({"builtins", "datetime", "zoneinfo", "pytz", "dateutil", "pandas"})
"""Modules of time zones whose code is known; "builtins" for none."""
_PANDAS_TIMES = ("Timestamp", "Timedelta", "Period")
_PANDAS_COUNTED = ("Interval",)


class Facts(Struct, frozen=True):
    """What is in a column."""

    missing: int = 0
    nan: int = 0
    """NaN in a library that distinguishes it from missing values."""
    least: Any = None
    most: Any = None
    mean: float | None = None
    distinct: int | None = None
    """How many different values there are; None if they are not counted."""
    top: tuple[tuple[Any, int], ...] = ()
    """The most frequent values, and how often each occurs."""
    types: tuple[str, ...] = ()
    """The types of values that are neither compared nor counted."""
    all_missing: int | None = None
    """How many are missing in all rows, if only some were read and the library has counted all."""


# -- arrays ----------------------------------------------------------------------------------------


def find_array_facts(array: Any, *, nan_is_missing: bool = False) -> Facts | None:
    """Return what is in an array of numpy; None unless it holds numbers, times or bools.

    Args:
        array: An array of any shape.
        nan_is_missing: Whether NaN is a missing value, as in pandas.
    """
    kind = array.dtype.kind
    if kind not in "biufmM":
        return None
    with sys.modules["numpy"].errstate(all="ignore"):
        return _read_array(array, kind, nan_is_missing) if array.size else Facts()


def _read_array(array: Any, kind: str, nan_is_missing: bool) -> Facts:  # noqa: FBT001 - as above
    masked = 0
    if is_instance(array, "numpy.ma.MaskedArray"):
        array, size = array.compressed(), array.size
        masked = size - array.size
        if not array.size:
            return Facts(masked)
    if kind == "b":
        return _count_bools(int(array.sum()), array.size, masked)
    least, most, nan = array.min(), array.max(), 0
    if least != least:  # noqa: PLR0124 - NaN and NaT differ from themselves
        size, array = array.size, array[array == array]  # noqa: PLR0124 - as above
        nan = size - array.size
    is_missing = nan_is_missing or kind in "mM"
    missing, nan = (masked + nan, 0) if is_missing else (masked, nan)
    if not array.size:
        return Facts(missing, nan)
    if missing or nan:
        least, most = array.min(), array.max()
    if kind in "mM":
        return Facts(missing, nan, least, most)
    mean = array.mean(dtype="float64")
    least, most = (shorten_floats(end.item(), array.dtype) for end in (least, most))
    distinct, top = _count_integers(array) if kind in "iu" else (None, ())
    return Facts(missing, nan, least, most, _keep_finite(mean), distinct, top)


def _keep_finite(mean: Any) -> float | None:
    """Return a mean as a float; None if there were infinities."""
    return float(mean) if math.isfinite(mean) else None


def _count_integers(array: Any) -> tuple[int | None, tuple[tuple[Any, int], ...]]:
    if array.size > MAX_COUNTED:
        return None, ()
    found, counts = sys.modules["numpy"].unique(array, return_counts=True)
    if len(found) > MAX_NUMBERS_LISTED:
        return len(found), ()
    pairs = zip(found.tolist(), counts.tolist(), strict=True)
    return len(found), tuple(sorted(pairs, key=_get_rank))


def _get_rank(pair: tuple[Any, int]) -> int:
    return -pair[1]


def _count_bools(true: int, size: int, missing: int = 0) -> Facts:
    pairs = sorted(((True, true), (False, size - true)), key=_get_rank)
    top = tuple((value, number) for value, number in pairs if number)
    return Facts(missing, distinct=len(top), top=top)


# -- columns of libraries --------------------------------------------------------------------------


def find_pandas_facts(data: Any) -> Facts | None:
    """Return what is in a Series or Index; None unless it holds numbers, times or bools."""
    dtype = data.dtype
    if is_instance(dtype, "numpy.dtype"):
        facts = find_array_facts(data.to_numpy(), nan_is_missing=True)
        return (
            facts if facts is None or dtype.kind not in "mM" else _with_pandas_times(facts, dtype)
        )
    if type(dtype).__module__.partition(".")[0] != "pandas":  # which may run anybody's code
        return None
    types = sys.modules["pandas"].api.types
    is_number = types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)
    if not (is_number or types.is_datetime64_any_dtype(dtype)):
        return None
    plain = getattr(dtype, "numpy_dtype", None)
    if plain is not None and plain.kind == "f":  # Arrow's may have NaN beside missing values
        return find_array_facts(data.to_numpy(plain, na_value=math.nan), nan_is_missing=True)
    missing = int(data.isna().sum())
    if missing < len(data) and types.is_bool_dtype(dtype):
        return _count_bools(int(data.sum()), len(data) - missing, missing)
    return Facts(missing) if missing == len(data) else _compare_pandas(data, missing, is_number)


def _compare_pandas(data: Any, missing: int, is_number: bool) -> Facts:  # noqa: FBT001
    dtype = data.dtype
    mean = _keep_finite(data.mean()) if is_number else None
    distinct = int(data.nunique()) if len(data) <= MAX_SORTED and _is_whole(dtype) else None
    least, most = (shorten_floats(end, dtype) for end in (data.min(), data.max()))
    return Facts(missing, 0, least, most, mean, distinct)


def _is_whole(dtype: Any) -> bool:
    """Return whether a type of pandas is one of whole numbers."""
    return bool(sys.modules["pandas"].api.types.is_integer_dtype(dtype))


def _with_pandas_times(facts: Facts, dtype: Any) -> Facts:
    if facts.least is None:
        return facts
    pandas = sys.modules["pandas"]
    make = pandas.Timestamp if dtype.kind == "M" else pandas.Timedelta
    return Facts(facts.missing, 0, make(facts.least), make(facts.most))


def find_series_facts(series: Any, *, nan_is_missing: bool) -> Facts | None:
    """Return what is in a Series of narwhals; None unless it holds numbers, times or bools."""
    dtype = series.dtype
    is_bool = str(dtype) == "Boolean"
    if not (dtype.is_numeric() or dtype.is_temporal() or is_bool):
        return None
    missing, size = int(series.null_count()), len(series)
    if missing == size:
        return Facts(missing)
    if is_bool:
        return _count_bools(int(series.sum()), size - missing, missing)
    nan = 0
    if dtype.is_float() and not nan_is_missing:
        is_nan = series.is_nan()
        nan = int(is_nan.sum())
        if nan == size - missing:
            return Facts(missing, nan)
        series = series.filter(~is_nan) if nan else series
    mean = _keep_finite(series.mean()) if dtype.is_numeric() else None
    distinct = None
    if dtype.is_integer() and size <= MAX_SORTED:
        distinct = int(series.n_unique()) - bool(missing)
    least, most = (_read_place(series, place) for place in (series.arg_min(), series.arg_max()))
    return Facts(missing, nan, least, most, mean, distinct)


def _read_place(series: Any, place: int) -> Any:
    """Return a value of a series as its cell shows it; `min` and `max` drop its nanoseconds."""
    native = series[place : place + 1].to_native()
    if is_plain_series(native):
        return list_elements(native)[0]
    return shorten_floats(series[place], native.dtype)


# -- lists -----------------------------------------------------------------------------------------


def find_list_facts(values: Sequence[Any], are_missing: Sequence[bool]) -> Facts:
    """Return what is in a column of any values.

    Args:
        values: The cells.
        are_missing: For each cell whether it is a missing value.
    """
    present = [value for value, no in zip(values, are_missing, strict=True) if not no]
    missing = len(values) - len(present)
    kinds = set(map(type, present))
    scalars = {kind for kind in kinds - _COUNTED if is_scalar_class(kind)}
    if scalars:
        present = [read_scalar(value) if type(value) in scalars else value for value in present]
        kinds = set(map(type, present))
    nan = 0
    if not kinds.isdisjoint(_WITH_NAN):
        numbers = [value for value in present if not _is_nan(value)]
        present, nan = numbers, len(present) - len(numbers)
        kinds = set(map(type, present))
    if not present:
        return Facts(missing, nan)
    times = _TIMES | {Moment, Duration, TimeOfDay} | _find_classes(_PANDAS_TIMES)
    if not kinds <= _COUNTED | times | _find_classes(_PANDAS_COUNTED) or _is_costly(present, kinds):
        names = sorted({get_type_name(value) for value in present[:1_000]})
        return Facts(missing, nan, types=tuple(names[:MAX_TYPES]))
    if kinds <= _NUMBERS or kinds == {Decimal}:
        return _compare_numbers(present, missing, nan)
    if kinds <= times and len(set(map(_find_family, kinds))) == 1:
        with suppress(TypeError):  # some have a time zone, and some have none
            return Facts(missing, nan, min(present), max(present))
    if len(kinds) == 1:
        counts = Counter(present)
        pairs = _list_frequent(counts)
    else:  # 1, 1.0 and True are equal
        counts = Counter(zip(map(type, present), present, strict=True))
        pairs = [(value, number) for (_, value), number in _list_frequent(counts)]
    return Facts(missing, nan, distinct=len(counts), top=tuple(pairs))


def _is_nan(value: Any) -> bool:
    if type(value) is float:
        return math.isnan(value)
    return type(value) is Decimal and value.is_nan()


def _find_family(kind: type) -> type:
    """Return the class of Python's that a class of times belongs to: that of its comparisons."""
    return next((base for base in _FAMILIES if base in get_mro(kind)), kind)


def _list_frequent(counts: Counter[Any]) -> list[tuple[Any, int]]:
    """Return the most frequent values; none if each occurs once."""
    if len(counts) == counts.total():
        return []
    return counts.most_common(len(counts) if len(counts) <= MAX_LISTED else MAX_TOP)


def _compare_numbers(present: Sequence[Any], missing: int, nan: int) -> Facts:
    mean = math.fsum(present) / len(present) if all(map(_is_finite, present)) else None
    is_whole_number = all(type(value) is int for value in present)
    counts = Counter(present) if is_whole_number else Counter[Any]()
    top = tuple(counts.most_common()) if len(counts) <= MAX_NUMBERS_LISTED else ()
    distinct = len(counts) or None
    return Facts(missing, nan, min(present), max(present), mean, distinct, top)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def _find_classes(names: Sequence[str]) -> frozenset[type]:
    pandas = find_imported("pandas")
    found = [getattr(pandas, name, None) for name in names] if pandas else []
    return frozenset(kind for kind in found if isinstance(kind, type))


def _is_costly(present: Sequence[Any], kinds: set[type]) -> bool:
    """Return whether counting would take long, or run the code of a time zone's class."""
    if kinds & _TEXTS:
        texts = present if kinds <= _TEXTS else filter(_is_text, present)
        if sum(map(len, texts)) > MAX_CHARS:
            return True
    if not any(hasattr(kind, "tzinfo") for kind in kinds):
        return False
    zones = {type(getattr(value, "tzinfo", None)) for value in present}
    return any(zone.__module__.partition(".")[0] not in _ZONES for zone in zones)


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes)
