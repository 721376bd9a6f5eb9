"""Bounds that pydantic publishes under Python's names, in the words of JSON Schema.

Runs in the user's kernel, at definition. Pure. Of a type that pydantic does not know, as those of
the data libraries are, it writes ``ge`` where JSON Schema has ``minimum``, and calls every length
that of a text.
"""

from collections.abc import Mapping
from typing import Any

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "array": {"minLength": "minItems", "maxLength": "maxItems"},
    "object": {"minLength": "minProperties", "maxLength": "maxProperties"},
}
_VALUES = frozenset({"default", "examples", "enum", "const"})
"""Keywords that hold values, not schemas."""


def settle_bounds(root: Any) -> None:
    """Change such bounds at any depth of a schema; what JSON Schema has no word for is left out."""
    waiting = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            _settle(item)
            waiting += [part for key, part in item.items() if key not in _VALUES]
        elif isinstance(item, list):
            waiting += item


def _settle(schema: dict[str, Any]) -> None:
    options = [option for option in schema.get("anyOf", ()) if isinstance(option, dict)]
    options = options or [schema]
    for key, name in _NUMBERS.items():
        # A property of this name is an object, or true.
        if not isinstance(schema.get(key, {}), (dict, bool)):
            value = schema.pop(key)
            for option in options:
                if option.get("type") in ("integer", "number"):
                    _bound(option, name, value)
    for key in ("minLength", "maxLength"):
        is_bound = type(schema.get(key)) is int and schema.get("type", "array") != "string"
        value = schema.pop(key) if is_bound else None
        for option in options if is_bound else ():
            if (length := _find_length(option, key)) is not None:
                _bound(option, length, value)


def _find_length(option: Mapping[str, Any], key: str) -> str | None:
    """Return the keyword for the length of what an option allows, None if it has none."""
    if option.get("type") == "string":
        return key
    # The length of a table is not that of an object of its columns.
    if option.get("type") == "object" and option.keys() & {"properties", "additionalProperties"}:
        return None
    return _LENGTHS.get(str(option.get("type")), {}).get(key)


def _bound(option: dict[str, Any], name: str, value: Any) -> None:
    """Write a bound, unless the dtype's own is narrower."""
    narrower = max if name.startswith(("min", "exclusiveMin")) else min
    option[name] = narrower(option[name], value) if name in option else value
