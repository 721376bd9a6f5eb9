"""Parts of a JSON Schema, and whether what it says in words allows a value.

Runs in the user's kernel, when a value is refused. Pure. Not a validator: what our messages do not
tell of a schema is not looked at, and no expression of an author's is run.
"""

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
Part = Schema | bool
"""Part of a schema: True says nothing."""


def resolve(schema: Part, root: Schema) -> Schema:
    """Return the schema that a reference in this one leads to, or the very schema."""
    if isinstance(schema, bool):
        return {}
    if "$ref" not in schema:
        return schema
    section, _, name = schema["$ref"].rpartition("/")
    definition = root.get("$defs", {}).get(name) if section == "#/$defs" else None
    return definition if isinstance(definition, dict) else {}


def list_options(schema: Part, root: Schema) -> list[Schema]:
    """Return the schema, and those that it offers a choice of."""
    target = resolve(schema, root)
    choices = target.get("anyOf") or target.get("oneOf") or target.get("allOf") or ()
    return [target, *(option for choice in choices for option in list_options(choice, root))]


def find_part(path: Sequence[int | str], root: Schema) -> Schema:
    """Return the schema of what is at a path; {} if nothing is said of it."""
    schema = root
    for part in path:
        # Each once: a type that contains itself several times would double them with each level.
        options = list({id(option): option for option in list_options(schema, root)}.values())
        if isinstance(part, int):  # an item, unless there is no array: a key of a dict of Python's
            options = [item for item in options if item.get("type") == "array"] or options
        children = [child for option in options if (child := _find_child(option, part))]
        if not children:
            return {}
        schema = children[0] if len(children) == 1 else {"anyOf": children}
    return schema


def _find_child(schema: Schema, part: int | str) -> Schema:
    child: Any = None
    if isinstance(part, int):
        fixed = schema.get("prefixItems", [])
        child = fixed[part] if part < len(fixed) else schema.get("items")
    if child is None:
        child = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
    return child if isinstance(child, dict) else {}


# -- what the words allow --------------------------------------------------------------------------


def is_allowed(value: Any, schema: Part, root: Schema) -> bool:
    """Tell whether a value is what the words for a schema allow, though it was refused.

    Args:
        value: As a client sent it, or a function returned it.
        schema: The schema of its place.
        root: The whole schema, for its ``$defs``.
    """
    target = resolve(schema, root)
    if "const" in target or "enum" in target:
        listed = target.get("enum", [target.get("const")])
        return any(value == item and type(value) is type(item) for item in listed)
    if options := target.get("anyOf") or target.get("oneOf"):
        return any(is_allowed(value, option, root) for option in options)
    if target.get("format") == "duration":
        return _is_duration(value)
    kinds = target.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds or list(_KINDS)
    return any(_KINDS[name](value) for name in names if name in _KINDS) and _is_within(
        value, target
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, (list, tuple)),
    "object": lambda value: isinstance(value, dict),
}
_FORMATS: Mapping[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "date-time": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
}


def _is_duration(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, str) and value.lstrip("+-").startswith("P"))


def _is_within(value: Any, target: Schema) -> bool:
    if isinstance(value, str):
        return _has_length(value, target, "Length") and _has_format(value, target)
    if isinstance(value, (list, tuple)):
        return _has_length(value, target, "Items")
    if not _is_number(value) or value != value:  # noqa: PLR0124 - NaN; `isnan` fails for large integers
        return True
    step = target.get("multipleOf")
    return (
        value >= target.get("minimum", -math.inf)
        and value <= target.get("maximum", math.inf)
        and not ("exclusiveMinimum" in target and value <= target["exclusiveMinimum"])
        and not ("exclusiveMaximum" in target and value >= target["exclusiveMaximum"])
        # Whether it is a multiple is pydantic's to say, who rounds.
        and step is None
    )


def _has_length(value: Any, target: Schema, of: str) -> bool:
    return bool(target.get(f"min{of}", 0) <= len(value) <= target.get(f"max{of}", math.inf))


def _has_format(value: str, target: Schema) -> bool:
    if "pattern" in target:
        return False  # the words repeat it
    try:
        _FORMATS.get(target.get("format", ""), str)(value)
    except ValueError:
        return False
    return True
