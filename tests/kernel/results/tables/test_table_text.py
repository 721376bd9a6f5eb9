"""Tables as a model sees them, with real pandas."""

import csv
import io
import json
import re
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.originals import discard_original
from mcp_notebook.kernel.results.tables.cell_text import QuotedText
from mcp_notebook.kernel.results.tables.frame import MAX_COLUMNS
from mcp_notebook.kernel.results.tables.table_text import (
    format_array,
    layout_csv,
    layout_markdown,
    render_index,
    render_table,
)
from mcp_notebook.settings.settings import Settings

ROWS = [(str(n), "x" * 10) for n in range(10)]


def test_markdown_cells_cannot_break_the_table():
    lines = layout_markdown(["a|b"], [("x|y\r\nz",)])
    assert lines.header == ["| a\\|b |", "|---|"]
    assert lines.rows == ['| "x\\|y\\r\\nz" |']
    assert lines.gap == "| ... |"


def test_csv_cells_are_quoted_and_read_back():
    row = ('x,"y"', "a b")
    lines = layout_csv(["p", "q"], [row])
    assert lines.header == ["p,q"]
    assert next(csv.reader(lines.rows)) == list(row)


@pytest.mark.parametrize("layout", [layout_csv, layout_markdown])
def test_a_text_that_looks_missing_is_in_quotes_and_a_missing_value_is_empty(layout):
    separator = layout(["a", "b"], []).header[0].strip("| ").replace("a", "").replace("b", "")
    cells = [QuotedText(""), QuotedText("NaN"), "", "NaN"]
    line = layout(["a"] * 4, [cells]).rows[0].removeprefix("| ").removesuffix(" |")
    assert line.split(separator) == ['""', '"NaN"', "", "NaN"]


def test_a_column_whose_name_is_an_empty_text_has_a_header():
    assert layout_csv([QuotedText("")], [("1",)]).header == ['""']


def test_csv_without_names_has_no_header():
    assert layout_csv(["", ""], [("1", "2")]).header == []


@pytest.mark.parametrize("layout", [layout_csv, layout_markdown])
def test_all_rows_fit_where_there_is_room_for_them_without_a_note(layout):
    lines = layout(["n", "text"], ROWS)
    room = sum(len(line) + 1 for line in (*lines.header, *lines.rows))
    assert lines.count_fitting_rows(room, len(ROWS), 100) == len(ROWS)
    assert lines.count_fitting_rows(room - 1, len(ROWS), 0) < len(ROWS)


@pytest.mark.parametrize("layout", [layout_csv, layout_markdown])
@pytest.mark.parametrize("room", [0, 40, 80, 120])
def test_the_rows_that_fit_keep_to_the_room_with_gap_and_note(layout, room):
    lines = layout(["n", "text"], ROWS)
    rows = lines.count_fitting_rows(room, 1_000, 20)
    head, tail = rows - rows // 2, rows // 2
    kept = [*lines.header, *lines.rows[:head], lines.gap, *lines.rows[len(ROWS) - tail :]]
    assert rows >= 1
    assert rows == 1 or sum(len(line) + 1 for line in kept) + 20 <= room


pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")


def shown(table, max_rows=50, max_chars=25_000):
    settings = Settings(
        max_table_rows=max_rows, max_result_chars=max_chars, table_format="markdown"
    )
    [block] = render_table(table, Budget.from_settings(settings))
    return block.text


def test_a_short_frame_is_shown_whole_under_its_shape_and_types():
    frame = pd.DataFrame({"city": ["Rome", "Oslo"], "rain": [1.5, float("nan")], "n": [1, 2]})
    frame["city"] = frame["city"].astype(object)
    assert shown(frame) == (
        "DataFrame: 2 rows x 3 columns; city object, rain float64, n int64\n"
        "\n"
        "| city | rain | n |\n"
        "|---|---|---|\n"
        "| Rome | 1.5 | 1 |\n"
        "| Oslo |  | 2 |"
    )


