"""numpy arrays and lists of dicts as tables."""

import io
import json
from datetime import date

import pytest
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.tables.exports import write_csv
from mcp_notebook.kernel.results.tables.row_frame import MAX_COPY, wrap_array
from mcp_notebook.settings.settings import Settings

np = pytest.importorskip("numpy")


def content(value, **given):
    return Converter(DisplayFormatter().format, Settings(), **given).make_result(value, ()).content


def text(value):
    [block] = content(value)
    return block.text


def test_a_two_dimensional_array_is_a_table():
    assert text(np.array([[1, 2], [3, 4]])) == "array of shape (2, 2), int64\n\n1,2\n3,4"
    assert text(np.zeros((3, 0))) == "array of shape (3, 0), float64"
    assert text(np.ma.masked_equal([[1, 2]], 2)).endswith("1,")
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1, 2]])
    assert text(matrix).endswith("\n1,2")


def test_a_structured_array_is_a_table():
    array = np.array([(1, "x", "2024-01-01")], [("a", "i4"), ("b", "U3"), ("at", "M8[ns]")])
    assert text(array) == (
        "structured array: 1 row x 3 columns; a int32, b <U3, at datetime64[ns]\n\n"
        "a,b,at\n1,x,2024-01-01T00:00:00"
    )


@pytest.mark.parametrize("array", [np.arange(3), np.zeros((2, 2, 2))])
def test_other_arrays_are_as_numpy_shortens_them(array):
    assert text(array) == f"array of shape {array.shape}, {array.dtype}\n{array}"


def test_an_array_is_copied_if_it_is_small_and_says_so_if_not(store):
    small, large = np.zeros((2, 1)), np.zeros((MAX_COPY // 8 + 1, 1))
    kept = wrap_array(small).snapshot()
    small[0] = 1
    assert write_csv(kept) == "0\n0.0\n0.0\n"
    _, link, *_ = content(large, keep=store.keep)
    assert link.title.endswith(", as of when it is read")


def test_dicts_with_the_same_keys_are_a_table_with_values_as_in_json_but_for_rounded_floats():
    rows = [{"name": "a", "n": 0.1 + 0.2, "on": date(2024, 1, 2), "ok": True}] * 3
    assert text([*rows, {"name": "b", "n": None}]) == (
        "list of dicts: 4 rows x 4 columns; name str, n float or null, on date, ok bool\n\n"
        "name,n,on,ok\n" + "a,0.3,2024-01-02,true\n" * 3 + "b,,,"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": 1}, {"a": 2}],
        [{"a": [1]}] * 50,
        [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}] * 20,
        [{1: 2}] * 50,
        [{"text": "x" * 300}] * 20,
        [*([{"a": 1}] * 50), 7],
        [{}] * 50,
    ],
)
def test_dicts_that_are_not_a_table_or_not_shorter_as_one_stay_json(rows):
    assert [{str(k): v for k, v in r.items()} if type(r) is dict else r for r in rows] == (
        json.loads(text(rows))
    )


@pytest.mark.needs("pyarrow")
def test_the_whole_of_many_dicts_can_be_read(store):
    rows = [{"n": n, "text": "x"} for n in range(100)]
    shown, csv, parquet = content([*rows, {"n": None}], keep=store.keep)
    assert "Only the first 5 and last 5 rows are shown; 91 between them" in shown.text
    assert store.find_format(csv.uri).content().endswith("\n99,x\n,\n")
    read = pytest.importorskip("pyarrow.parquet").read_table(
        io.BytesIO(store.find_format(parquet.uri).content())
    )
    assert read.to_pylist() == [*rows, {"n": None, "text": None}]
