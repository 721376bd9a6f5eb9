"""HTML and plain text that outputs share: boxes, code, tables, and a copy button.

Runs on any thread. Pure. Outputs are stored with the notebook, and shown by many frontends, in
light and dark, from 400 to 1,600 pixels wide, often without scripts. So all styles are inline, and
only those that JupyterLab's sanitizer keeps.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape

from msgspec import Struct

_BOX = "border-left:3px solid #f37726;padding:0 1em;margin:.3em 0"
_CELL = "flex:{} 1 {}em;min-width:0;text-align:left;padding:.15em .4em"
_CODE_FONT = ";font-family:monospace"
CUT = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"
"""The style of text on one line that is cut with an ellipsis."""

_CODE = re.compile(r"`([^`]+)`")
COPY_BUTTON = (
    "<script>(() => {"
    "const line = document.currentScript.previousElementSibling;"
    "const button = document.createElement('button');"
    "button.textContent = 'Copy';"
    "button.style.cssText = 'margin-left:.6em;font:inherit;font-size:.85em;color:inherit;"
    "background:none;border:1px solid #8888;border-radius:3px;padding:0 .5em;cursor:pointer';"
    "button.onclick = async () => {"
    "getSelection().selectAllChildren(line);"
    "let copied = true;"
    "try { await navigator.clipboard.writeText(line.textContent); }"
    "catch { copied = document.execCommand('copy'); }"
    "button.textContent = copied ? 'Copied' : 'Selected';"
    "setTimeout(() => { button.textContent = 'Copy'; }, 1500);"
    "};"
    "line.after(button);"
    "})();</script>"
)
"""Adds a button after the preceding element. Without scripts, a click selects the line."""


def render_text(text: str) -> str:
    """Return text as HTML between tags, where quotes need no escape."""
    return escape(text, quote=False)


def render_code(text: str) -> str:
    """Return a message as HTML: text in backquotes becomes code, and everything is escaped."""
    return _CODE.sub(r"<code>\1</code>", render_text(text))


def render_line_to_copy(line: str) -> str:
    """Return a line of code as HTML with a copy button."""
    return f"<code style='user-select:all'>{render_text(line)}</code>{COPY_BUTTON}"


def render_soft(html: str) -> str:
    """Return HTML in a colour that stands back."""
    return f"<span style='opacity:.7'>{html}</span>"


def render_box(html: str) -> str:
    """Return HTML beside a line in Jupyter's orange."""
    return f"<div style='{_BOX}'>{html}</div>"


class Column(Struct, frozen=True):
    """A column of a table."""

    title: str
    width: float
    """The width in em."""
    grows: bool = False
    """Whether it takes a part of the space that is left."""
    wraps: bool = False
    """Whether long texts continue on another line; otherwise they are cut with an ellipsis."""
    is_code: bool = False
    """Whether its cells are code."""

    @property
    def style(self) -> str:
        """The style of its heading."""
        return _CELL.format(int(self.grows), self.width) + f";{CUT}" * (not self.wraps)

    @property
    def cell_style(self) -> str:
        """The style of its cells."""
        return self.style + _CODE_FONT * self.is_code


def render_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML, never wider than its output.

    Where the columns do not fit beside each other, each row continues below, all rows alike.

    Args:
        columns: The columns.
        rows: The cells of each row, as HTML.
    """
    head = "".join(
        f"<th style='{column.style}'>{render_text(column.title)}</th>" for column in columns
    )
    styles = [column.cell_style for column in columns]
    body = "".join(_render_row("".join(map(_render_cell, styles, row))) for row in rows)
    return (
        "<table style='display:block;margin:.2em 0'>"
        f"<thead style='display:block'>{_render_row(head)}</thead>"
        f"<tbody style='display:block'>{body}</tbody></table>"
    )


def _render_row(cells: str) -> str:
    return f"<tr style='display:flex;flex-wrap:wrap'>{cells}</tr>"


def _render_cell(style: str, cell: str) -> str:
    return f"<td style='{style}'>{cell}</td>"


def write_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in plain text."""
    lines = [titles, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
