"""Layouts: the lines of a table as Markdown and as CSV, and how many rows fit."""

import csv

import pytest

from mcp_notebook.kernel.results.tables.cell_text import QuotedText
from mcp_notebook.kernel.results.tables.layouts import layout_csv, layout_markdown

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
