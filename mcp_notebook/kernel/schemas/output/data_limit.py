"""Limits the size of structured content, and converts values without an annotation to JSON.

Runs in the user's kernel, wherever a call ran. Pure functions. When data is too large, lists and
mappings keep their first items, and a string keeps its two ends with a mark between.
"""

import collections
import collections.abc
import json
import math
from collections.abc import Sequence
from dataclasses import is_dataclass
from itertools import islice
from types import NoneType
from typing import Any

from msgspec import Struct, structs
from pydantic import BaseModel

from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import cut_text, describe_error
from mcp_notebook.kernel.safe.to_json import TooDeep, TooLarge, to_structured
from mcp_notebook.text.wording import count

MAX_WHOLE = 20
"""Factor of the size limit up to which a result is converted in order to send a part of it."""
_MAX_CUTS = 50
_MARK = 100
"""Additional characters to cut from a string, for the mark in its place."""
_write_json = json.JSONEncoder(ensure_ascii=False).encode
_WITHOUT_PARTS = frozenset({NoneType, bool, int, float})


class Cut(Struct, frozen=True):
    """A list, a mapping or a string that was cut."""

    path: tuple[str, ...]
    """The keys that lead to it from the root of the structured content."""
    kept: int
    """Number of its first items, or of characters at both ends of a string."""
    total: int
    unit: str = "item"

    def __str__(self) -> str:
        where = f" of `{'.'.join(self.path)}`" if self.path else ""
        first = "the first " if self.unit == "item" else ""
        return f"{first}{self.kept:,} of {count(self.total, self.unit)}{where}"


def take_first(value: Any, most: int) -> Any:
    """Return the first items of a longer list, mapping or table; any other value unchanged."""
    if isinstance(value, collections.abc.Mapping):
        is_long = len(value) > most
        return {key: value[key] for key in islice(value, most)} if is_long else value
    if type(value) in (list, tuple, range):
        return value[:most] if len(value) > most else value
    if is_instance(value, "pandas.DataFrame") or is_instance(value, "pandas.Series"):
        return value.iloc[:most]
    if is_instance(value, "numpy.ndarray") and value.ndim:
        return value[:most]
    if is_instance(value, "polars.DataFrame") or is_instance(value, "polars.Series"):
        return value.head(most)
    return value.slice(0, most) if is_instance(value, "pyarrow.Table") else value


def count_chars(data: Any) -> int:
    """Return how many characters of JSON a JSON value has.

    Raises:
        InvalidResult: It is not a JSON value.
    """
    try:
        return len(_write_json(data))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidResult(
            f"The result cannot be sent as data: {describe_error(error)}."
        ) from None


def shorten_data(data: Any, max_chars: int) -> tuple[Any, list[Cut]]:
    """Return a JSON value with its largest lists cut to the size limit, and the cuts.

    Lists of one length side by side, such as the columns of a table, keep the same length.

    Args:
        data: The JSON value; not changed.
        max_chars: Characters of JSON that it may have.

    Raises:
        InvalidResult: Cutting lists, mappings and strings is not enough.
    """
    cuts: list[Cut] = []
    size = whole = count_chars(data)
    while size > max_chars:
        data, more = _cut_largest(data, size - max_chars, ())
        cuts += more
        if not more or len(cuts) > _MAX_CUTS or not all(cut.kept for cut in more):
            raise make_size_error(f"{whole:,} characters of JSON", max_chars)
        size = count_chars(data)
    return data, _join_cuts(cuts)


