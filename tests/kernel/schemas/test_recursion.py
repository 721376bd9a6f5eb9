"""What clients get of a schema that contains itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, SecretStr
from schemas import check_schema

from mcp_notebook.kernel.schemas.recursion import cut_cycles, has_other_references
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


def is_recursive(schema):
    """Return whether a client that replaces each reference by its target never ends."""

    def expand(part, within):
        if isinstance(part, list):
            return any(expand(each, within) for each in part)
        if not isinstance(part, dict):
            return False
        address = part.get("$ref")
        if isinstance(address, str):
            target = schema
            for name in address.split("/")[1:]:
                target = target[name]
            if address in within or expand(target, {*within, address}):
                return True
        hidden = ("$defs", "definitions") if part is schema else ()
        return any(expand(each, within) for name, each in part.items() if name not in hidden)

    return expand(schema, {"#"})


def published(function, **options):
    return make_tool(function, ToolOptions(**options)).info.input_schema


def nest(levels):
    value = {"value": 0}
    for _ in range(levels):
        value = {"value": 1, "children": [value]}
    return value


def test_of_a_type_that_contains_itself_the_first_level_is_published():
    def f(tree: Tree, other: Tree | None = None):
        """F."""

    schema = published(f)
    assert not is_recursive(schema)
    tree = schema["$defs"]["Tree"]["properties"]
    assert tree["value"] == {"type": "integer"}
    assert tree["children"]["items"] == {"type": "object", "description": "`Tree`, as above."}


def test_types_that_contain_each_other_are_cut_where_they_meet():
    def f(person: Person):
        """F."""

    schema = published(f)
    assert not is_recursive(schema)
    assert "street" in json.dumps(schema)
    assert "`Person`, as above." in json.dumps(schema)


def test_calls_are_validated_by_the_authors_own_type():
    def f(tree: Tree):
        """F."""

    tool = make_tool(f)
    assert tool.schema.validate({"tree": nest(9)})["tree"] == Tree.model_validate(nest(9))
    with pytest.raises(Exception, match="value"):
        tool.schema.validate({"tree": json.loads(json.dumps(nest(9)).replace("0", '"x"'))})
    Draft202012Validator(tool.info.input_schema).validate({"tree": nest(9)})


def test_a_secret_below_the_first_level_is_masked():
    def f(account: Account):
        """F."""

    account = {"password": "hush"}
    for _ in range(6):
        account = {"password": "hush", "others": [account]}
    shown = redact_arguments(published(f), {"account": account})
    assert "hush" not in str(shown)
    assert shown["account"]["others"] == [MASK]


def test_a_schema_without_circles_is_published_as_it_is():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {"$ref": {"const": {"$ref": "#"}}}}},
    }
    assert cut_cycles(schema) is schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}},
        {
            "type": "object",
            "properties": {"definitions": {"$ref": "#/definitions/X"}},
            "definitions": {"X": {"type": "array", "items": {"$ref": "#/definitions/X"}}},
        },
    ],
    ids=["root", "definitions"],
)
def test_what_authors_write_by_hand_is_cut(schema):
    def f(**arguments):
        """F."""

    assert is_recursive(schema)
    found = published(f, input_schema=schema)
    assert not is_recursive(found)
    check_schema(found)
    assert make_tool(f, ToolOptions(input_schema=schema)).warnings == ()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "object", "properties": {"b": {"$ref": "#/properties/n"}}},
        {"$anchor": "node", "type": "object", "properties": {"n": {"$ref": "#node"}}},
        {"$dynamicAnchor": "n", "type": "object", "properties": {"n": {"$dynamicRef": "#n"}}},
    ],
)
def test_what_cannot_be_cut_is_said(part):
    def f(**arguments):
        """F."""

    schema = {"type": "object", "properties": {"n": part}}
    assert has_other_references(schema)
    tool = make_tool(f, ToolOptions(input_schema=schema))
    assert tool.info.input_schema == schema
    (note,) = tool.warnings
    assert "some clients (LlamaIndex, mcp-use) list no tools" in note


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
    found = cut_cycles(schema)
    assert not is_recursive(found)
    check_schema(found)
    before, after = Draft202012Validator(schema), Draft202012Validator(found)
    assert all(after.is_valid(value) for value in values if before.is_valid(value))
