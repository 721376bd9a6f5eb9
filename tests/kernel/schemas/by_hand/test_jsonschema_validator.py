"""Validation by a schema: patterns in linear time, keywords of our own, formats."""

import subprocess
import sys

import pytest

from mcp_notebook.kernel.schemas.by_hand.jsonschema_validator import (
    compile_pattern,
    drop_unusable_patterns,
    find_errors,
    make_validator,
)


def paths(schema, value):
    return [list(error.absolute_path) for error in find_errors(make_validator(schema), value)]


def test_a_pattern_that_would_take_years_takes_no_time():
    assert paths({"type": "string", "pattern": "^(a+)+$"}, "a" * 5_000 + "!") == [[]]


def test_a_pattern_with_look_around_cannot_be_compiled_and_is_dropped():
    with pytest.raises(Exception, match="look-around"):
        compile_pattern("(?=a)b")
    schema = {
        "properties": {"a": {"pattern": "(?=a)b"}, "b": {"pattern": "^b"}},
        "patternProperties": {"(?=a)b": {}, "^c": {}},
        "const": {"pattern": "(?=a)b"},
    }
    assert drop_unusable_patterns(schema) == {
        "properties": {"a": {}, "b": {"pattern": "^b"}},
        "patternProperties": {"^c": {}},
        "const": {"pattern": "(?=a)b"},
    }


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"properties": {"a": False}}, {"a": 1}, [["a"]]),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n1": "x", "m": "x"}, [["n1"]]),
        (
            {
                "properties": {"a": {}},
                "patternProperties": {"^n": {}},
                "additionalProperties": False,
            },
            {"a": 1, "n1": 1, "z": 1},
            [["z"]],
        ),
        (
            {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
            {"a": 1, "z": 1},
            [["z"]],
        ),
        (
            {
                "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
                "then": {"properties": {"b": {}}},
                "else": {"properties": {"c": {}}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "b": 1, "c": 1},
            [["c"]],
        ),
        (
            {
                "$ref": "#/$defs/base",
                "$defs": {"base": {"properties": {"a": {}}}},
                "unevaluatedProperties": False,
            },
            {"a": 1, "z": 1},
            [["z"]],
        ),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], [[]]),
        ({"uniqueItems": True}, [1, True, "1"], []),
    ],
)
def test_keywords_of_our_own_find_what_is_wrong_where_it_is(schema, value, wrong):
    assert paths(schema, value) == wrong


def test_tools_with_type_hints_and_their_first_calls_do_not_load_jsonschema():
    code = """
import dataclasses, sys
import mcp_notebook.kernel.extension
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions

@dataclasses.dataclass
class Point:
    x: float

def move(point: Point, by: list[int]) -> Point:
    "Move."
    return Point(point.x + by[0])

tool = make_tool(move, ToolOptions(output_schema=True))
arguments = tool.schema.validate({"point": {"x": 1}, "by": "[2]"})
assert tool.output.convert(move(**arguments), 100) == ({"x": 3.0}, [])
try:
    tool.schema.validate({"point": 5})
except InvalidArguments as refusal:
    assert "by: missing" in str(refusal)
assert not {"jsonschema", "referencing"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
