"""The lines of a table's text, as Markdown or as CSV. Pure.

Runs in the user's kernel, on the thread of the call.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

GAP = "..."


@dataclass(frozen=True)
class Lines:
    """The lines of a table."""

    header: list[str]
    rows: list[str]
    """Of a longer table half from its head, half from its tail."""
    gap: str
    """Stands for the rows between the two."""

    def fitting(self, room: int, height: int, notes: int) -> int:
        """Return how many rows fit, one at least if there is any.

        Rows go from the middle, so that half of those left are from the head, half from the tail.

        Args:
            room: Characters that the lines may have.
            height: Rows of the table.
            notes: Characters that are needed to say what is left out.
        """
        shown = len(self.rows)
        taken = sum(len(line) + 1 for line in (*self.header, *self.rows))
        if shown == height and taken <= room:
            return shown
        taken += notes + len(self.gap) + 1
        while shown > 1 and taken > room:
            at = shown // 2 if shown % 2 else len(self.rows) - shown // 2
            taken -= len(self.rows[at]) + 1
            shown -= 1
        return shown


def markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """Lay out a table as Markdown."""
    header = [_markdown_line(names), "|" + "---|" * len(names)]
    gap = _markdown_line([GAP] * len(names))
    return Lines(header, [_markdown_line(row) for row in rows], gap)


def comma_separated(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """Lay out a table as CSV; without names, there is no line of them."""
    return Lines([_csv_line(names)] if any(names) else [], [_csv_line(row) for row in rows], GAP)


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_markdown_cell, cells)) + " |"


def _markdown_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\r", "").replace("\n", " ")


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


LAYOUTS: Mapping[str, Callable[[Sequence[str], Sequence[Sequence[str]]], Lines]] = {
    "csv": comma_separated,
    "markdown": markdown,
}
"""By the names that `Settings.table_format` has for them."""
