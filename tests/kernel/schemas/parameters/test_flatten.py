"""A model's fields as a tool's arguments."""

import dataclasses
from typing import Annotated, Literal, NotRequired

import pytest
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from schemas import check_schema
from typing_extensions import TypedDict

from mcp_notebook import Context, Hidden
from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions


class Town(BaseModel):
    name: str


class Query(BaseModel):
    """Find sales."""

    region: Literal["EU", "US"]
    count: int = Field(10, ge=1, description="How many")
    town: Town | None = None
    since: str = Field("2024", alias="from")


@dataclasses.dataclass
class Point:
    x: int
    y: float = 1.5


class Named(TypedDict):
    a: int
    b: NotRequired[str]


class Tree(BaseModel):
    value: int
    kids: list["Tree"] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


def flat(annotation, **options):
    def tool(given, ctx: Context):
        return given

    tool.__annotations__["given"] = annotation
    return make_tool(tool, ToolOptions(flatten=True, **options))


def test_the_fields_of_the_model_are_the_arguments():
    schema = flat(Query).info.input_schema
    check_schema(schema)
    assert schema["type"] == "object"
    assert list(schema["properties"]) == ["region", "count", "town", "from"]
    assert schema["required"] == ["region"]
    assert schema["properties"]["count"] == {
        "default": 10,
        "description": "How many",
        "minimum": 1,
        "type": "integer",
    }
    assert list(schema["properties"]["town"]["anyOf"][0]["properties"]) == ["name"]
    assert schema["additionalProperties"] is False


def test_the_function_gets_the_instance():
    made = flat(Query).schema.validate({"region": "EU", "from": "2020", "town": {"name": "Oslo"}})
    assert made == {"given": Query(**{"region": "EU", "from": "2020", "town": Town(name="Oslo")})}


@pytest.mark.parametrize(
    ("annotation", "arguments", "instance"),
    [
        (Point, {"x": 1}, Point(1)),
        (Named, {"a": 1}, {"a": 1}),
        (Tree, {"value": 1, "kids": [{"value": 2}]}, Tree(value=1, kids=[Tree(value=2)])),
        (Open, {"a": 1, "more": 2}, Open(a=1, more=2)),
        (Annotated[Point, "where"], {"x": 1}, Point(1)),
    ],
)
def test_all_kinds_of_types_with_fields_can_be_flattened(annotation, arguments, instance):
    tool = flat(annotation)
    Draft202012Validator(tool.info.input_schema).validate(arguments)
    assert tool.schema.validate(arguments) == {"given": instance}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"region": "Asia"}, "region: got 'Asia' (string); allowed: 'EU' | 'US'."),
        ({"region": "EU", "count": 0}, "count: got 0 (integer); allowed: integer at least 1."),
        ({"region": "EU", "town": {}}, "town.name: missing; allowed: string."),
        ({"region": "EU", "cuont": 1}, "cuont: no such parameter; did you mean 'count'?"),
        (
            {"region": "EU", "count": True},
            "count: got True (boolean); allowed: integer at least 1.",
        ),
        ({}, "region: missing; allowed: 'EU' | 'US'."),
    ],
)
def test_a_refusal_names_the_field(arguments, said):
    with pytest.raises(InvalidArguments) as refused:
        flat(Query).schema.validate(arguments)
    assert str(refused.value) == said


def test_what_the_type_hint_says_besides_the_model_holds():
    def refuse(_given):
        raise ValueError("never on a Sunday")

    tool = flat(Annotated[Tree, AfterValidator(refuse), Field(description="Of all")])
    assert tool.info.input_schema == flat(Tree).info.input_schema
    with pytest.raises(InvalidArguments, match="never on a Sunday"):
        tool.schema.validate({"value": 1})


def test_the_models_docstring_speaks_where_the_function_has_none():
    assert flat(Query).info.description == "Find sales."
    assert flat(Query).warnings == ()
    assert flat(Point).info.description == ""  # not the one that `dataclass` writes


def test_the_functions_docstring_describes_fields_that_say_nothing():
    def tool(query: Query):
        """Search.

        Args:
            region: Of sales.
            count: Not this.
            nothing: No field.
        """

    made = make_tool(tool, ToolOptions(flatten=True))
    properties = made.info.input_schema["properties"]
    assert properties["region"]["description"] == "Of sales."
    assert properties["count"]["description"] == "How many"
    assert made.info.description == "Search."
    assert made.warnings == ("The docstring describes `nothing`, which is not a parameter.",)


def _two(a: Query, b: int):
    """D."""


def _none():
    """D."""


def _number(a: int):
    """D."""


def _default(a: Query = Query(region="EU")):  # noqa: B008
    """D."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_two, "one parameter for clients, a model; the function has 2: `a`, `b`"),
        (_none, "the function has 0: none"),
        (_number, "as the type hint of `a`, not `int`"),
        (_default, "`a` cannot have a default: give defaults to the fields of its model"),
    ],
)
def test_what_cannot_be_flattened_is_refused_in_one_sentence(function, said):
    with pytest.raises(DefinitionError) as refused:
        make_tool(function, ToolOptions(flatten=True))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_models_field_cannot_be_hidden():
    with pytest.raises(TypeError, match="`Hidden` is for parameters"):

        class Query(BaseModel):
            city: str
            source: Annotated[str, Hidden] = "x"
