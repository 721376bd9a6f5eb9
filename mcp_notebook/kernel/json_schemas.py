"""JSON Schemas as data: checked at definition, made roots that every client takes, values compared.

Runs in the user's kernel: at definition on the main thread, comparisons wherever the call runs.
Pure. The one door to jsonschema, which is slow to load, so it is loaded at the first schema that
needs it. What a schema is for (results), and pydantic's part in it, is `kernel.outputs`' business.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_notebook.kernel.problems import (
    MAX_LINES,
    allowed_values,
    bounded,
    json_type,
    place,
    shown,
)
from mcp_notebook.kernel.texts import safe_message

WRAP = "result"
"""The property that holds what is no object."""
_REFERENCES = ("$ref", "$dynamicRef")
_DEFINITIONS = ("$defs", "definitions")
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, not schemas."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", *_DEFINITIONS})
"""Keywords that hold schemas by names of the author's, which may be any keyword."""

Schema = dict[str, Any]


def checked_schema(given: Mapping[str, Any]) -> Schema:
    """Return a schema of the author's as plain JSON, if every client will be able to use it.

    Raises:
        ValueError: It will not; says why, in words that follow "because".
    """
    try:
        schema = json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({safe_message(error)})") from None
    schema.pop("$id", None)  # all references are local
    if (dialect := schema.pop("$schema", None)) is not None and "2020-12" not in str(dialect):
        raise ValueError(f"its `$schema` is {shown(dialect)}, and clients expect draft 2020-12")
    _check_metaschema(schema)
    for keyword, value in _keywords(schema):
        if keyword in _REFERENCES:
            _check_reference(value, schema)
        elif keyword == "$id":
            raise ValueError("it has an `$id` within: use `$defs` and local references")
    return schema  # type: ignore[no-any-return]


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


def mismatches(value: Any, schema: Schema, wrapped: bool) -> list[str]:  # noqa: FBT001
    """Return a line for each place where a JSON value does not match; none if it does.

    Args:
        value: As it would be sent.
        schema: As clients are told it.
        wrapped: Whether what the author knows is within `WRAP`.

    Raises:
        Exception: The schema cannot be followed (a reference to itself, a pattern of no end).
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to load

    lines: dict[str, None] = {}
    for error in Draft202012Validator(schema).iter_errors(value):
        for deepest in _deepest(error):
            path = list(deepest.absolute_path)
            lines[_line(deepest, path[1:] if wrapped else path, schema)] = None
        if len(lines) > MAX_LINES:
            break
    return list(lines)


# -- at definition ---------------------------------------------------------------------------------


def _check_metaschema(schema: Schema) -> None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to load
    from jsonschema.exceptions import SchemaError, best_match  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        found = best_match(error.context or ()) or error
        at = ".".join(map(str, found.absolute_path))
        raise ValueError(
            f"{bounded(str(found.message))}{f' (at {at})' if at else ''}, by JSON Schema 2020-12"
        ) from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _check_reference(reference: str, schema: Schema) -> None:
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    if not reference.startswith("#"):
        raise ValueError(
            f"it refers to {shown(reference)}, and clients fetch nothing: put that under `$defs` "
            "and refer to '#/$defs/...'"
        )
    registry: Any = Registry().with_resource("", DRAFT202012.create_resource(schema))
    try:
        registry.resolver("").lookup(reference)
    except Unresolvable:
        raise ValueError(f"it refers to {shown(reference)}, which is not in it") from None


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every keyword of a schema and of those within it, with its value."""
    if isinstance(schema, list):
        for item in schema:
            yield from _keywords(item)
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        yield keyword, value
        if keyword in _NAMED and isinstance(value, dict):
            for item in value.values():
                yield from _keywords(item)
        elif keyword not in _VALUES:
            yield from _keywords(value)


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
    name = place(WRAP, path)
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        listed = ", ".join(map(repr, missing[:MAX_LINES]))
        return f"{name}: {listed} missing"
    part = error.schema if isinstance(error.schema, dict) else {}
    came = f"got {shown(error.instance)} ({json_type(error.instance)})"
    if error.validator in ("type", "enum", "const", "minimum", "maximum", "anyOf", "oneOf"):
        return f"{name}: {came}; allowed: {allowed_values(part, root)}"
    # jsonschema's message begins with the whole value, however long.
    limit = shown(error.validator_value)
    return f"{name}: {came}; its schema says `{error.validator}`: {limit}"
