"""Writes CSV that reads back unchanged, whatever is in the cells.

Pure functions; run in the user's kernel, on the thread of the call or one of the resource store. A
missing value is empty. A string is quoted if it would not read back otherwise, or if it looks like
a missing value (`cell_text.QuotedText`).
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from mcp_notebook.kernel.results.tables.cell_text import QuotedText

_NEEDS_QUOTES = re.compile('["\r\n]')


def format_csv_lines(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the line of each row, without line ends; it is empty for one missing value alone.

    Args:
        rows: Texts and numbers; a missing value is an empty text.
    """
    return list(map(_format_csv_line, rows))


def _format_csv_line(cells: Sequence[Any]) -> str:
    line = ",".join(map(str, cells))
    # One check for the whole line: most rows need no quotes.
    is_plain = not _NEEDS_QUOTES.search(line) and line.count(",") == len(cells) - 1
    if not is_plain or QuotedText in set(map(type, cells)):
        line = ",".join(map(_format_csv_cell, cells))
    return line


def format_csv_rows(rows: Sequence[Sequence[Any]]) -> str:
    """Return the lines of many rows, with a line end after each."""
    # The csv module is several times faster. But it does not quote what looks missing, nor,
    # before Python 3.13, a lone carriage return, which ends the line.
    if QuotedText not in set(map(type, chain.from_iterable(rows))):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        if "\r" not in text.getvalue():
            return text.getvalue()
    # Most readers skip an empty line: the row would be lost.
    return "".join((line or '""') + "\n" for line in format_csv_lines(rows))


def _format_csv_cell(cell: Any) -> str:
    text = str(cell)
    if type(cell) is QuotedText or "," in text or _NEEDS_QUOTES.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text
