"""The two ways to lay out the text of a table: Markdown and CSV.

Pure functions on the texts of cells, on the thread of the call. In both an empty cell is a missing
value. A text that would look like one is in quotes; so is, in Markdown as JSON, a text whose lines
or surrounding spaces would be lost.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mcp_notebook.kernel.results.tables.cell_text import QuotedText, quote_unclear
from mcp_notebook.kernel.results.tables.csv_text import format_csv_row

GAP = "..."


@dataclass(frozen=True)
class TableLines:
    """The lines of the text of a table."""

    header: list[str]
    rows: list[str]
    """Of a long table, half from its head and half from its tail."""
    gap: str
    """The line that stands for the rows between head and tail."""

    def count_fitting_rows(self, room: int, height: int, note_chars: int) -> int:
        """Return how many of the rows fit: at least one, if there is any.

        Rows are taken out of the middle, so that half of the rest are from the head and half from
        the tail.

        Args:
            room: Characters that the lines may have.
            height: Rows of the table.
            note_chars: Characters to reserve for the note on the rows that are left out.
        """
        fitting = len(self.rows)
        chars = sum(len(line) + 1 for line in (*self.header, *self.rows))
        if fitting == height and chars <= room:
            return fitting
        chars += note_chars + len(self.gap) + 1
        while fitting > 1 and chars > room:
            at = fitting // 2 if fitting % 2 else len(self.rows) - fitting // 2
            chars -= len(self.rows[at]) + 1
            fitting -= 1
        return fitting


def layout_markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> TableLines:
    """Lay out a table as Markdown."""
    header = [_markdown_line(names), "|" + "---|" * len(names)]
    gap = _markdown_line([GAP] * len(names))
    return TableLines(header, [_markdown_line(row) for row in rows], gap)


def layout_csv(names: Sequence[str], rows: Sequence[Sequence[str]]) -> TableLines:
    """Lay out a table as CSV; without a header if its columns have no names."""
    has_names = any(name or type(name) is QuotedText for name in names)
    header = [format_csv_row(names)] if has_names else []
    return TableLines(header, [format_csv_row(row) for row in rows], GAP)


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_markdown_cell, cells)) + " |"


def _markdown_cell(text: str) -> str:
    return quote_unclear(text).replace("|", "\\|")


LAYOUTS: Mapping[str, Callable[[Sequence[str], Sequence[Sequence[str]]], TableLines]] = {
    "csv": layout_csv,
    "markdown": layout_markdown,
}
"""The layouts by their names in `Settings.table_format`."""
