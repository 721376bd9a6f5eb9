"""Checks that a schema by pydantic, with an author's additions, is valid JSON Schema 2020-12.

Runs in the user's kernel, at definition. Pure. An author can put anything into a schema with
``WithJsonSchema`` or ``json_schema_extra``, and one invalid schema makes some clients refuse the
whole list of tools. jsonschema has the metaschema, but may take seconds to load, so it is used only
for schemas written by hand: pydantic and its users write only a few keywords.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.schema_keywords import DEFINITIONS, LISTS, NAMED, list_subschemas

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_NAMED = (*NAMED, *DEFINITIONS)


def find_schema_problem(schema: Any) -> str | None:
    """Return why a schema is invalid, as the end of a sentence; None if it is valid."""
    return _find_problem(schema, schema)


def _find_problem(schema: Any, root: Any) -> str | None:
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, Mapping):
        return f"{format_value(schema)} is not a schema"
    for keyword, value in schema.items():
        is_valid = _RULES.get(keyword)
        if is_valid is not None and not is_valid(value):
            return f"`{keyword}` cannot be {format_value(value)}"
        if keyword == "$ref" and not _is_resolvable(value, root):
            return f"`$ref` refers to {format_value(value)}, which does not exist"
    definitions = [value for key in DEFINITIONS for value in schema.get(key, {}).values()]
    problems = (_find_problem(part, root) for part in (*list_subschemas(schema), *definitions))
    return next(filter(None, problems), None)


def _is_resolvable(reference: str, root: Any) -> bool:
    if not reference.startswith("#/"):
        return reference == "#" or (reference.startswith("#") and "$anchor" in str(root))
    target = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or key not in target:
            return False
        target = target[key]
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_unique_texts(value: Any) -> bool:
    is_list_of_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return is_list_of_texts and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    types = [value] if isinstance(value, str) else value
    return _are_unique_texts(types) and bool(types) and _TYPES.issuperset(types)


def _is_pattern(value: Any) -> bool:
    try:
        re.compile(value)
    except re.error:
        # Clients' engines have escapes and groups that Python's lacks.
        return bool(re.search(r"\\[pPzAukx]|\(\?", value))
    except TypeError:
        return False
    return True


_RULES: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": lambda value: isinstance(value, list),
    "pattern": _is_pattern,
    "required": _are_unique_texts,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"),
            *("minProperties", "maxProperties"),
        ),
        _is_count,
    ),
    **dict.fromkeys(
        ("title", "description", "format", "$ref", "$anchor", "$comment", "contentEncoding"),
        _is_text,
    ),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _is_flag),
    **dict.fromkeys(LISTS, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(_NAMED, lambda value: isinstance(value, Mapping)),
}
