"""Files of whole tables, whatever is in their cells."""

import io

import pytest
from optional_libraries import import_optional

from mcp_notebook.kernel.results.tables.exports import write_csv, write_parquet
from mcp_notebook.kernel.results.tables.pandas_frame import wrap_pandas_table
from mcp_notebook.kernel.results.tables.row_frame import wrap_array

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
pq = import_optional("pyarrow.parquet")


class Ends:
    def __str__(self):
        raise SystemExit

    __repr__ = __str__


def endless():
    inner = []
    inner.append(inner)
    return inner


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Ends(), "<an object of type Ends whose repr failed: SystemExit>"),
        (endless(), "[[...]]"),
        (1j, "1j"),
        ({1, 2}, "{1, 2}"),
    ],
)
def test_a_cell_of_any_kind_is_its_text(value, text):
    frame = wrap_pandas_table(pd.DataFrame({"a": pd.Series([value, None], dtype=object)}))
    assert write_csv(frame).split("\n")[1].strip('"') == text
    read = pq.read_table(io.BytesIO(write_parquet(frame)))
    assert read.column("a").to_pylist() == [text, None]


@pytest.mark.needs("pyarrow")
def test_lone_surrogates_and_ints_without_end_are_written():
    values = pd.Series(["\ud800", 10**5_000, True], dtype=object)
    frame = wrap_pandas_table(pd.DataFrame({"a": values}))
    assert write_csv(frame).startswith("a\n\ufffd\n<an object of type int whose repr failed")
    first, second, third = pq.read_table(io.BytesIO(write_parquet(frame))).column("a").to_pylist()
    assert (first, second[:3], third) == ("\ufffd", "<an", "True")


@pytest.mark.needs("pyarrow")
def test_duplicate_names_and_names_other_than_text_are_distinguished():
    table = pd.DataFrame([[1, 2, 3, 4]], columns=["a", "a", 1, None])
    frame = wrap_pandas_table(table)
    assert write_csv(frame).startswith("a,a,1,")
    names = pq.read_table(io.BytesIO(write_parquet(frame))).column_names
    assert names[:3] == ["a", "a_2", "1"]
    assert len(set(names)) == 4


@pytest.mark.needs("pyarrow")
def test_a_masked_element_is_a_missing_value():
    days = np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    for array in (np.array([1, 2]), np.array([0.5, 2.5]), np.array(["a", "b"]), days):
        frame = wrap_array(np.ma.array(array.reshape(1, 2), mask=[[0, 1]]))
        assert write_csv(frame) == f"0,1\n{array[0]},\n"
        assert pq.read_table(io.BytesIO(write_parquet(frame))).column("1").to_pylist() == [None]
