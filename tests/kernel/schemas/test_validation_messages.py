"""What a model is told when its arguments are refused."""

import datetime as dt
import decimal
import enum
import pathlib
import re
import uuid
from functools import cache
from typing import Annotated, Any, Literal

import pandas as pd
import pytest
from hints import Cat, Dog, Pet, error_for
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    UUID4,
    AfterValidator,
    AnyUrl,
    AwareDatetime,
    BaseModel,
    Field,
    FilePath,
    FutureDate,
    HttpUrl,
    IPvAnyAddress,
    Json,
    PastDate,
    StrictInt,
    StrictStr,
)

from mcp_notebook import Secret
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.validation_messages import (
    MAX_LINES,
    MAX_SHOWN,
    format_value,
    is_allowed,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    lat: Annotated[float, Field(ge=-90, le=90)]
    name: str = ""


class Closed(BaseModel, extra="forbid"):
    size: int


def rain(
    city: Literal["Seattle", "New York"],
    year: Annotated[int, Field(ge=2012, le=2015)] = 2012,
    places: list[Place] = [],  # noqa: B006
):
    """Rain."""


def message_for(function, **arguments):
    with pytest.raises(InvalidArguments) as raised:
        read_function_schema(function).validate(arguments)
    return str(raised.value)


def test_a_wrong_value_is_answered_with_what_came_and_what_is_allowed():
    message = message_for(rain, city="Seattle", year=1800)
    assert message == "year: got 1800 (integer); allowed: integer from 2012 to 2015."


def test_each_problem_has_a_line():
    assert message_for(rain, city="Paris", year="x", places=[{"lat": 1}, {"lat": 91}, {}]) == (
        "city: got 'Paris' (string); allowed: 'Seattle' | 'New York'.\n"
        "year: got 'x' (string); allowed: integer from 2012 to 2015.\n"
        "places[1].lat: got 91 (integer); allowed: number from -90 to 90.\n"
        "places[2].lat: missing; allowed: number from -90 to 90."
    )


def test_an_unknown_argument_is_answered_with_the_closest_one_or_all():
    assert message_for(rain, city="Seattle", yaer=2012) == (
        "yaer: no such parameter; did you mean 'year'?"
    )
    assert message_for(rain, city="Seattle", qqq=1) == (
        "qqq: no such parameter; there are: city, year, places."
    )

    def nothing():
        """Do."""

    assert message_for(nothing, a=1) == "a: no such parameter; there are none."


def test_an_unknown_key_of_a_closed_model_is_answered_with_its_own_keys():
    assert error_for(Closed, {"size": 1, "sise": 2}) == (
        "value.sise: no such parameter; did you mean 'size'?"
    )


@pytest.mark.parametrize(
    ("hint", "value", "allowed"),
    [
        (bool, "yes", "true | false"),
        (list[bool], 1, "array of (true | false)"),
        (Literal[True, "x"] | None, 2, "true | 'x' | null"),
        (pd.DataFrame, "x", "array of object | object of array"),
        (list[dict] | dict[str, int], "x", "array of object | object of integer"),
        (Color, "green", "'red' | 'blue'"),
        (int | None, "x", "integer | null"),
        (Place | None, 5, "object with lat, name | null"),
        (Place, 5, "object with lat, name"),
        (list[int], "x", "array of integer"),
        (list[int | None], "x", "array of (integer | null)"),
        (list[Place], 5, "array of object with lat, name"),
        (dict[str, int], 5, "object of integer"),
        (dict, 5, "object"),
        (list, 5, "array"),
        (tuple[int, str], 5, "array [integer, string]"),
        (dt.date, "2024-02-30", "date as text, '2024-12-31'"),
        (Annotated[int, Field(gt=0)], 0, "integer more than 0"),
        (Annotated[int, Field(lt=9)], 9, "integer less than 9"),
        (Annotated[int, Field(ge=1)], 0, "integer at least 1"),
        (Annotated[int, Field(le=9)], 10, "integer at most 9"),
        (Annotated[int, Field(ge=0, multiple_of=5)], 3, "integer at least 0, a multiple of 5"),
        (Annotated[str, Field(max_length=2)], "abc", "string of at most 2 characters"),
        (Annotated[str, Field(min_length=1, max_length=2)], "", "string of 1 to 2 characters"),
        (Annotated[str, Field(pattern="^a+$")], "b", "string matching '^a+$'"),
        (Annotated[list[int], Field(min_length=2)], [1], "array of integer with at least 2 items"),
    ],
)
def test_what_is_allowed_is_said_in_the_words_of_the_schema(hint, value, allowed):
    assert error_for(hint, value).endswith(f"; allowed: {allowed}.")


def test_a_problem_within_a_branch_has_the_path_of_the_arguments():
    assert error_for(Place | None, {"lat": "north"}) == (
        "value.lat: got 'north' (string); allowed: number from -90 to 90."
    )


@pytest.mark.parametrize(
    ("hint", "value", "told"),
    [
        (dict[int, str], {"one": "a"}, "value: got the key 'one'; the key should be"),
        (dict[Color, int], {"green": 1}, "value: got the key 'green'; the key should"),
        (
            dict[Annotated[str, Field(pattern="^a")], int],
            {"b": 1},
            "value: got the key 'b'; the key should match pattern '^a'.",
        ),
        (list[dict[int, int]], [{"[key]": 1}], "value[0]: got the key '[key]'; the key"),
        (dict[int, dict[int, int]], {"1": {"x": 1}}, "value.1: got the key 'x'; the key"),
    ],
)
def test_a_wrong_key_is_told_as_one_of_its_object_and_its_value_is_not_blamed(hint, value, told):
    assert error_for(hint, value).startswith(told)


def test_a_key_within_a_secret_is_not_told():
    def f(value: Secret[dict[int, int]]):
        """Do."""

    assert message_for(f, value={"hunter2": 1}) == ("value: a validator refuses a key.")


@pytest.mark.parametrize("hint", [list[int], dict[str, int] | None, Place, tuple[int, int]])
@pytest.mark.parametrize("text", ["[1, 2", "{'lat': 1}", '{"lat": 1,}', " [NaN]"])
def test_a_text_that_looks_like_json_and_is_not_is_told_as_that(hint, text):
    assert f"value: got {text!r} (string); it is not valid JSON (" in error_for(hint, text)
    assert "; allowed: " in error_for(hint, text)


def test_texts_that_do_not_look_like_json_or_need_not_be_are_not_called_broken():
    assert "JSON" not in error_for(list[int], "1, 2")
    assert "JSON" not in error_for(int, "[1")


@pytest.mark.parametrize("key", ["\x1e", "a\nb", "\u2028", "k" * 10_000])
def test_a_key_from_the_client_stays_short_and_on_its_line(key):
    def tool(options: dict[str, int]):
        pass

    with pytest.raises(InvalidArguments) as refused:
        read_function_schema(tool).validate({"options": {key: None}})
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 200
    assert str(refused.value).startswith("options.'")


def test_an_authors_own_validator_is_heard():
    def check(value):
        if value % 2:
            raise ValueError("odd numbers\nare not sold here.")
        if value > 10:
            raise AssertionError("too many")
        return value

    even = Annotated[int, AfterValidator(check)]
    assert error_for(even, 3) == "value: got 3 (integer); odd numbers are not sold here."
    assert error_for(list[even], [2, 12]) == "value[1]: got 12 (integer); too many."


def refuse(function, arguments, **options) -> str:
    with pytest.raises(InvalidArguments) as caught:
        read_function_schema(function, **options).validate(arguments)
    return str(caught.value)


@pytest.mark.slow
def test_of_a_million_unknown_names_a_few_are_told_and_nothing_else_is_looked_at():
    def check(value) -> int:
        raise AssertionError("it was looked at")

    def take(size: Annotated[int, AfterValidator(check)]): ...
    def take_model(model: Closed): ...

    many = {f"name{index}": index for index in range(10**6)} | {"size": 1}
    lines = refuse(take, many).splitlines()
    assert lines[0] == "name0: no such parameter; there are: size."
    assert lines[MAX_LINES:] == [f"... and {10**6 - MAX_LINES:,} more problems."]
    assert refuse(take_model, many, flatten=True).splitlines() == lines


def test_problems_that_are_too_many_to_list_are_counted():
    def take(prices: list[int], sizes: dict[str, Closed], name: str, ratio: float = 1): ...

    sizes = {str(index): {"size": index, "unit": "m"} for index in range(60_000)}
    arguments = {"prices": ["x"] * 60_000, "sizes": sizes, "ratio": 1}
    assert refuse(take, arguments) == "arguments: 120,001 of their values are not allowed."


@pytest.mark.slow
def test_the_time_to_tell_the_problems_of_a_list_grows_with_its_length():
    # By its square, it was minutes.
    lines = error_for(list[int], ["x"] * 50_000).splitlines()
    assert lines[-1] == f"... and {50_000 - MAX_LINES:,} more problems."


def test_a_value_whose_repr_fails_is_shown_all_the_same():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    assert "Odd" in format_value(Odd())
    assert len(format_value("x" * 500)) <= MAX_SHOWN


def test_arguments_must_be_an_object():
    odd: Any = [1]
    with pytest.raises(InvalidArguments, match=r"^arguments: got \[1\] \(array\)"):
        read_function_schema(rain).validate(odd)


# -- what is allowed is never what was sent --------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "sent", "said"),
    [
        (uuid.UUID, "abc", "got 'abc' (string); Input should be a valid UUID, invalid length: "),
        (decimal.Decimal, 1e400, "got inf (number); numbers go up to 1.8e308."),
        (HttpUrl, "abc", "got 'abc' (string); Input should be a valid URL, relative URL without"),
        (PastDate, "2999-01-01", "got '2999-01-01' (string); Date should be in the past."),
        (PastDate, "abc", "got 'abc' (string); allowed: date as text, '2024-12-31'."),
        (Json, "abc", "got 'abc' (string); Invalid JSON: expected value at line 1 column 1."),
        (AwareDatetime, "2024-01-01T00:00:00", "Input should have timezone info."),
        (pathlib.Path, 5, "value: got 5 (integer); allowed: path as text."),
        (uuid.UUID, 5, "value: got 5 (integer); allowed: string."),
        (bytes, 5, "value: got 5 (integer); allowed: bytes as base64 text."),
        (list[uuid.UUID], ["a"], "value[0]: got 'a' (string); Input should be a valid UUID"),
        (float, 10**400, "(integer); Input should be a valid number."),
        (HttpUrl, "", "allowed: web address as text of 1 to 2083 characters."),
        (AnyUrl, "", "allowed: web address as text of at least 1 character."),
        (
            Annotated[bytes, Field(max_length=2)],
            "YWJj",
            "value: got 'YWJj' (string); Data should have at most 2 bytes.",
        ),
        (
            list[Annotated[bytes, Field(min_length=2, max_length=3)]],
            ["YQ=="],
            "value[0]: got 'YQ==' (string); Data should have at least 2 bytes.",
        ),
        (pd.DataFrame, [1], "value[0]: got 1 (integer); allowed: object."),
        (pd.DataFrame, [[1]], "value[0]: got [1] (array); allowed: object."),
        (pd.DataFrame, {"a": 1}, "value.a: got 1 (integer); allowed: array."),
    ],
)
def test_a_value_that_the_words_allow_is_answered_with_the_reason(hint, sent, said):
    assert said in error_for(hint, sent)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"kind": "cow"}, "value.kind: got 'cow' (string); allowed: 'cat' | 'dog'."),
        ({"kind": 5}, "value.kind: got 5 (integer); allowed: 'cat' | 'dog'."),
        ({"lives": 9}, "value.kind: missing; allowed: 'cat' | 'dog'."),
        (
            "cat",
            "value: got 'cat' (string); allowed: object with kind, lives | object with kind, good.",
        ),
    ],
)
def test_an_object_of_several_types_is_told_by_the_field_that_tells_them_apart(sent, said):
    assert error_for(Pet, sent) == said


