"""Messages of the notebook as HTML: text between backquotes becomes code, all else is escaped.

Runs on any thread. Pure.
"""

import re
from html import escape

_CODE = re.compile(r"`([^`]+)`")


def render_code(text: str) -> str:
    """Return a message as HTML in which text between backquotes is code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))
