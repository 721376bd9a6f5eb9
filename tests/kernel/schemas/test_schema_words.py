"""What a schema allows, in a few words."""

from mcp_notebook.kernel.schemas.schema_words import MAX_VALUES, describe_schema


def test_many_allowed_values_are_cut():
    words = describe_schema({"enum": list(range(1000))}, {})
    assert words.endswith("29 | ... (1000 in all)")
    assert len(words.split(" | ")) == MAX_VALUES + 1


def test_any_schema_of_an_authors_own_has_words():
    for schema in ({}, {"type": ["integer", "null"]}, {"const": 1}, {"$ref": "#/$defs/Gone"}):
        assert describe_schema(schema, {})


def test_a_secret_is_called_one():
    assert describe_schema({"type": "string", "format": "password"}, {}) == "secret text"