HINTS = (
    *(uuid.UUID, UUID4, decimal.Decimal, HttpUrl, AnyUrl, PastDate, FutureDate, AwareDatetime),
    *(Json, Pet, Cat | Dog, list[Pet], dict[int, str], dict[uuid.UUID, int], bytes, pathlib.Path),
    *(FilePath, IPvAnyAddress, StrictInt, StrictStr, int, float, bool, str, complex, Color),
    *(dt.date, dt.datetime, dt.time, dt.timedelta, set[int], tuple[int, str], int | None),
    *(int | uuid.UUID, list[uuid.UUID | None], Literal["a", 1], Closed, Place),
    Annotated[decimal.Decimal, Field(max_digits=3, decimal_places=1)],
    Annotated[float, Field(allow_inf_nan=False, multiple_of=0.5)],
    Annotated[str, Field(pattern="^a", max_length=3)],
    Annotated[list[int], Field(min_length=2, max_length=3)],
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["2999-01-01", "2012-01-01T00:00", "http://", "P", "1e5", "cat", "x" * 99]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "lives", "size", "5"]), inner, max_size=3)
    ),
    max_leaves=4,
)


@cache
def make_schema(hint):
    def f(x: hint):
        """Do."""

    return read_function_schema(f)


LINE = re.compile(r".*: got .* \((\w+)\); allowed: (.*)\.", re.DOTALL)


