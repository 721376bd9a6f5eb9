"""The columns of any table as arrays: which cells match, which are missing, and how they sort.

Runs in the user's kernel, on the threads of the resource store. Numbers and times are arrays of
numpy, whatever library has them. Texts and other values are coded: each distinct value is looked at
once, so that ten million cells with a thousand values cost a thousand comparisons. numpy is
imported when a person opens a view, and never for a call.
"""

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from functools import cached_property
from operator import eq, ge, le
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from typing_extensions import override

from mcp_notebook.kernel.results.tables.frame import Frame
from mcp_notebook.kernel.results.tables.narwhals_frame import NarwhalsFrame
from mcp_notebook.kernel.results.views.table_query import Condition, InvalidQuery
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.kernel.safe.libraries import is_instance

Kind: TypeAlias = Literal["number", "time", "bool", "text"]
"""What a person may ask of a column: a range of numbers and times, a part of anything else."""
_RANGES: tuple[tuple[type, Callable[[str], Any], str], ...] = (
    (int, lambda text: int(text) if text.lstrip("+-").isdigit() else float(text), "a number"),
    (float, float, "a number"),
    (Decimal, Decimal, "a number"),
    (date, date.fromisoformat, "a date such as 2024-05-31"),
    (time, time.fromisoformat, "a time such as 14:30"),
)
"""Types of coded values that have ranges, how one is read, and what to type."""
_NANOSECONDS = re.compile(r"\.\d{6}(\d{1,3})")
"""The part of a second that Python's datetime does not have."""
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Column(ABC):
    """A whole column. All its arrays have an element for each row."""

    kind: Kind

    @property
    @abstractmethod
    def size(self) -> int:
        """Estimated bytes of memory."""

    @property
    @abstractmethod
    def missing(self) -> Any:
        """Which cells are missing: bools."""

    @property
    @abstractmethod
    def keys(self) -> Any:
        """Numbers or times that sort as the cells do; anything where a cell is missing."""

    def match(self, condition: Condition) -> Any:
        """Return which cells fulfil a condition: bools.

        Raises:
            InvalidQuery: The column cannot have this value.
        """
        match condition.test:
            case "missing":
                return self.missing
            case "present":
                return ~self.missing
            case "contains":
                return self.contain(condition.value)
            case "equals":
                return self.equal(condition.value)
            case "from":
                return self.compare(condition.value, ge)
            case "to":
                return self.compare(condition.value, le)

    @abstractmethod
    def compare(self, text: str, holds: Callable[[Any, Any], Any]) -> Any:
        """Return which cells compare in a way with a value that a person has typed: bools.

        Raises:
            InvalidQuery: It is no value that this column could have.
        """

    @abstractmethod
    def equal(self, text: str) -> Any:
        """Return which cells have this value: bools."""

    @abstractmethod
    def contain(self, text: str) -> Any:
        """Return which cells' texts contain a text, in upper or lower case: bools."""


