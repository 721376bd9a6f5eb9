"""The text of one cell of a table, whatever is in it.

Runs in the user's kernel, on the thread of the call. Short texts for a model; files of the whole
table hold the values themselves (`kernel.results.tables.exports`).
"""

import sys
from itertools import islice
from typing import Any

from mcp_notebook.kernel.safe.deadline import DeadlineExceeded, run_bounded
from mcp_notebook.kernel.safe.text import clean_text, describe_slow_value, is_instance, safe_repr

MAX_CELL = 200
"""Characters of one cell."""
CUT = " ..."
"""Ends a cell that was longer."""
_MIDNIGHT = " 00:00:00"
_EXACT = 1e15
"""Above this, a float's decimals are noise."""
_SMALL = 1e-4


def cell_text(value: Any) -> str:
    """Return a value's text on one or more lines, cut if it is long."""
    try:
        if isinstance(value, float):
            return _decimal(value)
        text = clean_text(run_bounded(str, _shortened(value))).strip()
    except KeyboardInterrupt:
        raise
    except DeadlineExceeded as error:
        text = describe_slow_value(value, error)
    except BaseException:  # noqa: BLE001 - an object in a cell may do anything
        text = safe_repr(value)
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - len(CUT)] + CUT


def without_midnights(values: list[Any], texts: list[str]) -> list[str]:
    """Shorten the texts of a column of days."""
    times = [is_instance(value, "pandas.Timestamp") for value in values]
    if any(times) and all(
        text.endswith(_MIDNIGHT) for text, time in zip(texts, times, strict=True) if time
    ):
        return [text.removesuffix(_MIDNIGHT) for text in texts]
    return texts


def _shortened(value: Any) -> Any:
    """Return about as much of a value as a cell shows: the text of all may take for ever."""
    if type(value) in (str, list, tuple) and len(value) > MAX_CELL:
        return value[: MAX_CELL + 1]
    if type(value) is dict and len(value) > MAX_CELL:
        return dict(islice(value.items(), MAX_CELL))
    return value


def _decimal(value: float) -> str:
    precision = 6
    option = getattr(sys.modules.get("pandas"), "get_option", None)
    if option is not None:
        precision = option("display.precision")
        style = option("display.float_format")
        if callable(style):
            return clean_text(str(style(value)))
    if value != value or abs(value) >= _EXACT or 0 < abs(value) < _SMALL:  # noqa: PLR0124 - NaN
        return "NaN" if value != value else f"{value:.{precision}g}"  # noqa: PLR0124
    text = f"{value:.{precision}f}"
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0') or '0'}" if decimals else whole
