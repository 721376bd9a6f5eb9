"""The specification of a plot as JSON that a model can take: its shape whole, its data shortened.

Runs in the user's kernel, on the thread of the call. Pure functions over the JSON of plotly, Vega
and bokeh, live (with numpy arrays) or as it travels. Which parts of it are noise is `kernel.plots`'
business.
"""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from mcp_notebook.kernel.jsonable import MAX_DEPTH, json_text, to_json_value, to_structured
from mcp_notebook.kernel.texts import cut, is_instance

_STEPS = (1_000, 200, 50, 20, 10, 6, 4)
"""Items that a list may have, tried one after the other until the whole fits."""
_DIGITS = 6
"""Of a number: more of them are more tokens, and no reader of a plot sees them."""
_MAX_KEYS = 200
_MAX_STRING = 300
_MAX_ITEMS = 10**9


def compact(spec: Any, size: int) -> str:
    """Write a specification in at most `size` characters, with as much of its data as fits."""
    text = ""
    for items in _STEPS:
        text = json_text(_shortened(spec, items, MAX_DEPTH))
        if len(text) <= size:
            return text
    return cut(text, size)


def whole(spec: Any) -> str:
    """Write all of a specification as JSON."""
    return json.dumps(to_structured(spec, _MAX_ITEMS), ensure_ascii=False, separators=(",", ":"))


def memory(spec: Any) -> int:
    """Return about how many bytes a specification holds."""
    if isinstance(spec, str):
        return len(spec)
    if is_instance(spec, "numpy.ndarray"):
        return int(spec.nbytes)
    if isinstance(spec, Mapping):
        return 64 + sum(memory(item) for item in spec.values())
    if isinstance(spec, (list, tuple)):
        # Data are rows or numbers, all of a kind: the first ones tell.
        first = [memory(item) for item in spec[:10]]
        return 64 + (sum(first) * len(spec) // len(first) if first else 0)
    return 32


def _shortened(value: Any, items: int, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if depth > 0 and isinstance(value, Mapping):
        array = _typed_array(value)
        return _object(value, items, depth) if array is None else _list(array, items, depth)
    if depth > 0 and (isinstance(value, (list, tuple)) or _is_array(value)):
        return _list(value, items, depth)
    if is_instance(value, "numpy.floating"):
        value = float(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{_DIGITS}g}")
    return "..." if depth == 0 else to_json_value(value, items)


def _is_array(value: Any) -> bool:
    return is_instance(value, "numpy.ndarray") and value.ndim > 0


def _object(value: Mapping[Any, Any], items: int, depth: int) -> dict[str, Any]:
    made = {
        str(key): _shortened(item, items, depth - 1)
        for key, item in islice(value.items(), _MAX_KEYS)
    }
    if len(value) > _MAX_KEYS:
        made["..."] = f"{len(value) - _MAX_KEYS:,} more of {len(value):,} items"
    return made


def _list(value: Sequence[Any], items: int, depth: int) -> list[Any]:
    if len(value) <= items:
        return [_shortened(item, items, depth - 1) for item in value]
    tail = max(items // 4, 1)
    head = [_shortened(item, items, depth - 1) for item in value[: items - tail]]
    last = [_shortened(item, items, depth - 1) for item in value[len(value) - tail :]]
    return [*head, f"... {len(value) - items:,} of {len(value):,} items left out ...", *last]


def _text(value: str) -> Any:
    if value.startswith("data:"):
        return f"[{value.partition(',')[0][:100]}, {len(value):,} characters]"
    return cut(str(to_json_value(value, 1)), _MAX_STRING)


def _typed_array(value: Mapping[str, Any]) -> Any:
    """Return the numbers that plotly writes as base64, None if the object is none of these."""
    data, name = value.get("bdata"), str(value.get("dtype", ""))
    if not isinstance(data, str):
        return None
    try:
        import numpy as np  # noqa: PLC0415 - such arrays are written only where it is

        dtype = np.dtype(name)
        if dtype.kind not in "biuf":
            return None
        array = np.frombuffer(base64.b64decode(data), dtype=dtype)
        shape = [int(size) for size in str(value.get("shape", "")).split(",") if size.strip()]
        return array.reshape(shape) if shape else array
    except (ImportError, TypeError, ValueError):
        return None
