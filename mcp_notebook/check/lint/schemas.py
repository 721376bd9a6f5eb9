"""What the model providers make of a tool's input schema: they take different parts of JSON Schema.

Pure. Each rule names where it was seen:

- OpenAI, Chat Completions and Responses: "array schema missing items"; "schema must have type
  'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
- OpenAI, strict mode: "Structured Outputs, supported schemas", and
  ``agents.strict_schema.ensure_strict_json_schema`` of openai-agents 0.24.
- Anthropic, Messages: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
  "input_schema does not support oneOf, allOf, or anyOf at the top level".
- Google, ``parameters`` of a function declaration: ``types.Schema`` and ``_mcp_utils`` of
  google-genai 3.6; "schema didn't specify the schema type field"; "Invalid value at ...
  enum[0] (TYPE_STRING)"; "enum[0]: cannot be empty". ``parametersJsonSchema``, of November 2025,
  takes all of it, and Gemini CLI sends that.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_notebook.check.findings import Finding, Severity
from mcp_notebook.check.lint.sources import Places
from mcp_notebook.check.subject import CheckedTool
from mcp_notebook.schema_keywords import DEFINITIONS, LISTS, NAMED, SINGLE

Schema: TypeAlias = Mapping[str, Any]
MAX_LEVELS = 10
"""Levels of nested objects in OpenAI's strict mode."""
MAX_PROPERTIES = 5_000
"""Properties of a schema in OpenAI's strict mode."""
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOT_STRICT = (
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "prefixItems",
    "contains",
    "uniqueItems",
)
_WITHOUT_TYPE = frozenset(("type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"))
_PARTS = {"items": "[]", "additionalProperties": "{}"}
"""How places name the parts of lists and objects: `rows[]`."""
_COMBINATIONS = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True)
class Refusal:
    """A part of a schema that a provider does not take."""

    place: str
    """A path such as `region` or `query.limit`; empty for the whole."""
    reason: str
    """What it has, as the end of a sentence: "has no type"."""
    advice: str


@dataclass(frozen=True, kw_only=True)
class Provider:
    """The rules of a provider, and what happens to a tool that breaks them."""

    name: str
    rule: str
    severity: Severity
    consequence: str
    find_refusals: Callable[[Schema], Iterator[Refusal]]


def check_schema(tool: CheckedTool, places: Places) -> Iterator[Finding]:
    """Yield a finding for each provider that does not take a tool's input schema as it is."""
    for provider in PROVIDERS:
        refusals = list(provider.find_refusals(tool.entry["inputSchema"]))
        if not refusals:
            continue
        first = refusals[0]
        where = f"`{first.place}`" if first.place else "The schema"
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        yield places.make_finding(
            tool.name,
            rule=provider.rule,
            severity=provider.severity,
            reason=f"{where} {first.reason}{more}: {provider.consequence}",
            advice=first.advice,
            parameter=first.place.partition(".")[0] or None,
        )


