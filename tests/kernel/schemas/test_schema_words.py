"""What a schema allows, in a few words."""

import pytest

from mcp_notebook.kernel.schemas.schema_words import (
    MAX_VALUES,
    PLAIN_WORDS,
    describe_schema,
    find_part,
)


def test_many_allowed_values_are_cut():
    words = describe_schema({"enum": list(range(1000))}, {})
    assert words.endswith("29 | ... (1000 in all)")
    assert len(words.split(" | ")) == MAX_VALUES + 1


def test_any_schema_of_an_authors_own_has_words():
    for schema in ({}, {"type": ["integer", "null"]}, {"const": 1}, {"$ref": "#/$defs/Gone"}):
        assert describe_schema(schema, {})


def test_a_secret_is_called_one():
    assert describe_schema({"type": "string", "format": "password"}, {}) == "secret text"


TEXT, NUMBER = {"type": "string"}, {"type": "number"}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "integer", "minimum": 1}, "whole number at least 1"),
        ({"anyOf": [TEXT, {"type": "null"}]}, "text or None"),
        ({"type": ["boolean", "null"]}, "true or false or None"),
        ({"enum": ["red", "blue"]}, "'red' or 'blue'"),
        ({"type": "array", "items": NUMBER | {"maximum": 9}}, "list of numbers at most 9"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "list of (text or None)"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "array", "prefixItems": [TEXT, NUMBER]}, "list [text, number]"),
        ({"type": "object", "additionalProperties": NUMBER}, "object of numbers"),
        ({"type": "object", "properties": {"a": {}, "b": {}}}, "object with a, b"),
        ({}, "any value"),
    ],
)
def test_people_who_know_python_read_plain_words(schema, said):
    assert describe_schema(schema, schema, PLAIN_WORDS) == said


ROOT = {
    "properties": {
        "tree": {"$ref": "#/$defs/Tree"},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"const": 1}},
    },
    "$defs": {"Tree": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
}


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (("tree", "n"), {"type": "integer", "minimum": 1}),
        (("pair", 0), {"type": "integer"}),
        (("pair", 1), {"const": 1}),
        (("tree", "m"), {}),
        ((), ROOT),
    ],
)
def test_a_path_leads_to_the_schema_of_its_place(path, part):
    assert find_part(path, ROOT) == part
