"""Moments and durations as clients send them, with all of their digits or not at all.

Runs in the user's kernel: schemas at definition, checks wherever a call runs. Pure. pydantic reads
six digits of a second and drops further ones.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, cast

from pydantic_core import PydanticCustomError, ValidationError, core_schema

from mcp_notebook.kernel.safe.moments import (
    add_nanosecond,
    count_nanoseconds,
    read_nanosecond,
    restore_nanoseconds,
)
from mcp_notebook.kernel.schemas.pydantic_core_schemas import rewrite

NANOSECONDS = range(-(2**63) + 1, 2**63)
_UNITS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
"""Nanoseconds of the units of dtypes."""
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_DIGITS = re.compile(r"([.,]\d{6})(\d+)(?![\dDHMW])")
"""Decimals of a second, those that pydantic reads and those that it drops."""
_NANOSECOND_DIGITS = 3
"""Digits of nanoseconds after those of microseconds."""


def keep_digits(schema: Any, unit: str) -> Any:
    """Return a core schema that changes no moment, duration or time of day, at any depth.

    Args:
        schema: The core schema.
        unit: ``s``, ``ms``, ``us`` or ``ns``: what has smaller parts is refused.
    """

    def change(original: Mapping[str, Any], changed: dict[str, Any]) -> Any:
        if original["type"] not in ("datetime", "timedelta", "time"):
            return changed
        reference = changed.pop("ref", None)
        core = cast("core_schema.CoreSchema", changed)
        return core_schema.no_info_wrap_validator_function(
            partial(_validate, unit=unit, is_duration=original["type"] == "timedelta"),
            core,
            ref=reference,
        )

    return rewrite(schema, change)


def count_if_precise(values: Sequence[Any]) -> list[int | None] | None:
    """Return a column's values as nanoseconds, since 1970; None if their microseconds say all.

    Raises:
        PydanticCustomError: They are further away than nanoseconds count.
    """
    if not any(map(read_nanosecond, values)):
        return None
    counts = [None if value is None else count_nanoseconds(value) for value in values]
    if any(count is not None and count not in NANOSECONDS for count in counts):
        raise PydanticCustomError("bounds", "with nanoseconds, years go from 1678 to 2261")
    return counts


def has_zones(values: Sequence[Any]) -> bool:
    """Tell whether the moments of a column have a time zone: all of them, or none."""
    first = next((value for value in values if value is not None), None)
    return getattr(first, "tzinfo", None) is not None


def _validate(value: Any, validate: Callable[[Any], Any], *, unit: str, is_duration: bool) -> Any:
    if type(value) is float and is_duration and unit == "ns":
        moment = _read_seconds(value, validate)
    elif isinstance(value, str) and (digits := _DIGITS.search(value)):
        moment = _read_digits(value, digits, validate, unit)
    else:
        moment = validate(value)
    if unit in ("s", "ms") and not isinstance(moment, dt.time):
        _refuse_part(count_nanoseconds(moment) % _UNITS[unit], unit)
    return moment


def _read_digits(
    text: str, digits: re.Match[str], validate: Callable[[Any], Any], unit: str
) -> Any:
    try:
        moment = validate(text[: digits.end(1)] + text[digits.end(2) :])
    except ValidationError:
        return validate(text)  # which fails, too, and tells the whole text
    rest = digits[2].rstrip("0")
    if not rest:
        return moment
    _refuse_part(unit != "ns" or len(rest) > _NANOSECOND_DIGITS, unit)
    nanosecond = int(rest.ljust(_NANOSECOND_DIGITS, "0"))
    if isinstance(moment, dt.timedelta) and text.lstrip().startswith("-"):
        return restore_nanoseconds(count_nanoseconds(moment) - nanosecond, moment)
    return add_nanosecond(moment, nanosecond)


def _read_seconds(value: float, validate: Callable[[Any], Any]) -> Any:
    duration = validate(value)
    return restore_nanoseconds(round(Decimal(repr(value)) * 10**9), duration)


def _refuse_part(part: Any, unit: str) -> None:
    if part:
        raise PydanticCustomError(
            "fraction", "it is kept in whole {unit}, without fractions", {"unit": _WORDS[unit]}
        )
