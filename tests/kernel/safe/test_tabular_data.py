"""Tables and series of the data libraries as lists and dicts."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional_libraries import import_optional

from mcp_notebook.kernel.safe.moments import count_nanoseconds
from mcp_notebook.kernel.safe.tabular_data import (
    find_free_name,
    is_missing,
    is_plain_series,
    is_plain_table,
    list_elements,
    list_records,
)

pl = import_optional("polars")
pa = import_optional("pyarrow")

COLUMNS = {"a": [1, 2], "b": ["x", None]}
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


@pytest.mark.parametrize(
    "table",
    [pl.DataFrame(COLUMNS), pa.table(COLUMNS), pa.RecordBatch.from_pydict(COLUMNS)],
    ids=lambda table: type(table).__name__,
)
def test_a_table_without_an_index_becomes_its_rows(table):
    assert is_plain_table(table)
    assert list_records(table) == ROWS


def test_a_structured_array_is_a_table():
    array = np.array([(1, 2.5)], dtype=[("a", int), ("b", float)])
    assert is_plain_table(array)
    assert list_records(array) == [{"a": 1, "b": 2.5}]
    assert not is_plain_table(np.zeros((2, 2)))


def test_pandas_index_is_a_field_unless_it_only_counts():
    frame = pd.DataFrame({"a": [1, 2]})
    assert not is_plain_table(frame)
    assert list_records(frame) == [{"a": 1}, {"a": 2}]
    assert list_records(frame.set_index(pd.Index(["x", "y"]))) == [
        {"index": "x", "a": 1},
        {"index": "y", "a": 2},
    ]
    levels = pd.MultiIndex.from_tuples([("x", 1), ("y", 2)], names=["k", None])
    assert list_records(frame.set_index(levels))[0] == {"k": "x", "level_1": 1, "a": 1}
    assert list_records(pd.Series([5], name="s")) == [{"s": 5}]
    assert list_records(pd.Series([5])) == [{"value": 5}]


def test_a_name_that_comes_twice_gets_a_number():
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "a_2"])
    assert list_records(frame) == [{"a": 1, "a_2": 2, "a_2_2": 3}]
    assert find_free_name("a", {}) == "a"
    assert find_free_name("a", {"a": 0, "a_2": 0}) == "a_3"


@pytest.mark.parametrize(
    "series",
    [
        *(pl.Series([1, 2]), pa.array([1, 2]), pa.chunked_array([[1], [2]])),
        *(pd.Index([1, 2]), pd.Categorical([1, 2]), pd.array([1, 2])),
    ],
)
def test_a_series_without_an_index_becomes_a_list(series):
    assert is_plain_series(series)
    assert list_elements(series) == [1, 2]


def test_arrays_become_nested_lists_and_times_stay_times():
    assert not is_plain_series(np.array([1]))
    assert list_elements(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    moments = np.array(["2024-01-01T00:00:00"], dtype="datetime64[ns]")
    assert list_elements(moments) == [datetime(2024, 1, 1)]  # noqa: DTZ001 - as numpy has it


NANOSECONDS = [1_704_067_200_123_456_789, None, -1, 1_000]


@pytest.mark.parametrize(
    "series",
    [
        pl.Series(NANOSECONDS).cast(pl.Datetime("ns")),
        pl.Series(NANOSECONDS).cast(pl.Duration("ns")),
        pl.Series([NANOSECONDS]).cast(pl.List(pl.Datetime("ns", "Europe/Oslo"))).explode(),
        pa.array(NANOSECONDS, pa.timestamp("ns", "UTC")),
        pa.chunked_array([pa.array(NANOSECONDS, pa.duration("ns"))]),
        np.array([-(2**63) if n is None else n for n in NANOSECONDS]).view("M8[ns]"),
        np.array([-(2**63) if n is None else n for n in NANOSECONDS]).view("m8[ns]"),
    ],
    ids=lambda series: str(getattr(series, "type", None) or series.dtype),
)
def test_elements_keep_their_nanoseconds(series):
    elements = list_elements(series)
    counts = [None if item is None else count_nanoseconds(item) for item in elements]
    assert counts == NANOSECONDS


@pytest.mark.parametrize(
    "series", [pl.Series([1, None]).cast(pl.Time), pa.array([1, None], pa.time64("ns"))], ids=type
)
def test_times_of_day_keep_their_nanoseconds(series):
    assert list(map(str, list_elements(series))) == ["00:00:00.000000001", "None"]


def test_nested_elements_keep_their_nanoseconds():
    array = np.array([[1], [1_000]]).view("m8[ns]")
    assert str(list_elements(array)).startswith("[[Duration('0:00:00.000000001')], [")


class Number(int):
    """A subclass of a built-in type."""


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        (pd.NA, True),
        (pd.NaT, True),
        (np.ma.masked, True),
        *((value, False) for value in (None, True, 1, 1.5, float("nan"), "NaT", b"", [], (), {})),
        *((value, False) for value in (Number(1), np.float64("nan"), np.datetime64("NaT", "s"))),
        *((value, False) for value in (pd.Timestamp(0), object())),
    ],
)
def test_marks_of_missing_values_are_known(value, missing):
    assert is_missing(value) is missing


# -- floats of 16 and 32 bits ----------------------------------------------------------------------


def count_digits(number):
    return len(Decimal(repr(number)).normalize().as_tuple().digits)


@pytest.mark.parametrize("size", [1, 100])
@given(single=st.floats(width=32), half=st.floats(width=16))
def test_short_floats_are_the_same_number_with_fewest_digits(size, single, half):
    for value, kind in ((single, np.float32), (half, np.float16)):
        array = np.array([value] * size, kind)
        short = list_elements(array)[-1]
        assert kind(short) == array[0] or np.isnan(array[0])
        if np.isfinite(value):
            assert count_digits(short) <= count_digits(float(array[0]))


def test_floats_of_32_bits_have_their_own_digits():
    array = np.array([0.1, 0.7], np.float32)
    short = [0.1, 0.7]
    for series in (array, pd.Index(array)):
        assert list_elements(series) == short
    for dtype in ("float32", "Float32"):
        series = pd.Series([0.1, 0.7], dtype=dtype)
        assert list_records(series) == [{"value": 0.1}, {"value": 0.7}]
    assert list_elements(array.reshape(1, 2)) == [short]


@pytest.mark.needs("polars", "pyarrow")
def test_floats_of_32_bits_have_their_own_digits_in_polars_and_arrow():
    array = np.array([0.1, 0.7], np.float32)
    short = [0.1, 0.7]
    for series in (pl.Series(array), pa.array(array)):
        assert list_elements(series) == short
    assert list_elements(pl.Series([array.tolist()], dtype=pl.List(pl.Float32))) == [short]
    assert list_elements(pa.array([array.tolist()], pa.list_(pa.float32()))) == [short]
    assert list_elements(pa.array(array.astype(np.float16))) == short
    series = pd.Series([0.1, 0.7], dtype="float[pyarrow]")
    assert list_records(series) == [{"value": 0.1}, {"value": 0.7}]


def test_other_numbers_keep_theirs():
    exact = 0.10000000149011612
    for values in ([exact, 1.0], [1, 2], [True], ["0.1"]):
        assert list_elements(np.array(values)) == values


@pytest.mark.needs("pyarrow")
def test_other_numbers_of_arrow_keep_theirs():
    exact = 0.10000000149011612
    both = pa.struct([("a", pa.float32()), ("b", pa.float64())])
    assert list_elements(pa.array([{"a": 0.1, "b": exact}], both))[0]["b"] == exact
