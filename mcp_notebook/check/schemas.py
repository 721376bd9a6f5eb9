"""What the model providers make of a tool's input schema: they take different parts of JSON Schema.

Pure. Each rule names where it was seen:

- OpenAI, Chat Completions and Responses: "array schema missing items"; "schema must have type
  'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
- Anthropic, Messages: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
  "input_schema does not support oneOf, allOf, or anyOf at the top level".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import CheckedTool, Subject
from mcp_notebook.schema_keywords import DEFINITIONS, LISTS, NAMED, SINGLE

Schema: TypeAlias = Mapping[str, Any]
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
    """The rules of a provider."""

    name: str
    rule: str
    find_refusals: Callable[[Schema], Iterator[Refusal]]


def judge_schemas(subject: Subject) -> Iterator[Finding]:
    """Yield a finding for each tool and provider that does not take its input schema as it is."""
    for tool in subject.list_tools():
        yield from _judge_schema(tool)


def _judge_schema(tool: CheckedTool) -> Iterator[Finding]:
    for provider in PROVIDERS:
        refusals = list(provider.find_refusals(tool.entry["inputSchema"]))
        if not refusals:
            continue
        first = refusals[0]
        where = f"`{first.place}`" if first.place else "The schema"
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        yield tool.make_finding(
            rule=provider.rule,
            severity="error",
            reason=f"{where} {first.reason}{more}: {provider.name}'s API refuses a request with "
            "it, so clients lose all tools.",
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


def _list_types(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


# -- Anthropic -------------------------------------------------------------------------------------


def _refuse_anthropic(schema: Schema) -> Iterator[Refusal]:
    yield from _list_at_root(schema, _COMBINATIONS)


PROVIDERS = (
    Provider(
        name="OpenAI",
        rule="schema-openai",
        find_refusals=_refuse_openai,
    ),
    Provider(
        name="Anthropic",
        rule="schema-anthropic",
        find_refusals=_refuse_anthropic,
    ),
)
