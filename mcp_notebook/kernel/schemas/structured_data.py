"""Structured content within its limit: what has no annotation as JSON, and sizes that are refused.

Runs in the user's kernel, wherever a call ran. Pure functions. Structured content is never cut:
half of it would be wrong data for a program.
"""

import collections
import collections.abc
import json
import math
from dataclasses import is_dataclass
from types import NoneType
from typing import Any

from pydantic import BaseModel

from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.safe.to_json import TooDeep, TooLarge, to_structured

RETURN_LESS = "return less, or declare the tool with `output_schema=False` (`--no-output-schema`)"
_write_json = json.JSONEncoder(ensure_ascii=False).encode
_WITHOUT_PARTS = frozenset({NoneType, bool, int, float})
_RETURN_LESS_BY_HAND = "give the `Result` less as `structured`"


def convert_plain_data(value: Any, max_chars: int, to_do: str = _RETURN_LESS_BY_HAND) -> Any:
    """Return the JSON value of what has no annotation.

    Args:
        value: Anything.
        max_chars: Characters of JSON that it may have.
        to_do: What the author can do if it has more.

    Raises:
        InvalidResult: It is too large or contains itself.
    """
    try:
        return to_structured(value, max_chars)
    except TooLarge:
        raise make_size_error(f"more than {max_chars:,} parts", max_chars, to_do) from None
    except TooDeep as error:
        raise InvalidResult(f"The result cannot be sent as data: {error}.") from None


def check_size(data: Any, max_chars: int, to_do: str = _RETURN_LESS_BY_HAND) -> None:
    """Refuse a JSON value that is too large.

    Raises:
        InvalidResult: Says how large it is and what the author can do.
    """
    try:
        size = len(_write_json(data))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidResult(
            f"The result cannot be sent as data: {describe_error(error)}."
        ) from None
    if size > max_chars:
        raise make_size_error(f"{size:,} characters of JSON", max_chars, to_do)


def check_parts(value: Any, max_chars: int, to_do: str) -> None:
    """Refuse a value that has too many parts, before it is converted at great cost.

    Raises:
        InvalidResult: Its JSON could only be too large.
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
    if left < 0:
        raise make_size_error(f"more than {max_chars:,} characters of JSON", max_chars, to_do)


def make_size_error(size: str, max_chars: int, to_do: str) -> InvalidResult:
    """Return the error for a result that is too large.

    Args:
        size: How large it is, in words.
        max_chars: Characters of JSON that it may have.
        to_do: What the author can do.
    """
    return InvalidResult(
        f"The result is too large to be sent as data: {size}, at most {max_chars:,} characters "
        f"are allowed (MCP_NOTEBOOK_MAX_STRUCTURED_CHARS): {to_do}."
    )


def _list_parts(item: Any) -> tuple[int, Any]:
    """Return how many parts a value has, and these where they may have parts in turn."""
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
