"""HTML that outputs share: messages with code, a box, and a copy button.

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


def render_code(text: str) -> str:
    """Return a message as HTML: text in backquotes becomes code, and everything is escaped."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def render_box(html: str, color: str = _OURS) -> str:
    """Return HTML in a box with a coloured left border, by default in Jupyter's orange."""
    return f"<div style='{_BOX.format(color)}'>{html}</div>"
