"""CSV of previews and files reads back as the table that it was written from."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.tables.csv_text import format_csv_rows
from mcp_notebook.kernel.results.tables.exports import write_csv
from mcp_notebook.kernel.results.tables.pandas_frame import wrap_pandas_table
from mcp_notebook.kernel.safe.text import clean_text
from mcp_notebook.settings.settings import Settings

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")

CONVERTER = Converter(DisplayFormatter().format, Settings())
TEXTS = st.text(max_size=20) | st.text('a \t\r\n",;|', max_size=10) | st.sampled_from(["NaN", ""])
ROWS = st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=5)
NAMES = ["first\r\nname", " second,"]


def read(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def read_preview(value):
    """Return the rows that a client reads in the preview of a table, its header first."""
    [block] = CONVERTER.make_result(value, ()).content
    return read(block.text.partition("\n\n")[2])


def cleaned(rows):
    return [[clean_text(cell) for cell in row] for row in rows]


@given(ROWS)
@example([("a\nb", "c\rd"), ("  lead", "trail ")])
def test_whatever_texts_are_in_a_table_its_preview_reads_back(rows):
    expected = [NAMES, *cleaned(rows)]
    frame = pd.DataFrame(rows, columns=NAMES)
    assert read_preview(frame) == expected
    assert read_preview(frame.astype(object)) == expected
    assert read_preview(frame.set_index(NAMES[0])) == expected
    assert read_preview(np.array(rows, dtype=object)) == expected[1:]


@given(TEXTS, TEXTS)
def test_whatever_the_names_of_columns_are_the_preview_reads_back(name, index_name):
    frame = pd.DataFrame({name: ["x"]}, index=pd.Index(["y"], name=index_name))
    assert read_preview(frame) == cleaned([[index_name, name], ["y", "x"]])


@given(ROWS)
def test_whatever_texts_are_in_a_table_its_file_reads_back(rows):
    frame = wrap_pandas_table(pd.DataFrame(rows, columns=NAMES, dtype=object))
    expected = [[cell.replace("\ud800", "\ufffd") for cell in row] for row in rows]
    assert read(write_csv(frame)) == [NAMES, *expected]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (float("nan"), ""),
        (pd.NA, ""),
        (pd.NaT, ""),
        ("", '""'),
        ("NaN", '"NaN"'),
        ("n/a", '"n/a"'),
        ("  lead", '"  lead"'),
        (True, "True"),
        (1.5, "1.5"),
        ('5"', '"5"""'),
    ],
)
def test_a_missing_value_is_nothing_and_a_text_like_one_is_quoted_in_preview_and_file(value, cell):
    table = pd.DataFrame({"a": pd.Series([value], dtype=object), "b": [1]})
    preview = CONVERTER.make_result(table, ()).content[0].text
    assert preview.endswith(f"a,b\n{cell},1")
    assert write_csv(wrap_pandas_table(table)) == f"a,b\n{cell},1\n"


def test_a_missing_value_that_is_a_row_alone_is_null_in_previews_and_no_empty_line_in_files():
    frame = pd.DataFrame({"s": pd.Series(["x", None, ""], dtype=object)})
    [block] = CONVERTER.make_result(frame, ()).content
    assert block.text.endswith('s\nx\nnull\n""')
    assert len(read(write_csv(wrap_pandas_table(frame)))) == 4


def test_a_name_with_a_line_end_stays_on_the_line_of_the_types():
    [block] = CONVERTER.make_result(pd.DataFrame({"a\n\nb": [1]}), ()).content
    assert block.text.startswith('DataFrame: 1 row x 1 column; "a\\n\\nb" int64\n\n')


def test_rows_of_numbers_and_texts_are_written_as_by_the_csv_module():
    rows = [(1, 2.5, "a"), (None, "", 'x"y')]
    expected = io.StringIO()
    csv.writer(expected, lineterminator="\n").writerows(rows)
    assert format_csv_rows(rows) == expected.getvalue()
