"""Schemas that the APIs of models refuse, and what becomes of the tool."""

import pytest
from linted import declare, lint

from mcp_notebook.check.schemas import PROVIDERS


def refuse(provider, **properties):
    """Return the reasons of a provider against a schema with these properties."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return [each.reason for each in PROVIDERS[provider](schema)]


@pytest.mark.parametrize(
    ("provider", "part", "reason"),
    [
        ("OpenAI", {"type": "array"}, "is or has an array without `items`"),
    ],
)
def test_a_part_that_a_provider_refuses_is_found(provider, part, reason):
    assert refuse(provider, x=part) == [reason]


def test_a_part_within_others_is_found():
    part = {"type": "array", "items": {"anyOf": [{"type": "array"}]}}
    [refusal] = PROVIDERS["OpenAI"]({"type": "object", "properties": {"x": part}})
    assert refusal.place == "x"


@pytest.mark.parametrize("provider", PROVIDERS)
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


@pytest.mark.parametrize("provider", PROVIDERS)
def test_alternatives_at_the_top_are_refused(provider):
    schema = {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}
    assert [each.place for each in PROVIDERS[provider](schema)] == [""]


def test_the_finding_says_what_clients_lose_and_what_to_write(shell):
    cell = '''%%mcp_tool --read-only
def rain_of_years(
    years: Annotated[list, WithJsonSchema({"type": "array"})],
) -> float:
    """Rain in mm, summed over the years."""
    return 1.0
'''
    setup = "from typing import Annotated\nfrom pydantic import WithJsonSchema"
    [finding] = lint(shell, setup, cell)
    assert (finding.rule, finding.severity, finding.line) == ("schema-openai", "error", 3)
    assert "`years` is or has an array without `items`" in finding.reason
    assert "clients lose all tools" in finding.reason


def test_the_schemas_of_tables_and_arrays_say_what_their_items_are(shell):
    """OpenAI's API refuses an array without items, with all tools of the request."""
    cell = '''%%mcp_tool --read-only
import numpy as np, pandas as pd
def summarize(rows: pd.DataFrame, column: pd.Series, values: np.ndarray, some: list, pair: set):
    """Summary of them."""
'''
    [tool] = declare(shell, [cell])
    assert list(PROVIDERS["OpenAI"](tool.info.input_schema)) == []
