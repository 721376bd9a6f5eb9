"""The columns of any table: which cells match, which are missing, and how they sort.

Runs in the user's kernel, on the threads of the resource store. Numbers, times, bools and texts of
pandas, polars, pyarrow and the like are filtered and sorted by narwhals; lists, arrays and odd
types by Python. narwhals and numpy are imported when a view is opened or a variable is inspected,
never for an ordinary result.
"""

import math
import re
from abc import ABC, abstractmethod
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from typing_extensions import override

from mcp_notebook.kernel.results.tables.frame import Frame
from mcp_notebook.kernel.results.tables.narwhals_frame import NarwhalsFrame
from mcp_notebook.kernel.results.views.table_query import Comparison, Condition, InvalidQuery
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.tabular_data import list_elements

Kind: TypeAlias = Literal["number", "time", "bool", "text"]
"""What a person may ask of a column: a range of numbers and times, a part of anything else."""
_Span: TypeAlias = tuple[Any, Any]
"""The first and the last of the values that a typed text may mean: those of a day, for its date."""
_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?")
"""A month or a year, as numpy writes dates of these units."""
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SHOWN_DIGITS = 6
"""Digits in which a float is compared with a typed one, as a cell may not have more."""
_A_DATE = "a date such as 2024-05-31"


def _read_number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _repeat(read: Callable[[str], Any]) -> Callable[[str], _Span]:
    return lambda text: (read(text),) * 2


def _read_moments(text: str) -> tuple[datetime, datetime]:
    """Read a moment, or the first and the last one of a day, a month or a year."""
    found = _MONTH.fullmatch(text)
    if found is not None:
        year, month = int(found[1]), int(found[2] or 12)
        first = datetime(year, int(found[2] or 1), 1)  # noqa: DTZ001 - its zone is the column's
        last_day = date(year, month, monthrange(year, month)[1])
        return first, datetime.combine(last_day, time.max)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return (datetime.fromisoformat(text),) * 2
    return datetime.combine(day, time.min), datetime.combine(day, time.max)


def _read_days(text: str) -> _Span:
    first, last = _read_moments(text)
    return first.date(), last.date()


_RANGES: tuple[tuple[tuple[type, ...], Callable[[str], _Span], str], ...] = (
    ((bool,), lambda text: (_BOOLS[text.lower()],) * 2, "true or false"),
    ((int, float), _repeat(_read_number), "a number"),
    ((Decimal,), _repeat(Decimal), "a number"),
    ((datetime,), _read_moments, _A_DATE),
    ((date,), _read_days, _A_DATE),
    ((time,), _repeat(time.fromisoformat), "a time such as 14:30"),
)
"""Types of values that have ranges, how one is read, and what to type."""
_KINDS: Mapping[type, Kind] = {bool: "bool", int: "number"}
"""By the first of these types."""


class Column(ABC):
    """A whole column. All its arrays are of numpy, and have an element for each row."""

    kind: Kind = "text"
    missing: Any
    """Which cells are missing: bools."""
    unordered: Any
    """Which cells have no place in an order, since they are missing or NaN: bools."""

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
            case "from" | "to":
                return self.compare(condition.value, condition.test)

    @abstractmethod
    def compare(self, text: str, test: Comparison) -> Any:
        """Return which cells are in a range with a limit that a person has typed: bools.

        Raises:
            InvalidQuery: It is no value that this column could have.
        """

    @abstractmethod
    def equal(self, text: str) -> Any:
        """Return which cells have this value, or are shown as this text: bools."""

    @abstractmethod
    def contain(self, text: str) -> Any:
        """Return which cells' texts contain a text, in upper or lower case: bools."""

    def sort(self, matches: Any, most: int, *, descending: bool) -> Any:
        """Return the positions of the first rows that match in the order of their cells.

        Equal cells keep the table's order, so that two pages never share a row; missing ones and
        NaN come last.

        Args:
            matches: Bools; None for all rows.
            most: How many rows at most.
            descending: Whether the largest come first.
        """
        import numpy as np  # noqa: PLC0415 - loaded with the masks

        ordered, last = ~self.unordered, self.unordered
        if matches is not None:
            ordered, last = ordered & matches, last & matches
        positions = np.flatnonzero(ordered)
        first = self._sort(positions, most, descending=descending)
        return np.concatenate([first, np.flatnonzero(last)])[:most]

    @abstractmethod
    def _sort(self, positions: Any, most: int, *, descending: bool) -> Any:
        """Sort the positions of cells that are not missing; all, or the first of them."""

    @abstractmethod
    def list_texts(self, positions: Any) -> Sequence[str]:
        """Return the texts of some cells."""

    def list_numbers(self, positions: Any) -> Any:  # noqa: ARG002 - of texts
        """Return an array of some cells' numbers, times or bools; None if they are no such."""
        return None

    def write_time(self, key: Any) -> str:
        """Return the text of one of these times, to the second."""
        return str(key.astype("datetime64[s]")).replace("T", " ")


