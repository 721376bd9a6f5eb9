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
    NOTE_CHARS,
    count_fitting_rows,
    format_array,
    layout_table,
    render_dicts,
    render_table,
)

ROWS = [(str(n), "x" * 10) for n in range(10)]


def test_cells_are_quoted_and_read_back():
    row = ('x,"y"', "a b")
    header, lines = layout_table(["p", "q"], [row])
    assert header == ["p,q"]
    assert next(csv.reader(lines)) == list(row)


def test_a_text_that_looks_missing_is_in_quotes_and_a_missing_value_is_empty():
    cells = [QuotedText(""), QuotedText("NaN"), "", "NaN"]
    assert layout_table(["a"] * 4, [cells])[1] == ['"","NaN",,NaN']


@pytest.mark.parametrize("room", [0, 340, 380, 420])
def test_the_rows_that_fit_keep_to_the_room_with_gap_and_note(room):
    header, lines = layout_table(["n", "text"], ROWS)
    rows = count_fitting_rows(header, lines, room, 1_000)
    head, tail = rows - rows // 2, rows // 2
    kept = [*header, *lines[:head], "...", *lines[len(ROWS) - tail :]]
    assert rows >= 1
    assert rows == 1 or sum(len(line) + 1 for line in kept) + NOTE_CHARS <= room


pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")


def shown(table, max_rows=50, max_chars=25_000):
    budget = Budget(table_rows=max_rows, chars=max_chars)
    [block] = render_table(table, budget)
    return block.text


def test_a_short_frame_is_shown_whole_under_its_shape_and_types():
    frame = pd.DataFrame({"city": ["Rome", "Oslo"], "rain": [1.5, float("nan")], "n": [1, 2]})
    frame["city"] = frame["city"].astype(object)
    assert shown(frame) == (
        "DataFrame: 2 rows x 3 columns; city object, rain float64, n int64\n"
        "\n"
        "city,rain,n\n"
        "Rome,1.5,1\n"
        "Oslo,,2"
    )


def test_a_long_frame_shows_its_head_and_tail_and_says_how_much_is_left_out():
    lines = shown(pd.DataFrame({"n": range(1_000)}), max_rows=5).split("\n")
    assert lines[1] == "n int64: 0 to 999, mean 499.5, all distinct"
    assert lines[2] == "Only the first 3 and last 2 rows are shown; 995 between them are left out."
    assert lines[4:] == ["n", "0", "1", "2", "...", "998", "999"]


def test_a_wide_frame_names_the_columns_it_leaves_out():
    frame = pd.DataFrame([range(1_000)], columns=[f"column {n}" for n in range(1_000)])
    text = shown(frame)
    header = text.split("\n")[4]
    assert header.count(",") == MAX_COLUMNS - 1
    assert "970 columns left out: column 15, column 16," in text
    assert "more\n" in text
    assert len(text) < 5_000


def test_an_index_that_says_something_is_shown_and_row_numbers_are_not():
    frame = pd.DataFrame({"n": [1]})
    assert shown(frame).endswith("\n\nn\n1")
    assert shown(frame.set_axis(["a"], axis=0)).endswith("\n\n,n\na,1")
    assert "\nkey,n\n" in shown(frame.set_axis(pd.Index([5], name="key"), axis=0))


def test_so_does_a_list_of_wide_dicts():
    rows = [{f"k{key}": key for key in range(40)} for _ in range(100)]
    rows[7]["k20"] = None
    text = render_dicts(rows, Budget())[0].block.text
    assert text.startswith("list of dicts: 100 rows x 40 columns")
    assert "missing: k20 (1)" in text or "k20 int or null: 1 missing" in text
    few = [{f"k{key}": key for key in range(40)} for _ in range(3)]
    assert render_dicts(few, Budget()) is None  # shown whole as JSON


def test_levels_of_an_index_and_of_columns_are_named():
    frame = pd.DataFrame({"a": [1, 1], "b": [1, 2], "c": [3.0, 4.0]})
    text = shown(frame.groupby(["a", "b"]).agg({"c": ["min", "max"]}))
    assert "\na,b,c / min,c / max\n" in text
    assert "\n1,2,4.0,4.0" in text


def test_dates_are_short_and_times_are_kept():
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", None])})
    hours = pd.DataFrame({"hour": pd.to_datetime(["2024-01-01 00:00", "2024-01-01 05:00"])})
    zoned = pd.DataFrame({"at": pd.to_datetime(["2024-01-01"]).tz_localize("Europe/Rome")})
    assert shown(days).endswith("\n2024-01-01\nnull")
    assert shown(hours).endswith("\n2024-01-01 00:00:00\n2024-01-01 05:00:00")
    assert shown(zoned).endswith("\n2024-01-01 00:00:00+01:00")


def test_cells_cannot_break_the_table():
    class Broken:
        def __str__(self):
            raise RuntimeError("no")

        __repr__ = __str__

    frame = pd.DataFrame({"a,b": ["x,y\nz", "w" * 1_000]})
    lines = shown(frame).split("\n")
    assert lines[1] == "A cell that ends with [+N] has N more characters."
    assert lines[3:6] == ['"a,b"', '"x,y', 'z"']
    kept, more = re.fullmatch(r"(w+) \[\+(\d+)\]", lines[6]).groups()
    assert len(kept) + int(more) == 1_000
    broken = shown(pd.DataFrame({"a": pd.Series([Broken()], dtype=object)}))
    assert "whose repr failed: RuntimeError: no" in broken


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


# -- formats, budgets, the whole -------------------------------------------------------------------


def blocks(value, keep=discard_original, make=render_table, **limits):
    pieces = make(value, Budget(keep=keep, **limits))
    return [piece.block for piece in pieces]


def test_csv_text_is_quoted_and_has_the_same_head_and_tail():
    frame = pd.DataFrame({"a": ['x,"y"'] * 9, "n": range(9)})
    [block] = blocks(frame, table_rows=2)
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
    text, *links = blocks(frame, store.keep, chars=chars, table_rows=data.draw(st.integers(1, 5)))
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
