"""JSON that a client sends as text is read where no text is allowed, and only there."""

import collections
import dataclasses
import math
import typing
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from hints import accept, error_for, schema_of
from pydantic import BaseModel
from pydantic_core import from_json

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.by_hand.author_schema import read_author_schema
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema


class Place(BaseModel):
    lat: float


@dataclasses.dataclass
class Span:
    days: int


class Pair(typing.NamedTuple):
    first: int
    second: int = 2


class Row(typing.TypedDict):
    n: int


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (set[int], "[1]", {1}),
        (tuple[int, str], ' [1, "a"]', (1, "a")),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (dict | None, '{"a": 1}', {"a": 1}),
        (Place, '{"lat": 1}', Place(lat=1)),
        (Span, '{"days": 1}', Span(1)),
        (Row, '{"n": 1}', {"n": 1}),
        (list[Place], ['{"lat": 1}'], [Place(lat=1)]),
        (list[Place], '["{\\"lat\\": 1}"]', [Place(lat=1)]),
        (list[int] | int, "[1]", [1]),
        (collections.deque[int], "[1]", collections.deque([1])),
        (Pair, "[1]", Pair(1)),
        (collections.OrderedDict[str, int], '{"a": 1}', {"a": 1}),
        (collections.Counter[str], '{"a": 1}', {"a": 1}),
    ],
)
def test_json_as_text_is_read_where_no_text_is_allowed(hint, sent, value):
    arguments = {"value": sent}
    assert schema_of(hint).validate(arguments) == {"value": value}
    assert arguments == {"value": sent}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ('[{"lat": "x"}]', "value[0].lat: got 'x' (string); allowed: number."),
        ('[{"lat": 1}', "not valid JSON (EOF while parsing a list at line 1 column 11); allowed: "),
        ("lat", "value: got 'lat' (string); allowed: array of object with lat."),
        ("[" * 10_000, "(string); allowed: array of object with lat."),
    ],
)
def test_what_is_wrong_in_the_text_is_told(sent, said):
    with pytest.raises(InvalidArguments) as refused:
        schema_of(list[Place]).validate({"value": sent})
    assert said in str(refused.value)


def test_texts_that_have_too_many_values_together_are_not_read():
    half = "[" + "0," * 400_000 + "0]"
    assert len(schema_of(list[int]).validate({"value": half})["value"]) == 400_001
    with pytest.raises(InvalidArguments, match="allowed: array"):
        schema_of(list[list[int]]).validate({"value": [half] * 3})


def test_a_schema_by_hand_is_followed_in_the_same_way():
    properties = {
        "rows": {"type": "array", "items": {"type": "object"}},
        "maybe": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "text": {"type": ["array", "string"]},
    }
    schema = read_author_schema(
        lambda **rest: rest, {"type": "object", "properties": properties}, "f"
    )
    sent = {"rows": '["{}"]', "maybe": '{"a": 1}', "text": "[1]"}
    assert schema.validate(sent) == {"rows": [{}], "maybe": {"a": 1}, "text": "[1]"}
    with pytest.raises(InvalidArguments, match="rows: got 'x'"):
        schema.validate({"rows": "x"})


@pytest.mark.slow
def test_the_time_to_read_a_list_of_texts_grows_with_its_length():
    # By its square, it was minutes.
    sent = ["[1]"] * 50_000
    assert schema_of(list[list[int]]).validate({"value": sent}) == {"value": [[1]] * 50_000}


# -- Numbers that JSON does not have reach no function as another value. ---------------------------


class Point(BaseModel):
    x: float | None = None


@pytest.mark.parametrize(
    ("hint", "sent", "place"),
    [
        (float | None, "1e400", "value: got inf"),
        (float, "-1e400", "value: got -inf"),
        (float, "NaN", "value: got nan"),
        (Any, '{"a": [1, {"b c": 1e400}]}', "value.a[1].b c: got inf"),
        (list[float], "[1, 2.5, Infinity]", "value[2]: got inf"),
        (Point, '{"x": 1e400}', "value.x: got inf"),
        (pd.DataFrame, '[{"a": 1e400}, {"a": 1}]', "value[0].a: got inf"),
        (Decimal, "1e400", "value: got inf"),
    ],
)
def test_a_number_beyond_floats_is_refused_with_its_place(hint, sent, place):
    message = error_for(hint, from_json(sent))
    reason = "JSON has no NaN" if "nan" in place else "numbers go up to 1.8e308"
    assert message == f"{place} (number); {reason}."


def test_json_sent_as_text_and_digits_sent_as_text_may_not_either():
    assert error_for(list[float], "[1, 1e400]").startswith("value[1]: got inf")
    assert error_for(float, "1e400") == "value: got '1e400' (string); numbers go up to 1.8e308."
    assert accept(Decimal, "1e400") == Decimal("1e400")


def test_the_fields_of_a_model_and_a_schema_by_hand_refuse_them_too():
    def flat(point: Point):
        """Do."""

    with pytest.raises(InvalidArguments, match=r"^x: got inf"):
        read_function_schema(flat, flatten=True).validate({"x": math.inf})
    schema = read_author_schema(lambda x=0: x, {"type": "object", "properties": {"x": {}}}, "f")
    with pytest.raises(InvalidArguments, match=r"^x\[1\]: got inf"):
        schema.validate({"x": [1, math.inf]})
    assert schema.validate({"x": [1, 2]}) == {"x": [1, 2]}
