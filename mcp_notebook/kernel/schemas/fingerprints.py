"""What a schema is made of, as bytes: equal bytes, equal schema.

Runs in the user's kernel, at definition. Pure. `fingerprint` takes only what it knows exactly (the
types, constraints and values of its tables, enumerations of plain values, models that are nothing
but their fields) and raises `Unknown` for all else: dataclasses and typed dicts, models with code
of their own, validators, callables, subclasses. What becomes of that is the caller's business
(`kernel.schemas.schema_cache`: it is not cached).

Resolved type hints are taken, not their source: an alias or an enumeration that another cell or
module defines counts as it is now.
"""

import collections.abc
import enum
import types
from collections.abc import Callable
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import annotated_types
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

_CLASSES = (
    *(bool, int, float, str, bytes, type(None), object, list, dict, tuple, set, frozenset),
    *(date, datetime, time, timedelta, Decimal, UUID, Path),
)
_ORIGINS = (
    *(list, dict, tuple, set, frozenset, Union, types.UnionType, Literal),
    *(collections.abc.Sequence, collections.abc.Mapping, collections.abc.Iterable),
)
_CONSTANTS: tuple[Any, ...] = (Any, Ellipsis, PydanticUndefined)
_NAMES: dict[Any, str] = {item: repr(item) for item in (*_CLASSES, *_ORIGINS, *_CONSTANTS)}
_BY_REPR = (type(None), bool, int, float, str, bytes, date, timedelta, Decimal, UUID)
"""Types whose values their `repr` tells exactly."""
_CONSTRAINTS = (
    *(annotated_types.Gt, annotated_types.Ge, annotated_types.Lt, annotated_types.Le),
    *(annotated_types.MultipleOf, annotated_types.MinLen, annotated_types.MaxLen),
)
_ENUM_BASES = (enum.Enum, enum.IntEnum, enum.StrEnum, enum.ReprEnum, str, int, float, object)
_ENUM_CODE = ("_missing_", "value", "name", "_value_", "__eq__", "__hash__")
"""Attributes by which an enumeration would take part in what its values are."""
_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "__get_validators__")
_MODEL_META = type(BaseModel)
_MODEL_CODE = (*_HOOKS, "model_json_schema", "__new__", "__eq__", "__hash__", "model_validate")
_IRRELEVANT = frozenset({"_complete", "_original_annotation", "_original_assignment"})
"""Parts of a `FieldInfo` that belong to the model it is in, and here to none."""


class Unknown(Exception):
    """Something that this module cannot tell exactly."""


def fingerprint(value: Any) -> bytes:
    """Return what tells a type hint, a default, or a container of them from all others.

    Raises:
        Unknown: It holds something that is not in this module's tables.
    """
    told = _told(value)
    # Each part carries its length, so that no two lists of parts run together to the same bytes.
    return b"%d:" % len(told) + told


def _told(value: Any) -> bytes:
    kind = type(value)
    if kind in _BY_REPR:
        return _text(f"{kind.__name__} {value!r}")
    teller = _TELLERS.get(kind)
    if teller is not None:
        return teller(value)
    if type(kind) is enum.EnumMeta:
        return _parts("member", [kind, value.name])
    return _hint(value)


def _sequence(value: Any) -> bytes:
    return _parts(type(value).__name__, value)


def _dict(value: dict[Any, Any]) -> bytes:
    return _parts("dict", [part for item in value.items() for part in item])


def _set(value: Any) -> bytes:
    if value:  # their order is a matter of chance, and it is seen in a published default
        raise Unknown
    return _text(type(value).__name__)


def _moment(value: datetime | time) -> bytes:
    if value.tzinfo is not None:
        raise Unknown
    return _text(repr(value))


def _constraint(value: Any) -> bytes:
    return _parts(type(value).__name__, [getattr(value, item.name) for item in fields(value)])


def _general(value: Any) -> bytes:
    return _parts("general", sorted(vars(value).items()))


def _hint(value: Any) -> bytes:
    origin = get_origin(value)
    if origin is not None:
        return _generic(value, origin)
    try:
        name = _NAMES.get(value)
    except Exception:  # noqa: BLE001 - a value of the author's may refuse even to be hashed
        name = None
    # A value may say that it equals anything.
    if name is None or not any(value is known for known in _NAMES):
        raise Unknown
    return _text(f"known {name}")


def _generic(value: Any, origin: Any) -> bytes:
    if origin is Annotated:
        return _parts("Annotated", [value.__origin__, *value.__metadata__])
    if not any(origin is known for known in _ORIGINS):
        raise Unknown
    # A subclass of an alias may carry more than origin and arguments.
    if type(value).__module__ not in ("typing", "types"):
        raise Unknown
    # With its type: `typing.Tuple` and `tuple[()]` have the same origin and arguments.
    return _parts(f"{_NAMES[origin]} {type(value).__qualname__}", get_args(value))


def _field(field: FieldInfo) -> bytes:
    named = [(name, getattr(field, name, None)) for name in FieldInfo.__slots__]
    # None says nothing but in `default`: half of the time goes by leaving it out.
    said = [
        item
        for item in named
        if item[0] not in _IRRELEVANT and (item[1] is not None or item[0] == "default")
    ]
    return _parts("Field", said)


def _enumeration(kind: Any) -> bytes:
    own = vars(kind)
    plain = (
        all(base is kind or base in _ENUM_BASES for base in kind.__mro__)
        and not any(name in own for name in _ENUM_CODE)
        and not any(hasattr(kind, hook) for hook in _HOOKS)
    )
    if not plain:
        raise Unknown
    members = [(name, vars(member)["_value_"]) for name, member in kind.__members__.items()]
    bases = [base.__qualname__ for base in kind.__mro__]
    return _parts("enum", [kind.__module__, kind.__qualname__, kind.__doc__, bases, members])


def _model(kind: Any) -> bytes:
    """Tell a model that is nothing but its fields."""
    bases = kind.__mro__[: kind.__mro__.index(BaseModel)]
    code = kind.__pydantic_decorators__  # validators, serializers, computed fields
    plain = (
        kind.__pydantic_complete__
        and not kind.__pydantic_custom_init__
        and not kind.__pydantic_post_init__
        and not kind.__pydantic_root_model__
        and not any(kind.__pydantic_generic_metadata__.values())
        and not any(getattr(code, item.name) for item in fields(code))
        and all(type(base) is _MODEL_META for base in bases)
        and not any(name in vars(base) for base in bases for name in _MODEL_CODE)
    )
    if not plain:
        raise Unknown
    # `dict`: the configuration may be a dict's subclass, and is one of plain values or unknown.
    parts = [kind.__module__, kind.__qualname__, kind.__doc__, dict(kind.model_config)]
    described = [(name, field, field.annotation) for name, field in kind.model_fields.items()]
    return _parts("model", [*parts, described])


def _parts(name: str, parts: collections.abc.Iterable[Any]) -> bytes:
    return _text(name) + b"(" + b"".join(fingerprint(part) for part in parts) + b")"


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_TELLERS: dict[type, Callable[[Any], bytes]] = {
    list: _sequence,
    tuple: _sequence,
    dict: _dict,
    set: _set,
    frozenset: _set,
    datetime: _moment,
    time: _moment,
    FieldInfo: _field,
    # What a `Field` holds of a pattern and other constraints; its class has no public name.
    type(Field(pattern="").metadata[0]): _general,
    **dict.fromkeys(_CONSTRAINTS, _constraint),
    enum.EnumMeta: _enumeration,
    _MODEL_META: _model,
}
"""By the exact type: a subclass may say or do anything."""
