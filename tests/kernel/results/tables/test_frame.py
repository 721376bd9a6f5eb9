"""Frame: what every kind of table can say about itself."""

import pytest

from mcp_notebook.kernel.results.tables.frame import (
    MAX_COLUMNS,
    Frame,
)


class Grid(Frame):
    """A frame of numbers."""

    kind = "grid"

    def __init__(self, height, width):
        self.height, self.width = height, width

    def column_name(self, position):
        return f"c{position}"

    def column_type(self, position):  # noqa: ARG002
        return "int"

    def take(self, positions):
        return Grid(len(positions), self.width)

    def column_values(self, position, start, stop):  # noqa: ARG002
        return list(range(start, stop))

    def column_data(self, position):
        return self.column_values(position, 0, self.height)

    def estimate_bytes(self):
        return 0

    def snapshot(self):
        return self


@pytest.mark.parametrize(
    ("height", "width", "title"),
    [
        (1, 1, "grid: 1 row x 1 column"),
        (0, 2, "grid: 0 rows x 2 columns"),
        (10_000, 1_000, "grid: 10,000 rows x 1,000 columns"),
    ],
)
def test_the_title_is_the_kind_and_the_shape(height, width, title):
    assert Grid(height, width).title == title


def test_the_schema_of_a_wide_table_names_the_first_and_last_columns():
    assert Grid(1, 2).schema_text == "c0 int, c1 int"
    columns = Grid(1, 1_000).schema_text.split(", ")
    assert (len(columns), columns[0], columns[-1]) == (MAX_COLUMNS, "c0 int", "c999 int")
