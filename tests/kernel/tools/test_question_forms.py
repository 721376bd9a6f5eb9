"""What a user can be asked: types as MCP's flat forms, and answers as values; without a kernel."""

import contextlib
import dataclasses
import datetime as dt
import enum
import typing
from typing import Annotated, Any, Literal
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types._v2026_07_28 import PrimitiveSchemaDefinition
from pydantic import BaseModel, Field, Secret, SecretStr, TypeAdapter

from mcp_notebook.errors import InvalidAnswer
from mcp_notebook.kernel.tools.question_forms import make_form

PRIMITIVE = TypeAdapter(PrimitiveSchemaDefinition)


class Region(enum.Enum):
    EUROPE = "eu"
    AMERICA = "us"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Trip(typing.TypedDict):
    to: str


Plan = Annotated[Literal["a"], Field(title="First")] | Annotated[Literal["b"], Field(title="Next")]


class Everything(BaseModel):
    """All that a form can have."""

    name: str = Field("John", min_length=1, max_length=9, title="Name", description="Yours")
    age: int = Field(30, gt=0, lt=150)
    score: float = Field(9.5, ge=0, le=10)
    sure: bool = True
    day: dt.date | None = None
    region: Region = Region.EUROPE
    size: Literal["S", "L"] = "S"
    plan: Plan = "a"
    old: Annotated[Literal["o"], Field(json_schema_extra={"enumNames": ["O!"]})] = "o"
    regions: list[Region] = Field(default=[Region.EUROPE], min_length=1, max_length=2)
    plans: list[Plan] = []


SINGLE = [
    (str, {"type": "string"}, "x", "x"),
    (int, {"type": "integer"}, 5.0, 5),
    (float, {"type": "number"}, 1, 1.0),
    (bool, {"type": "boolean"}, False, False),
    (int | None, {"type": "integer"}, 3, 3),
    (
        dt.datetime,
        {"type": "string", "format": "date-time"},
        "2026-01-02T03:04:05Z",
        dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    ),
    (Region, {"type": "string", "enum": ["eu", "us"]}, "us", Region.AMERICA),
    (["EU", "US"], {"type": "string", "enum": ["EU", "US"]}, "US", "US"),
    (("EU",), {"type": "string", "enum": ["EU"]}, "EU", "EU"),
    (
        {"EU": "Europe"},
        {"type": "string", "oneOf": [{"const": "EU", "title": "Europe"}]},
        "EU",
        "EU",
    ),
    (
        list[Literal["a", "b"]],
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        ["b"],
        ["b"],
    ),
    (
        Annotated[int, Field(ge=1, title="How many")],
        {"type": "integer", "title": "How many", "minimum": 1},
        "7",
        7,
    ),
]


@pytest.mark.parametrize(("kind", "told", "entered", "value"), SINGLE)
def test_what_has_no_fields_is_a_form_of_one(kind, told, entered, value):
    asked = make_form(kind)
    assert asked.schema == {
        "type": "object",
        "properties": {"value": told},
        "required": ["value"],
    }
    assert asked.read({"value": entered}) == value
    assert type(asked.read({"value": entered})) is type(value)


def test_a_model_a_dataclass_or_a_typed_dict_is_a_form_of_its_fields():
    assert make_form(Point).schema == {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.5}},
        "required": ["x"],
    }
    assert make_form(Point).read({"x": 1}) == Point(1, 0.5)
    assert make_form(Point).read({"x": 1, "added by the client": True}) == Point(1, 0.5)
    assert make_form(Trip).read({"to": "Rome"}) == {"to": "Rome"}
    assert isinstance(make_form(Everything).read({}), Everything)


