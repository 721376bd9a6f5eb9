"""An output schema's root, as every client takes it, and where a result does not match.

Runs in the user's kernel: roots at definition, comparisons wherever a call ran. Pure, but for the
thread that loads the validator early.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from threading import Thread
from typing import Any

from mcp_notebook.kernel.schemas.validation_messages import (
    MAX_LINES,
    describe_schema,
    format_place,
    format_value,
    name_json_type,
)

_VALIDATOR = "mcp_notebook.kernel.schemas.json_validator"
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


def load_validator_early() -> None:
    """Load what compares in a thread: the first result need not wait for it."""
    if _VALIDATOR not in sys.modules:
        Thread(target=import_module, args=(_VALIDATOR,), daemon=True).start()


def make_comparison(schema: Schema) -> Any:
    """Return what `find_mismatches` compares values by, for any number of threads.

    Args:
        schema: As published. Patterns that cannot be followed here are not compared: pydantic, or
            the author, has followed them already.
    """
    from mcp_notebook.kernel.schemas import json_validator  # noqa: PLC0415 - slow to load

    return json_validator.make_validator(json_validator.drop_unusable_patterns(schema))


def find_mismatches(value: Any, comparison: Any, schema: Schema, *, is_wrapped: bool) -> list[str]:
    """Return a line for each place where a JSON value does not match; none if it does.

    Args:
        value: As it would be sent.
        comparison: What `make_comparison` made of the schema.
        schema: As published.
        is_wrapped: Whether the function's own value is within `WRAP`.

    Raises:
        Exception: The schema cannot be followed (a reference to itself, a pattern of no end).
    """
    from mcp_notebook.kernel.schemas import json_validator  # noqa: PLC0415 - slow to load

    lines: dict[str, None] = {}
    for error in json_validator.find_errors(comparison, value):
        for deepest in _find_deepest(error):
            path = list(deepest.absolute_path)
            lines[_describe_mismatch(deepest, path[1:] if is_wrapped else path, schema)] = None
        if len(lines) > MAX_LINES:
            break
    return list(lines)


# -- roots -----------------------------------------------------------------------------------------


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


# -- what does not match ---------------------------------------------------------------------------


def _find_deepest(error: Any) -> Sequence[Any]:
    """Return the error, or those of the branch of a choice that the value comes closest to."""
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return [error]
    branches: dict[Any, list[Any]] = {}
    for cause in error.context:
        branches.setdefault(cause.schema_path[0], []).append(cause)
    # A branch whose errors all lie below the value has the value's own type.
    deep = [causes for causes in branches.values() if all(cause.path for cause in causes)]
    if len(deep) != 1:
        return [error]
    return [deepest for cause in deep[0] for deepest in _find_deepest(cause)]


def _describe_mismatch(error: Any, path: list[str | int], root: Schema) -> str:
    name = format_place(WRAP, path)
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        listed = ", ".join(map(repr, missing[:MAX_LINES]))
        return f"{name}: {listed} missing"
    part = error.schema if isinstance(error.schema, dict) else {}
    came = f"got {format_value(error.instance)} ({name_json_type(error.instance)})"
    if error.validator in ("type", "enum", "const", "minimum", "maximum", "anyOf", "oneOf"):
        return f"{name}: {came}; allowed: {describe_schema(part, root)}"
    # jsonschema's message begins with the whole value, however long.
    limit = format_value(error.validator_value)
    return f"{name}: {came}; its schema says `{error.validator}`: {limit}"
