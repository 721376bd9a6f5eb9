"""Validates values by a JSON Schema: jsonschema, with safe versions of some keywords.

Runs in the user's kernel, wherever a call runs; validators are immutable, so that calls on several
threads share them. Loaded late, since jsonschema is slow to import.

No text that a client sends can keep a validator busy forever: patterns run on pydantic's regex
engine, in time linear in the text's length. Python's engine may take years for forty characters,
and holds the GIL throughout. Only the formats in `FORMATS` are checked, whatever is installed.
"""

import functools
import ipaddress
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry

from mcp_notebook.kernel.schemas.comparison_limit import count_keyword
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.schema_keywords import rewrite_schema

REFERENCES = ("$ref", "$dynamicRef")
LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords that list schemas which apply to the same value."""


def make_validator(schema: dict[str, Any]) -> Any:
    """Return a validator of `jsonschema` for a schema by `schema_check`."""
    return _Validator(
        # For a schema that names its dialect, jsonschema would use a validator of its own.
        {key: item for key, item in schema.items() if key != "$schema"},
        registry=Registry(),  # the default registry would fetch unknown references
        format_checker=_make_format_checker(),
    )


def drop_unusable_patterns(schema: Any) -> Any:
    """Return a schema without the patterns that `compile_pattern` does not support."""

    def drop(part: dict[str, Any]) -> dict[str, Any]:
        if isinstance(part.get("pattern"), str) and not _is_usable(part["pattern"]):
            del part["pattern"]
        if isinstance(named := part.get("patternProperties"), dict):
            part["patternProperties"] = {key: named[key] for key in named if _is_usable(key)}
        return part

    return rewrite_schema(schema, drop)


def _is_usable(pattern: str) -> bool:
    try:
        compile_pattern(pattern)
    except Exception:  # noqa: BLE001 - pydantic's SchemaError, or what its engine raises
        return False
    return True


def find_errors(checker: Any, value: Any) -> Iterator[ValidationError]:
    """Yield the errors of a value."""
    yield from checker.iter_errors(value)


# -- keywords that replace jsonschema's own --------------------------------------------------------


@functools.lru_cache(maxsize=1000)
def compile_pattern(pattern: str) -> SchemaValidator:
    """Return a validator that matches a pattern in time linear in the text's length.

    Raises:
        Exception: The engine does not support it: pydantic's SchemaError, or a panic.
    """
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def _matches(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).isinstance_python(text, strict=True)


def _validate_pattern(
    checker: Any, pattern: str, value: Any, _schema: Any
) -> Iterator[ValidationError]:
    if checker.is_type(value, "string") and not _matches(pattern, value):
        yield ValidationError(f"{format_value(value)} does not match {pattern!r}")


def _descend(checker: Any, item: Any, schema: Any, key: str) -> Iterator[ValidationError]:
    """Yield the errors of a property, with its path, which jsonschema omits for ``False``."""
    for error in checker.descend(item, schema):
        error.path.appendleft(key)
        yield error


def _validate_unique_items(
    checker: Any, unique: Any, value: Any, _schema: Any
) -> Iterator[ValidationError]:
    """Compare JSON strings: jsonschema compares all pairs of objects, for minutes at worst."""
    if unique and checker.is_type(value, "array"):
        texts = [json.dumps(_canonicalize(item), sort_keys=True) for item in value]
        if len(set(texts)) < len(texts):
            yield ValidationError(f"{format_value(value)} has an item twice")


def _canonicalize(value: Any) -> Any:
    """Return a JSON value in a form that is the same for all values equal by JSON Schema."""
    if isinstance(value, list):
        return [_canonicalize(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonicalize(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _validate_properties(
    checker: Any, properties: Mapping[str, Any], value: Any, _schema: Any
) -> Iterator[ValidationError]:
    if checker.is_type(value, "object"):
        for key, schema in properties.items():
            if key in value:
                yield from _descend(checker, value[key], schema, key)


def _validate_pattern_properties(
    checker: Any, patterns: Mapping[str, Any], value: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not checker.is_type(value, "object"):
        return
    for pattern, schema in patterns.items():
        for key, item in value.items():
            if _matches(pattern, key):
                yield from _descend(checker, item, schema, key)


def _validate_additional_properties(
    checker: Any, allowed: Any, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not checker.is_type(value, "object"):
        return
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, item in value.items():
        if key not in properties and not any(_matches(pattern, key) for pattern in patterns):
            yield from _descend(checker, item, allowed, key)


def _validate_unevaluated_properties(
    checker: Any, allowed: Any, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not checker.is_type(value, "object"):
        return
    rest = {key: item for key, item in schema.items() if key != "unevaluatedProperties"}
    evaluated = _find_evaluated(checker, value, rest)
    for key, item in value.items():
        if key not in evaluated:
            yield from _descend(checker, item, allowed, key)


def _find_evaluated(checker: Any, value: Mapping[str, Any], schema: Any) -> set[str]:
    """Return the keys of an object that a schema or its in-place subschemas evaluate."""
    if isinstance(schema, bool):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(value)
    evaluated = schema.get("properties", {}).keys() & value.keys()
    patterns = schema.get("patternProperties", {})
    evaluated |= {key for key in value if any(_matches(pattern, key) for pattern in patterns)}
    for reference in REFERENCES:
        if reference in schema:
            target = checker._resolver.lookup(schema[reference])  # noqa: SLF001 - as its own keywords
            referring = checker.evolve(schema=target.contents, _resolver=target.resolver)
            evaluated |= _find_evaluated(referring, value, target.contents)
    for subschema in _list_applicable(checker, value, schema):
        evaluated |= _find_evaluated(checker, value, subschema)
    return set(evaluated)


def _list_applicable(checker: Any, value: Mapping[str, Any], schema: Any) -> Iterator[Any]:
    """Yield the in-place subschemas that an object matches."""

    def holds(subschema: Any) -> bool:
        return next(checker.descend(value, subschema), None) is None

    for key in LISTS_IN_PLACE:
        yield from filter(holds, schema.get(key, ()))
    for key, subschema in schema.get("dependentSchemas", {}).items():
        if key in value:
            yield subschema
    if "if" in schema:
        chosen = "else"
        if holds(schema["if"]):
            chosen = "then"
            yield schema["if"]
        if chosen in schema:
            yield schema[chosen]


_Validator: Any = cast("Any", extend)(
    Draft202012Validator,
    {
        **{key: count_keyword(Draft202012Validator.VALIDATORS[key]) for key in REFERENCES},
        "pattern": _validate_pattern,
        "uniqueItems": _validate_unique_items,
        "properties": _validate_properties,
        "patternProperties": _validate_pattern_properties,
        "additionalProperties": _validate_additional_properties,
        "unevaluatedProperties": _validate_unevaluated_properties,
    },
)


# -- formats ---------------------------------------------------------------------------------------


def _parse_moment(text: str) -> object:
    # RFC 3339 requires a time zone, but models leave it out.
    if "T" not in text.upper():
        raise ValueError(text)
    return datetime.fromisoformat(text)


FORMATS: Mapping[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "date-time": _parse_moment,
    "time": time.fromisoformat,
    "email": lambda text: text.index("@"),
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "uuid": uuid.UUID,
}
"""The formats that are checked, each with a parser that raises ValueError."""


def _make_format_checker() -> FormatChecker:
    checker = FormatChecker(())
    for name, read in FORMATS.items():
        checker.checks(name, ValueError)(functools.partial(_check_format, read))
    return checker


def _check_format(read: Callable[[str], object], value: object) -> bool:
    if isinstance(value, str):
        read(value)
    return True
