"""Datetimes, timedeltas and times with nanoseconds, which Python's own types lack.

Runs in the user's kernel, wherever values are read or written. Pure. pandas' `Timestamp` and
`Timedelta` have nanoseconds; polars and numpy give Python's types for theirs, without them. The
classes here are subclasses of Python's with the same attributes as pandas', so that code
unaware of nanoseconds works with them.
"""

import datetime as dt
from typing import Any, Self

from typing_extensions import override

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of moments with and without a zone
_MICROSECOND = dt.timedelta(microseconds=1)


class _Precise:
    """A value that is shown and compared with its nanoseconds, which Python's classes ignore."""

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self}')"

    @override
    def __eq__(self, other: object) -> bool:
        is_near = super().__eq__(other) is True
        return is_near and read_nanosecond(self) == read_nanosecond(other)

    @override
    def __hash__(self) -> int:
        return hash((super().__hash__(), read_nanosecond(self)))

    def __lt__(self, other: Any) -> bool:
        parent: Any = super()
        if parent.__eq__(other) is True:
            return read_nanosecond(self) < read_nanosecond(other)
        less: bool = parent.__lt__(other)
        return less

    def __gt__(self, other: Any) -> bool:
        return not (self == other or self < other)

    def __le__(self, other: Any) -> bool:
        return bool(self == other or self < other)

    def __ge__(self, other: Any) -> bool:
        return not self < other


class Moment(_Precise, dt.datetime):
    """A datetime with nanoseconds."""

    nanosecond = 0

    @override
    def astimezone(self, tz: Any = None) -> Self:
        moved = super().astimezone(tz)
        moved.nanosecond = self.nanosecond
        return moved

    @override
    def __str__(self) -> str:
        return _add_digits(dt.datetime.isoformat(self, " ", "microseconds"), 26, self.nanosecond)


class Duration(_Precise, dt.timedelta):
    """A timedelta with nanoseconds, from 0 to 999 even if it is negative."""

    nanoseconds = 0

    @override
    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}{'' if self.microseconds else '.000000'}{self.nanoseconds:03}"


class TimeOfDay(_Precise, dt.time):
    """A time of day with nanoseconds."""

    nanosecond = 0

    @override
    def __str__(self) -> str:
        return _add_digits(self.isoformat("microseconds"), 15, self.nanosecond)


def read_nanosecond(value: Any) -> int:
    """Return the nanoseconds of a datetime, timedelta or time that exceed its microseconds."""
    name = "nanoseconds" if isinstance(value, dt.timedelta) else "nanosecond"
    return int(getattr(value, name, 0))


def count_nanoseconds(value: dt.datetime | dt.timedelta) -> int:
    """Return the nanoseconds of a timedelta, or of a datetime since 1970; naive ones are UTC."""
    duration = value
    if isinstance(value, dt.datetime):
        moment = dt.datetime.combine(value.date(), value.time())
        duration = moment - _EPOCH - (value.utcoffset() or dt.timedelta())
    elif isinstance(value, dt.timedelta):
        duration = dt.timedelta(value.days, value.seconds, value.microseconds)
    return duration // _MICROSECOND * 1000 + read_nanosecond(value)


def restore_nanoseconds(count: int | None, value: Any) -> Any:
    """Return a value with the nanoseconds that a library dropped in converting it to Python's.

    Args:
        count: Its total nanoseconds, since 1970 in UTC or since midnight; None: missing.
        value: The converted value.
    """
    nanosecond = 0 if count is None else count % 1000
    if count is None or not nanosecond:
        return value
    microseconds = dt.timedelta(microseconds=count // 1000)
    if isinstance(value, dt.timedelta):
        return add_nanosecond(microseconds, nanosecond)
    if isinstance(value, dt.datetime):
        moment = _EPOCH + microseconds
        if value.tzinfo is not None:
            moment = moment.replace(tzinfo=dt.UTC).astimezone(value.tzinfo)
        return add_nanosecond(moment, nanosecond)
    return add_nanosecond((_EPOCH + microseconds).time(), nanosecond)


def add_nanosecond(value: Any, nanosecond: int) -> Any:
    """Return a datetime, timedelta or time with additional nanoseconds, 0 to 999."""
    if isinstance(value, dt.timedelta):
        duration = Duration(value.days, value.seconds, value.microseconds)
        duration.nanoseconds = nanosecond
        return duration
    parts = (value.hour, value.minute, value.second, value.microsecond, value.tzinfo)
    precise: Moment | TimeOfDay
    if isinstance(value, dt.datetime):
        precise = Moment(value.year, value.month, value.day, *parts, fold=value.fold)
    else:
        precise = TimeOfDay(*parts, fold=value.fold)
    precise.nanosecond = nanosecond
    return precise


def format_nanoseconds(value: Any) -> str | None:
    """Return a value in ISO 8601 with nine digits; None if it has no nanoseconds."""
    nanosecond = read_nanosecond(value)
    if not nanosecond:
        return None
    if isinstance(value, dt.timedelta):
        return _format_duration(count_nanoseconds(value))
    if not isinstance(value, dt.datetime):
        return _add_digits(value.isoformat("microseconds"), 15, nanosecond)
    text = _add_digits(dt.datetime.isoformat(value, "T", "microseconds"), 26, nanosecond)
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text


def write_nanoseconds(value: Any) -> Any:
    """Replace datetimes with nanoseconds by strings, also within lists and objects."""
    if isinstance(value, dt.datetime | dt.timedelta | dt.time):
        return format_nanoseconds(value) or value
    if type(value) in (list, tuple):
        return type(value)(map(write_nanoseconds, value))
    if type(value) is dict:
        return {key: write_nanoseconds(item) for key, item in value.items()}
    return value


def _add_digits(text: str, end: int, nanosecond: int) -> str:
    """Add three digits to a string after its microseconds."""
    return f"{text[:end]}{nanosecond:03}{text[end:]}"


def _format_duration(count: int) -> str:
    seconds, nanoseconds = divmod(abs(count), 10**9)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{days}D" if days else "", "T"]
    parts += [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    return f"{'-' if count < 0 else ''}P{''.join(parts)}{seconds}.{nanoseconds:09}S"
