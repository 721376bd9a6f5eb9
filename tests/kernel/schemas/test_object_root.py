"""The root of an output schema."""

import pytest

from mcp_notebook.kernel.schemas.object_root import has_id, make_object_root


def test_an_object_stays_the_root():
    schema = {"type": "object", "properties": {}}
    assert make_object_root(schema) == (schema, False)


def test_anything_else_becomes_the_property_result_of_one():
    root, is_wrapped = make_object_root(
        {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "integer"}}}
    )
    assert is_wrapped
    assert root == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
        "required": ["result"],
        "$defs": {"A": {"type": "integer"}},
    }


def test_references_to_the_root_move_with_it():
    root, _ = make_object_root({"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}}]})
    assert root["properties"]["result"]["anyOf"][1]["items"] == {"$ref": "#/properties/result"}


def test_a_root_that_only_refers_to_an_object_is_that_object():
    definition = {"type": "object", "properties": {"kids": {"$ref": "#/$defs/Node"}}}
    root, is_wrapped = make_object_root({"$ref": "#/$defs/Node", "$defs": {"Node": definition}})
    assert not is_wrapped
    assert root == {**definition, "$defs": {"Node": definition}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$id": "x"}, True),
        ({"items": [{"$id": "x"}]}, True),
        ({"properties": {"$id": {"type": "string"}}}, False),
        ({"const": {"$id": "x"}}, False),
    ],
)
def test_an_id_is_found_where_it_is_a_keyword(schema, expected):
    assert has_id(schema) is expected
