"""A return annotation as schema and conversion: what is taken, and what is proven to match."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, ValidationError, field_serializer

from mcp_notebook.kernel.schemas.output.return_types import read_return_type

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
    with pytest.raises(ValidationError, match=r"labels of the Series repeat, as .*'a'.* does"):
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
