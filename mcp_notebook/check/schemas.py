"""What the model providers make of a tool's input schema: they take different parts of JSON Schema.

Pure. Each rule names where it was seen:

- OpenAI, Chat Completions and Responses: "array schema missing items"; "schema must have type
  'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
- Anthropic, Messages: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
  "input_schema does not support oneOf, allOf, or anyOf at the top level".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import CheckedTool, Subject
from mcp_notebook.protocol.parameter_headers import walk_positions
from mcp_notebook.schema_keywords import DEFINITIONS

Schema: TypeAlias = Mapping[str, Any]
_COMBINATIONS = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True)
class Refusal:
    """A part of a schema that a provider does not take."""

    place: str
    """The parameter or definition with the part; empty for the whole."""
    reason: str
    """What it has, as the end of a sentence: "has no type"."""
    advice: str


def judge_schemas(subject: Subject) -> Iterator[Finding]:
    """Yield a finding for each tool and provider that does not take its input schema as it is."""
    for tool in subject.list_tools():
        for provider, find_refusals in PROVIDERS.items():
            refusals = list(find_refusals(tool.entry["inputSchema"]))
            if refusals:
                yield _make_finding(tool, provider, refusals)


def _make_finding(tool: CheckedTool, provider: str, refusals: Sequence[Refusal]) -> Finding:
    first = refusals[0]
    where = f"`{first.place}`" if first.place else "The schema"
    more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
    return tool.make_finding(
        rule=f"schema-{provider.lower()}",
        severity="error",
        reason=f"{where} {first.reason}{more}: {provider}'s API refuses a request with it, so "
        "clients lose all tools.",
        advice=first.advice,
        parameter=first.place,
    )


def _refuse_openai(schema: Schema) -> Iterator[Refusal]:
    yield from _refuse_at_top(schema, (*_COMBINATIONS, "enum", "not"))
    for key in ("properties", *DEFINITIONS):
        for name, item in schema.get(key, {}).items():
            for _, part in walk_positions(item):
                if "array" in part.get("type", ()) and "items" not in part:
                    yield Refusal(
                        name,
                        "is or has an array without `items`",
                        "Say what the items are: `list[str]`, or `items` in `input_schema`.",
                    )


def _refuse_anthropic(schema: Schema) -> Iterator[Refusal]:
    yield from _refuse_at_top(schema, _COMBINATIONS)


def _refuse_at_top(schema: Schema, keywords: Sequence[str]) -> Iterator[Refusal]:
    for key in keywords:
        if key in schema:
            yield Refusal(
                "",
                f"has `{key}` at its top",
                f"Leave `{key}` out of `input_schema`, and check in the function.",
            )


PROVIDERS: Mapping[str, Callable[[Schema], Iterator[Refusal]]] = {
    "OpenAI": _refuse_openai,
    "Anthropic": _refuse_anthropic,
}
"""Find what each provider does not take."""
