"""Describes JSON Schemas in a few words, ``integer from 1 to 10``, and finds their parts.

Runs in the user's kernel: on cards, and when a value is refused. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

Schema = Mapping[str, Any]
Part = Schema | bool
"""A schema or subschema; True allows anything."""
MAX_VALUES = 30
"""Values of an enumeration that a message repeats."""
MAX_FIELDS = 8
"""Fields of one of several types that a message names."""
_FORMATS = {
    "date": "date as text, '2024-12-31'",
    "date-time": "date and time as text, '2024-12-31T23:59:00'",
    "time": "time as text, '23:59:00'",
    "duration": "duration as text, 'P1DT2H', or seconds",
    "binary": "text",
    "base64": "bytes as base64 text",
    "path": "path as text",
    "file-path": "path of a file as text",
    "uri": "web address as text",
    "password": "secret text",
}


class Words(Struct, frozen=True):
    """Names for the types of JSON."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    """Names by type; by default JSON's own."""
    plurals: Mapping[str, str] = field(default_factory=dict)
    """Names of the items of a list or an object; by default as in `kinds`."""
    either: str = " | "
    """Between two alternatives."""

    def name(self, kind: str) -> str:
        """Return the name of a type of JSON."""
        return self.kinds.get(kind, kind)


JSON_WORDS = Words(kinds={"boolean": "true | false"})
"""For models, which know JSON."""
PLAIN_WORDS = Words(
    kinds={
        "string": "text",
        "integer": "whole number",
        "boolean": "true or false",
        "array": "list",
        "null": "None",
    },
    plurals={
        "string": "texts",
        "integer": "whole numbers",
        "number": "numbers",
        "array": "lists",
        "object": "objects",
    },
    either=" or ",
)
"""For people, who know Python and not JSON Schema."""


def describe_schema(schema: Part, root: Schema, words: Words = JSON_WORDS) -> str:
    """Describe in a few words what a JSON Schema allows: ``integer from 1 to 10``.

    Args:
        schema: The schema, or a part of one.
        root: The whole schema, for its ``$defs``.
        words: Names for the types.
    """
    target = resolve(schema, root)
    if "const" in target:
        return _show_value(target["const"], words)
    if "enum" in target:
        values = [_show_value(value, words) for value in target["enum"]]
        return join_items(values, words.either, MAX_VALUES)
    options = target.get("anyOf") or target.get("oneOf")
    if options:
        # "$ref" in an option is named, not followed: a tree contains itself.
        phrases = [_describe_option(option, root, words) for option in options]
        return words.either.join(dict.fromkeys(phrases))
    if target.get("type") == "array":
        return _describe_array(target, root, words)
    if target.get("type") == "object":
        return _describe_object(target, root, words)
    kind = target.get("type", "any value")
    kinds = [kind] if isinstance(kind, str) else kind
    phrase = words.either.join(words.name(str(item)) for item in kinds)
    name = target.get("contentEncoding") or target.get("format") or ""
    return _FORMATS.get(name, phrase) + _describe_bounds(target)


def _show_value(value: Any, words: Words) -> str:
    """Return a value of an enumeration; strings are in quotes, as in Python."""
    is_json = words is JSON_WORDS and (value is None or isinstance(value, bool))
    return json.dumps(value) if is_json else repr(value)


def _describe_option(schema: Part, root: Schema, words: Words) -> str:
    target = resolve(schema, root)
    if target.get("type") == "object" and target.get("properties"):
        return _describe_object(target, root, words, MAX_FIELDS)
    if isinstance(schema, Mapping) and "$ref" in schema and "enum" not in target:
        return str(target.get("title") or schema["$ref"].rpartition("/")[2])
    return describe_schema(target, root, words)


def _describe_array(schema: Schema, root: Schema, words: Words) -> str:
    name = words.name("array")
    if "prefixItems" in schema:
        items = [_describe_option(item, root, words) for item in schema["prefixItems"]]
        return f"{name} [{', '.join(items)}]"
    of = _describe_parts(schema.get("items"), root, words)
    return f"{name}{of}{_describe_bounds(schema)}"


