"""Refuses arguments with numbers that JSON does not have: NaN, and what is beyond floats.

Runs in the user's kernel, wherever a call runs. Pure. Parsers make infinity of ``1e400``: passed
on, it would be another value than the client sent.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

Place = tuple[int | str, ...]
"""Where in the arguments something is."""
_MAX_ERRORS = 15
"""Numbers that an error lists."""
_PLAIN = frozenset({str, int, bool, type(None)})


def refuse_infinite(arguments: Mapping[str, Any]) -> None:
    """Refuse NaN and infinity, wherever they stand in a JSON value.

    Raises:
        ValidationError: Names their places.
    """
    if isinstance(arguments, dict) and _is_plain(arguments.values()):  # as most are
        return
    problems = [
        InitErrorDetails(type=_explain(number), loc=place, input=number)
        for place, number in islice(_find_infinite(arguments, ()), _MAX_ERRORS)
    ]
    if problems:
        raise ValidationError.from_exception_data("arguments", problems)


def _explain(number: float) -> PydanticCustomError:
    reason = "JSON has no NaN" if math.isnan(number) else "numbers end at 1.8e308"
    return PydanticCustomError("finite", "{reason}", {"reason": reason})


def _find_infinite(
    value: Mapping[str, Any] | list[Any], place: Place
) -> Iterator[tuple[Place, float]]:
    # First all at once: many times faster for a list of a million numbers.
    if _is_plain(value if isinstance(value, list) else value.values()):
        return
    for name, item in enumerate(value) if isinstance(value, list) else value.items():
        if type(item) is float and not math.isfinite(item):
            yield (*place, name), item
        elif type(item) in (list, dict):
            yield from _find_infinite(item, (*place, name))


def _is_plain(items: Collection[Any]) -> bool:
    kinds = set(map(type, items))
    return kinds <= _PLAIN or (kinds == {float} and all(map(math.isfinite, items)))
