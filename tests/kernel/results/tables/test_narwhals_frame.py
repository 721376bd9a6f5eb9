"""Tables of polars and pyarrow as a model sees them, with the real libraries."""

import io
from datetime import datetime

import pytest
from IPython.core.formatters import DisplayFormatter
from optional_libraries import import_optional

from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.tables.exports import write_csv
from mcp_notebook.kernel.results.tables.narwhals_frame import wrap_narwhals_table
from mcp_notebook.settings.settings import Settings

pl = import_optional("polars")
pa = import_optional("pyarrow")
pq = import_optional("pyarrow.parquet")

pytestmark = pytest.mark.needs("polars", "pyarrow")


def content(value, store=None, **settings):
    keep = {"keep": store.keep} if store else {}
    return (
        Converter(DisplayFormatter().format, Settings(**settings), **keep)
        .make_result(value, ())
        .content
    )


def text(value, **settings):
    [block] = content(value, **settings)
    return block.text


def test_a_polars_frame_is_a_table():
    frame = pl.DataFrame({"a": [1, None], "s": ["x,y", "z"], "l": [[1], []]})
    assert text(frame) == (
        "polars DataFrame: 2 rows x 3 columns; a Int64, s String, l List(Int64)\n\n"
        'a,s,l\n1,"x,y",[1]\n,z,[]'
    )


def test_a_missing_value_is_not_a_number_that_is_none():
    frame = pl.DataFrame({"a": [float("nan"), None], "s": ["NaN", None]})
    assert text(frame, table_format="csv").endswith('a,s\nNaN,"NaN"\n,')
    assert text(frame, table_format="markdown").endswith('| NaN | "NaN" |\n|  |  |')
    assert write_csv(wrap_narwhals_table(frame)) == 'a,s\nNaN,"NaN"\n,\n'


def test_previews_and_files_keep_nanoseconds():
    counts = pl.Series([1, 2, None], dtype=pl.Int64)
    frame = pl.DataFrame(
        {
            "at": counts.cast(pl.Datetime("ns")),
            "for": counts.cast(pl.Duration("ns")),
            "time": counts.cast(pl.Time),
        }
    )
    lines = [
        "1970-01-01 00:00:00.000000001,0:00:00.000000001,00:00:00.000000001",
        "1970-01-01 00:00:00.000000002,0:00:00.000000002,00:00:00.000000002",
        ",,",
    ]
    for table in (frame, frame.to_arrow()):
        assert text(table, table_format="csv").splitlines()[-3:] == lines
        assert write_csv(wrap_narwhals_table(table)).splitlines()[1:] == lines


def test_a_series_is_a_table_of_one_column():
    assert text(pl.Series("n", [1.5, None])) == (
        "polars Series: 2 rows, n Float64\n\n| n |\n|---|\n| 1.5 |\n|  |"
    )
    assert text(pa.array(["x"])) == "pyarrow StringArray: 1 row, value string\n\nvalue\nx"
    chunked = pa.chunked_array([[1], [2]])
    assert text(chunked) == "pyarrow ChunkedArray: 2 rows, value int64\n\nvalue\n1\n2"


def test_a_pyarrow_table_may_have_a_name_twice():
    table = pa.table([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    shown = "1 row x 2 columns; a int64, a string\n\na,a\n1,x"
    assert text(table) == f"pyarrow Table: {shown}"
    assert text(table.to_batches()[0]) == f"pyarrow RecordBatch: {shown}"


def test_a_lazy_frame_is_described_and_not_run():
    ran = []

    def run(frame):
        ran.append(frame)
        return frame

    lazy = pl.LazyFrame({"a": [1]}).map_batches(run, schema={"a": pl.Int64})
    assert text(lazy) == (
        "polars LazyFrame: 1 column; a Int64\n"
        "This query has not run: return its `.collect()` to see rows."
    )
    assert not ran
    assert text(pl.LazyFrame({"a": [1]}).select("b")).startswith(
        "polars LazyFrame whose query cannot run: ColumnNotFoundError"
    )


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_the_whole_is_read_as_csv_and_parquet(store, library):
    frame = pl.DataFrame(
        {
            "n": range(99),
            "l": [[1]] * 99,
            "at": [datetime.fromisoformat("2024-01-01")] * 99,
            "o": [None, "x", ""] * 33,
        }
    )
    table, *links = content(frame if library == "polars" else frame.to_arrow(), store)
    assert "Only the first 5 and last 5 rows are shown; 89 between them" in table.text
    csv, parquet = (store.find_format(link.uri).content() for link in links)
    assert csv.split("\n")[:2] == ["n,l,at,o", "0,[1],2024-01-01 00:00:00,"]
    assert csv.count("\n") == 100
    assert pl.read_parquet(io.BytesIO(parquet)).rows() == frame.rows()


def test_a_column_that_parquet_cannot_hold_is_text(store):
    frame = pl.DataFrame({"o": pl.Series([object()] * 99, dtype=pl.Object), "n": range(99)})
    _, _, parquet = content(frame, store)
    read = pq.read_table(io.BytesIO(store.find_format(parquet.uri).content()))
    assert read.column("o")[0].as_py().startswith("<object object at")
    empty = pa.table({"s": pa.array([{}] * 99, pa.struct([])), "n": range(99)})
    _, _, parquet = content(empty, store)
    read = pq.read_table(io.BytesIO(store.find_format(parquet.uri).content()))
    assert read.column("s").to_pylist() == ["{}"] * 99


def test_a_snapshot_does_not_follow_its_table():
    frame, series = pl.DataFrame({"a": [1, 2]}), pl.Series("a", [1, 2])
    kept = [wrap_narwhals_table(frame).snapshot(), wrap_narwhals_table(series).snapshot()]
    frame[0, "a"] = 9
    frame.insert_column(0, pl.Series("z", [1, 1]))
    series[0] = 9
    assert [write_csv(table) for table in kept] == ["a\n1\n2\n"] * 2


@pytest.mark.parametrize("value", [pl.DataFrame(), pa.table({}), pl.DataFrame({"a": []})])
def test_empty_tables_keep_their_shape(value):
    assert f": 0 rows x {value.shape[1]} column" in text(value)


def test_tables_in_a_dict_are_each_a_table():
    assert text({"a": pl.DataFrame({"n": [1]}), "b": 2}) == (
        "a:\npolars DataFrame: 1 row x 1 column; n Int64\n\nn\n1\n\nb: 2"
    )
