"""Tables as a model sees them, with real pandas."""

import pytest

from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.frames import MAX_COLUMNS
from mcp_notebook.kernel.tables import array_text, table_blocks
from mcp_notebook.settings import Settings

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")


def shown(table, max_rows=50, max_chars=25_000):
    settings = Settings(
        max_table_rows=max_rows, max_result_chars=max_chars, table_format="markdown"
    )
    [block] = table_blocks(table, Budget.of(settings))
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
        "| Oslo | NaN | 2 |"
    )


def test_a_long_frame_shows_its_head_and_tail_and_says_how_much_is_left_out():
    lines = shown(pd.DataFrame({"n": range(1_000)}), max_rows=5).split("\n")
    assert lines[1] == "Only the first 3 and last 2 rows are shown; 995 between them are left out."
    assert lines[5:] == ["| 0 |", "| 1 |", "| 2 |", "| ... |", "| 998 |", "| 999 |"]


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
    assert "| 2024-01-01 |\n| NaT |" in shown(days)
    assert "| 2024-01-01 00:00:00 |\n| 2024-01-01 05:00:00 |" in shown(hours)
    assert "| 2024-01-01 00:00:00+01:00 |" in shown(zoned)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (1234567.891, "1234567.891"),
        (2.0, "2.0"),
        (1e-7, "1e-07"),
        (1e20, "1e+20"),
        (float("inf"), "inf"),
        (-0.5, "-0.5"),
    ],
)
def test_floats_are_as_exact_as_in_the_notebook(number, text):
    assert shown(pd.DataFrame({"n": [number]})).endswith(f"| {text} |")


def test_floats_follow_the_users_own_format():
    with pd.option_context("display.float_format", "{:.1f} EUR".format):
        assert shown(pd.DataFrame({"n": [1.25]})).endswith("| 1.2 EUR |")


def test_cells_cannot_break_the_table():
    class Broken:
        def __str__(self):
            raise RuntimeError("no")

        __repr__ = __str__

    frame = pd.DataFrame({"a|b": ["x|y\nz", "w" * 1_000]})
    lines = shown(frame).split("\n")
    assert lines[2] == "| a\\|b |"
    assert lines[4] == "| x\\|y z |"
    assert lines[5].endswith("w ... |")
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
    text = array_text(np.zeros((300, 300)))
    assert text.startswith("array of shape (300, 300), float64\n[[0. 0. 0. ... 0. 0. 0.]")
    assert len(text) < 500