def walk(schema: Any, place: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield all schemas within a schema, each with its place; definitions come last."""
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for key, value in schema.items():
        if key in SINGLE:
            yield from walk(value, _join(place, _PARTS.get(key, "")))
        elif key in LISTS and isinstance(value, list):
            for part in value:
                yield from walk(part, place)
        elif key in NAMED and isinstance(value, Mapping):
            for name, part in value.items():
                yield from walk(part, _join(place, name))
    for key in DEFINITIONS:
        for name, part in schema.get(key, {}).items():
            yield from walk(part, name)


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place and name not in ("", *_PARTS.values()) else place + name


def _list_at_root(schema: Schema, keywords: tuple[str, ...]) -> Iterator[Refusal]:
    for key in keywords:
        if key in schema:
            yield Refusal(
                "",
                f"has `{key}` at its top",
                f"Leave `{key}` out of `input_schema`, and check in the function.",
            )


# -- OpenAI ----------------------------------------------------------------------------------------


def _refuse_openai(schema: Schema) -> Iterator[Refusal]:
    yield from _list_at_root(schema, (*_COMBINATIONS, "enum", "not"))
    for place, part in walk(schema):
        if "array" in _list_types(part) and "items" not in part:
            yield Refusal(
                place,
                "is an array without `items`",
                "Say what the items are: `list[str]`, or `items` in `input_schema`.",
            )


def _refuse_strict(schema: Schema) -> Iterator[Refusal]:
    for place, part in walk(schema):
        yield from _refuse_strict_part(place, part)
    if _count_levels(schema, schema) > MAX_LEVELS:
        yield Refusal("", f"has more than {MAX_LEVELS} levels", "Make it flatter.")
    properties = sum(len(part.get("properties", ())) for _, part in walk(schema))
    if properties > MAX_PROPERTIES:
        yield Refusal("", f"has {properties:,} properties", "Make it smaller.")


def _refuse_strict_part(place: str, part: Schema) -> Iterator[Refusal]:
    if place and not place.endswith("{}") and not part.keys() & _WITHOUT_TYPE:
        yield Refusal(place, "has no type", "Give it a type hint, such as `str` or `int | str`.")
    is_object = "object" in _list_types(part)
    if is_object and part.get("additionalProperties", bool(place)) is not False:
        if place and not part.get("properties"):
            yield Refusal(
                place,
                "is an object with any names",
                "List its fields in a model, or take a list of pairs, such as "
                "`list[Setting]` with a name and a value.",
            )
        elif part.get("additionalProperties", False) is not False:
            yield Refusal(
                place,
                "is an object that takes further names",
                "Leave `additionalProperties` out, or make it False.",
            )
    for key in _NOT_STRICT:
        if key in part:
            advice = (
                "Use a model with named fields in place of a tuple."
                if key == "prefixItems"
                else f"Write the type without `{key}`, and check in the function."
            )
            yield Refusal(place, f"has `{key}`", advice)


def _count_levels(schema: Any, root: Schema, level: int = 0) -> int:
    """Return the levels of objects within a schema; a recursive one has as many as are allowed."""
    if not isinstance(schema, Mapping) or level > MAX_LEVELS:
        return min(level, MAX_LEVELS + 1)
    below = [level]
    inner = level + ("object" in _list_types(schema))
    for key, value in schema.items():
        if key in NAMED and isinstance(value, Mapping):
            below += [_count_levels(part, root, inner) for part in value.values()]
        elif key in LISTS and isinstance(value, list):
            below += [_count_levels(part, root, level) for part in value]
        elif key in SINGLE:
            below.append(_count_levels(value, root, level))
    return max(inner, *below)


def _list_types(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


# -- Anthropic -------------------------------------------------------------------------------------


def _refuse_anthropic(schema: Schema) -> Iterator[Refusal]:
    yield from _list_at_root(schema, _COMBINATIONS)
    for name in schema.get("properties", {}):
        if not _KEY.fullmatch(name):
            yield Refusal(
                name,
                "is longer than 64, or has more than letters, digits, `_`, `.` and `-`",
                "Rename the parameter, or give it another name for clients by an alias.",
            )


# -- Google ----------------------------------------------------------------------------------------


def _refuse_gemini(schema: Schema) -> Iterator[Refusal]:
    for place, part in walk(schema):
        values = part.get("enum", ())
        if any(not isinstance(value, str) for value in values):
            yield Refusal(
                place,
                "has choices that are not text",
                "Take text (`Literal['2012', '2013']`), or a number with bounds "
                "(`Annotated[int, Field(ge=2012, le=2013)]`).",
            )
        elif "" in values:
            yield Refusal(place, "has an empty choice", "Give the choice a word, such as `'none'`.")
        if "array" in _list_types(part) and "items" not in part:
            yield Refusal(
                place,
                "is an array without `items`",
                "Say what the items are: `list[str]`, or `items` in `input_schema`.",
            )
        is_typed = part.keys() & {"type", "anyOf", "$ref"}
        if place and not place.endswith(("[]", "{}")) and not is_typed:
            yield Refusal(
                place,
                "has no type",
                "Give it a type hint, or a `type` in `input_schema`.",
            )
    yield from _find_recursion(schema)


def _find_recursion(schema: Schema) -> Iterator[Refusal]:
    """Yield definitions that refer to themselves: references are written out for Gemini."""
    definitions = {
        f"#/{key}/{name}": part for key in DEFINITIONS for name, part in schema.get(key, {}).items()
    }
    inside = {
        address: {each["$ref"] for _, each in walk(part) if "$ref" in each}
        for address, part in definitions.items()
    }
    for address in definitions:
        reached: set[str] = set()
        waiting = set(inside[address])
        while waiting:
            reached |= waiting
            waiting = {each for one in waiting for each in inside.get(one, ())} - reached
        if address in reached:
            name = address.rpartition("/")[2]
            yield Refusal(name, "contains itself", "Take a flat list with the parents' names.")


PROVIDERS = (
    Provider(
        name="OpenAI",
        rule="schema-openai",
        severity="error",
        consequence="OpenAI's API refuses a request with it, so clients lose all tools.",
        find_refusals=_refuse_openai,
    ),
    Provider(
        name="Anthropic",
        rule="schema-anthropic",
        severity="error",
        consequence="Anthropic's API refuses a request with it, so clients lose all tools.",
        find_refusals=_refuse_anthropic,
    ),
    Provider(
        name="Gemini",
        rule="schema-gemini",
        severity="note",
        consequence=(
            "Gemini's API refuses it in the field `parameters`, so older clients lose all tools. "
            "`parametersJsonSchema`, which Gemini CLI uses, takes it."
        ),
        find_refusals=_refuse_gemini,
    ),
    Provider(
        name="OpenAI strict",
        rule="schema-strict",
        severity="note",
        consequence=(
            "OpenAI's strict mode refuses it, so clients such as the Agents SDK offer the tool "
            "without it, and a model can send arguments that do not match."
        ),
        find_refusals=_refuse_strict,
    ),
)
