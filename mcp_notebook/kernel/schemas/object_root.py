"""The root of an output schema: an object, as clients of every era require.

Runs in the user's kernel, at definition. Pure.
"""

from typing import Any

WRAP = "result"
"""The property that holds a value other than an object."""
_REFERENCES = ("$ref", "$dynamicRef")
_DEFINITIONS = ("$defs", "definitions")
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, not schemas."""
_MAPPING_KEYWORDS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", *_DEFINITIONS}
)
"""Keywords that hold schemas by names of the author's, which may be any keyword."""

Schema = dict[str, Any]


def make_object_root(schema: Schema) -> tuple[Schema, bool]:
    """Return a schema with a root that clients of every era take, and whether it was wrapped.

    They want the root itself to say ``"type": "object"``; what does not becomes the property `WRAP`
    of one that does.
    """
    schema = _inline_reference(schema)
    if schema.get("type") == "object":
        return schema, False
    content = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    root: Schema = {
        "type": "object",
        "properties": {WRAP: _move_references(content)},
        "required": [WRAP],
    }
    for key in _DEFINITIONS:
        if key in schema:
            root[key] = {name: _move_references(item) for name, item in schema[key].items()}
    return root, True


def has_id(schema: Any) -> bool:
    """Tell whether a schema, or one in it, has an ``$id``: its references would move with it."""
    if isinstance(schema, list):
        return any(map(has_id, schema))
    if not isinstance(schema, dict):
        return False
    if "$id" in schema:
        return True
    for keyword, value in schema.items():
        parts = (
            value.values() if keyword in _MAPPING_KEYWORDS and isinstance(value, dict) else [value]
        )
        if keyword not in _VALUES and any(map(has_id, parts)):
            return True
    return False


def _inline_reference(schema: Schema) -> Schema:
    """Put what a root only refers to in its place: a model that contains itself."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    target = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    if not isinstance(target, dict) or set(schema) - {"$ref", "$defs", "title", "description"}:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**target, **beside}


def _move_references(schema: Any) -> Any:
    """Return a schema whose references to the root, or below it, point into `WRAP`."""
    if isinstance(schema, list):
        return [_move_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy: Schema = {}
    for keyword, value in schema.items():
        if keyword in _REFERENCES and isinstance(value, str):
            copy[keyword] = _move_reference(value)
        elif keyword in _MAPPING_KEYWORDS and isinstance(value, dict):
            copy[keyword] = {name: _move_references(item) for name, item in value.items()}
        else:
            copy[keyword] = value if keyword in _VALUES else _move_references(value)
    return copy


def _move_reference(reference: str) -> str:
    if reference.startswith(tuple(f"#/{key}/" for key in _DEFINITIONS)):
        return reference  # these stay at the root
    if reference == "#" or reference.startswith("#/"):
        return f"#/properties/{WRAP}{reference[1:]}"
    return reference  # an anchor
