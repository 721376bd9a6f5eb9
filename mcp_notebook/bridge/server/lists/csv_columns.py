"""Picks columns of a CSV by their names, for a page of it.

Pure; runs in a worker thread of the bridge. Cells stay as they are written: in the CSV of a table,
an empty cell is a missing value, and a text that looks like one is in quotes.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

MAX_NAMED = 50
"""Columns that a message about an unknown one names."""
MAX_NAME = 80
"""Characters of a name in a message."""
_CELL = re.compile(r'(?:^|,)("(?:[^"]|"")*"|[^,]*)')


class UnknownColumn(Exception):
    """The CSV has no column of a name; the message names those that it has."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        close = get_close_matches(name, names, 1)
        hint = f" Did you mean {_shorten(close[0])}?" if close else ""
        more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        known = ", ".join(map(_shorten, names[:MAX_NAMED]))
        super().__init__(
            f"The table has no column {_shorten(name)}.{hint} Its columns: {known}{more}."
        )


def pick_columns(text: str, columns: Sequence[str]) -> str:
    """Return a CSV with only some of its columns, in the order in which they are named.

    Args:
        text: The CSV; its first row has the names.
        columns: The names. All columns of a name that repeats are picked.

    Raises:
        UnknownColumn: It has no column of one of these names.
    """
    rows = _iterate_rows(text)
    first = next(rows, "")
    names = next(csv.reader([first]), [])
    positions: list[int] = []
    for column in columns:
        found = [place for place, name in enumerate(names) if name == column]
        if not found:
            raise UnknownColumn(column, names)
        positions += found
    return "".join(
        f"{','.join([cells[place] for place in positions])}\n"
        for cells in map(_split_cells, (first, *rows))
    )


def _iterate_rows(text: str) -> Iterator[str]:
    """Yield the rows of a CSV; a cell in quotes may have line ends."""
    begin = 0
    while begin < len(text):
        end, is_open = begin - 1, False
        while True:
            start, end = end + 1, text.find("\n", end + 1)
            end = len(text) if end < 0 else end
            is_open ^= text.count('"', start, end) % 2 == 1
            if not is_open or end == len(text):
                break
        yield text[begin:end]
        begin = end + 1


def _split_cells(row: str) -> list[str]:
    return row.split(",") if '"' not in row else _CELL.findall(row)


def _shorten(name: str) -> str:
    return repr(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 3]}...")
