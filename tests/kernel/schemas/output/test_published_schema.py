"""The output schemas that clients get have an object at their root, with room for a text."""

import pytest

from mcp_notebook.kernel.schemas.output.published_schema import ABOUT, is_at_root, publish_schema


def without_about(schema):
    """Return a schema without our property, and check that."""
    properties = dict(schema["properties"])
    assert properties.pop(ABOUT)["type"] == "string"
    return {**schema, "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "number"}},
    ],
)
def test_an_object_stays_the_root(schema):
    assert is_at_root(schema)
    assert without_about(publish_schema(schema)) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": ["object", "null"]},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
        {"type": "object", "maxProperties": 1},
        {"type": "object", "allOf": [{"additionalProperties": False}]},
        {"type": "object", "properties": {ABOUT: {"type": "integer"}}},
    ],
)
def test_anything_else_becomes_the_property_result_of_one(schema):
    assert not is_at_root(schema)
    assert without_about(publish_schema(schema)) == {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
    }


def test_definitions_stay_at_the_root():
    definitions = {"A": {"type": "integer"}}
    schema = {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": definitions}
    published = publish_schema(schema)
    assert published["properties"]["result"] == {"type": "array", "items": {"$ref": "#/$defs/A"}}
    assert published["$defs"] == definitions


def test_references_to_the_root_move_with_it():
    schema = {"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}}, {"const": {"$ref": "#"}}]}
    _, items, const = publish_schema(schema)["properties"]["result"]["anyOf"]
    assert items == {"items": {"$ref": "#/properties/result"}}
    assert const == {"const": {"$ref": "#"}}