@given(st.sampled_from(HINTS), json_values)
def test_no_message_allows_just_the_type_that_was_sent(hint, value):
    try:
        make_schema(hint).validate({"x": value})
    except InvalidArguments as refusal:
        for line in str(refusal).splitlines():
            if match := LINE.fullmatch(line):
                sent, allowed = match.groups()
                assert sent not in allowed.split(" | "), line
                assert (sent, allowed) != ("integer", "number"), line


_ROOT = {
    "properties": {
        "tree": {"$ref": "#/$defs/Tree"},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"const": 1}},
    },
    "$defs": {"Tree": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
}


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"type": "string"}, "a", 5),
        ({"type": "integer", "minimum": 1}, 1, 0),
        ({"type": "integer"}, 1.0, 1.5),
        ({"type": "number"}, 10**400, True),
        ({"type": ["number", "null"]}, None, "x"),
        ({"exclusiveMaximum": 5, "type": "number"}, 4, 5),
        ({"type": "string", "format": "date"}, "2024-01-01", "today"),
        ({"type": "string", "format": "duration"}, 90, "soon"),
        ({"type": "array", "maxItems": 1}, [1], [1, 2]),
        ({"enum": ["a", 1]}, 1, True),
        ({"anyOf": [{"const": "a"}, {"$ref": "#/$defs/Tree"}]}, {}, "b"),
        ({}, "anything", object()),
    ],
)
def test_the_words_allow_what_they_say(schema, yes, no):
    assert is_allowed(yes, schema, _ROOT)
    assert not is_allowed(no, schema, _ROOT)
