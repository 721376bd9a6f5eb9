"""Any value as JSON: the table of rules, bounds, and what a program gets otherwise."""

import json
import math
from collections import Counter, deque, namedtuple
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mcp_notebook.kernel.safe.to_json import (
    MAX_DEPTH,
    TooDeep,
    TooLarge,
    format_json,
    format_json_lines,
    is_jsonable,
    to_bounded_json,
    to_json_value,
    to_structured,
)


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    name: str = Field(alias="Name")


@dataclass
class Point:
    x: int


Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - as users write them


class Unfriendly:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Colour.RED, "red"),
        (pd.NaT, None),
        (1.5, 1.5),
        (np.int64(3), 3),
        (np.datetime64("2024-01-01"), "2024-01-01"),
        (date(2024, 1, 1), "2024-01-01"),
        (timedelta(days=1, hours=2), "P1DT2H"),
        (Decimal("1.10"), "1.10"),
        (PurePosixPath("a/b"), "a/b"),
        (b"text", "text"),
        (Point(1), {"x": 1}),
        (Pair(1, 2), {"a": 1, "b": 2}),
        ({(1, "a"): 2, None: 3}, {"1, a": 2, "null": 3}),
        ({1: "a", "1": "b"}, {"1": "a", "'1'": "b"}),
        (deque([1, 2]), [1, 2]),
        ({"a": 1}.keys(), ["a"]),
        (np.zeros((2, 1)), [[0.0], [0.0]]),
        (pd.Period("2020-01", "M"), "2020-01"),
        ({pd.Interval(0, 1): [pd.Interval(1, 2)]}, {"(0, 1]": ["(1, 2]"]}),
        (np.ma.masked, None),
    ],
    ids=repr,
)
def test_a_value_has_the_same_json_for_a_model_and_for_a_program(value, text):
    assert to_json_value(value, 1_000) == text
    assert to_structured(value, 1_000) == text


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        (math.nan, "NaN", None),
        (-math.inf, "-Infinity", None),
        ("\x1b[31mred\x00", "red\ufffd", "\x1b[31mred\x00"),
        ("\ud800", "\ufffd", "\ufffd"),
        (b"\xff\x00", "<2 bytes: ff 00>", "/wA="),
        (Model(Name="a"), {"name": "a"}, {"Name": "a"}),
        (np.zeros(1_001), repr(np.zeros(1_001)), [0.0] * 1_001),
        (pd.Index([1]), "Index([1], dtype='int64')", [1]),
        ({"t": pd.DataFrame({"a": [1]})}, {"t": "   a\n0  1"}, {"t": [{"a": 1}]}),
    ],
    ids=["nan", "inf", "codes", "surrogate", "bytes", "model", "array", "index", "table"],
)
def test_a_program_gets_these_otherwise(value, text, structured):
    assert to_json_value(value, 10_000) == text
    assert to_structured(value, 10_000) == structured


def test_a_long_collection_keeps_its_ends_for_a_model_and_is_refused_for_a_program():
    made, is_partial = to_bounded_json(list(range(100)), 10)
    assert is_partial
    assert made == [0, 1, 2, 3, 4, "... 90 of 100 items left out ...", 95, 96, 97, 98, 99]
    assert to_bounded_json({"a": 1, "b": 2}, 1) == (
        {"a": 1, "...": "1 more of 2 items"},
        True,
    )
    assert to_bounded_json([1], 1) == ([1], False)
    with pytest.raises(TooLarge):
        to_structured(list(range(100)), 10)


def test_a_value_that_contains_itself_ends():
    endless = [1]
    endless.append(endless)
    assert to_json_value(endless, 100) == [1, "..."]
    with pytest.raises(TooDeep, match="a list in it contains itself"):
        to_structured(endless, 100)


def test_a_value_that_is_nested_too_deep_ends():
    deep = []
    for _ in range(MAX_DEPTH * 3):
        deep = [deep]
    assert json.dumps(to_json_value(deep, 1_000)).count("[") == MAX_DEPTH
    with pytest.raises(TooDeep, match="nested too deep"):
        to_structured(deep, 1_000)


def test_an_object_without_json_is_its_repr_whatever_that_does():
    assert to_json_value([object], 10) == ["<class 'object'>"]
    assert to_json_value(Unfriendly(), 10) == (
        "<an object of type Unfriendly whose repr failed: RuntimeError: no>"
    )


def test_the_interrupt_that_stops_a_call_goes_on():
    class Stops(dict):
        def __iter__(self):
            raise KeyboardInterrupt

        def __len__(self):
            return 1

    with pytest.raises(KeyboardInterrupt):
        to_json_value(Stops(), 10)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text("abc"),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    )
)
def test_plain_json_stays_as_it_is(value):
    assert to_json_value(value, 10_000) == value
    assert to_structured(value, 10_000) == value


@pytest.mark.parametrize(
    ("value", "jsonable"),
    [(None, True), (np.float64(1), True), (Point(1), True), (Point, False), (object(), False)],
)
def test_only_some_values_have_json_of_their_own(value, jsonable):
    assert is_jsonable(value) is jsonable


def test_json_is_on_one_line_for_a_model_and_has_a_line_for_each_item_in_a_file():
    assert format_json({"a": [1, 2]}) == format_json_lines({"a": [1, 2]}) == '{"a":[1,2]}'
    rows = [{"name": "x" * 40}, {"name": "y" * 40}]
    assert len(format_json(rows).splitlines()) == 1
    assert format_json_lines(rows).splitlines() == [
        "[",
        f' {{"name":"{"x" * 40}"}},',
        f' {{"name":"{"y" * 40}"}}',
        "]",
    ]
    for write in (format_json, format_json_lines):
        assert json.loads(write({"a": rows})) == {"a": rows}


@pytest.mark.parametrize("convert", [to_json_value, to_structured])
def test_nanoseconds_are_kept(convert):
    value = [pd.Timestamp(1), pd.Timedelta(1), np.array([1]).view("M8[ns]")]
    assert convert(value, 100) == [
        "1970-01-01T00:00:00.000000001",
        "PT0.000000001S",
        ["1970-01-01T00:00:00.000000001"],
    ]
    assert to_structured(pd.DataFrame({"t": [pd.Timedelta(1)]}), 9) == [{"t": "PT0.000000001S"}]


@pytest.mark.needs("polars")
def test_nanoseconds_of_polars_are_kept():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"t": pl.Series([1], dtype=pl.Int64).cast(pl.Duration("ns"))})
    assert to_structured(frame, 100) == [{"t": "PT0.000000001S"}]


def test_a_counter_has_the_most_common_first():
    counter = Counter("abracadabra")
    counter["z"] = 100
    assert list(to_json_value(counter, 100))[:3] == ["z", "a", "b"]
    assert to_json_value(counter, 2) == {"z": 100, "a": 5, "...": "4 more of 6 items"}
    assert to_json_value(Counter({"a": 1, "b": None}), 9) == {"a": 1, "b": None}


def test_a_number_of_numpy_has_the_digits_of_its_own_type():
    assert to_json_value([np.float32(0.1), np.float16(0.1), np.float64(0.1)], 9) == [0.1] * 3
    assert to_json_value({"a": np.array([0.1], np.float32)}, 9) == {"a": [0.1]}
    assert to_json_value([np.float32("nan"), np.float32("inf")], 9) == ["NaN", "Infinity"]
    assert to_structured([np.float32(0.1)], 9) == [0.1]
    assert to_json_value([np.complex64(0.1 + 0.2j)], 9) == ["(0.1+0.2j)"]
