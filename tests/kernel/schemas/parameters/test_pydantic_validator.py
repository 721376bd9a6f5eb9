"""Which types can be declared, what clients are told of them, and which values they take."""

import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import re
import sys
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic.dataclasses
import pytest
import typing_extensions
from hints import Access, Dog, Pet, Shade, Sparse, accept, error_for, schema_of
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import AliasChoices, Base64Bytes, BaseModel, ConfigDict, Field, Json, model_validator
from schemas import check_schema

from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.parameters.pydantic_validator import Parameter, build_validator
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Corner(enum.Enum):
    """An enumeration whose values JSON has no type for."""

    ORIGIN = (0, 0)
    NEW_YEAR = dt.date(2024, 1, 1)


class Place(BaseModel):
    lat: float
    open: bool = True
    default: int = 0


@dataclasses.dataclass
class Stop:
    lat: float


class Trip(BaseModel):
    stops: list[Stop]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    n: int


@dataclasses.dataclass
class Span:
    start: dt.date
    days: int = 1


class Options(typing.TypedDict):
    color: Color
    size: typing_extensions.NotRequired[int]


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Node(typing.TypedDict):
    next: list["Node"]


def publish(hint, default=...):
    return schema_of(hint, default).input_schema["properties"]["value"]


# -- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "published"),
    [
        (Any, {}),
        (None, {"type": "null"}),
        (bool, {"type": "boolean"}),
        (Literal["EU", "US"], {"type": "string", "enum": ["EU", "US"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (Annotated[str, Field(min_length=1, max_length=3, pattern="^a")],
         {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"}),
        (Annotated[float, Field(gt=0, lt=1, multiple_of=0.5)],
         {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.5}),
        (Annotated[int, Field(ge=2012, le=2015)],
         {"type": "integer", "minimum": 2012, "maximum": 2015}),
        (Annotated[list[int], Field(min_length=1)],
         {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (Annotated[float, Field(le=float("inf"))], {"type": "number"}),
        (Annotated[int, Field(examples=[1, 2])], {"type": "integer", "examples": [1, 2]}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (Annotated[bytes, Field(min_length=2, max_length=4)],
         {"type": "string", "contentEncoding": "base64", "minLength": 4, "maxLength": 8}),
        (Literal[Shade.RED, "red", "b"], {"type": "string", "enum": ["red", "b"]}),
    ],
)  # fmt: skip
def test_a_type_is_told_as_json_schema(hint, published):
    assert publish(hint) == published


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (int, 5, 5),
        (int, 3.0, 3),
        (int, "5", 5),
        (float, 5, 5.0),
        (float, "2.5", 2.5),
        (bool, False, False),
        (bool, "true", True),
        (bool | None, "FALSE", False),
        (bool | int, "True", True),
        (bool | str, "true", "true"),
        (list[bool], ["false", True], [False, True]),
        (dict[str, bool], {"a": "true"}, {"a": True}),
        (Literal[True], "True", True),
        (Literal[False, "true"], "true", "true"),
        (str, "5", "5"),
        (Literal[1, "a"], 1, 1),
        (Color, "blue", Color.BLUE),
        (Level, 2, Level.HIGH),
        (Corner, [0, 0], Corner.ORIGIN),
        (Corner, "2024-01-01", Corner.NEW_YEAR),
        (int | str, "5", "5"),
        (int | float, 5, 5),
        (int | float, 5.5, 5.5),
        (bool | int, True, True),
        (bool | int, 1, 1),
        (typing.Optional[int], None, None),  # noqa: UP045
        (list[Color], ["red"], [Color.RED]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (set[int], [1, 2], {1, 2}),
        (frozenset[str], ["a"], frozenset("a")),
        (dict[str, Color], {"x": "red"}, {"x": Color.RED}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (dt.date, "2024-02-29", dt.date(2024, 2, 29)),
        (dt.datetime, "2024-02-29T12:30:00", dt.datetime(2024, 2, 29, 12, 30)),  # noqa: DTZ001
        (dt.time, "12:30", dt.time(12, 30)),
        (dt.timedelta, "P1DT2H", dt.timedelta(days=1, hours=2)),
        (dt.timedelta, 90, dt.timedelta(seconds=90)),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (uuid.UUID, "12345678123456781234567812345678", uuid.UUID("12345678" * 4)),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (bytes, "YWJj", b"abc"),
        (bytes, "__4=", b"\xff\xfe"),
        (bytes, "data:image/png;base64,YWJj", b"abc"),
        (Base64Bytes, "YWJj", b"abc"),
        (Access, 3, Access.READ | Access.WRITE),
        (Access, 0, Access(0)),
        (Sparse, 5, Sparse.LOW | Sparse.HIGH),
        (Shade, "red", Shade.RED),
        (Place, {"lat": 1, "default": 2}, Place(lat=1.0, default=2)),
        (Span, {"start": "2024-01-01"}, Span(dt.date(2024, 1, 1))),
        (Options, {"color": "red"}, {"color": Color.RED}),
        (list[Options] | None, [{"color": "red", "size": 1}], [{"color": Color.RED, "size": 1}]),
        (Pet, {"kind": "dog", "good": True}, Dog(kind="dog", good=True)),
        (Pet, {"kind": "dog", "good": "true"}, Dog(kind="dog", good=True)),
        (Tree, {"value": 1, "children": [{"value": 2}]}, Tree(value=1, children=[Tree(value=2)])),
        (Json, "[1, 2]", [1, 2]),
        (Any, {"x": [None]}, {"x": [None]}),
    ],
)
def test_a_value_is_taken_as_json_has_it(hint, sent, value):
    assert accept(hint, json.loads(json.dumps(sent))) == value
    assert type(accept(hint, sent)) is type(value)


@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        (int, True),
        (int, 5.5),
        (int, "five"),
        (int, None),
        (int, []),
        (float, False),
        (float, "yes"),
        (str, 5),
        (str, True),
        (bool, "yes"),
        (bool, 1),
        (bool, "1"),
        (Annotated[bool, Field(strict=True)], "true"),
        (Literal[True], "false"),
        (bool | None, 0),
        (decimal.Decimal, True),
        (dt.timedelta, True),
        (list[int], [1, True]),
        (list[bool], ["yes"]),
        (dict[str, int], {"a": True}),
        (tuple[int, bool], [1, 0]),
        (int | str, True),
        (Literal[1, 2], True),
        (Literal["EU"], "eu"),
        (Level, True),
        (Access, 4),
        (Access, True),
        (Access, -1),
        (Sparse, 2),
        (bytes, "abc"),
        (bytes, "no base64!"),
        (bytes, 5),
        (Level, 3),
        (Corner, [0, 1]),
        (Color, "RED"),
        (Place, {"lat": True}),
        (Place, {"lat": 1, "open": "yes"}),
        (Place, {}),
        (Place, {"lat": 1, "default": True}),
        (Span, {"start": "2024-01-01", "days": True}),
        (Options, {"color": "red", "size": True}),
        (Tree, {"value": 1, "children": [{"value": True}]}),
        (Pet, {"kind": "cat", "lives": True}),
        (Pet, {"kind": "cow"}),
        (Closed, {"n": 1, "m": 2}),
        (dt.date, 2012),
        (dt.date, "2012"),
        (dt.date, "2024-02-30"),
        (dt.datetime, 1_700_000_000),
        (dt.datetime, "2012"),
        (dt.time, 12),
    ],
)
def test_a_value_of_another_type_is_refused(hint, sent):
    assert error_for(hint, sent).startswith("value")


@pytest.mark.parametrize(
    ("hint", "default", "published"),
    [
        (int, 5, 5),
        (int | None, None, None),
        (Color, Color.RED, "red"),
        (Corner, Corner.ORIGIN, [0, 0]),
        (dt.date, dt.date(2024, 1, 1), "2024-01-01"),
        (dt.timedelta, dt.timedelta(days=1), "P1D"),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (set[str], {"b", "a", "c"}, ["a", "b", "c"]),
        (Place, Place(lat=1), {"lat": 1.0, "open": True, "default": 0}),
        (Span, Span(dt.date(2024, 1, 1)), {"start": "2024-01-01", "days": 1}),
        (pathlib.Path, pathlib.Path("a"), "a"),
        (bytes, b"abc", "YWJj"),
        (Access, Access.READ | Access.WRITE, 3),
        (Annotated[list[int], Field(min_length=1)], [1], [1]),
    ],
)
def test_a_default_is_told_as_json_that_its_schema_takes(hint, default, published):
    schema = schema_of(hint, default)
    assert schema.input_schema["properties"]["value"]["default"] == published
    assert Draft202012Validator(schema.input_schema).is_valid({"value": published})
    assert schema.validate({})["value"] is default
    assert schema.validate({"value": published})["value"] == default


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (int, True),
        (bool, 1),
        (dt.date, 2012),
        (list[int], ["x"]),
        (Color, 1),
        (str, None.__class__),
    ],
)
def test_a_default_of_another_type_is_refused(hint, default):
    with pytest.raises(DefinitionError, match="the default of `value`"):
        schema_of(hint, default)


def test_shared_and_recursive_types_are_local_definitions():
    def f(a: Place, b: list[Place], tree: Tree, again: Tree | None = None):
        """Do."""

    schema = read_function_schema(f).input_schema
    check_schema(schema)
    assert set(schema["$defs"]) == {"Place", "Tree"}
    assert '"$ref": "#/$defs/' in json.dumps(schema)
    given = {"a": {"lat": 1}, "b": [{"lat": 2}], "tree": {"value": 1, "children": []}}
    Draft202012Validator(schema).validate(given)
    assert read_function_schema(f).validate(given)["b"] == [Place(lat=2)]


def test_two_types_of_one_name_stay_apart():
    def inner():
        class Place(BaseModel):
            city: str

        return Place

    other = inner()

    def f(a: Place, b: other):
        """Do."""

    properties = read_function_schema(f).input_schema["properties"]
    assert "lat" in properties["a"]["properties"]
    assert list(properties["b"]["properties"]) == ["city"]
    assert read_function_schema(f).validate({"a": {"lat": 1}, "b": {"city": "x"}})["b"].city == "x"


@pytest.mark.parametrize(
    ("hint", "wrap"),
    [
        (Options, lambda value: value),
        (Place, lambda value: value),
        (Stop, lambda value: value),
        (list[Place], lambda value: [value]),
        (dict[str, Stop], lambda value: {"a": value}),
        (Place | int, lambda value: value),
        (Trip, lambda value: {"stops": [value]}),
    ],
    ids=["TypedDict", "model", "dataclass", "list", "dict", "union", "nested"],
)
def test_an_unknown_key_is_refused_at_any_depth(hint, wrap):
    known = {"color": "red"} if hint is Options else {"lat": 1}
    accept(hint, wrap(known))
    said = error_for(hint, wrap({**known, "lon": 1}))
    assert ".lon: no such parameter; " in said
    published = Draft202012Validator(schema_of(hint).input_schema)
    assert not published.is_valid({"value": wrap({**known, "lon": 1})})


@pytest.mark.parametrize("rule", ["allow", "ignore"])
def test_a_type_whose_configuration_says_so_takes_unknown_keys(rule):
    class Parent(BaseModel):
        model_config = ConfigDict(extra=rule)

    class Model(Parent):
        n: int

    @pydantic.dataclasses.dataclass(config=ConfigDict(extra=rule))
    class Data:
        n: int

    class Dict(typing_extensions.TypedDict):
        __pydantic_config__ = ConfigDict(extra=rule)  # type: ignore[misc]
        n: int

    for hint in (Model, Data, Dict):
        accept(hint, {"n": 1, "more": 1})
        published = Draft202012Validator(schema_of(hint).input_schema)
        assert published.is_valid({"value": {"n": 1, "more": 1}})


def test_a_model_that_reads_its_keys_itself_is_asked():
    class Old(BaseModel):
        lat: float

        @model_validator(mode="before")
        @classmethod
        def read(cls, data):
            return {"lat": data["latitude"]} if "latitude" in data else data

    class Own(BaseModel):
        n: int

        def __init__(self, **data):
            super().__init__(n=len(data))

    class Named(BaseModel):
        n: int = Field(validation_alias=AliasChoices("n", "number"))

    assert accept(Old, {"latitude": 1}).lat == 1
    assert accept(Own, {"any": 1, "keys": 2}).n == 2
    assert accept(Named, {"number": 1}).n == 1


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes it as it is")
def test_a_typed_dict_that_contains_itself_is_refused_with_a_way_out():
    with pytest.raises(DefinitionError, match="import TypedDict from typing_extensions"):
        schema_of(Node)


def test_one_name_for_two_parameters_is_refused():
    def f(a: Annotated[int, Field(alias="b")], b: int):
        """Do."""

    with pytest.raises(DefinitionError):
        read_function_schema(f)


# -- any signature ---------------------------------------------------------------------------------

bounds = st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(sorted)
words = st.text(st.characters(codec="utf-8"), max_size=6)
leaves = st.one_of(
    st.sampled_from([int, float, str, bool, None, Color, Place, Options]),
    bounds.map(lambda pair: Annotated[int, Field(ge=pair[0], le=pair[1])]),
    st.integers(1, 4).map(lambda size: Annotated[str, Field(max_length=size)]),
    st.lists(words, min_size=1, max_size=4, unique=True).map(lambda items: Literal[tuple(items)]),
)
hints = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: dict[str, hint]),
        st.tuples(inner, inner).map(lambda pair: tuple[pair]),
        inner.map(lambda hint: typing.Optional[hint]),  # noqa: UP045
    ),
    max_leaves=4,
)
signatures = st.dictionaries(
    st.sampled_from(["a", "n", "schema", "_x", "copy", "default", "self", "type"]),
    hints,
    max_size=4,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-60, 60) | st.floats(-60, 60) | words | st.just("red"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            words | st.sampled_from(["lat", "open", "color", "size"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def function_of(signature):
    names = {f"hint_{name}": hint for name, hint in signature.items()}
    takes = ", ".join(f"{name}: hint_{name}" for name in signature)
    exec(f"def f({takes}): 'Do.'", names)
    return names["f"]


def matching(schema, root):
    """Draw values that a JSON Schema of ours takes."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return st.one_of([matching(option, root) for option in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if schema["type"] == "array":
        return matching_array(schema, root)
    if schema["type"] == "object":
        return matching_object(schema, root)
    return {
        "integer": st.integers(schema.get("minimum", -(10**20)), schema.get("maximum", 10**20)),
        "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
        "string": st.text(st.characters(codec="utf-8"), max_size=schema.get("maxLength", 9)),
        "boolean": st.booleans(),
        "null": st.none(),
    }[schema["type"]]


def matching_array(schema, root):
    if "prefixItems" in schema:
        return st.tuples(*[matching(item, root) for item in schema["prefixItems"]]).map(list)
    least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
    return st.lists(matching(schema["items"], root), min_size=least, max_size=max(least, most))


def matching_object(schema, root):
    if isinstance(schema.get("additionalProperties"), dict):
        return st.dictionaries(words, matching(schema["additionalProperties"], root), max_size=3)
    parts = {name: matching(part, root) for name, part in schema.get("properties", {}).items()}
    required = {name: parts.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(required, optional=parts)


@given(signatures, st.data())
def test_whatever_the_published_schema_allows_is_taken(signature, data):
    schema = read_function_schema(function_of(signature))
    check_schema(schema.input_schema)
    arguments = data.draw(matching(schema.input_schema, schema.input_schema))
    Draft202012Validator(schema.input_schema).validate(arguments)
    assert set(schema.validate(arguments)) == set(signature)


def has_number_as_text(value):
    if isinstance(value, dict):
        return any(has_number_as_text(item) for item in value.values())
    if isinstance(value, list):
        return any(has_number_as_text(item) for item in value)
    try:
        float(value.replace("_", "")) if isinstance(value, str) else int("x")
    except ValueError:
        return False
    return True


@given(signatures, st.data())
def test_what_the_published_schema_does_not_allow_is_refused(signature, data):
    """But for numbers as text, which is our choice."""
    schema = read_function_schema(function_of(signature))
    arguments = {name: data.draw(values) for name in signature}
    allowed = Draft202012Validator(schema.input_schema).is_valid(arguments)
    refusal = refusal_of(schema, arguments)
    if refusal is None:
        assert allowed or has_number_as_text(arguments)
    else:
        assert not allowed, refusal
        for line in refusal.splitlines():
            assert re.split(r"[.:\[]", line)[0] in signature


def refusal_of(schema, arguments):
    try:
        schema.validate(arguments)
    except InvalidArguments as error:
        return str(error)
    return None


# -- Type hints without a schema: refused where they can be changed, any value where they cannot. --


PARAMETERS = [Parameter("n", int), Parameter("convert", Callable[[int], int])]


def test_the_parameter_is_named():
    with pytest.raises(DefinitionError, match="the type hint of `convert`"):
        build_validator(PARAMETERS, "f")


def test_a_library_parameter_takes_any_value_and_its_user_is_told():
    built = build_validator(PARAMETERS, "f", is_library=True)
    assert built.schema["properties"] == {"n": {"type": "integer"}, "convert": {}}
    [note] = built.notes
    assert note.startswith("The type hint of `convert`, ")


# -- Defaults that say "nothing was given" are for Python: clients leave the argument out. ---------


class Missing(enum.Enum):
    TOKEN = "TOKEN"


class Unit(enum.Enum):
    METRE = "m"


@pytest.mark.parametrize(
    "hint",
    [
        int | Missing,
        int | Literal[Missing.TOKEN],
        Annotated[int | Missing, Field(description="How many.")],
        Annotated[int, Field(description="How many.")] | Missing,
    ],
)
def test_a_sentinel_is_left_out_of_the_type_and_of_the_default(hint):
    def f(count: hint = Missing.TOKEN):
        """Do."""

    schema = read_function_schema(f)
    published = schema.input_schema["properties"]["count"]
    assert {key: published[key] for key in published if key != "description"} == {"type": "integer"}
    assert "required" not in schema.input_schema
    assert schema.validate({}) == {}
    assert schema.validate({"count": 3}) == {"count": 3}
    with pytest.raises(InvalidArguments, match="allowed: integer"):
        schema.validate({"count": "TOKEN"})


def test_an_enumeration_of_one_member_that_is_all_that_is_allowed_is_published():
    def f(unit: Unit = Unit.METRE, other: int | Unit = 3):
        """Do."""

    schema = read_function_schema(f)
    properties = schema.input_schema["properties"]
    assert properties["unit"]["default"] == "m"
    assert {"$ref": "#/$defs/Unit"} in properties["other"]["anyOf"]
    assert schema.validate({"unit": "m"})["unit"] is Unit.METRE
