"""Schemas that the APIs of models refuse, and what becomes of the tool."""

import pytest
from linted import declare, lint

from mcp_notebook.check.lint.schemas import PROVIDERS

RULES = {provider.rule.removeprefix("schema-"): provider for provider in PROVIDERS}


def refuse(provider, **properties):
    """Return the reasons of a provider against a schema with these properties."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return [each.reason for each in RULES[provider].find_refusals(schema)]


@pytest.mark.parametrize(
    ("provider", "part", "reason"),
    [
        ("openai", {"type": "array"}, "is an array without `items`"),
        ("gemini", {"type": "integer", "enum": [1, 2]}, "has choices that are not text"),
        ("gemini", {"type": "string", "enum": ["", "a"]}, "has an empty choice"),
        ("gemini", {}, "has no type"),
        ("gemini", {"enum": ["a"]}, "has no type"),
        ("strict", {}, "has no type"),
        ("strict", {"type": "object"}, "is an object with any names"),
        ("strict", {"type": "object", "additionalProperties": {}}, "is an object with any names"),
        ("strict", {"type": "string", "not": {"const": "a"}}, "has `not`"),
        ("strict", {"allOf": [{"type": "string"}]}, "has `allOf`"),
        ("strict", {"type": "array", "prefixItems": [{"type": "string"}]}, "has `prefixItems`"),
    ],
)
def test_a_part_that_a_provider_refuses_is_found(provider, part, reason):
    assert refuse(provider, x=part) == [reason]


def test_a_part_within_others_is_found():
    part = {"type": "array", "items": {"anyOf": [{"type": "array"}]}}
    [refusal] = RULES["openai"].find_refusals({"type": "object", "properties": {"x": part}})
    assert refusal.place == "x[]"


@pytest.mark.parametrize("provider", RULES)
@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "description": "Where."},
        {"type": "integer", "minimum": 1, "default": 3},
        {"type": "string", "enum": ["EU", "US"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        {"type": "array", "items": {"type": "number"}},
    ],
)
def test_common_parts_are_taken_by_all(provider, part):
    assert refuse(provider, x=part) == []


def test_a_parameters_name_that_anthropic_refuses_is_found():
    assert refuse("anthropic", **{"$top": {"type": "integer"}}) != []


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_alternatives_at_the_top_are_refused(provider):
    schema = {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}
    assert [each.place for each in RULES[provider].find_refusals(schema)] == [""]


def test_a_type_that_contains_itself_is_found_for_gemini():
    node = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    }
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": node},
    }
    assert [each.reason for each in RULES["gemini"].find_refusals(schema)] == ["contains itself"]


def test_a_schema_that_is_too_deep_for_strict_mode_is_found():
    part = {"type": "string"}
    for _ in range(11):
        part = {"type": "object", "properties": {"x": part}, "additionalProperties": False}
    assert "has more than 10 levels" in refuse("strict", x=part)


def test_the_finding_says_what_clients_do_and_what_to_write(shell):
    cell = '''%%mcp_tool --read-only
def rain_of_years(
    year: Literal[2012, 2013],
    options: dict[str, float],
) -> float:
    """Rain in mm, summed over months.

    Args:
        year: Of the measurements.
        options: Weights of the months.
    """
    return 1.0
'''
    gemini, strict = lint(shell, "from typing import Literal", cell)
    assert (gemini.rule, gemini.severity, gemini.line) == ("schema-gemini", "note", 3)
    assert "`year` has choices that are not text" in gemini.reason
    assert "ge=2012" in gemini.advice
    assert (strict.rule, strict.severity, strict.line) == ("schema-strict", "note", 4)
    assert "without it" in strict.reason


def test_the_schemas_of_tables_and_arrays_say_what_their_items_are(shell):
    """OpenAI's API refuses an array without items, with all tools of the request."""
    cell = '''%%mcp_tool --read-only
import numpy as np, pandas as pd
def summarize(rows: pd.DataFrame, column: pd.Series, values: np.ndarray, some: list, pair: set):
    """Summary of them."""
'''
    [tool] = declare(shell, [cell])
    assert list(RULES["openai"].find_refusals(tool.info.input_schema)) == []
