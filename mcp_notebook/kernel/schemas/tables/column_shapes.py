"""Values of a column for libraries whose columns have one type: plain ones, and what they are like.

Runs in the user's kernel: shapes at definition, values where a call's tables are made. Pure. polars
and pyarrow have no column of models or of an enumeration's members: `table_libraries` gives them
plain values, and takes the dtype of values that say nothing (no rows, empty lists) from a shape.
"""

import datetime as dt
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

Shape = Any
"""A type, `[shape]` of a list, or `{name: shape}` of an object; None: it is not known."""
NO_SHAPE: Shape = object()
"""Of values that no column of one type holds: complex numbers, arrays with several types."""
_PLAIN = frozenset(
    {bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta}
)
_LISTS = (list, set, frozenset, tuple)
_TEXTS = (PurePath, IPv4Address, IPv4Network, IPv6Address, IPv6Network)
_MAX_DEPTH = 8
"""A model may contain itself."""


def to_plain(value: Any) -> Any:  # noqa: PLR0911 - a table of types
    """Return a value as polars and pyarrow take it: members, models and tuples are as in JSON."""
    if type(value) in _PLAIN or value is None:
        return value
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, BaseModel):
        return {name: to_plain(item) for name, item in value}
    if is_dataclass(value):
        return {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(to_plain(name)): to_plain(item) for name, item in value.items()}
    if isinstance(value, _LISTS):
        return list(map(to_plain, value))
    is_address = type(value).__module__ == "pydantic.networks"
    return str(value) if is_address or isinstance(value, _TEXTS) else value


def is_kept(value: Any, stored: Any) -> bool:
    """Tell whether a library holds a value as sent; it may add missing fields, and make floats."""
    if isinstance(value, dict):
        return isinstance(stored, dict) and all(
            is_kept(part, stored.get(name)) for name, part in value.items()
        )
    if isinstance(value, list):
        return (
            isinstance(stored, list)
            and len(value) == len(stored)
            and all(map(is_kept, value, stored))
        )
    if isinstance(value, bool) is not isinstance(stored, bool):
        return False
    return bool(value == stored) or (value != value and stored != stored)  # noqa: PLR0124 - NaN


def read_shape(hint: Any, depth: int = 0) -> Shape:  # noqa: PLR0911 - a table of type hints
    """Return the shape of the plain values of a type hint, beside None."""
    arguments, origin = get_args(hint), get_origin(hint)
    if origin is Annotated:
        return read_shape(arguments[0], depth)
    if isinstance(hint, type) and (hint is complex or hint in _PLAIN):
        return NO_SHAPE if hint is complex else hint
    if depth > _MAX_DEPTH:
        return None
    values = arguments if origin is Literal else _list_members(hint)
    if values:
        return _find_common_option([type(value) for value in values if value is not None])
    parts = [read_shape(item, depth + 1) for item in arguments if item not in (type(None), ...)]
    if origin in (Union, types.UnionType):
        return _find_common_option(parts)
    if origin in _LISTS:
        return _wrap_list(_find_common(parts))
    return _read_fields(hint, depth)


def _list_members(hint: Any) -> list[Any]:
    is_enum = isinstance(hint, type) and issubclass(hint, Enum)
    return [to_plain(member) for member in hint] if is_enum else []


def _find_common_option(shapes: list[Shape]) -> Shape:
    """Return the shape of a value that has one of several; None if the values decide."""
    shape = _find_common(shapes)
    return None if shape is NO_SHAPE and shapes.count(NO_SHAPE) < len(shapes) else shape


def _wrap_list(shape: Shape) -> Shape:
    return shape if shape is None or shape is NO_SHAPE else [shape]


def _find_common(shapes: list[Shape]) -> Shape:
    """Return the shape that holds values of several; `NO_SHAPE` if there is none."""
    choices: list[Shape] = []
    for shape in shapes:
        if shape is None:
            return None
        choices += [] if shape in choices else [shape]
    if len(choices) == 1:
        return choices[0]
    return float if len(choices) == 2 and int in choices and float in choices else NO_SHAPE  # noqa: PLR2004


def _read_fields(kind: Any, depth: int) -> Shape:
    is_model = isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind))
    if not is_model and not is_typeddict(kind):
        return None
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001 - names that are defined nowhere, in the author's class
        return None
    names = _list_fields(kind, hints)
    parts = {name: read_shape(hints[name], depth + 1) for name in names if name in hints}
    if any(shape is NO_SHAPE for shape in parts.values()):
        return NO_SHAPE
    return parts if parts and all(shape is not None for shape in parts.values()) else None


def _list_fields(kind: Any, hints: Mapping[str, Any]) -> Iterable[str]:
    if is_dataclass(kind):
        return [item.name for item in fields(kind)]
    return list(getattr(kind, "model_fields", hints))