def _describe_object(schema: Schema, root: Schema, words: Words, limit: int = MAX_VALUES) -> str:
    name = words.name("object")
    if schema.get("properties"):
        return f"{name} with {join_items(list(schema['properties']), ', ', limit)}"
    return f"{name}{_describe_parts(schema.get('additionalProperties'), root, words)}"


def _describe_bounds(schema: Schema) -> str:
    """Return the bounds as words after the type's name: `` from 1 to 10``."""
    bounds = [
        _describe_range(schema, "minimum", "maximum", "from {} to {}"),
        _describe_range(schema, "minLength", "maxLength", "of {} to {} characters"),
        _describe_range(schema, "minItems", "maxItems", "with {} to {} items"),
        *(
            words.format(schema[key])
            for key, words in (
                ("exclusiveMinimum", "more than {}"),
                ("exclusiveMaximum", "less than {}"),
                ("multipleOf", "a multiple of {}"),
                ("pattern", "matching {!r}"),
            )
            if key in schema
        ),
    ]
    words = ", ".join(filter(None, bounds))
    return f" {words}" if words else ""


def _describe_range(schema: Schema, low: str, high: str, both: str) -> str:
    """Return the words for both bounds, or for the only one."""
    before, _, unit = both.partition("{} to {}")
    if low in schema and schema[low] == schema.get(high):
        both = both.replace("{} to {}", "{}")
    if low in schema and high in schema:
        return both.format(schema[low], schema[high])
    start = "" if before == "from " else before
    for key, words in ((low, "at least"), (high, "at most")):
        if key in schema:
            units = unit.removesuffix("s") if schema[key] == 1 else unit
            return f"{start}{words} {schema[key]}{units}"
    return ""


def _describe_parts(schema: Part | None, root: Schema, words: Words) -> str:
    """Return the type of a list's or an object's items, as words after its name; "" if any."""
    if not isinstance(schema, Mapping) or not schema:
        return ""
    text = _describe_option(schema, root, words)
    kind = str(schema.get("type"))
    singular, plural = words.name(kind), words.plurals.get(kind)
    if plural is not None and f"{text} ".startswith(f"{singular} "):
        text = plural + text.removeprefix(singular)
    return f" of ({text})" if words.either in text else f" of {text}"


def join_items(items: Sequence[str], separator: str, limit: int) -> str:
    """Return the first items joined, with their total number if there are more.

    Args:
        items: All of them.
        separator: Between two of them.
        limit: How many are listed.
    """
    rest = f"{separator}... ({len(items)} in all)" if len(items) > limit else ""
    return separator.join(items[:limit]) + rest


# -- parts of a schema -----------------------------------------------------------------------------


def resolve(schema: Part, root: Schema) -> Schema:
    """Return the target of the schema's reference, or the schema itself if it has none."""
    if isinstance(schema, bool):
        return {}
    if "$ref" not in schema:
        return schema
    section, _, name = schema["$ref"].rpartition("/")
    definition = root.get("$defs", {}).get(name) if section == "#/$defs" else None
    return definition if isinstance(definition, dict) else {}


def list_options(schema: Part, root: Schema) -> list[Schema]:
    """Return the schema and all its alternatives."""
    options = [target := resolve(schema, root)]
    for choice in target.get("anyOf") or target.get("oneOf") or target.get("allOf") or ():
        options += list_options(choice, root)
    return options


def find_part(path: Sequence[int | str], root: Schema) -> Schema:
    """Return the schema of the value at a path; {} if there is none."""
    schema = root
    for part in path:
        # Without duplicates: they would double with each level of a recursive type.
        options = list({id(option): option for option in list_options(schema, root)}.values())
        if isinstance(part, int):  # an index; the key of a dict if there is no array
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