def test_a_long_frame_shows_its_head_and_tail_and_says_how_much_is_left_out():
    lines = shown(pd.DataFrame({"n": range(1_000)}), max_rows=5).split("\n")
    assert lines[1] == "n int64: 0 to 999, mean 499.5, all distinct"
    assert lines[2] == "Only the first 3 and last 2 rows are shown; 995 between them are left out."
    assert lines[6:] == ["| 0 |", "| 1 |", "| 2 |", "| ... |", "| 998 |", "| 999 |"]


def test_a_wide_frame_names_the_columns_it_leaves_out():
    frame = pd.DataFrame([range(1_000)], columns=[f"column {n}" for n in range(1_000)])
    text = shown(frame)
    header = text.split("\n")[3]
    assert header.count("|") == MAX_COLUMNS + 1
    assert "970 columns left out: column 15, column 16," in text
    assert "more\n" in text
    assert len(text) < 5_000


def test_rows_are_left_out_until_the_text_fits():
    text = shown(pd.DataFrame({"text": ["x" * 150] * 50}), max_chars=2_000)
    assert len(text) <= 2_000
    assert text.startswith("DataFrame: 50 rows x 1 column")
    assert "are left out." in text


def test_an_index_that_says_something_is_shown_and_row_numbers_are_not():
    frame = pd.DataFrame({"n": [1]})
    assert "| n |" in shown(frame)
    assert "|  | n |" in shown(frame.set_axis(["a"], axis=0))
    assert "| key | n |" in shown(frame.set_axis(pd.Index([5], name="key"), axis=0))


def test_levels_of_an_index_and_of_columns_are_named():
    frame = pd.DataFrame({"a": [1, 1], "b": [1, 2], "c": [3.0, 4.0]})
    text = shown(frame.groupby(["a", "b"]).agg({"c": ["min", "max"]}))
    assert "| a | b | c / min | c / max |" in text
    assert "| 1 | 2 | 4.0 | 4.0 |" in text


def test_a_series_is_a_table_of_one_column():
    series = pd.Series([1, 2], index=pd.Index(["x", "y"], name="key"), name="n")
    assert (
        shown(series) == "Series: 2 rows, n int64\n\n| key | n |\n|---|---|\n| x | 1 |\n| y | 2 |"
    )
    assert "value int64" in shown(pd.Series([1]))


def test_dates_are_short_and_times_are_kept():
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", None])})
    hours = pd.DataFrame({"hour": pd.to_datetime(["2024-01-01 00:00", "2024-01-01 05:00"])})
    zoned = pd.DataFrame({"at": pd.to_datetime(["2024-01-01"]).tz_localize("Europe/Rome")})
    assert "| 2024-01-01 |\n|  |" in shown(days)
    assert "| 2024-01-01 00:00:00 |\n| 2024-01-01 05:00:00 |" in shown(hours)
    assert "| 2024-01-01 00:00:00+01:00 |" in shown(zoned)


def test_cells_cannot_break_the_table():
    class Broken:
        def __str__(self):
            raise RuntimeError("no")

        __repr__ = __str__

    frame = pd.DataFrame({"a|b": ["x|y\nz", "w" * 1_000]})
    lines = shown(frame).split("\n")
    assert lines[1] == "A cell that ends with [+N] has N more characters."
    assert lines[3] == "| a\\|b |"
    assert lines[5] == '| "x\\|y\\nz" |'
    kept, more = re.fullmatch(r"\| (w+) \[\+(\d+)\] \|", lines[6]).groups()
    assert len(kept) + int(more) == 1_000
    broken = shown(pd.DataFrame({"a": pd.Series([Broken()], dtype=object)}))
    assert "whose repr failed: RuntimeError: no" in broken


@pytest.mark.parametrize(
    ("frame", "start"),
    [
        (pd.DataFrame(), "DataFrame: 0 rows x 0 columns"),
        (pd.DataFrame(index=range(3)), "DataFrame: 3 rows x 0 columns"),
        (pd.DataFrame({"a": []}), "DataFrame: 0 rows x 1 column; a"),
        (pd.Series([], dtype=float), "Series: 0 rows, value float64"),
    ],
)
def test_empty_tables_keep_their_shape(frame, start):
    assert shown(frame).startswith(start)


