"""A return annotation as schema and conversion: what is taken, and what is proven to match."""

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, Field, ValidationError, field_serializer, model_validator

from mcp_notebook import Image
from mcp_notebook.kernel.schemas.output.return_types import (
    read_return_type,
    translate_annotation,
)
from mcp_notebook.kernel.schemas.parameters.callables import NO_ANNOTATION

MOMENT = "1970-01-01T00:00:00.000000001"


class Model(BaseModel):
    when: datetime
    count: int


class Custom(BaseModel):
    count: int

    @field_serializer("count")
    def write(self, count):
        return str(count)


@dataclass
class Point:
    x: float


@pytest.mark.parametrize(
    ("annotation", "value", "converted"),
    [
        (int, np.int64(3), 3),
        (float, math.nan, None),
        (float | None, pd.NA, None),
        (list[int], np.array([1, 2]), [1, 2]),
        (list[float], pd.Series([1.5]), [1.5]),
        (dict[str, float], pd.Series({"a": 1.5}), {"a": 1.5}),
        (dict[str, int], {1: 2}, {"1": 2}),
        (list[dict[str, Any]], pd.DataFrame({"a": [1]}), [{"a": 1}]),
        (Model, {"when": "2024-01-01", "count": 1}, {"when": "2024-01-01T00:00:00", "count": 1}),
        (Point, Point(1.0), {"x": 1.0}),
        (Any, {"a": (1, {2})}, {"a": [1, [2]]}),
        (datetime, pd.Timestamp(1), MOMENT),
        (datetime, np.datetime64(1, "ns"), MOMENT),
        (timedelta, pd.Timedelta(1), "PT0.000000001S"),
        (list[datetime], np.array([1]).view("M8[ns]"), [MOMENT]),
        (list[timedelta], pd.Series([pd.Timedelta(1)]), ["PT0.000000001S"]),
        (Model, {"when": pd.Timestamp(1), "count": 1}, {"when": MOMENT, "count": 1}),
    ],
    ids=str,
)
def test_values_that_mean_the_same_are_taken(annotation, value, converted):
    assert read_return_type(annotation).convert(value) == converted


@pytest.mark.parametrize(("annotation", "value"), [(int, "x"), (list[int], ["x"]), (Point, 5)])
def test_a_value_of_another_type_is_refused(annotation, value):
    with pytest.raises(ValidationError):
        read_return_type(annotation).convert(value)


def test_no_key_is_lost_without_an_error():
    with pytest.raises(ValidationError, match="2 of its keys are the same in JSON"):
        read_return_type(dict[str, int]).convert({1: 1, "1": 2})


@pytest.mark.parametrize("annotation", [dict[str, float], dict, dict[str, Any] | None])
@pytest.mark.parametrize("labels", [list("aab"), [("a", 1), ("a", 1), ("b", 2)]], ids=str)
def test_no_row_of_a_series_is_lost_without_an_error(annotation, labels):
    index = pd.MultiIndex.from_tuples(labels) if isinstance(labels[0], tuple) else pd.Index(labels)
    with pytest.raises(ValidationError, match=r"the Series has the label .*'a'.* more than once"):
        read_return_type(annotation).convert(pd.Series([1.0, 2.0, 3.0], index=index))


def test_schemas_say_that_a_number_may_be_null():
    assert read_return_type(list[float]).schema["items"]["type"] == ["number", "null"]


def test_an_instance_that_was_changed_is_looked_at_again():
    point = Point(1.0)
    point.x = "far"
    with pytest.raises(ValidationError):
        read_return_type(Point).convert(point)


def test_only_what_pydantic_writes_itself_is_proven():
    assert read_return_type(Model).is_proven
    assert not read_return_type(Custom).is_proven


def test_what_need_not_match_is_written_as_well_as_possible():
    assert read_return_type(int).dump("many") == "many"


@pytest.mark.parametrize(
    ("annotation", "known"),
    [
        (pd.DataFrame, list[dict[str, Any]]),
        (pd.Series, dict[str, Any]),
        (np.ndarray, list),
        (Iterator[int], list[int]),
        (Iterator, list),
        (int, int),
        (NO_ANNOTATION, NO_ANNOTATION),
    ],
)
def test_a_type_of_a_library_is_known_by_what_it_is_as_json(annotation, known):
    assert translate_annotation(annotation) == known


def test_a_result_that_is_made_by_hand_says_nothing_of_its_data():
    with pytest.raises(TypeError, match="built by hand"):
        translate_annotation(list[Image])


def test_a_field_that_is_kept_out_of_the_repr_is_in_no_schema_and_no_data():
    class Login(BaseModel):
        user: str
        password: str = Field(default="hunter2", repr=False)

        @model_validator(mode="after")
        def check(self):
            return self

    @dataclass
    class Session:
        login: Login
        token: str = field(default="hunter2", repr=False)

    returned = read_return_type(list[Session])
    assert returned.convert([Session(Login(user="ada"))]) == [{"login": {"user": "ada"}}]
    assert "password" not in str(returned.schema)
    assert "token" not in str(returned.schema)


class Color(enum.Enum):
    RED = enum.auto()
    BLUE = enum.auto()


@dataclass
class Painted:
    color: Color = Color.BLUE
    others: tuple[Color, ...] = (Color.RED,)


def test_the_default_of_a_member_that_is_its_name_matches_its_schema():
    schema = read_return_type(Painted).schema
    assert schema["properties"]["color"]["default"] == "BLUE"
    assert schema["properties"]["others"]["default"] == ["RED"]
