import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.cli.call import read_arguments
from mcp_notebook.errors import InvalidArguments


@given(st.text(), st.text())
def test_a_text_argument_is_never_changed(name, text):
    schema = {"properties": {name: {"type": "string"}}}
    assert read_arguments([(name, text)], schema) == {name: text}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_any_json_but_text_arrives_where_anything_is_allowed(value):
    assert read_arguments([("x", json.dumps(value))], {"properties": {"x": {}}}) == {"x": value}


def test_a_schema_that_refers_to_itself_is_read():
    schema = {
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
        "$defs": {"Tree": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Tree"}]}},
    }
    assert read_arguments([("tree", "5")], schema) == {"tree": 5}


@pytest.mark.parametrize(
    ("part", "text", "value"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5", 5),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "5", "5"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
        ({"enum": ["5", "true"]}, "5", "5"),
        ({"$ref": "#/$defs/Year"}, "2015", "2015"),
        ({"type": "integer", "maximum": 3}, "5", 5),
        ({"type": "array"}, "[1]", [1]),
        (True, "[1]", [1]),
    ],
)
def test_a_text_is_read_as_json_where_the_schema_takes_that(part, text, value):
    schema = {"properties": {"x": part}, "$defs": {"Year": {"type": "string"}}}
    assert read_arguments([("x", text)], schema) == {"x": value}


@pytest.mark.parametrize("text", ["5", "true", "[1]", "word"])
def test_a_parameter_that_the_schema_does_not_know_is_read_as_json_or_else_as_text(text):
    value = "word" if text == "word" else json.loads(text)
    assert read_arguments([("x", text)], {}) == {"x": value}


def test_a_value_that_is_nested_too_deeply_is_refused():
    with pytest.raises(InvalidArguments, match="x: nested too deeply"):
        read_arguments([("x", "[" * 100_000)], {})


def test_a_parameter_that_is_named_twice_is_refused():
    with pytest.raises(InvalidArguments, match="'x' was given twice"):
        read_arguments([("x", "1"), ("x", "2")], {})
