"""JSON Schema's keywords by what they hold, and the walks through a schema by them. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, not schemas."""
SINGLE = frozenset(
    {
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "not", "if", "then", "else"),
    }
)
"""Keywords that hold one schema."""
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords that hold schemas by name, where a name may be the same as a keyword."""
DEFINITIONS = ("$defs", "definitions")
"""Keywords that hold schemas by name for references."""


def walk_schema(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and each part of it that may be a schema.

    Callers may change a part: its own parts are read when the next one is asked for.
    """
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            yield item
            for keyword, value in item.items():
                if keyword in (*NAMED, *DEFINITIONS) and isinstance(value, dict):
                    waiting += value.values()
                elif keyword not in VALUES:
                    waiting.append(value)


def rewrite_schema(schema: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Return a schema with each part of it changed that may be a schema, the innermost first."""
    if isinstance(schema, list):
        return [rewrite_schema(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in (*NAMED, *DEFINITIONS) and isinstance(value, dict):
            copy[keyword] = {name: rewrite_schema(item, change) for name, item in value.items()}
        else:
            copy[keyword] = value if keyword in VALUES else rewrite_schema(value, change)
    return change(copy)


def list_subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas in a schema's keywords that apply schemas; not its definitions."""
    for keyword, value in schema.items():
        if keyword in SINGLE:
            yield value
        elif keyword in LISTS and isinstance(value, list):
            yield from value
        elif keyword in NAMED and isinstance(value, dict):
            yield from value.values()
