"""Secrets among a call's arguments, as the tool's input schema marks them."""

import json
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr, TypeAdapter
from typing_extensions import TypedDict

from mcp_notebook.text.redaction import MASK, has_secrets, redact_arguments

SECRET = "hunter2"


class Login(BaseModel):
    user: str
    password: SecretStr


class Key(BaseModel):
    file: str


class Tree(BaseModel):
    token: SecretStr | None = None
    children: list["Tree"] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    token: SecretStr


def schema_for(hint):
    fields = TypedDict("Fields", {"value": hint, "size": int})  # noqa: UP013 - needs the variable
    return TypeAdapter(fields).json_schema() | {"additionalProperties": False}


@pytest.mark.parametrize(
    ("hint", "sent", "shown"),
    [
        (SecretStr, SECRET, MASK),
        (SecretBytes, SECRET, MASK),
        (SecretStr | None, SECRET, MASK),
        (int | SecretStr, SECRET, MASK),
        (list[SecretStr], [SECRET, SECRET], [MASK, MASK]),
        (tuple[str, SecretStr], ["ann", SECRET], ["ann", MASK]),
        (tuple[str, SecretStr], ["ann", "b", SECRET], ["ann", MASK, MASK]),
        (dict[str, SecretStr], {"a": SECRET}, {"a": MASK}),
        (Login, {"user": "ann", "password": SECRET}, {"user": "ann", "password": MASK}),
        (Login | Key, {"file": "key.pem"}, {"file": "key.pem"}),
        (list[Login], [{"user": "ann", "password": SECRET}], [{"user": "ann", "password": MASK}]),
        (dict[str, Login], {"a": {"password": SECRET}}, {"a": {"password": MASK}}),
        (Tree, {"children": [{"token": SECRET}]}, {"children": [{"token": MASK}]}),
        (Annotated[SecretStr, Field(min_length=3)], SECRET, MASK),
    ],
)
def test_a_secret_is_masked_at_any_depth_and_nothing_else(hint, sent, shown):
    schema = schema_for(hint)
    arguments = {"value": sent, "size": 3}
    before = json.dumps(arguments)
    assert redact_arguments(schema, arguments) == {"value": shown, "size": 3}
    assert json.dumps(arguments) == before


@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        (Login, f'{{"user": "ann", "password": "{SECRET}"}}'),
        (Login, {"user": "ann", "pasword": SECRET}),
        (Login, [SECRET]),
        (Login, {"user": "ann", "password": [SECRET]}),
        (list[Login], SECRET),
        (list[Login], [SECRET, [SECRET], {"password": {"value": SECRET}}]),
        (dict[str, SecretStr], [SECRET]),
        (tuple[int, SecretStr], {"1": SECRET}),
        (Open, {"token": "x", "other": SECRET}),
        (SecretStr, {"value": [SECRET]}),
    ],
)
def test_a_secret_that_is_not_where_it_belongs_is_masked(hint, sent):
    redacted = redact_arguments(schema_for(hint), {"value": sent, "valeu": SECRET})
    assert SECRET not in json.dumps(redacted)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"key": {"type": "string", "format": "password"}}},
        {"properties": {"key": {"writeOnly": True}}},
        {"properties": {"key": {"$ref": "#/$defs/key"}}, "$defs": {"key": {"writeOnly": True}}},
        {"patternProperties": {"^k": {"writeOnly": True}}},
        {"allOf": [{"properties": {"key": {"writeOnly": True}}}]},
        {"if": {"required": ["key"]}, "then": {"properties": {"key": {"writeOnly": True}}}},
        {"dependentSchemas": {"key": {"properties": {"key": {"writeOnly": True}}}}},
        {"additionalProperties": {"writeOnly": True}},
        {"propertyNames": {"format": "password"}},
        {"writeOnly": True},
    ],
)
def test_an_authors_schema_marks_secrets_by_keywords_of_json_schema(schema):
    assert SECRET not in json.dumps(redact_arguments(schema, {"key": SECRET}))


@pytest.mark.smoke
def test_arguments_too_deep_to_follow_are_masked_as_a_whole():
    deep: dict = {"token": SECRET}
    for _ in range(3000):
        deep = {"children": [deep]}
    assert redact_arguments(schema_for(Tree), {"value": deep, "size": 3}) == {
        "value": MASK,
        "size": MASK,
    }


def test_parameters_may_be_called_as_keywords_are():
    properties = {"default": {"writeOnly": True}, "format": {}, "writeOnly": {"type": "boolean"}}
    arguments = {"default": SECRET, "format": "password", "writeOnly": True}
    shown = arguments | {"default": MASK}
    assert redact_arguments({"properties": properties}, arguments) == shown


@pytest.mark.parametrize("keyword", ["$defs", "definitions"])
def test_a_secret_in_a_definition_counts_only_where_something_refers_to_it(keyword):
    definitions = {keyword: {"key": {"writeOnly": True}}}
    assert not has_secrets(definitions, definitions)
    schema = {"properties": {"a": {"$ref": f"#/{keyword}/key"}}, **definitions}
    assert redact_arguments(schema, {"a": SECRET}) == {"a": MASK}


def test_without_a_secret_arguments_stay_as_they_are_also_unknown_ones():
    schema = {"properties": {"a": {"default": {"format": "password"}}}, "$defs": {"b": True}}
    assert not has_secrets(schema, schema)
    assert redact_arguments(schema, {"a": [1], "c": "x"}) == {"a": [1], "c": "x"}


_SCHEMAS = st.recursive(
    st.booleans() | st.fixed_dictionaries({}, optional={"writeOnly": st.just(True)}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/none", "http://x/y"]),
        },
    ),
    max_leaves=8,
)
_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_SCHEMAS, st.dictionaries(st.sampled_from("abcd"), _VALUES, max_size=3))
def test_any_schema_and_any_arguments_can_be_redacted(schema, arguments):
    root = schema if isinstance(schema, dict) else {}
    redacted = redact_arguments(root, arguments)
    if not has_secrets(root, root):
        assert redacted == arguments
