"""Shows the text of a table to people, as pandas shows a table in a notebook.

Pure; runs where a result is shown: on the kernel's main thread, or on that of a recording. The text
is the one that `table_text` wrote for a client. It is read back here, so that a call does not pay
for a form that is hardly ever looked at. What does not read back as a whole table is not a table.
"""

import csv
import io
import json
import re
from collections.abc import Sequence
from html import escape

from msgspec import Struct

from mcp_notebook.kernel.results.tables.frame import MAX_COLUMNS
from mcp_notebook.kernel.results.tables.table_text import GAP

_TITLE = re.compile(
    r"[^\n]*?: (\d[\d,]{0,14}) rows?(?: x (\d[\d,]{0,14}) columns?(?: by [^\n]+)?)?(?![\w ])"
)
_ARRAY = re.compile(r"array of shape \((\d{1,15}), (\d{1,15})\)")
_ENDS = re.compile(
    r"^Only the first (\d[\d,]{0,14})(?: and last (\d[\d,]{0,14}))? rows are", re.MULTILINE
)
_RULE = re.compile(r"\|(?:---\|)+")


class _Shape(Struct, frozen=True):
    """What the lines above a table say of it."""

    rows: int
    """The rows that are shown."""
    columns: int
    """The columns that are shown, without labels of rows."""
    has_gap: bool
    """Whether rows are left out."""


def format_table_html(text: str) -> str | None:
    """Return a table as HTML; None if a text is not a table, or contains more than one.

    Args:
        text: The text of a content block.
    """
    head, gap, body = text.partition("\n\n")
    shape = _read_shape(head) if gap else None
    if shape is None:
        return None
    lines = body.split("\n")
    is_markdown = len(lines) > 1 and _RULE.fullmatch(lines[1]) is not None
    rows = _read_markdown(lines) if is_markdown else _read_csv(body)
    has_names = len(rows) == shape.rows + shape.has_gap + 1
    if not has_names and len(rows) != shape.rows + shape.has_gap:
        return None
    names, cells = (rows[0], rows[1:]) if has_names else ([], rows)
    width = max(map(len, rows), default=0)
    if shape.has_gap:
        cells = [[GAP] * width if row == [GAP] else row for row in cells]
    if any(len(row) != width for row in (*rows[:has_names], *cells)):
        return None
    return _write_html(head, names, cells, max(width - shape.columns, 0))


def _read_shape(head: str) -> _Shape | None:
    title = _ARRAY.match(head) or _TITLE.match(head)
    if title is None:
        return None
    rows, columns = _read_number(title[1]), min(_read_number(title[2] or "1"), MAX_COLUMNS)
    ends = _ENDS.search(head)
    if ends is None:
        return _Shape(rows, columns, has_gap=False)
    return _Shape(_read_number(ends[1]) + _read_number(ends[2] or "0"), columns, has_gap=True)


def _read_number(text: str) -> int:
    return int(text.replace(",", ""))


def _read_csv(body: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(body, newline=""), strict=True))
    except csv.Error:
        return []


def _read_markdown(lines: Sequence[str]) -> list[list[str]]:
    first, _, *others = lines
    return [_read_markdown_line(line) for line in (first, *others)]


def _read_markdown_line(line: str) -> list[str]:
    cells = line.removeprefix("| ").removesuffix(" |").split(" | ")  # within cells, it is " \\| "
    return [_unquote(cell.replace("\\|", "|")) for cell in cells]


def _unquote(cell: str) -> str:
    """Return the text of a cell that Markdown has as JSON, for its line ends or spaces."""
    if not cell.startswith('"'):
        return cell
    try:
        return str(json.loads(cell))
    except ValueError:
        return cell


def _write_html(head: str, names: Sequence[str], rows: Sequence[Sequence[str]], labels: int) -> str:
    """Write a table with the classes that notebooks style, and its description below it."""
    header = "".join(f"<th>{_escape(name)}</th>" for name in names)
    lines = "".join(f"<tr>{_write_row(row, labels)}</tr>\n" for row in rows)  # for git's diffs
    return (
        '<table border="1" class="dataframe">\n'
        + (f'<thead><tr style="text-align: right;">{header}</tr></thead>\n' if names else "")
        + f"<tbody>\n{lines}</tbody></table>\n<p>{_escape(head)}</p>"
    )


def _write_row(row: Sequence[str], labels: int) -> str:
    return "".join(
        f"<th>{_escape(cell)}</th>" if column < labels else f"<td>{_escape(cell)}</td>"
        for column, cell in enumerate(row)
    )


def _escape(text: str) -> str:
    return escape(text).replace("\n", "<br>")
