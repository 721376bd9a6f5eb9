"""Finds and rewrites parts of pydantic's core schemas, and builds validators from them.

Runs in the user's kernel, at definition. Pure functions.
"""

from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, TypeVar

_Built = TypeVar("_Built")

VALUE_KEYS = frozenset({"metadata", "default", "serialization", "expected", "members", "cls"})
"""Keys of a core schema that hold values, not schemas."""

_PREBUILT = ("model", "dataclass")
_COMPLETE = "__pydantic_complete__"
_LOCK = Lock()
"""Held while classes are not complete."""


def build_alone(make: Callable[..., _Built], schema: Any) -> _Built:
    """Return pydantic's validator or serializer for a core schema.

    pydantic would use a model's prebuilt validator in place of the rewritten part of the schema.
    """
    try:
        return make(schema, _use_prebuilt=False)
    except TypeError:  # a private option, since pydantic 2.13
        pass
    # Before, pydantic took it from each class that was complete.
    classes = [each["cls"] for each in walk_schemas(schema) if each["type"] in _PREBUILT]
    with _LOCK:
        complete = [each for each in classes if vars(each).get(_COMPLETE)]
        try:
            for each in complete:
                setattr(each, _COMPLETE, False)
            return make(schema)
        finally:
            for each in complete:
                setattr(each, _COMPLETE, True)


def rewrite(schema: Any, change: Callable[[Mapping[str, Any], dict[str, Any]], Any]) -> Any:
    """Return a core schema with each schema in it changed, at any depth.

    Args:
        schema: The core schema, or several.
        change: Takes the original schema and a copy with rewritten parts; returns the new schema.
    """
    if isinstance(schema, (list, tuple)):
        return type(schema)(rewrite(item, change) for item in schema)
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    for key, value in schema.items():
        if key in VALUE_KEYS:
            copy[key] = value
        elif _is_named(key, value):
            copy[key] = {name: rewrite(item, change) for name, item in value.items()}
        else:
            copy[key] = rewrite(value, change)
    return change(schema, copy) if isinstance(schema.get("type"), str) else copy


def walk_schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each schema in a core schema, at any depth."""
    if isinstance(schema, (list, tuple)):
        for item in schema:
            yield from walk_schemas(item)
    elif isinstance(schema, dict):
        if isinstance(schema.get("type"), str):
            yield schema
        for key, value in schema.items():
            if key not in VALUE_KEYS:
                yield from walk_schemas(list(value.values()) if _is_named(key, value) else value)


def _is_named(key: str, value: Any) -> bool:
    # The keys of these are the author's names, which may be "default".
    return key in ("fields", "choices") and isinstance(value, dict)
