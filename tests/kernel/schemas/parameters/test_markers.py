"""Parameters with a header, and parameters that clients do not see."""

import enum
import sqlite3
from typing import Annotated, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import find_invalid_x_mcp_header
from pydantic import BaseModel, Field
from refusals import refusal_of

from mcp_notebook import Header, Hidden
from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.parameters.markers import HEADER_KEY, find_header_problem
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema


class Region(enum.Enum):
    EU = "eu"
    US = "us"


class Model(BaseModel):
    region: Annotated[str, Header("Region")]


def refusal(function):
    return refusal_of(read_function_schema, function)


# -- headers ---------------------------------------------------------------------------------------


def test_a_header_is_told_in_the_schema_of_its_parameter_and_changes_nothing_else():
    def f(
        a: Annotated[str, Header("A"), Field(max_length=3), "Text."],
        b: Annotated[Literal["x", "y"], Header("B")] = "x",
        c: Annotated[bool, Header("C")] = True,
        d: Annotated[int, Header("D")] = 1,
        e: Annotated[Region, Header("E")] = Region.EU,
    ):
        """Do."""

    schema = read_function_schema(f)
    properties = schema.input_schema["properties"]
    assert {name: item[HEADER_KEY] for name, item in properties.items()} == {
        name: name.upper() for name in "abcde"
    }
    assert properties["a"] == {
        "type": "string",
        "maxLength": 3,
        "description": "Text.",
        HEADER_KEY: "A",
    }
    assert find_invalid_x_mcp_header(schema.input_schema) is None
    assert schema.validate({"a": "abc", "e": "us"})["e"] is Region.US


def optional(region: Annotated[str | None, Header("Region")]): ...
def default_none(region: Annotated[str, Header("Region")] = None): ...  # noqa: RUF013
def number(region: Annotated[float, Header("Region")]): ...
def anything(region: Annotated[object, Header("Region")]): ...
def spaces(region: Annotated[str, Header("Sales region")]): ...
def empty(region: Annotated[str, Header("")]): ...
def no_text(region: Annotated[str, Header(5)]): ...
def twice(region: Annotated[str, Header("Region")], other: Annotated[str, Header("REGION")]): ...
def nested(first: Model, second: Model): ...
def within_list(region: list[Annotated[str, Header("Region")]]): ...
def of_a_list(region: Annotated[list[str], Header("Region")]): ...
def of_a_model(region: Annotated[Model, Header("Outer")]): ...
def by_hand(region: Annotated[str, Field(json_schema_extra={HEADER_KEY: "\n"})]): ...
def by_hand_no_text(region: Annotated[str, Field(json_schema_extra={HEADER_KEY: ["x"]})]): ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (optional, "plain str, int or bool only"),
        (default_none, "inside a type"),
        (number, "plain str, int or bool only"),
        (anything, "plain str, int or bool only"),
        (spaces, "'Sales region'"),
        (empty, "''"),
        (no_text, "5, is not a valid name"),
        (twice, "`region` and `other` have the same header 'REGION'"),
        (nested, "inside a type"),
        (within_list, "inside a type"),
        (of_a_list, "plain str, int or bool only"),
        (of_a_model, "Outer"),
        (by_hand, "not a valid name"),
        (by_hand_no_text, "not a valid name"),
    ],
)
def test_a_header_that_mcp_forbids_is_refused_at_definition(function, said):
    message = refusal(function)
    assert message.startswith(f"`{function.__name__}`: ")
    assert said in message


HEADERS = st.sampled_from(["Region", "region", "X-Y", "", "a b", "ü", "a\n", 5, None, ["x"], True])
TYPES = st.sampled_from(["string", "integer", "boolean", "number", "array", ["string"], None, {}])
ONE = ["items", "not", "if", "additionalProperties", "contentSchema", "const", "default", "enum"]
LIST = ["anyOf", "allOf", "oneOf", "prefixItems", "examples"]
MAPPING = ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "other"]
NAMES = st.sampled_from(["a", "b", "properties", "items", HEADER_KEY])
LEAVES = st.fixed_dictionaries({}, optional={"type": TYPES, HEADER_KEY: HEADERS})


def larger(schemas):
    return st.builds(
        lambda *parts: {key: value for part in parts for key, value in part.items()},
        LEAVES,
        st.dictionaries(st.sampled_from(ONE), schemas | st.booleans(), max_size=2),
        st.dictionaries(st.sampled_from(LIST), st.lists(schemas, max_size=2) | schemas, max_size=2),
        st.dictionaries(
            st.sampled_from(MAPPING),
            st.dictionaries(NAMES, schemas, max_size=3) | st.lists(schemas, max_size=1),
            max_size=2,
        ),
    )


SCHEMAS = st.recursive(LEAVES, larger, max_leaves=12)
# Mostly what is allowed: whole schemas of the above are nearly always refused.
GOOD = st.dictionaries(
    st.text("abc", min_size=1, max_size=2),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "boolean", "number"])},
        optional={HEADER_KEY: st.sampled_from(["A", "B", "C", "a", "x!y"])},
    )
    | LEAVES,
    max_size=3,
).map(lambda properties: {"type": "object", "properties": properties})


@given(SCHEMAS | GOOD)
def test_the_check_agrees_with_the_one_of_the_sdk(schema):
    ours, theirs = find_header_problem(schema), find_invalid_x_mcp_header(schema)
    assert (ours is None) == (theirs is None), (ours, theirs)
    assert ours is None or "\n" not in ours


def test_a_schema_of_any_depth_and_any_value_is_checked():
    schema = {HEADER_KEY: 10**5000, "type": "string"}
    for _ in range(10_000):
        schema = {"type": "object", "properties": {"a": schema}}
    assert "not a valid name" in find_header_problem(schema)


# -- hidden ----------------------------------------------------------------------------------------


def test_a_hidden_parameter_is_not_told_cannot_be_set_and_keeps_its_default():
    connection = sqlite3.connect(":memory:")
    connection.close()

    def f(
        x: int,
        limit: Annotated[int, Hidden] = 10,
        source: Annotated[sqlite3.Connection, Hidden] = connection,
        maybe: Optional[Annotated[int, Hidden]] = None,  # noqa: UP045
    ):
        """Do.

        Args:
            x: Number.
            limit: Not for clients.
        """
        return x, limit, source, maybe

    schema = read_function_schema(f)
    assert list(schema.input_schema["properties"]) == ["x"]
    assert schema.hidden == ("limit", "source", "maybe")
    assert schema.injected == ()
    assert schema.warnings == ()
    assert f(**schema.validate({"x": 1})) == (1, 10, connection, None)
    assert f(1) == (1, 10, connection, None)
    with pytest.raises(InvalidArguments, match="limit: no such parameter"):
        schema.validate({"x": 1, "limit": 5})
    connection.close()


def test_a_hidden_parameter_without_a_default_is_refused():
    def f(limit: Annotated[int, Hidden]): ...

    assert "`limit: Annotated[..., Hidden] = ...`" in refusal(f)


def test_hidden_written_as_a_default_says_how_it_is_written():
    with pytest.raises(DefinitionError, match=r"`limit: Annotated\[int, Hidden\] = 10`"):
        Hidden(10)
