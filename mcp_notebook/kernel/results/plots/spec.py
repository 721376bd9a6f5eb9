"""Writes the specification of a plot as JSON: whole, or with its data shortened for a model.

Runs in the user's kernel, on the thread of the call. Pure functions on the specifications of
plotly, Vega and bokeh, whether as objects with numpy arrays or as parsed JSON.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import cut_text, replace_surrogates
from mcp_notebook.kernel.safe.to_json import (
    MAX_DEPTH,
    TooLarge,
    format_json,
    to_json_value,
    to_structured,
)

_STEPS = (1_000, 200, 50, 20, 10, 6, 4)
"""Maximum items per list, tried in this order until the text fits."""
_DIGITS = 6
"""Significant digits of a number; more would only cost tokens."""
_MAX_KEYS = 200
_MAX_STRING = 300
_MAX_ITEMS = 20_000_000
_MAX_VISITED = 10_000
_PARTS = (list, tuple, dict, Mapping)
"""Collections, the common ones first: the check for Mapping takes ten times longer."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


def compact_json(spec: Any, size: int) -> str:
    """Write a specification in at most `size` characters, with as much data as fits."""
    for items in _STEPS:
        try:
            text = format_json(_Shortening(items, size).convert(spec, MAX_DEPTH))
        except TooLarge:
            continue
        if len(text) <= size:
            return text
    return cut_text(format_json(_Shortening(_STEPS[-1], None).convert(spec, 8)), size)


def write_json(spec: Any, max_items: int = _MAX_ITEMS) -> str:
    """Write a whole specification as JSON.

    Args:
        spec: The specification.
        max_items: Maximum items of all lists and objects together.

    Raises:
        TooLarge: They have more items.
        TooDeep: It contains itself, or is nested too deep.
    """
    _check_size(spec, max_items)
    options: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}
    try:
        # Most specifications are plain JSON, for which this is a hundred times faster.
        return replace_surrogates(json.dumps(spec, allow_nan=False, **options))
    except (TypeError, ValueError, RecursionError):
        return json.dumps(to_structured(spec, max_items), **options)


def _check_size(spec: Any, most: int) -> None:
    """Refuse a specification that would take forever to write, such as repeated nested lists."""
    open_parts = [spec] if isinstance(spec, _PARTS) else []
    while open_parts:
        part = open_parts.pop()
        items = part if isinstance(part, (list, tuple)) else part.values()
        most -= len(items)
        if most < 0:
            raise TooLarge
        open_parts += [
            item for item in items if type(item) not in _SCALARS and isinstance(item, _PARTS)
        ]


def estimate_memory(spec: Any) -> int:
    """Estimate how many bytes of memory a specification holds."""
    size = 0
    open_parts = [(spec, 1)]
    for _ in range(_MAX_VISITED):
        if not open_parts:
            break
        part, times = open_parts.pop()
        if isinstance(part, str):
            size += len(part) * times
        elif is_instance(part, "numpy.ndarray"):
            size += int(part.nbytes) * times
        elif isinstance(part, Mapping):
            size += 64 * times
            open_parts += [(item, times) for item in part.values()]
        elif isinstance(part, (list, tuple)):
            # Items of data are alike (rows or numbers), so the first ones represent all.
            sample = part[:10]
            size += 64 * times
            open_parts += [(item, times * len(part) // len(sample)) for item in sample]
        else:
            size += 32 * times
    return size


class _Shortening:
    """Shortens a specification: each list keeps some of its items.

    Args:
        items: Maximum items of each list.
        most: Maximum parts of the whole specification; None: no limit.
    """

    def __init__(self, items: int, most: int | None) -> None:
        self._items = items
        self._left = most

    def convert(self, value: Any, depth: int) -> Any:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise TooLarge
        if isinstance(value, str):
            return _shorten_text(value)
        if depth > 0 and isinstance(value, Mapping):
            array = _decode_array(value)
            if array is None:
                return self._convert_object(value, depth)
            return self._convert_list(array, depth)
        if depth > 0 and (isinstance(value, (list, tuple)) or _is_array(value)):
            return self._convert_list(value, depth)
        if is_instance(value, "numpy.floating"):
            value = float(value)
        if isinstance(value, float) and math.isfinite(value):
            return float(f"{value:.{_DIGITS}g}")
        return "..." if depth == 0 else to_json_value(value, self._items)

    def _convert_object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        most = _MAX_KEYS if self._left is not None else self._items
        shortened = {
            str(key): self.convert(item, depth - 1) for key, item in islice(value.items(), most)
        }
        if len(value) > most:
            shortened["..."] = f"{len(value) - most:,} more of {len(value):,} items"
        return shortened

    def _convert_list(self, value: Sequence[Any], depth: int) -> list[Any]:
        if len(value) <= self._items:
            return [self.convert(item, depth - 1) for item in value]
        tail = max(self._items // 4, 1)
        head = [self.convert(item, depth - 1) for item in value[: self._items - tail]]
        last = [self.convert(item, depth - 1) for item in value[len(value) - tail :]]
        note = f"... {len(value) - self._items:,} of {len(value):,} items left out ..."
        return [*head, note, *last]


def _is_array(value: Any) -> bool:
    return is_instance(value, "numpy.ndarray") and value.ndim > 0


def _shorten_text(value: str) -> Any:
    if value.startswith("data:"):
        return f"[{value.partition(',')[0][:100]}, {len(value):,} characters]"
    return cut_text(str(to_json_value(value, 1)), _MAX_STRING)


def _decode_array(value: Mapping[str, Any]) -> Any:
    """Return the array that plotly wrote as base64, or None if the object is not one."""
    data, name = value.get("bdata"), str(value.get("dtype", ""))
    if not isinstance(data, str):
        return None
    try:
        import numpy as np  # noqa: PLC0415 - numpy wrote such an array

        dtype = np.dtype(name)
        if dtype.kind not in "biuf":
            return None
        array = np.frombuffer(base64.b64decode(data), dtype=dtype)
        shape = [int(size) for size in str(value.get("shape", "")).split(",") if size.strip()]
        return array.reshape(shape) if shape else array
    except (ImportError, TypeError, ValueError):
        return None