def test_defaults_titles_bounds_formats_and_choices_are_told():
    told = make_form(Everything).schema
    assert "required" not in told
    assert told["properties"] == {
        "name": {
            "type": "string",
            "title": "Name",
            "description": "Yours",
            "minLength": 1,
            "maxLength": 9,
            "default": "John",
        },
        "age": {"type": "integer", "minimum": 1, "maximum": 149, "default": 30},
        "score": {"type": "number", "minimum": 0, "maximum": 10, "default": 9.5},
        "sure": {"type": "boolean", "default": True},
        "day": {"type": "string", "format": "date"},
        "region": {"type": "string", "enum": ["eu", "us"], "default": "eu"},
        "size": {"type": "string", "enum": ["S", "L"], "default": "S"},
        "plan": {
            "type": "string",
            "oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Next"}],
            "default": "a",
        },
        "old": {"type": "string", "enum": ["o"], "enumNames": ["O!"], "default": "o"},
        "regions": {
            "type": "array",
            "items": {"type": "string", "enum": ["eu", "us"]},
            "minItems": 1,
            "maxItems": 2,
            "default": ["eu"],
        },
        "plans": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Next"}]},
            "default": [],
        },
    }
    for item in told["properties"].values():
        PRIMITIVE.validate_python(item)


def test_a_question_without_a_type_asks_for_consent_only():
    assert make_form().schema == {"type": "object", "properties": {}}
    assert make_form().read({"whatever": 1}) is None


def test_a_default_is_told_and_stands_for_what_was_not_entered():
    asked = make_form(int, 3)
    assert asked.schema["properties"] == {"value": {"type": "integer", "default": 3}}
    assert "required" not in asked.schema
    assert asked.read({}) == 3
    assert asked.read({"value": 4}) == 4
    assert make_form(Region, Region.AMERICA).read({}) is Region.AMERICA
    assert make_form(["a", "b"], "b").schema["properties"]["value"]["default"] == "b"


class Nested(BaseModel):
    point: Point
    name: str


class Tree(BaseModel):
    left: "Tree | None" = None


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Nested, "the field 'point' is nested"),
        (Tree, "the field 'left' is nested"),
        (dict[str, int], "nested"),
        (list[int], "a list of something other than choices"),
        (list[Point], "a list of something other than choices"),
        (Literal[1, 2], "a choice of something else"),
        (int | str, "of a type that forms do not have"),
        (Any, "of a type that forms do not have"),
        (object(), "cannot be asked for"),
        (MagicMock(), "cannot be asked for"),
        (lambda: 1, "it is a function"),
        ([], "choices must be one or more strings"),
        ([1, 2], "choices must be one or more strings"),
        ({"a": 1}, "choices must be one or more strings"),
        ("no such type", "cannot be asked for"),
    ],
)
def test_what_has_no_form_is_refused_in_one_sentence(kind, why):
    with pytest.raises(TypeError, match=why) as refused:
        make_form(kind)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("elicit: ")


@pytest.mark.parametrize(
    ("kind", "entered", "why"),
    [
        (int, {}, "value: missing"),
        (int, {"value": True}, "value: got True"),
        (bool, {"value": 1}, r"allowed: true \| false"),
        (["EU"], {"value": "US"}, "allowed: 'EU'"),
        (Point, {"x": "y"}, "x: got 'y'"),
        (Everything, {"age": 150}, "age: got 150"),
        (list[Region], {"value": ["moon"]}, "moon"),
    ],
)
def test_an_answer_that_does_not_fit_says_where(kind, entered, why):
    with pytest.raises(InvalidAnswer, match=why):
        make_form(kind).read(entered)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


FORMS = [make_form(kind) for kind in (Everything, Point, int, Region, list[Region], ["a"])]


@given(
    st.sampled_from(FORMS),
    st.dictionaries(st.sampled_from(["value", "x", "age", "plan", "regions"]) | st.text(), values),
)
def test_whatever_a_client_answers_it_fits_or_is_refused(asked, content):
    with contextlib.suppress(InvalidAnswer):
        asked.read(content)


class Login(BaseModel):
    user: str
    password: SecretStr


@pytest.mark.parametrize(
    ("kind", "which"),
    [
        (SecretStr, "the value"),
        (Secret[int], "the value"),
        (Login, "the field 'password'"),
    ],
)
def test_no_form_asks_for_a_secret(kind, which):
    with pytest.raises(TypeError, match=f"elicit: {which} is a secret, and MCP forbids"):
        make_form(kind)
