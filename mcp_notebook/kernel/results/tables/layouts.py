"""The two ways to lay out the text of a table: Markdown and CSV.

Pure functions on the texts of cells, on the thread of the call.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
    header = [_csv_line(names)] if any(names) else []
    return TableLines(header, [_csv_line(row) for row in rows], GAP)


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_markdown_cell, cells)) + " |"


def _markdown_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\r", "").replace("\n", " ")


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


LAYOUTS: Mapping[str, Callable[[Sequence[str], Sequence[Sequence[str]]], TableLines]] = {
    "csv": layout_csv,
    "markdown": layout_markdown,
}
"""The layouts by their names in `Settings.table_format`."""
