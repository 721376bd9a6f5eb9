"""Arguments whose types contain themselves: however deep, they never keep the kernel busy."""

from typing import Annotated, Literal, Union

import pytest
from hints import schema_of
from pydantic import BaseModel, Field

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.by_hand.author_schema import read_author_schema

DEEP = "arguments: nested too deeply: they could match the tool's schema in too many ways"


class And(BaseModel):
    kind: Literal["and"]
    args: list["Expression"]


class Or(BaseModel):
    kind: Literal["or"]
    args: list["Expression"]


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    name: str


Expression = Union[And, Or, Leaf]  # noqa: UP007 - `|` takes no names in quotes
And.model_rebuild()
Or.model_rebuild()


class Chain(BaseModel):
    value: int
    rest: "Chain | None" = None


def make_author_schema():
    def of(kind):
        args = {"type": "array", "items": {"$ref": "#/$defs/node"}}
        return {"type": "object", "properties": {"kind": {"const": kind}, "args": args}}

    node = {"oneOf": [of("and"), of("or"), {"type": "string"}]}
    schema = {"type": "object", "properties": {"value": {"$ref": "#/$defs/node"}}}
    return read_author_schema(lambda **values: values, schema | {"$defs": {"node": node}}, "find")


def nest(depth, leaf):
    value = leaf
    for level in range(depth):
        value = {"kind": "and" if level % 2 else "or", "args": [value]}
    return value


@pytest.mark.parametrize(
    "leaf",
    [
        {"name": "x"},
        pytest.param({"name": 5}, marks=pytest.mark.slow),
        pytest.param(5, marks=pytest.mark.slow),
    ],
)
def test_forty_expressions_in_each_other_are_refused_at_once(leaf):
    # They took twice as long with each level: with forty, years.
    with pytest.raises(InvalidArguments, match=DEEP):
        schema_of(Expression).validate({"value": nest(40, leaf)})


@pytest.mark.slow
def test_by_an_authors_schema_they_are_refused_too():
    schema = make_author_schema()
    with pytest.raises(InvalidArguments, match=DEEP):
        schema.validate({"value": nest(40, "x")})
    assert schema.validate({"value": nest(5, "x")})


@pytest.mark.slow
def test_a_schema_that_offers_the_same_in_millions_of_ways_keeps_nobody_busy():
    names = [f"a{level}" for level in range(30)]
    definitions = {
        name: {"anyOf": [{"$ref": f"#/$defs/{after}"}] * 2}
        for name, after in zip(names, [*names[1:], "last"], strict=True)
    }
    schema = {
        "type": "object",
        "properties": {"value": {"$ref": "#/$defs/a0"}},
        "$defs": definitions | {"last": {"type": "integer"}},
    }
    with pytest.raises(InvalidArguments, match=DEEP):
        read_author_schema(lambda **values: values, schema, "find").validate({"value": "x"})


def test_a_few_levels_are_taken_and_told_as_ever():
    schema = schema_of(Expression)
    assert schema.validate({"value": nest(8, {"name": "x"})})["value"].kind == "and"
    with pytest.raises(InvalidArguments, match=r"value\.args\[0\]"):
        schema.validate({"value": nest(8, {"name": 5})})


@pytest.mark.parametrize("count", [1_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_many_values_and_long_chains_do_not_count_as_deep(count):
    many = [nest(2, {"name": "x"})] * count
    assert len(schema_of(list[Expression]).validate({"value": many})["value"]) == count
    chain = None
    for value in range(100):
        chain = {"value": value, "rest": chain}
    assert schema_of(Chain).validate({"value": chain})["value"].value == 99


def test_a_field_that_tells_the_types_apart_lets_expressions_be_deep():
    class Not(BaseModel):
        kind: Literal["not"]
        arg: "Node"

    class Nor(BaseModel):
        kind: Literal["nor"]
        arg: "Node"

    class End(BaseModel):
        kind: Literal["end"]

    Node = Annotated[Not | Nor | End, Field(discriminator="kind")]  # noqa: N806 - a type
    for model in (Not, Nor):
        model.model_rebuild(_types_namespace={"Node": Node})
    value = {"kind": "end"}
    for level in range(60):
        value = {"kind": "not" if level % 2 else "nor", "arg": value}
    assert schema_of(Node).validate({"value": value})["value"].kind == "not"