class SeriesColumn(Column):
    """Numbers, times, bools or texts, which narwhals compares and ranks.

    Args:
        frame: The table, which writes the cells.
        series: A series of narwhals.
        kind: Of the column.
        zone: The name of the time zone, if it is not that of the series.
        ordered: Texts in their order, if it is not that of the alphabet.
    """

    def __init__(
        self,
        frame: Frame,
        series: Any,
        kind: Kind,
        zone: str = "",
        ordered: Sequence[str] | None = None,
    ) -> None:
        self.kind = kind
        self._places = None if ordered is None else {text: n for n, text in enumerate(ordered)}
        missing = _to_bools(series.is_null())
        self._is_float = series.dtype.is_float()
        is_nan = _to_bools(series.is_nan()) if self._is_float else False
        self.missing = missing | is_nan if frame.nan_is_missing else missing
        self.unordered = missing | is_nan
        self._series, self._zone = series, None
        if kind == "time":  # in microseconds, which have all years, and in UTC
            import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - loaded with the series

            if getattr(series.dtype, "time_zone", None) is not None:
                series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
                self._zone = _find_zone(zone or str(self._series.dtype.time_zone))
            self._series = series.cast(narwhals.Datetime("us"))
            series = self._series if isinstance(series.dtype, narwhals.Date) else series
        self._original = series

    @override
    def compare(self, text: str, test: Comparison) -> Any:
        first, last = self._parse(text.strip())
        if first != first:  # noqa: PLR0124 - NaN
            return self.unordered & ~self.missing
        try:
            found = _to_bools(_select(test, self._series, (first, last)))
        except OverflowError:  # a whole number that the column's type cannot hold
            is_above = first > 0
            found = test != "equals" and is_above == (test == "to")
        return found & ~self.unordered

    def _parse(self, text: str) -> _Span:
        try:
            match self.kind:
                case "time":
                    first, last = map(self._to_utc, _read_moments(text))
                    return first, last
                case "bool":
                    return (_BOOLS[text.lower()],) * 2
                case "number":
                    number = _read_number(text)
                    return (self._round(number) if self._is_float else number,) * 2
        except (KeyError, ValueError, OverflowError):
            needed = {"time": _A_DATE, "bool": "true or false"}
            raise _refuse(text, needed.get(self.kind, "a number")) from None
        raise _refuse_range()

    def _round(self, number: float) -> float:
        """Return a number as the column's own floats hold it."""
        import numpy as np  # noqa: PLC0415 - loaded with the masks

        return float(np.float32(number) if str(self._series.dtype) == "Float32" else number)

    def _to_utc(self, moment: datetime) -> datetime:
        if self._zone is not None:
            moment = moment if moment.tzinfo else moment.replace(tzinfo=self._zone)
            moment = moment.astimezone(UTC)
        return moment.replace(tzinfo=None)

    @override
    def write_time(self, key: Any) -> str:
        text = super().write_time(key)
        if self._zone is None:
            return text
        try:
            return str(datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(self._zone))
        except (ValueError, OverflowError):  # years that Python does not have
            return f"{text} UTC"

    @override
    def equal(self, text: str) -> Any:
        if self.kind == "text":
            return _to_bools(self._series == text)
        found = self.compare(text, "equals")
        number = float(text) if self._is_float else math.nan
        if not number or not math.isfinite(number):
            return found
        digits = re.sub(r"\D", "", text.lower().partition("e")[0]).lstrip("0")
        place = math.floor(math.log10(abs(number))) + 1 - max(_SHOWN_DIGITS, len(digits))
        near = (self._series - number).abs() <= 0.51 * 10.0**place
        return found | (_to_bools(near) & ~self.unordered)

    @override
    def contain(self, text: str) -> Any:
        if self.kind == "text":
            lower = self._series.str.to_lowercase()
            return _to_bools(lower.str.contains(text.lower(), literal=True))
        try:
            return self.equal(text)  # the texts of ten million numbers would take seconds
        except InvalidQuery:
            return self.missing & False

    @override
    def _sort(self, positions: Any, most: int, *, descending: bool) -> Any:
        import numpy as np  # noqa: PLC0415 - loaded with the masks

        keys = self.list_numbers(positions)
        if self._places is not None:
            texts = self._original[positions].to_list()
            keys = np.array([self._places[text] for text in texts], np.intp)
        elif keys is None:
            keys = self._original[positions].rank("dense").to_numpy()
        if most < len(keys) // 8:  # to sort ten million takes seconds, to find the first 0.1
            place = len(keys) - most if descending else most - 1
            limit = np.partition(keys, place)[place]
            chosen = np.flatnonzero(keys >= limit if descending else keys <= limit)
            positions, keys = positions[chosen], keys[chosen]
        if not descending:
            return positions[keys.argsort(kind="stable")]
        # Turned twice, so that equal cells keep their order.
        return positions[::-1][keys[::-1].argsort(kind="stable")][::-1]

    @override
    def list_texts(self, positions: Any) -> Sequence[str]:
        return list(map(str, self._series[positions].to_list()))

    @override
    def list_numbers(self, positions: Any) -> Any:
        if self.kind == "text":
            return None
        # polars refuses integers of 128 bits.
        return guard(self._original[positions].to_numpy, recover=lambda _error: None)


