"""Structured content and schemas in an object, for versions of MCP that only allow objects."""

from mcp_notebook.bridge.server.protocol.object_results import wrap_meta, wrap_schema
from mcp_notebook.meta_keys import SHORTENED


def test_an_object_stays_the_root():
    schema = {"type": "object", "properties": {}}
    assert wrap_schema(schema) is schema


def test_anything_else_becomes_the_property_result_of_one():
    assert wrap_schema(
        {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "integer"}}}
    ) == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
        "required": ["result"],
        "$defs": {"A": {"type": "integer"}},
    }


def test_references_to_the_root_move_with_it():
    schema = {"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}}, {"const": {"$ref": "#"}}]}
    _, items, const = wrap_schema(schema)["properties"]["result"]["anyOf"]
    assert items == {"items": {"$ref": "#/properties/result"}}
    assert const == {"const": {"$ref": "#"}}


def test_the_paths_of_what_was_shortened_lead_into_the_object():
    cuts = [{"path": [], "kept": 1, "total": 2}, {"path": ["a"], "kept": 1, "total": 2}]
    meta = wrap_meta({SHORTENED: cuts, "com.example/a": 1})
    assert [cut["path"] for cut in meta[SHORTENED]] == [["result"], ["result", "a"]]
    assert meta["com.example/a"] == 1
    assert cuts[0]["path"] == []
