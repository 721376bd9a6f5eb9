"""Tables as people see them, with real pandas."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.table_html import format_table_html
from mcp_notebook.kernel.results.tables.table_text import render_array, render_table
from mcp_notebook.settings.settings import Settings

TEXTS = st.text(st.sampled_from("ab |\\\",.\n<&'[]{}1"), min_size=1, max_size=8)
TABLES = st.lists(TEXTS, min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.tuples(
        st.just(names),
        st.lists(st.lists(TEXTS, min_size=len(names), max_size=len(names)), max_size=5),
    )
)


class Reader(HTMLParser):
    """Reads the cells of a table, with the tag of each."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.note, self._tag = [], "", ""
        self.feed(html)

    def handle_starttag(self, tag, _attributes):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append([tag, ""])
        if tag == "br":
            self.handle_data("\n")
        else:
            self._tag = tag

    def handle_endtag(self, _tag):
        self._tag = ""

    def handle_data(self, data):
        if self._tag == "p":
            self.note += data
        elif self._tag in ("th", "td"):
            self.rows[-1][-1][1] += data

    @property
    def texts(self):
        return [[text for _, text in row] for row in self.rows]


def show(table, table_format="auto"):
    budget = Budget.from_settings(Settings(table_format=table_format))
    render = render_array if isinstance(table, np.ndarray) else render_table
    return Reader(format_table_html(render(table, budget)[0].block.text))


@given(TABLES, st.sampled_from(["csv", "markdown"]))
def test_each_name_and_cell_is_shown_as_it_is_in_either_layout(table, table_format):
    names, rows = table
    shown = show(pd.DataFrame(rows, columns=names, dtype=str), table_format)
    assert shown.texts == [names, *rows]
    assert shown.note.startswith(f"DataFrame: {len(rows)} row")


def test_labels_of_rows_are_headings_as_in_pandas():
    index = pd.MultiIndex.from_tuples([("i", 1), ("i", 2)], names=["a", None])
    shown = show(pd.DataFrame({"x": [1.5, None]}, index=index))
    assert shown.texts == [["a", "", "x"], ["i", "1", "1.5"], ["i", "2", ""]]
    assert [tag for tag, _ in shown.rows[1]] == ["th", "th", "td"]
    assert [tag for tag, _ in show(pd.Series([1], ["a"], name="n")).rows[1]] == ["th", "td"]


def test_columns_with_a_name_of_their_own_are_shown_as_any_others():
    columns = pd.Index(["a", "b"], name="kind; of 2 rows")
    shown = show(pd.DataFrame([[1, 2]], columns=columns))
    assert shown.texts == [["a", "b"], ["1", "2"]]
    assert "by kind; of 2 rows" in shown.note


@pytest.mark.parametrize("table_format", ["csv", "markdown"])
def test_a_row_of_dots_is_in_the_place_of_those_left_out(table_format):
    shown = show(pd.DataFrame({"n": range(1_000), "m": 0}), table_format)
    assert shown.texts[:2] == [["n", "m"], ["0", "0"]]
    assert shown.texts[-1] == ["999", "0"]
    assert ["...", "..."] in shown.texts
    assert "990 between them are left out." in shown.note


def test_an_array_has_no_names():
    shown = show(np.eye(2))
    assert shown.texts == [["1.0", "0.0"], ["0.0", "1.0"]]
    assert {tag for row in shown.rows for tag, _ in row} == {"td"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.\n\nWorld.",
        "Found: 3 rows\n\nThey are here.",
        "DataFrame: 3 rows x 1 column; a int64\n\na\n1",  # a row is missing
        "DataFrame: 1 row x 2 columns; a int64, b int64\n\na,b\n1",
        'DataFrame: 1 row x 1 column; a str\n\na\n"x',
        "DataFrame: 0 rows x 0 columns",
        "DataFrame: 1 row x 1 column; a int64\n\na\n1\n\nand more",
    ],
)
def test_a_text_that_is_not_one_whole_table_is_none(text):
    assert format_table_html(text) is None


@pytest.mark.parametrize("text", ["note: , rows\n\nabc", f"note: {'9' * 5_000} rows\n\nabc"])
def test_a_text_that_begins_like_a_table_stays_a_text(text):
    assert format_table_html(text) is None
