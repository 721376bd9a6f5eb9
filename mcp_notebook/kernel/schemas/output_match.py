"""An output schema's root, as every client takes it, and where a result does not match.

Runs in the user's kernel: at definition on the main thread, comparisons wherever the call runs.
Pure. What a schema is for (results), and pydantic's part in it, is `kernel.schemas.output_schema`'
business; which schemas an author may write by hand `kernel.schemas.json_schema`'s.
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

_COMPARES = "mcp_notebook.kernel.schemas.json_schema"
WRAP = "result"
"""The property that holds what is no object."""
_REFERENCES = ("$ref", "$dynamicRef")
_DEFINITIONS = ("$defs", "definitions")
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, not schemas."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", *_DEFINITIONS})
"""Keywords that hold schemas by names of the author's, which may be any keyword."""

Schema = dict[str, Any]


def rooted(schema: Schema) -> tuple[Schema, bool]:
    """Return the schema with a root that clients of every era take, and whether it was wrapped.

    They want the root to say ``"type": "object"`` itself; what does not becomes the property
    `WRAP` of one that does.
    """
    schema = _inlined(schema)
    if schema.get("type") == "object":
        return schema, False
    inner = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    root: Schema = {
        "type": "object",
        "properties": {WRAP: _rerooted(inner)},
        "required": [WRAP],
    }
    for key in _DEFINITIONS:
        if key in schema:
            root[key] = {name: _rerooted(item) for name, item in schema[key].items()}
    return root, True


def names_itself(schema: Any) -> bool:
    """Tell whether a schema, or one in it, has an ``$id``: what is below moves with the root."""
    if isinstance(schema, list):
        return any(map(names_itself, schema))
    if not isinstance(schema, dict):
        return False
    if "$id" in schema:
        return True
    for keyword, value in schema.items():
        within = value.values() if keyword in _NAMED and isinstance(value, dict) else [value]
        if keyword not in _VALUES and any(map(names_itself, within)):
            return True
    return False


def comparison(schema: Schema) -> Any:
    """Return what `mismatches` compares values by, for any number of threads.

    Args:
        schema: As clients are told it; patterns that cannot be followed here are left to who made
            the values.
    """
    from mcp_notebook.kernel.schemas import json_schema  # noqa: PLC0415 - slow to load

    return json_schema.validator(json_schema.without_unusable_patterns(schema))


def load_early() -> None:
    """Load what compares, beside whatever goes on: the first result need not wait for it."""
    if _COMPARES not in sys.modules:
        Thread(target=import_module, args=(_COMPARES,), daemon=True).start()


def mismatches(value: Any, comparison: Any, schema: Schema, wrapped: bool) -> list[str]:  # noqa: FBT001
    """Return a line for each place where a JSON value does not match; none if it does.

    Args:
        value: As it would be sent.
        comparison: What is made of the schema.
        schema: As clients are told it.
        wrapped: Whether what the author knows is within `WRAP`.

    Raises:
        Exception: The schema cannot be followed (a reference to itself, a pattern of no end).
    """
    from mcp_notebook.kernel.schemas import json_schema  # noqa: PLC0415 - slow to load

    lines: dict[str, None] = {}
    for error in json_schema.errors(comparison, value):
        for deepest in _deepest(error):
            path = list(deepest.absolute_path)
            lines[_line(deepest, path[1:] if wrapped else path, schema)] = None
        if len(lines) > MAX_LINES:
            break
    return list(lines)


# -- roots -----------------------------------------------------------------------------------------


def _inlined(schema: Schema) -> Schema:
    """Put what a root only refers to in its place: a model that contains itself."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    target = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    if not isinstance(target, dict) or set(schema) - {"$ref", "$defs", "title", "description"}:
        return schema
    said = {key: value for key, value in schema.items() if key != "$ref"}
    return {**target, **said}


def _rerooted(schema: Any) -> Any:
    """Return a schema whose references to the root, or below it, point into `WRAP`."""
    if isinstance(schema, list):
        return [_rerooted(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed: Schema = {}
    for keyword, value in schema.items():
        if keyword in _REFERENCES and isinstance(value, str):
            changed[keyword] = _moved(value)
        elif keyword in _NAMED and isinstance(value, dict):
            changed[keyword] = {name: _rerooted(item) for name, item in value.items()}
        else:
            changed[keyword] = value if keyword in _VALUES else _rerooted(value)
    return changed


def _moved(reference: str) -> str:
    if reference.startswith(tuple(f"#/{key}/" for key in _DEFINITIONS)):
        return reference  # these stay at the root
    if reference == "#" or reference.startswith("#/"):
        return f"#/properties/{WRAP}{reference[1:]}"
    return reference  # an anchor


# -- what does not match ---------------------------------------------------------------------------


def _deepest(error: Any) -> Sequence[Any]:
    """Return the error, or those of the branch of a choice that the value comes closest to."""
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return [error]
    branches: dict[Any, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    deep = [found for found in branches.values() if all(inner.path for inner in found)]
    return [each for inner in deep[0] for each in _deepest(inner)] if len(deep) == 1 else [error]


def _line(error: Any, path: list[str | int], root: Schema) -> str:
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
