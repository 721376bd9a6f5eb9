"""attrs classes as parameters."""

import json
from typing import Annotated

import attr
import attrs
import pytest
from jsonschema import Draft202012Validator
from mcp.shared.inbound import x_mcp_header_map
from pydantic import Field
from schemas import check_schema

from mcp_notebook import Header
from mcp_notebook.errors import DefinitionError, InvalidArguments, InvalidResult
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.tools.declared_tool import make_tool


@attrs.define
class Place:
    latitude: Annotated[float, Field(ge=-90, le=90, description="Degrees.")]
    _code: int = attrs.field(default=7, validator=attrs.validators.lt(10))
    tags: list[str] = attrs.field(factory=list)
    key: str = attrs.field(init=False, default="unset")


@attrs.frozen
class Trip:
    start: Place
    stops: "list[Place]" = attrs.field(factory=list)
    name: str = attrs.field(default="", converter=str.upper)


@attrs.define
class Tree:
    children: "list[Tree]"


def test_the_fields_of_an_attrs_class_are_told_and_an_instance_arrives():
    here = Place(1.0)

    def f(place: Place, trips: list[Trip] | None = None, home: Place = here): ...

    schema = read_function_schema(f)
    check_schema(schema.input_schema)
    json.dumps(schema.input_schema)
    assert schema.input_schema["properties"]["place"] == {
        "type": "object",
        "properties": {
            "latitude": {
                "type": "number",
                "minimum": -90,
                "maximum": 90,
                "description": "Degrees.",
            },
            "code": {"type": "integer", "default": 7},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["latitude"],
        "additionalProperties": False,
    }
    given = {"place": {"latitude": 2}, "trips": [{"start": {"latitude": 3}, "name": "a"}]}
    assert schema.validate(given) == {
        "place": Place(2.0),
        "trips": [Trip(Place(3.0), [], "A")],
        "home": here,
    }


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"latitude": 91}, "place.latitude: got 91"),
        ({"latitude": True}, "place.latitude: got True"),
        ({"latitude": 1, "code": 11}, "must be < 10"),
        ({"latitude": 1, "latitud": 1}, "place.latitud: no such parameter"),
        ({}, "place.latitude"),
        (5, "place: got 5"),
    ],
)
def test_what_does_not_fit_is_refused_also_by_the_classs_own_validators(place, said):
    def f(place: Place): ...

    with pytest.raises(InvalidArguments) as raised:
        read_function_schema(f).validate({"place": place})
    assert said in str(raised.value)


def test_a_validator_that_raises_anything_refuses_the_argument_only():
    @attrs.define
    class Odd:
        x: int = attrs.field()

        @x.validator
        def _check(self, _attribute, _value):
            raise TypeError("{braces} and \n lines")

    def f(odd: Odd): ...

    with pytest.raises(InvalidArguments, match=r"TypeError: \{braces\}"):
        read_function_schema(f).validate({"odd": {"x": 1}})


def test_old_attrs_classes_and_those_that_inherit_are_taken():
    @attr.s
    class Old:
        x = attr.ib()
        y = attr.ib(default=5)

    class Heir(Old): ...

    @attrs.define(kw_only=True)
    class More(Old):
        z: int

    def f(a: Old, b: Heir, c: dict[str, More]): ...

    told = read_function_schema(f).validate(
        {"a": {"x": 1}, "b": {"x": 2}, "c": {"k": {"x": 3, "z": 4}}}
    )
    assert told["a"] == Old(1)
    assert type(told["b"]) is Heir
    assert told["c"]["k"] == More(x=3, z=4)


def test_a_header_of_a_field_is_found_by_clients():
    @attrs.define
    class Query:
        region: Annotated[str, Header("Region")]

    def f(query: Query): ...

    schema = read_function_schema(f).input_schema
    assert x_mcp_header_map(schema) == {("query", "region"): "Region"}


def test_an_attrs_class_that_contains_itself_is_refused_with_its_parameter():
    def f(tree: Tree): ...

    with pytest.raises(DefinitionError, match=r"`tree`.*contains itself"):
        read_function_schema(f)


def test_a_returned_instance_is_an_object_of_its_fields():
    def one() -> Trip: ...

    def several() -> list[Place]: ...

    start = {"latitude": 1.0, "code": 7, "tags": ["a"]}
    for function, value, made in [
        (one, Trip(Place(1.0, tags=["a"])), {"start": start, "stops": [], "name": ""}),
        (one, {"start": {"latitude": 1, "tags": ["a"]}}, {"start": start, "stops": [], "name": ""}),
        (several, [Place(1.0, tags=["a"])], [start]),
    ]:
        output = make_tool(function).output
        check_schema(output.schema)
        Draft202012Validator(output.schema).validate(output.convert(value, 1_000))
        assert output.convert(value, 1_000) == made
    bad = Place(1.0)
    bad.tags = "x"
    with pytest.raises(InvalidResult, match=r"result\[0\].tags: got 'x'"):
        make_tool(several).output.convert([bad], 1_000)
