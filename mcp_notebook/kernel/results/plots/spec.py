"""Writes the specification of a plot as JSON: whole, or with its data shortened for a model.

Runs in the user's kernel, on the thread of the call. Pure functions on the specifications of
plotly, Vega and bokeh, whether as objects with numpy arrays or as parsed JSON.
"""

import base64
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import cut_text, replace_surrogates
from mcp_notebook.kernel.safe.to_json import (
    MAX_STRUCTURED_DEPTH,
    Conversion,
    TooLarge,
    format_json,
    to_structured,
)

_STEPS = (1_000, 200, 50, 20, 10, 6, 4)
"""Maximum items per list, tried in this order until the text fits."""
_DIGITS = 6
"""Significant digits of a number; more would only cost tokens."""
_MAX_KEYS = 200
_LEAST_DEPTH = 8
"""Levels of nesting that are shown of a specification that is too large, even so."""
_MAX_STRING = 300
_MAX_ITEMS = 20_000_000
_PARTS = (list, tuple, dict, Mapping)
"""Collections, the common ones first: the check for Mapping takes ten times longer."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


def compact_json(spec: Any, size: int) -> str:
    """Write a specification in at most `size` characters, with as much data as fits."""
    for items in _STEPS:
        try:
            text = format_json(_Shortening(items, size).convert(spec))
        except TooLarge:
            continue
        if len(text) <= size:
            return text
    return cut_text(format_json(_Shortening(_STEPS[-1], None).convert(spec)), size)


def write_json(spec: Any, max_items: int = _MAX_ITEMS) -> str:
    """Write a whole specification as JSON.

    Args:
        spec: The specification.
        max_items: Maximum items of all lists and objects together.

    Raises:
        TooLarge: They have more items.
        TooDeep: It contains itself, or is nested too deep.
    """
    depth = _measure_depth(spec, max_items)
    options: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}
    if depth <= MAX_STRUCTURED_DEPTH:
        # Most specifications are plain JSON, for which this is a hundred times faster.
        with contextlib.suppress(TypeError, ValueError):
            return replace_surrogates(json.dumps(spec, allow_nan=False, **options))
    return json.dumps(to_structured(spec, max_items), **options)


def _measure_depth(spec: Any, most: int) -> int:
    """Return how deep a specification is nested.

    Raises:
        TooLarge: It would take forever to write, as repeated nested lists do.
    """
    depth, parts = 0, [spec] if isinstance(spec, _PARTS) else []
    while parts:
        depth += 1
        deeper: list[Any] = []
        for part in parts:
            items = part if isinstance(part, (list, tuple)) else part.values()
            most -= len(items)
            if most < 0:
                raise TooLarge
            deeper += [
                item for item in items if type(item) not in _SCALARS and isinstance(item, _PARTS)
            ]
        parts = deeper
    return depth


class _Shortening(Conversion):
    """Shortens a specification: each list keeps some of its items.

    Args:
        items: Maximum items of each list.
        most: Maximum parts of the whole specification; None: no limit.
    """

    def __init__(self, items: int, most: int | None) -> None:
        super().__init__(_MAX_ITEMS, length=items, most=most)
        self._keys = _MAX_KEYS
        if most is None:
            self._keys, self._max_depth = items, _LEAST_DEPTH

    def _convert_text(self, value: str) -> str:
        if value.startswith("data:"):
            return f"[{value.partition(',')[0][:100]}, {len(value):,} characters]"
        return cut_text(super()._convert_text(value), _MAX_STRING)

    def _convert_float(self, value: float) -> Any:
        plain = super()._convert_float(value)
        return float(f"{plain:.{_DIGITS}g}") if isinstance(plain, float) else plain

    def _convert_mapping(self, value: Mapping[Any, Any]) -> Any:
        array = _decode_array(value)
        return super()._convert_mapping(value) if array is None else self._convert_array(array)

    def _convert_object(self, value: Any) -> Any:
        is_array = is_instance(value, "numpy.ndarray") and value.ndim > 0
        return self._convert_array(value) if is_array else super()._convert_object(value)


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
