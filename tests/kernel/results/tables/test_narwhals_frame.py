"""Tables of polars and pyarrow as a model sees them, with the real libraries."""

import io
from datetime import datetime

import pytest
from IPython.core.formatters import DisplayFormatter
from optional_libraries import import_optional

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.tables.exports import write_csv
from mcp_notebook.kernel.results.tables.narwhals_frame import wrap_narwhals_table
from mcp_notebook.settings.settings import Settings

pl = import_optional("polars")
pa = import_optional("pyarrow")
pq = import_optional("pyarrow.parquet")

pytestmark = pytest.mark.needs("polars", "pyarrow")


def content(value, store=None, **limits):
    keep = {"keep": store.keep} if store else {}
    return (
        Converter(DisplayFormatter().format, Settings(), budget=Budget(**limits), **keep)
        .make_result(value, ())
        .content
    )


def text(value, **limits):
    [block] = content(value, **limits)
    return block.text


def test_a_polars_frame_is_a_table():
    frame = pl.DataFrame({"a": [1, None], "s": ["x,y", "z"], "l": [[1], []]})
    assert text(frame) == (
        "polars DataFrame: 2 rows x 3 columns; a Int64, s String, l List(Int64)\n\n"
        'a,s,l\n1,"x,y",[1]\n,z,[]'
    )


def test_a_missing_value_is_not_a_number_that_is_none():
    frame = pl.DataFrame({"a": [float("nan"), None], "s": ["NaN", None]})
    assert text(frame).endswith('a,s\nNaN,"NaN"\n,')
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
        assert text(table).splitlines()[-3:] == lines
        assert write_csv(wrap_narwhals_table(table)).splitlines()[1:] == lines


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
    assert read.column("o")[0].as_py().startswith("<object object")
    empty = pa.table({"s": pa.array([{}] * 99, pa.struct([])), "n": range(99)})
    _, _, parquet = content(empty, store)
    read = pq.read_table(io.BytesIO(store.find_format(parquet.uri).content()))
    assert read.column("s").to_pylist() == ["{}"] * 99
