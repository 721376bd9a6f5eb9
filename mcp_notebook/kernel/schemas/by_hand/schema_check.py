"""Checks JSON Schemas that an author wrote by hand.

Runs in the user's kernel, on the thread that declares the tool. Loaded late, since jsonschema is
slow to import. Nothing is ever fetched: all references must point into the schema itself.
"""

import json
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.by_hand.jsonschema_validator import (
    LISTS_IN_PLACE,
    REFERENCES,
    compile_pattern,
)
from mcp_notebook.kernel.schemas.validation_messages import format_value, shorten_message

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_IN_PLACE = ("not", "if", "then", "else")
"""Keywords whose schema applies to the same value; also `LISTS_IN_PLACE`, and references."""


def check_schema(
    schema: Any, tool: str, option: str, *, of_arguments: bool = True
) -> dict[str, Any]:
    """Return a copy of a schema that can be published and used for validation.

    Args:
        schema: What the author wrote.
        tool: Name of the tool, for messages.
        option: Where it was written, for messages.
        of_arguments: Whether it describes all arguments together, so that it must be an object.

    Raises:
        DefinitionError: Names the invalid place in the schema, and why.
    """

    def wrong(reason: str) -> DefinitionError:
        return DefinitionError(f"`{tool}`: `{option}` {reason}")

    if not isinstance(schema, Mapping):
        raise wrong(f"is a JSON Schema, a dict, not {format_value(schema)}.")
    try:
        text = json.dumps(dict(schema), allow_nan=False, ensure_ascii=False)
        text.encode()  # a lone surrogate cannot be sent
        plain: dict[str, Any] = json.loads(text)
        if of_arguments and plain.get("type") != "object":
            raise wrong(
                'is the schema of all arguments together: write `"type": "object"` at its top, and '
                'the arguments under `"properties"`.'
            )
        if str(plain.get("$schema", _DIALECT)).removesuffix("#") != _DIALECT:
            raise wrong(f'is JSON Schema 2020-12: `"$schema"` is {_DIALECT!r}, or left out.')
        _check_deep(plain)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))
        where = f" at {place!r}" if place else ""
        raise wrong(
            f"is not a valid JSON Schema{where}: {shorten_message(error.message)}."
        ) from None
    except _NotUsableError as error:
        raise wrong(str(error)) from None
    except RecursionError:
        raise wrong("is nested too deeply: make it flatter.") from None
    except (TypeError, ValueError) as error:
        reason = shorten_message(str(error))
        raise wrong(f"is not valid JSON ({reason}): use only values that JSON has.") from None
    return plain


# -- all schemas within a schema -------------------------------------------------------------------


class _NotUsableError(Exception):
    """The schema is valid but cannot be used; the message is the end of a sentence."""


def _check_deep(schema: dict[str, Any]) -> None:
    """Check a schema, all its subschemas, and the targets of their references.

    Raises:
        SchemaError: It violates the metaschema.
        _NotUsableError: It is valid but cannot be used.
    """
    root: Any = DRAFT202012.create_resource(schema)
    resolver = Registry().with_resource("", root).resolver("")
    left: list[tuple[Any, Any]] = [(root, resolver)]
    _check_metaschema(schema)
    in_place: dict[int, list[int]] = {}
    while left:
        resource, around = left.pop()
        contents = resource.contents
        if isinstance(contents, bool) or id(contents) in in_place:
            continue
        here = around.in_subresource(resource)
        targets = [_resolve_reference(contents[key], here) for key in REFERENCES if key in contents]
        parts = [*_list_in_place(contents), *(target.contents for target in targets)]
        in_place[id(contents)] = [id(part) for part in parts if isinstance(part, dict)]
        if "$schema" in contents and contents is not schema:
            raise _NotUsableError('has a `"$schema"` below its top level: remove it.')
        _check_patterns(contents)
        left += [(part, here) for part in resource.subresources()]
        for target in targets:
            if id(target.contents) not in in_place:
                _check_metaschema(target.contents)  # it may be outside of all schema keywords
                left.append((DRAFT202012.create_resource(target.contents), target.resolver))
    try:
        TopologicalSorter(in_place).prepare()
    except CycleError:
        raise _NotUsableError(
            "refers to itself for the same value, so that a validation would never end: put the "
            'reference below `"properties"` or `"items"`.'
        ) from None


def _check_metaschema(schema: Any) -> None:
    # Without formats: "regex" would mean Python's, and "uri-reference" needs an extra package.
    checker: Any = Draft202012Validator
    checker.check_schema(schema, format_checker=None)


def _resolve_reference(reference: str, resolver: Any) -> Any:
    try:
        target = resolver.lookup(reference) if reference.startswith("#") else None
    except (Unresolvable, ValueError):
        target = None
    if target is None or not isinstance(target.contents, dict | bool):
        raise _NotUsableError(
            f"refers to {format_value(reference)}, which is not a schema within it: nothing is "
            'fetched, so put that schema under `"$defs"` and refer to it as "#/$defs/...".'
        )
    return target


def _list_in_place(schema: Mapping[str, Any]) -> Iterable[Any]:
    """Return the subschemas that apply to the same value."""
    yield from (schema[key] for key in _IN_PLACE if key in schema)
    for key in LISTS_IN_PLACE:
        yield from schema.get(key, ())
    yield from schema.get("dependentSchemas", {}).values()


def _check_patterns(schema: Mapping[str, Any]) -> None:
    for pattern in [*schema.get("patternProperties", ()), *filter(None, [schema.get("pattern")])]:
        try:
            compile_pattern(pattern)
        except Exception as error:
            reason = shorten_message(str(error).rpartition("error: ")[2] or str(error))
            raise _NotUsableError(
                f"has the regular expression {format_value(pattern)}, which cannot be used "
                f"({reason}): correct it, or match it in the handler."
            ) from error