def test_columns_of_one_name_are_all_shown():
    assert "| 1 | 2 |" in shown(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_arrays_are_shortened_under_their_shape():
    text = format_array(np.zeros((300, 300)), 300)
    assert text.startswith(
        "array of shape (300, 300), float64: always 0.0\n[[0. 0. 0. ... 0. 0. 0.]"
    )
    assert len(text) < 500


MASKED = np.ma.array([1.5, 2, 3], mask=[0, 1, 0])


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (MASKED, "[1.5 -- 3.0]"),
        (np.ma.masked_invalid([[[1, np.nan]]]), "[[[1.0 --]]]"),
        (np.ma.array([1, 2], mask=[0, 1]), "[1 --]"),
        (np.ma.array(["a", "b"], mask=[0, 1]), "['a' --]"),
        (np.ma.array(np.array(["2020-01-01"] * 2, "M8[D]"), mask=[0, 1]), "[2020-01-01 --]"),
        (np.ma.array([MASKED, None], mask=[0, 1], dtype=object), "[[1.5 -- 3.0] --]"),
        (np.ma.array([[(1, 2)]], mask=[[(0, 1)]], dtype="i8,i8"), "[[(1, --)]]"),
        (np.ma.masked, "--"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("error")
def test_a_masked_element_is_shown_as_such(array, text):
    assert format_array(array, 300).split("\n")[1] == text


def test_of_a_long_masked_array_it_is_seen_what_is_left_out():
    text = format_array(np.ma.masked_less(np.arange(2_000).reshape(2, 5, 200), 3), 300)
    assert text.split("\n", 1)[1].startswith("[[[-- -- -- ... 197 198 199]\n")


# -- formats, budgets, the whole -------------------------------------------------------------------


def blocks(value, keep=discard_original, make=render_table, **settings):
    pieces = make(value, Budget.from_settings(Settings(**settings), keep))
    return [piece.block for piece in pieces]


def test_csv_text_is_quoted_and_has_the_same_head_and_tail():
    frame = pd.DataFrame({"a": ['x,"y"'] * 9, "n": range(9)})
    [block] = blocks(frame, table_format="csv", max_table_rows=2)
    assert block.text.split("\n")[1:] == [
        f'a {frame.a.dtype}: always x,"y"',
        "n int64: 0 to 8, mean 4.0, all distinct",
        "Only the first 1 and last 1 rows are shown; 7 between them are left out.",
        "",
        "a,n",
        '"x,""y""",0',
        "...",
        '"x,""y""",8',
    ]


def test_the_shorter_format_is_taken_unless_the_user_chose():
    plain, quoted = pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"a": ["x" + '"' * 50]})
    assert blocks(plain)[0].text.endswith("a,b\n1,2")
    first = f"DataFrame: 1 row x 1 column; a {quoted.a.dtype}\n\n| a |"
    assert blocks(quoted)[0].text.startswith(first)
    assert "| 1 | 2 |" in blocks(plain, table_format="markdown")[0].text


@pytest.mark.smoke
def test_the_whole_is_kept_if_rows_columns_or_cells_are_left_out(store):
    long, wide = pd.DataFrame({"n": range(99)}), pd.DataFrame([range(99)])
    for frame in (long, wide, pd.DataFrame({"text": ["x" * 999]})):
        text, csv_link, *others = blocks(frame, store.keep)
        assert "resource" not in text.text
        rows, columns = frame.shape
        assert csv_link.title.startswith(f"The whole table: {rows} row")
        assert f" x {columns} column" in csv_link.title
        assert (csv_link.mime_type, csv_link.name) == ("text/csv", "table.csv")
        assert [link.name for link in others] == ["table.parquet"] * bool(find_spec("pyarrow"))
        read = pd.read_csv(io.StringIO(store.find_format(csv_link.uri).content()))
        assert read.to_numpy().tolist() == frame.to_numpy().tolist()
    assert len(blocks(pd.DataFrame({"n": range(9)}), store.keep)) == 1


