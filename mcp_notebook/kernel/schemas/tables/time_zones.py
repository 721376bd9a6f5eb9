"""Time zones in a column: either all of its moments have one, and are in UTC, or none has.

Runs in the user's kernel, wherever a call runs. Pure.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

_REASONS = {
    True: "it needs a time zone, '2024-12-31T23:59:00Z'",
    False: "no time zone is allowed, '2024-12-31T23:59:00'",
    None: "some values of this column have a time zone and some have none",
}
"""By whether a dtype needs time zones; None: there is no dtype."""


def align_zones(
    moments: Sequence[Any], cells: Sequence[Any], *, needs_zone: bool | None
) -> list[Any]:
    """Return the moments of a column in one time zone, UTC, or in none.

    Args:
        moments: datetimes, and None.
        cells: The same as they were sent.
        needs_zone: Whether the column's dtype has a time zone; None: as the first moment.

    Raises:
        ValidationError: Names the rows of those that differ.
    """
    has_zones = [None if item is None else item.tzinfo is not None for item in moments]
    first = next((has_zone for has_zone in has_zones if has_zone is not None), False)
    is_aware = first if needs_zone is None else needs_zone
    rows = [row for row, has_zone in enumerate(has_zones) if has_zone is (not is_aware)]
    _refuse(rows, cells, _REASONS[needs_zone])
    if not is_aware:
        return list(moments)
    aligned = list(map(_move_to_utc, moments))
    rows = [row for row, item in enumerate(aligned) if item is NotImplemented]
    _refuse(rows, cells, "it is beyond the years 1 to 9999 in UTC")
    return aligned


def refuse_zone(moment: dt.datetime) -> dt.datetime:
    """Return a moment that has no time zone.

    Raises:
        PydanticCustomError: It has one.
    """
    if moment.tzinfo is not None:
        raise PydanticCustomError("time_zone", "{reason}", {"reason": _REASONS[False]})
    return moment


def _move_to_utc(moment: Any) -> Any:
    try:
        return None if moment is None else moment.astimezone(dt.UTC)
    except OverflowError:
        return NotImplemented


def _refuse(rows: Sequence[int], cells: Sequence[Any], reason: str) -> None:
    if rows:
        error = PydanticCustomError("time_zone", "{reason}", {"reason": reason})
        raise ValidationError.from_exception_data(
            "column", [InitErrorDetails(type=error, loc=(row,), input=cells[row]) for row in rows]
        )
