"""A button that copies the line before it, for HTML in outputs.

Runs on any thread. Pure.
"""

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
"""Puts a button behind the line before it. Where scripts do not run, a click selects the line."""
