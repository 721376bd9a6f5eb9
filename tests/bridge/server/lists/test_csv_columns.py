"""Columns of a CSV, picked by their names."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.server.lists.csv_columns import UnknownColumn, pick_columns

TABLE = 'n,"a,b",n,t\n1,"x\n,""y""",2,\n3,,4,"nan"\n'


def test_columns_are_picked_in_the_order_of_their_names():
    assert pick_columns(TABLE, ["t", "a,b"]) == 't,"a,b"\n,"x\n,""y"""\n"nan",\n'


def test_a_name_that_repeats_picks_all_of_its_columns():
    assert pick_columns(TABLE, ["n"]) == "n,n\n1,2\n3,4\n"


def test_an_unknown_column_is_refused_with_those_that_there_are():
    with pytest.raises(UnknownColumn, match=r"no column 'N'\. Its columns: 'n', 'a,b', 'n', 't'"):
        pick_columns(TABLE, ["N"])
    with pytest.raises(UnknownColumn, match="Did you mean 'price'"):
        pick_columns("price,day\n1,2\n", ["prices"])
    with pytest.raises(UnknownColumn, match=r"Its columns: \.$"):
        pick_columns("", ["a"])


CELLS = st.text('ab,"\n', max_size=5)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1), st.permutations([0, 1, 2]))
def test_cells_stay_as_they_are(rows, order):
    def write(table):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerows(table)
        return text.getvalue()

    names = ["x", "y", "z"]
    picked = pick_columns(write([names, *rows]), [names[place] for place in order])
    wanted = [[row[place] for place in order] for row in [names, *rows]]
    assert list(csv.reader(io.StringIO(picked, newline=""))) == wanted
