"""What clients get of a schema that contains itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, SecretStr
from schemas import check_schema

from mcp_notebook.kernel.schemas.recursion import DEPTH, is_recursive, unroll
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.text.redaction import MASK, redact_arguments


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Person(BaseModel):
    name: str
    address: "Address | None" = None


class Address(BaseModel):
    street: str
    people: dict[str, Person] = {}


class Account(BaseModel):
    password: SecretStr
    others: list["Account"] = []


def published(function, **options):
    return make_tool(function, ToolOptions(**options)).info.input_schema


def write_out(schema, root):
    """Replace each reference by its target, as some clients do."""
    if isinstance(schema, list):
        return [write_out(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: write_out(value, root) for key, value in schema.items() if key != "$defs"}
    reference = rest.pop("$ref", None)
    if reference is None:
        return rest
    target = root
    for name in reference.split("/")[1:]:
        target = target[name]
    return {**write_out(target, root), **rest}


def nest(levels):
    value = {"value": 0}
    for _ in range(levels):
        value = {"value": 1, "children": [value]}
    return value


def test_a_type_that_contains_itself_is_written_out_to_some_depth():
    def f(tree: Tree, other: Tree | None = None):
        """F."""

    schema = published(f)
    assert not is_recursive(schema)
    inner = write_out(schema, schema)["properties"]["tree"]
    for _ in range(DEPTH - 1):
        inner = inner["properties"]["children"]["items"]
        assert inner["properties"]["value"] == {"type": "integer"}
    bottom = inner["properties"]["children"]["items"]
    assert bottom == {"type": "object", "description": "`Tree`, as above."}
    assert list(schema["$defs"]) == ["Tree", "Tree_2", "Tree_3"]


def test_types_that_contain_each_other_are_written_out_together():
    def f(person: Person):
        """F."""

    schema = published(f)
    assert not is_recursive(schema)
    assert list(schema["$defs"]) == ["Person", "Person_2", "Person_3"]


def test_calls_are_validated_by_the_authors_own_type():
    def f(tree: Tree):
        """F."""

    tool = make_tool(f)
    assert tool.schema.validate({"tree": nest(9)})["tree"] == Tree.model_validate(nest(9))
    with pytest.raises(Exception, match="value"):
        tool.schema.validate({"tree": json.loads(json.dumps(nest(9)).replace("0", '"x"'))})
    Draft202012Validator(tool.info.input_schema).validate({"tree": nest(9)})


def test_a_secret_below_the_last_level_is_masked():
    def f(account: Account):
        """F."""

    account = {"password": "hush"}
    for _ in range(6):
        account = {"password": "hush", "others": [account]}
    shown = redact_arguments(published(f), {"account": account})
    assert "hush" not in str(shown)
    assert shown["account"]["others"][0]["password"] == MASK


def test_a_schema_without_circles_is_published_as_it_is():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {"$ref": {"const": {"$ref": "#"}}}}},
    }
    assert unroll(schema) is schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"b": {"$ref": "#/properties/a"}}},
                "a~b/c": {"type": "array", "prefixItems": [{"$ref": "#/properties/a~0b~1c"}]},
                "whole": {"$ref": "#"},
            },
        },
        {
            "$id": "https://example.com/tree",
            "type": "object",
            "properties": {"n": {"$ref": "#node"}},
            "$defs": {
                "a b": {
                    "$anchor": "node",
                    "type": ["object", "null"],
                    "properties": {"n": {"$ref": "#/$defs/a%20b"}},
                }
            },
        },
        {
            "type": "object",
            "properties": {"definitions": {"$ref": "#/definitions/X"}},
            "definitions": {"X": {"type": "array", "items": {"$ref": "#/definitions/X"}}},
        },
    ],
    ids=["root", "pointers", "anchor", "definitions"],
)
def test_what_authors_write_by_hand_is_written_out_however_it_refers_to_itself(schema):
    def f(**arguments):
        """F."""

    assert is_recursive(schema)
    found = published(f, input_schema=schema)
    assert not is_recursive(found)
    check_schema(found)
    assert make_tool(f, ToolOptions(input_schema=schema)).warnings == ()


def test_what_cannot_be_written_out_is_said():
    def f(**arguments):
        """F."""

    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/N"}},
        "$defs": {
            "N": {
                "$dynamicAnchor": "n",
                "type": "object",
                "properties": {"n": {"$dynamicRef": "#n"}},
            }
        },
    }
    tool = make_tool(f, ToolOptions(input_schema=schema))
    assert tool.info.input_schema == schema
    (note,) = tool.warnings
    assert "some clients (LlamaIndex, mcp-use) then list no tools" in note


def test_a_type_with_many_branches_is_written_out_to_less_depth():
    names = [f"T{n}" for n in range(12)]
    anything = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}
    schema = {
        "type": "object",
        "properties": {"e": anything},
        "$defs": {
            name: {"type": "object", "properties": {"left": anything, "right": anything}}
            for name in names
        },
    }
    found = unroll(schema)
    assert not is_recursive(found)
    assert len(json.dumps(write_out(found, found))) < 1_000_000
    assert found["$defs"]["T0"]["properties"]["left"]["anyOf"]


# -- whatever the schema ---------------------------------------------------------------------------

NAMES = ["A", "B", "C"]
REFERENCES = st.sampled_from(["#", *(f"#/$defs/{name}" for name in NAMES)])
CHILDREN = st.recursive(
    st.just({"type": "string"})
    | st.just({"type": "null"})
    | st.builds(lambda reference: {"$ref": reference}, REFERENCES)
    | st.builds(lambda reference: {"$ref": reference, "description": "D."}, REFERENCES),
    lambda child: (
        st.builds(lambda options: {"anyOf": options}, st.lists(child, min_size=1, max_size=3))
        | st.builds(lambda options: {"oneOf": options}, st.lists(child, min_size=1, max_size=3))
        | st.builds(lambda option: {"not": option}, child)
        | st.builds(lambda a, b: {"if": a, "then": b, "else": {"type": "object"}}, child, child)
        | st.builds(lambda a: {"allOf": [a], "unevaluatedProperties": False}, child)
        | st.builds(lambda a: {"type": "array", "contains": a}, child)
    ),
    max_leaves=4,
)
OBJECTS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(st.sampled_from("ab"), CHILDREN, max_size=2),
    },
    optional={"additionalProperties": CHILDREN | st.booleans()},
)
ARRAYS = st.builds(lambda items: {"type": "array", "items": items}, CHILDREN)
SCHEMAS = st.builds(
    lambda root, parts: {**root, "$defs": dict(zip(NAMES, parts, strict=True))},
    OBJECTS,
    st.lists(OBJECTS | ARRAYS, min_size=len(NAMES), max_size=len(NAMES)),
)
VALUES = st.recursive(
    st.none() | st.just("x"),
    lambda part: st.lists(part, max_size=2) | st.dictionaries(st.sampled_from("abc"), part),
    max_leaves=8,
)


@given(SCHEMAS, st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), max_size=8))
def test_clients_get_no_circle_and_may_send_all_that_the_author_allows(schema, values):
    found = unroll(schema)
    assert not is_recursive(found)
    check_schema(found)
    before, after = Draft202012Validator(schema), Draft202012Validator(found)
    assert all(after.is_valid(value) for value in values if before.is_valid(value))
    assert (found is schema) == (not is_recursive(schema))