class ListColumn(Column):
    """Cells of any kind, which Python compares.

    Args:
        frame: The table, which writes the cells.
        values: The cells.
    """

    def __init__(self, frame: Frame, values: Sequence[Any]) -> None:
        import numpy as np  # noqa: PLC0415 - when a view is opened

        missing = frame.find_missing(values)
        odd = [no or _is_nan(value) for value, no in zip(values, missing, strict=True)]
        self.missing, self.unordered = np.array(missing, bool), np.array(odd, bool)
        self._values, self._frame = values, frame
        self._present = [place for place, no in enumerate(odd) if not no]
        types = {type(values[place]) for place in self._present}
        fitting = [row for row in _RANGES if types and all(issubclass(k, row[0]) for k in types)]
        self._range = fitting[0] if fitting else None
        if self._range is not None:
            self.kind = _KINDS.get(self._range[0][0], "text")

    @cached_property
    def _texts(self) -> Sequence[str]:
        """Of texts the whole, of other values as the table shows them."""
        if all(type(value) is str for value in self._values):
            return self._values
        shown = self._frame.format_column(self._values)
        pairs = zip(self._values, shown, strict=True)
        return [value if type(value) is str else str(cell) for value, cell in pairs]

    @override
    def compare(self, text: str, test: Comparison) -> Any:
        if self._range is None:
            raise _refuse_range()
        _, read, what = self._range
        try:
            span = _add_zone(read(text.strip()), self._values[self._present[0]])
            return self._find(lambda row: _select(test, self._values[row], span))
        except (KeyError, ValueError, TypeError, ArithmeticError):
            raise _refuse(text, what) from None

    @override
    def equal(self, text: str) -> Any:
        found = self._find(lambda row: self._texts[row] == text)
        if text.strip().lower() == "nan":
            found |= self.unordered & ~self.missing
        with suppress(InvalidQuery):  # 1.5 is 1.50, and a date has all of its day
            found |= self.compare(text, "equals")
        return found

    @override
    def contain(self, text: str) -> Any:
        wanted = text.casefold()
        if self.kind != "text":
            return self._find(lambda row: self._texts[row].casefold() == wanted)
        return self._find(lambda row: wanted in self._texts[row].casefold())

    def _find(self, test: Callable[[int], bool]) -> Any:
        import numpy as np  # noqa: PLC0415 - loaded with the masks

        found = np.zeros(len(self._values), bool)
        found[[row for row in self._present if test(row)]] = True
        return found

    @override
    def _sort(self, positions: Any, most: int, *, descending: bool) -> Any:
        import numpy as np  # noqa: PLC0415 - loaded with the masks

        rows = positions.tolist()
        try:
            order = sorted(rows, key=self._values.__getitem__, reverse=descending)
        except Exception:  # noqa: BLE001 - comparing values of mixed types runs their code
            order = sorted(rows, key=self._texts.__getitem__, reverse=descending)
        return np.array(order, np.intp)

    @override
    def list_texts(self, positions: Any) -> Sequence[str]:
        return [self._texts[position] for position in positions]

    @override
    def list_numbers(self, positions: Any) -> Any:
        import numpy as np  # noqa: PLC0415 - loaded with the masks

        if self.kind == "text":
            return None
        numbers = np.array([self._values[position] for position in positions])
        return numbers if numbers.dtype.kind in "biuf" else None  # not of ints beyond 64 bits