def test_a_table_that_is_too_large_to_be_kept_says_so():
    keep = ResourceStore("k", 1_000).keep
    [text] = blocks(pd.DataFrame({"n": range(1_000)}), keep)
    assert "more than max_resource_bytes allows." in text.text
    assert "whole" not in blocks(pd.DataFrame({"n": range(1_000)}))[0].text


def test_a_table_is_kept_as_it_is_now(store):
    frame = pd.DataFrame({"n": range(99)})
    link = blocks(frame, store.keep)[1]
    frame["n"] = 0
    frame.loc[3, "n"] = 7
    read = store.find_format(link.uri).content()
    if "as of when it is read" not in link.title:  # it is not copied in pandas 2, if large
        assert read.split("\n")[4] == "3"


def test_what_only_counts_or_orders_is_still_a_table():
    assert blocks(pd.Index(["a", "b"], name="key"), make=render_index)[0].text == (
        f"Index: 2 rows, key {pd.Index(['a']).dtype}\n\nkey\na\nb"
    )
    both = pd.MultiIndex.from_product([["a"], [1, 2]], names=["x", None])
    text = blocks(both, make=render_index)[0].text
    assert text.startswith("MultiIndex: 2 rows x 2 columns; x ")
    assert text.endswith("x,level 1\na,1\na,2")


def test_cells_of_any_dtype_are_text():
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["u", "v"]),
            "i": pd.array([1, None], dtype="Int64"),
            "s": pd.arrays.SparseArray([0, 1]),
            "p": pd.period_range("2024-01", periods=2, freq="M"),
            "o": [{"k": 1}, [1, 2]],
            "n": [np.nan, 1j],
            "big": ["x", list(range(10**6))],
        }
    )
    lines = blocks(frame)[0].text.split("\n")
    assert "c category (u, v), i Int64, s Sparse[int64, 0], p period[M], o object" in lines[0]
    assert lines[-2].startswith("u,1,0,2024-01,{'k': 1},")
    assert lines[-1].startswith('v,,1,2024-02,"[1, 2]",')
    assert len(lines[-1]) < 300


class Broken:
    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False),
    st.lists(st.integers(), max_size=3),
    st.builds(Broken),
)
NAMES = st.one_of(st.text(max_size=5), st.integers(), st.none(), st.dates())
COLUMNS = st.integers(0, 4).flatmap(
    lambda rows: st.lists(st.lists(CELLS, min_size=rows, max_size=rows), max_size=5)
)


@pytest.mark.needs("pyarrow")
@given(COLUMNS, st.data())
def test_any_frame_is_within_its_budget_and_its_files_can_be_read(columns, data):
    names = data.draw(st.lists(NAMES, min_size=len(columns), max_size=len(columns)))
    chars = data.draw(st.sampled_from([10, 100, 400, 1_000]))
    frame = pd.DataFrame({at: pd.Series(column, dtype=object) for at, column in enumerate(columns)})
    frame = frame.set_axis(pd.Index(names, dtype=object), axis=1)
    store = ResourceStore("k", 10**9)
    text, *links = blocks(
        frame, store.keep, max_result_chars=chars, max_table_rows=data.draw(st.integers(1, 5))
    )
    assert len(text.text) <= chars
    assert json.dumps(text.text).encode()
    if not links:
        return
    whole, parquet = (store.find_format(link.uri).content() for link in links)
    header, *rows = csv.reader(io.StringIO(whole, newline=""))
    assert len(header) == len(columns)
    if columns:
        assert len(rows) == len(frame)
    wanted = [tuple(map(_written, row)) for row in zip(*columns, strict=True)]
    assert [tuple(row) for row in rows if row] == [row for row in wanted if row]
    read = pytest.importorskip("pyarrow.parquet").read_table(io.BytesIO(parquet))
    assert read.shape == (len(frame) if columns else 0, len(columns))


def _written(value):
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124
        return ""
    if isinstance(value, Broken):
        return "<an object of type Broken whose repr failed: RuntimeError: no>"
    return str(value)