def _cut_largest(data: Any, excess: int, path: tuple[str, ...]) -> tuple[Any, list[Cut]]:
    """Cut the largest part of a value by about `excess` characters."""
    if isinstance(data, str):
        kept = max(len(data) - excess - _MARK, 0)
        return cut_text(data, kept), [Cut(path, kept, len(data), "character")]
    if not isinstance(data, (list, dict)) or not data:
        return data, []
    parts = data if isinstance(data, dict) else dict(enumerate(data))
    sizes = {key: _measure_item(key, item, data) for key, item in parts.items()}
    largest = max(sizes, key=sizes.__getitem__)
    item = parts[largest]
    if isinstance(data, dict) and isinstance(item, list):
        columns = {name: col for name, col in data.items() if _is_column(col, len(item))}
        if len(columns) > 1:
            share = 1 - excess / sum(sizes[name] for name in columns)
            kept = min(int(len(item) * max(share, 0)), len(item) - 1)
            cuts = [Cut((*path, str(name)), kept, len(item)) for name in columns]
            return {**data, **{name: col[:kept] for name, col in columns.items()}}, cuts
    if sizes[largest] > sum(sizes.values()) / 2:
        changed, cuts = _cut_largest(item, excess, (*path, str(largest)))
        if cuts:
            copy = data.copy()
            copy[largest] = changed
            return copy, cuts
    kept = len(parts)
    for size in reversed(sizes.values()):
        if excess <= 0:
            break
        kept -= 1
        excess -= size
    part = dict(islice(data.items(), kept)) if isinstance(data, dict) else data[:kept]
    return part, [Cut(path, kept, len(parts))]


def _join_cuts(cuts: Sequence[Cut]) -> list[Cut]:
    """Merge repeated cuts of the same place."""
    joined: dict[tuple[str, ...], Cut] = {}
    for cut in cuts:
        joined[cut.path] = structs.replace(joined.get(cut.path, cut), kept=cut.kept)
    return list(joined.values())


def _measure_item(key: Any, item: Any, parent: Any) -> int:
    """Return the characters of JSON of an item, with separators and key."""
    return len(_write_json(item)) + 2 + (len(_write_json(key)) + 2) * isinstance(parent, dict)


def _is_column(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length


def convert_plain_data(value: Any, max_chars: int) -> Any:
    """Return the JSON value of a result without an annotation.

    Args:
        value: Anything.
        max_chars: Characters of JSON that it may have.

    Raises:
        InvalidResult: It is too large or contains itself.
    """
    try:
        return to_structured(value, max_chars)
    except TooLarge:
        raise make_size_error(f"more than {max_chars:,} parts", max_chars) from None
    except TooDeep as error:
        raise InvalidResult(f"The result cannot be sent as data: {error}.") from None


def has_at_most(value: Any, max_chars: int) -> bool:
    """Return False if a value has so many parts that its JSON is certainly longer.

    It is quick, and so comes before the expensive conversion.
    """
    left = max_chars
    counted_ids: set[int] = set()
    waiting = [value]
    while waiting and left >= 0:
        item = waiting.pop()
        if isinstance(item, str):
            left -= len(item)
            continue
        size, parts = (1, ()) if type(item) in _WITHOUT_PARTS else _list_parts(item)
        left -= size
        if left >= 0 and parts and id(item) not in counted_ids:
            counted_ids.add(id(item))
            waiting += parts
    return left >= 0


def make_size_error(size: str, max_chars: int) -> InvalidResult:
    """Return the error for a result that is too large.

    Args:
        size: How large it is, in words.
        max_chars: Characters of JSON that it may have.
    """
    return InvalidResult(
        f"The result is too large to be sent as data: {size}, at most {max_chars:,} characters "
        "are allowed (the limit max_result_chars). Return less, or raise the limit."
    )


def _list_parts(item: Any) -> tuple[int, Any]:
    """Return the number of a value's parts, and those parts that may have parts in turn."""
    if type(item) in (list, tuple, set, frozenset, collections.deque):
        return len(item), item
    if type(item) is dict:
        return len(item), item.values()
    if isinstance(item, BaseModel) or (is_dataclass(item) and not isinstance(item, type)):
        values = getattr(item, "__dict__", {}).values()
        return len(values), values
    if isinstance(item, (collections.abc.Sized, bytes, bytearray)):
        shape = getattr(item, "shape", None)
        try:
            return math.prod(shape) if isinstance(shape, tuple) else len(item), ()
        except Exception:  # noqa: BLE001 - a proxy that is not bound may raise anything
            return 1, ()
    return 1, ()