def read_column(frame: Frame, position: int) -> Column:
    """Read a whole column of a table: its labels come first, then its columns.

    Raises:
        InvalidQuery: It has no such column.
    """
    labels = [data for _, data in frame.label_data()]
    if position >= len(labels) + frame.width:
        raise InvalidQuery(f"The table has no column {position + 1:,}.")
    place = position - len(labels)
    if place >= 0 and isinstance(frame, NarwhalsFrame):
        series = frame.get_series(place)
        column = _wrap_series(frame, series)
        return column or ListColumn(frame, frame.column_values(place, 0, frame.height))
    data = labels[position] if place < 0 else frame.column_data(place)
    if is_instance(data, "pandas.Series") or is_instance(data, "pandas.Index"):
        ordered = list(data.dtype.categories) if getattr(data.dtype, "ordered", False) else None
        column = _wrap_series(frame, *_read_pandas(data), ordered)
        return column or ListColumn(frame, list(data))
    if is_instance(data, "numpy.ndarray"):
        data = list_elements(data)
    return ListColumn(frame, data if isinstance(data, list) else list(data))


def _read_pandas(data: Any) -> tuple[Any, str]:
    """Return a Series or an Index as a series of narwhals, and the name of its time zone."""
    import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - when a person filters or sorts

    series = data if is_instance(data, "pandas.Series") else data.to_series()
    dtype = getattr(series.dtype, "pyarrow_dtype", series.dtype)
    zone = getattr(dtype, "tz", None)
    if zone is not None:  # narwhals does not know all zones of pandas
        series = series.dt.tz_convert("UTC")
    if hasattr(series.dtype, "categories"):  # narwhals writes "nan" for a missing one of pandas 2
        series = series.astype(object)
    native = series.reset_index(drop=True)
    return narwhals.from_native(native, series_only=True), str(zone or "")


def _wrap_series(
    frame: Frame, data: Any, zone: str = "", ordered: Sequence[str] | None = None
) -> Column | None:
    """Return a column that narwhals reads; None if its library cannot filter or sort it."""

    def wrap() -> Column | None:
        import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - loaded with the series

        series, dtype, order = data, data.dtype, ordered
        if isinstance(dtype, (narwhals.Categorical, narwhals.Enum)):
            order = dtype.categories if isinstance(dtype, narwhals.Enum) else order
            dtype = data.cat.get_categories().dtype
            series = data.cast(narwhals.String)
            if not isinstance(dtype, narwhals.String):
                return None
        kind: Kind
        if dtype.is_integer() or dtype.is_float():
            kind = "number"
        elif isinstance(dtype, (narwhals.Datetime, narwhals.Date)):
            kind = "time"
        elif isinstance(dtype, narwhals.Boolean):
            kind = "bool"
        elif isinstance(dtype, narwhals.String):
            kind = "text"
        else:
            return None
        # Some types can be read and not sorted, such as Arrow's views of strings.
        first = SeriesColumn(frame, series[:1], kind, zone, order)
        first.sort(None, 1, descending=False)
        first.contain("0")
        return SeriesColumn(frame, series, kind, zone, order)

    return guard(wrap, recover=lambda _error: None)


def _to_bools(series: Any) -> Any:
    """Return bools of numpy from a series that may lack some."""
    import numpy as np  # noqa: PLC0415 - when a person filters or sorts

    return np.asarray(series.fill_null(False).to_numpy(), bool)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value  # noqa: PLR0124


def _select(test: Comparison, value: Any, span: _Span) -> Any:
    """Return whether a value is in the range of a typed one; for an array, where it is."""
    first, last = span
    if test == "from":
        return value >= first
    return value <= last if test == "to" else (value >= first) & (value <= last)


def _add_zone(span: _Span, value: Any) -> _Span:
    """Return moments in the zone of a column's values, unless the typed ones have another."""
    zone = getattr(value, "tzinfo", None)
    if zone is None or getattr(span[0], "tzinfo", None) is not None:
        return span
    return span[0].replace(tzinfo=zone), span[1].replace(tzinfo=zone)


def _find_zone(name: str) -> tzinfo | None:
    """Return the time zone of a name such as "Europe/Paris" or an offset such as "+02:00"."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        with suppress(ValueError):  # of a name that this system does not know: times are in UTC
            return datetime.fromisoformat(f"2000-01-01T00:00{name.removeprefix('UTC')}").tzinfo
        return None


def _refuse(text: str, needed: str) -> InvalidQuery:
    return InvalidQuery(f"{text!r} is not {needed}.")


def _refuse_range() -> InvalidQuery:
    return InvalidQuery("Only columns of numbers, dates and times of day have ranges.")