class ArrayColumn(Column):
    """Numbers, times and bools.

    Args:
        keys: An array of numpy.
        missing: Which of them are missing; None to find NaN and NaT.
        kind: Of the column.
        zone: The time zone of times, which are then in UTC.
    """

    def __init__(self, keys: Any, missing: Any, kind: Kind, zone: Any = None) -> None:
        self.kind = kind
        self._keys, self._missing, self._zone = keys, missing, zone

    @property
    @override
    def size(self) -> int:
        return int(self._keys.nbytes) + len(self._keys)

    @property
    @override
    def keys(self) -> Any:
        return self._keys

    @cached_property
    def missing(self) -> Any:
        """Which cells are missing."""
        import numpy as np  # noqa: PLC0415 - loaded with the keys

        if self._missing is not None:
            return self._missing
        if self._keys.dtype.kind in "fmM":
            return np.isnan(self._keys) if self._keys.dtype.kind == "f" else np.isnat(self._keys)
        return np.zeros(len(self._keys), bool)

    @override
    def compare(self, text: str, holds: Callable[[Any, Any], Any]) -> Any:
        return holds(self._keys, self._parse(text)) & ~self.missing

    def write_time(self, key: Any) -> str:
        """Return the text of one of its times, to the second."""
        text = str(key.astype("datetime64[s]")).replace("T", " ")
        if self._zone is None:
            return text
        try:
            return str(datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(self._zone))
        except (ValueError, OverflowError):  # years that Python does not have
            return f"{text} UTC"

    def _parse(self, text: str) -> Any:
        text = text.strip()
        try:
            match self.kind:
                case "time":
                    return self._parse_time(text)
                case "bool":
                    return _BOOLS[text.lower()]
                case _:
                    return int(text) if text.lstrip("+-").isdigit() else float(text)
        except (KeyError, ValueError, OverflowError):
            needed = {"time": "a date such as 2024-05-31", "bool": "true or false"}
            raise _refuse(text, needed.get(self.kind, "a number")) from None

    def _parse_time(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415 - loaded with the keys

        moment = datetime.fromisoformat(text)
        if self._zone is not None:
            if moment.tzinfo is None:
                localize = getattr(self._zone, "localize", None)  # of pytz, with older pandas
                moment = localize(moment) if localize else moment.replace(tzinfo=self._zone)
            moment = moment.astimezone(UTC)
        key = np.datetime64(moment.replace(tzinfo=None), "us")
        if np.datetime_data(self._keys.dtype)[0] == "ns":  # beyond these years numpy wraps around
            first, last = np.array(["1677-09-22", "2262-04-11"], "datetime64[us]")
            key = min(max(key, first), last)
        nanoseconds = _NANOSECONDS.search(text)
        return key + np.timedelta64(int(nanoseconds[1].ljust(3, "0")), "ns") if nanoseconds else key

    @override
    def equal(self, text: str) -> Any:
        return self.compare(text, eq)

    @override
    def contain(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415 - loaded with the keys

        try:
            return self.equal(text)  # the texts of ten million numbers would take seconds
        except InvalidQuery:
            return np.zeros(len(self._keys), bool)


class CodedColumn(Column):
    """Texts and other values, each distinct one once.

    Args:
        codes: For each cell the position of its value; -1 where it is missing.
        values: The distinct values.
        texts: Their texts, as the table shows them.
        is_ordered: Whether the values stand in the order of an ordered category.
    """

    kind = "text"

    def __init__(
        self, codes: Any, values: Sequence[Any], texts: Sequence[str], *, is_ordered: bool = False
    ) -> None:
        self.codes, self.texts = codes, texts
        self._values, self._is_ordered = values, is_ordered

    @cached_property
    def size(self) -> int:
        """Estimated bytes of memory, from a sample of the texts."""
        sample = self.texts[:: len(self.texts) // _SAMPLE + 1]
        text = sum(map(sys.getsizeof, sample)) // max(len(sample), 1)
        # The codes and the ranks, and for each value its text and two references.
        return 2 * int(self.codes.nbytes) + len(self.texts) * (text + 16)

    @property
    @override
    def missing(self) -> Any:
        return self.codes < 0

    @cached_property
    def keys(self) -> Any:
        """The rank of each cell's value, or of its text if the values cannot be compared."""
        import numpy as np  # noqa: PLC0415 - loaded with the codes

        ranks = np.empty(len(self._values) + 1, np.int32)  # the last one for missing cells: code -1
        ranks[self._sort_values()] = np.arange(len(self._values), dtype=np.int32)
        ranks[-1] = -1
        return ranks[self.codes]

    def _sort_values(self) -> Sequence[int]:
        order = range(len(self._values))
        if self._is_ordered:
            return order
        try:
            return sorted(order, key=self._values.__getitem__)
        except Exception:  # noqa: BLE001 - comparing values of mixed types runs their code
            return sorted(order, key=self.texts.__getitem__)

    @override
    def compare(self, text: str, holds: Callable[[Any, Any], Any]) -> Any:
        if self._is_ordered:
            if text not in self.texts:
                raise InvalidQuery(f"{text!r} is not one of the column's categories.")
            place = self.texts.index(text)
            return self._find([holds(rank, place) for rank in range(len(self.texts))])
        types = {type(value) for value in self._values}
        for kind, read, what in _RANGES:
            if types == {kind}:
                try:
                    limit = read(text.strip())
                    return self._find([holds(value, limit) for value in self._values])
                except (ValueError, ArithmeticError):
                    raise _refuse(text, what) from None
        raise InvalidQuery(
            "Only columns of numbers, dates, times of day and ordered categories have ranges."
        )

    @override
    def equal(self, text: str) -> Any:
        return self._find([value == text for value in self.texts])

    @override
    def contain(self, text: str) -> Any:
        wanted = text.casefold()
        return self._find([wanted in value.casefold() for value in self.texts])

    def _find(self, is_found: Sequence[bool]) -> Any:
        import numpy as np  # noqa: PLC0415 - loaded with the codes

        return np.array([*is_found, False], bool)[self.codes]


def read_column(frame: Frame, position: int) -> Column:
    """Read a whole column of a table: its labels come first, then its columns.

    Raises:
        InvalidQuery: It has no such column.
    """
    labels = [data for _, data in frame.label_data()]
    if position >= len(labels) + frame.width:
        raise InvalidQuery(f"The table has no column {position + 1:,}.")
    if position < len(labels):
        return _read_pandas(frame, labels[position])
    position -= len(labels)
    if isinstance(frame, NarwhalsFrame):
        series = frame.get_series(position)
        found = _read_numbers(series) or _read_texts(frame, series)
        return found or _code_list(frame, frame.column_values(position, 0, frame.height))
    data = frame.column_data(position)
    if is_instance(data, "pandas.Series") or is_instance(data, "pandas.Index"):
        return _read_pandas(frame, data)
    if is_instance(data, "numpy.ndarray") and data.dtype.kind in _KINDS:
        return ArrayColumn(data, None, _KINDS[data.dtype.kind])
    return _code_list(frame, data if isinstance(data, list) else list(data))


_SAMPLE = 1_000
"""Texts that are measured to estimate the size of all."""
_PLAIN: tuple[tuple[frozenset[type], Kind, Any], ...] = (
    (frozenset({bool}), "bool", False),
    (frozenset({int, float}), "number", 0),
)
"""Types of Python's that numpy has, and what stands where a cell is missing."""
_KINDS: dict[str, Kind] = {"b": "bool", "i": "number", "u": "number", "f": "number", "M": "time"}
"""By numpy's kinds of types."""


def _read_pandas(frame: Frame, data: Any) -> Column:
    import numpy as np  # noqa: PLC0415 - pandas has loaded it

    pandas = sys.modules["pandas"]
    types, dtype = pandas.api.types, data.dtype
    if types.is_datetime64_any_dtype(dtype):
        times = pandas.DatetimeIndex(data)
        naive = times if times.tz is None else times.tz_convert("UTC").tz_localize(None)
        return ArrayColumn(naive.to_numpy(), None, "time", times.tz)
    is_number = types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)
    if is_number and not types.is_object_dtype(dtype):
        missing = np.asarray(data.isna())
        plain = getattr(dtype, "numpy_dtype", None)  # of pandas' nullable types, and Arrow's
        if plain is not None and plain.kind in "biuf":
            keys = data.to_numpy(plain, na_value=np.nan if plain.kind == "f" else 0)
        elif isinstance(dtype, np.dtype) or not missing.any():
            keys = data.to_numpy()
        else:
            keys = data.to_numpy("float64", na_value=np.nan)
        is_bool = types.is_bool_dtype(dtype)
        if keys.dtype.kind in _KINDS:
            return ArrayColumn(keys, missing, "bool" if is_bool else "number")
    if is_instance(dtype, "pandas.CategoricalDtype") and dtype.ordered:
        codes = pandas.Categorical(data).codes
        return _make_coded(frame, codes.astype(np.int32), list(dtype.categories), is_ordered=True)
    try:
        codes, values = pandas.factorize(data)
    except (TypeError, NotImplementedError):  # of lists or dicts, Arrow's among them
        return _code_list(frame, list(data))
    return _make_coded(frame, codes.astype(np.int32), list(values))


def _read_numbers(series: Any) -> Column | None:
    """Return a column of numbers or times; None if they are no such arrays in numpy."""
    dtype = series.dtype
    if not (dtype.is_numeric() or dtype.is_temporal() or str(dtype) == "Boolean"):
        return None
    missing = series.is_null().to_numpy()
    zone = getattr(dtype, "time_zone", None)
    if str(dtype) == "Boolean" and missing.any():
        series = series.fill_null(False)
    elif dtype.is_integer() and missing.any():
        series = series.fill_null(0)
    keys = run_guarded(series.to_numpy, lambda _error: None)  # polars panics for 128 bits
    if keys is None or keys.dtype.kind not in _KINDS:
        return None
    if keys.dtype.kind == "f":
        missing = None if not missing.any() else missing | (keys != keys)  # noqa: PLR0124 - NaN
    return ArrayColumn(keys, missing, _KINDS[keys.dtype.kind], zone and _find_zone(zone))


def _read_texts(frame: Frame, series: Any) -> Column | None:
    """Code a column of texts in Arrow, in a tenth of Python's time; None if it cannot."""
    if not str(series.dtype).startswith(("String", "Categorical", "Enum")):
        return None
    coded = run_guarded(lambda: _code_in_arrow(series), lambda _error: None)  # or has no Arrow
    if coded is None:
        return None
    codes, values, is_ordered = coded
    return None if None in values else _make_coded(frame, codes, values, is_ordered=is_ordered)


def _code_in_arrow(series: Any) -> tuple[Any, list[Any], bool]:
    """Return the code of each cell, -1 where it is missing, the values, and if they are ordered."""
    import numpy as np  # noqa: PLC0415 - when a view is opened

    coded = series.to_arrow().dictionary_encode()
    indices = coded.indices.cast("int32")
    # Arrow's own ways to numpy import pandas, which takes a second.
    (_, buffer), start = indices.buffers(), indices.offset * 4
    codes = np.frombuffer(buffer, np.int32, len(indices), start).copy()
    codes[series.is_null().to_numpy()] = -1
    # Older versions of polars do not tell Arrow that an Enum is ordered.
    is_ordered = coded.type.ordered or str(series.dtype).startswith("Enum")
    return codes, coded.dictionary.to_pylist(), is_ordered


def _find_zone(name: str) -> tzinfo | None:
    """Return the time zone of a name such as "Europe/Paris" or an offset such as "+02:00"."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        with suppress(ValueError):  # of a name that this system does not know: times are in UTC
            return datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo
        return None


def _code_list(frame: Frame, cells: list[Any]) -> Column:
    """Read the cells of a list: as an array of numbers or times if all of them are.

    Others are coded by their values, or by their texts if they have no hash.
    """
    import numpy as np  # noqa: PLC0415 - when a view is opened

    are_missing = frame.find_missing(cells)
    types = {type(cell) for cell, no in zip(cells, are_missing, strict=True) if not no}
    for same, kind, stand_in in _PLAIN:
        if types and types <= same:
            filled = [stand_in if no else cell for cell, no in zip(cells, are_missing, strict=True)]
            keys = np.array(filled)
            if keys.dtype.kind in _KINDS:  # not of ints beyond 64 bits
                return ArrayColumn(keys, np.array(are_missing, bool), kind)
    found: dict[Any, int] = {}
    try:
        pairs = zip(cells, are_missing, strict=True)
        codes = [
            -1 if no else found.setdefault((type(cell), cell), len(found)) for cell, no in pairs
        ]
        values = [value for _, value in found]
    except TypeError:
        found.clear()
        texts = zip(frame.format_column(cells), are_missing, strict=True)
        codes = [-1 if no else found.setdefault(str(text), len(found)) for text, no in texts]
        values = list(found)
        return CodedColumn(np.array(codes, np.int32), values, values)
    return _make_coded(frame, np.array(codes, np.int32), values)


def _refuse(text: str, needed: str) -> InvalidQuery:
    return InvalidQuery(f"{text!r} is not {needed}.")


def _make_coded(frame: Frame, codes: Any, values: list[Any], *, is_ordered: bool = False) -> Column:
    texts = values
    if any(type(value) is not str for value in values):
        texts = list(map(str, frame.format_column(values)))
    # Otherwise texts as a whole: a cell shows the beginning.
    return CodedColumn(codes, values, texts, is_ordered=is_ordered)
