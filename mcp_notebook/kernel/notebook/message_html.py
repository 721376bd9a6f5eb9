"""Messages of the notebook as HTML: text between backquotes becomes code, all else is escaped.

Runs on any thread. Pure.
"""

import re
from html import escape

_BOX = (
    "border:1px solid #8884;border-left:4px solid {};border-radius:4px;padding:.6em 1em;"
    "margin:.3em 0;max-width:60em;line-height:1.45"
)
_OURS = "#f37726"

_CODE = re.compile(r"`([^`]+)`")


def render_code(text: str) -> str:
    """Return a message as HTML in which text between backquotes is code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def render_box(html: str, color: str = _OURS) -> str:
    """Return HTML in a box whose side, by default in Jupyter's orange, says that it is ours."""
    return f"<div style='{_BOX.format(color)}'>{html}</div>"
