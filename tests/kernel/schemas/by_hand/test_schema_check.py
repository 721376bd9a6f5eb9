"""Which JSON Schemas an author may write, and what they say yes and no to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from refusals import refusal_of

from mcp_notebook.kernel.schemas.by_hand.jsonschema_validator import make_validator
from mcp_notebook.kernel.schemas.by_hand.schema_check import check_schema


def refusal(schema):
    message = refusal_of(check_schema, schema, "lookup", "input_schema")
    assert message.startswith("`lookup`: `input_schema` ")
    return message


def of(**properties):
    return {"type": "object", "properties": properties}


def holds(schema, value):
    return make_validator(check_schema(schema, "lookup", "input_schema")).is_valid(value)


def test_what_is_published_is_a_copy_that_later_changes_do_not_reach():
    schema = of(a={"enum": [1, 2]})
    kept = check_schema(schema, "lookup", "input_schema")
    assert json.dumps(kept) == json.dumps(schema)
    schema["properties"]["a"]["enum"].append(3)
    assert kept == of(a={"enum": [1, 2]})


def deep():
    schema = inner = {"type": "object"}
    for _ in range(2000):
        inner["properties"] = {"a": {}}
        inner = inner["properties"]["a"]
    return schema


def circular():
    schema = {"type": "object"}
    schema["properties"] = schema
    return schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (3, "a dict, not 3"),
        ({}, '`"type": "object"`'),
        ({"type": "array"}, '`"type": "object"`'),
        (of(a={"type": "strin"}), "at 'properties/a/type'"),
        (of(a={"minimum": "low"}), "at 'properties/a/minimum'"),
        (of(a={"$ref": "https://example.com/a"}), "nothing is fetched"),
        (of(a={"$ref": "other.json#/x"}), "nothing is fetched"),
        (of(a={"$ref": "#/$defs/a"}), "'#/$defs/a', which is not a schema within it"),
        (of(a={"$ref": "#anchor"}), "'#anchor', which is not a schema within it"),
        (of(a={"$ref": "#/type"}), "'#/type', which is not a schema"),
        ({**of(a={"$ref": "#/x"}), "x": {"type": "strin"}}, "at 'type'"),
        ({"type": "object", "$ref": "#"}, "for the same value"),
        (
            {
                **of(a={"$ref": "#/$defs/a"}),
                "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
            },
            "for the same value",
        ),
        ({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, "2020-12"),
        (of(a={"$schema": "http://json-schema.org/draft-07/schema#"}), "below its top"),
        (of(a={"pattern": "(?=a)b"}), "in the handler"),
        (of(a={"pattern": "("}), "unclosed group"),
        ({"type": "object", "patternProperties": {r"(a)\1": {}}}, "in the handler"),
        (of(a={"default": float("nan")}), "is not valid JSON"),
        (of(a={"default": object()}), "is not valid JSON"),
        (of(a={"default": "\ud800"}), "is not valid JSON"),
        (circular(), "is not valid JSON"),
        (deep(), "too deeply"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_reason(schema, said):
    assert said in refusal(schema)


def test_references_by_name_anchor_and_to_itself_are_followed():
    schema = {
        **of(tree={"$ref": "#/$defs/node"}, again={"$ref": "#leaf"}, self={"$ref": "#"}),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "node": of(below={"type": "array", "items": {"$ref": "#/$defs/node"}}),
            "leaf": {"$anchor": "leaf", "type": "integer"},
        },
    }
    assert holds(schema, {"tree": {"below": [{"below": []}]}, "again": 1, "self": {"again": 2}})
    assert not holds(schema, {"tree": {"below": [{"below": [3]}]}})
    assert not holds(schema, {"self": {"self": {"again": "x"}}})


@pytest.mark.parametrize("dialect", [{}, {"$schema": Draft202012Validator.META_SCHEMA["$id"]}])
@pytest.mark.parametrize(
    "keywords",
    [
        {"properties": {"a": {"type": "string", "pattern": "^(x+)+$"}}},
        {"patternProperties": {"^(x+)+$": {}}},
        {"patternProperties": {"^(x+)+$": {}}, "additionalProperties": False},
        {"patternProperties": {"^(x+)+$": {}}, "unevaluatedProperties": False},
        {"propertyNames": {"pattern": "^(x+)+$"}},
    ],
)
def test_no_text_of_a_client_makes_a_regular_expression_run_for_ever(keywords, dialect):
    inner = {"type": "object", **keywords}
    evil = "x" * 5000 + "y"  # ages, for Python's own engine: the suite's limit would end it
    holds({**dialect, **inner}, {"a": evil, evil: 1})
    outer = {**dialect, "type": "object", "properties": {"a": inner, "b": {"$ref": "#"}}}
    holds(outer, {"b": {"a": {"a": evil, evil: evil}}})


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2024-02-30"),
        ("date-time", "2024-02-29T12:00:00Z", "2024-02-29"),
        ("time", "12:30:00", "25:00:00"),
        ("email", "a@example.com", "a"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "::g"),
        ("uuid", "12345678-1234-5678-1234-567812345678", "1234"),
    ],
)
def test_formats_are_checked(name, good, bad):
    schema = of(a={"type": "string", "format": name})
    assert holds(schema, {"a": good})
    assert not holds(schema, {"a": bad})
    assert holds(of(a={"format": name}), {"a": 5})


def test_other_formats_say_nothing():
    assert holds(of(a={"format": "uri"}), {"a": "no uri at all"})


KEYS = st.sampled_from(["a", "b", "xa", "xb"])
LEAVES = st.sampled_from([True, False, {"type": "integer"}, {"type": "string"}, {"minimum": 2}])


def objects(inner):
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(KEYS, inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^x", "b$"]), inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "required": st.lists(KEYS, max_size=2, unique=True),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": st.dictionaries(KEYS, inner, max_size=1),
        },
    )


SCHEMAS = st.recursive(LEAVES, objects, max_leaves=6)
VALUES = st.dictionaries(KEYS, st.sampled_from([1, 5, "s", {}, {"a": 1}]), max_size=3)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)), VALUES)
def test_our_own_keywords_say_what_jsonschema_says(schema, value):
    schema = {**schema, "type": "object"}
    assert holds(schema, value) == Draft202012Validator(schema).is_valid(value)
