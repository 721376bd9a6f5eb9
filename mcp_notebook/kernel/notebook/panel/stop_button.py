"""The button that stops a call, also while the kernel is busy.

Runs on the panel's thread; pure. A click reaches the page's own server, which the extension of
`mcp_notebook.jupyter` teaches to stop calls; it needs nothing of the kernel's main thread. In a
page without that server (VS Code, an older installation), the button names the command that does
it instead. A notebook that is not trusted, and a page without scripts, have no button at all: the
panel says the command beside it.
"""

import shlex
from html import escape

ROUTE = "mcp-notebook/calls/stop"
"""Of the server extension, below the server's base URL."""

# It becomes one line, so that each statement needs its semicolon or braces. What a page without
# Jupyter Server forbids (its cookies, say) ends in `catch`. `onmousedown`: when the panel shows
# something new between the two halves of a click, there is no click. `onclick` is for the keyboard.
# `event.button`: the other buttons of a mouse open a menu, and stop nothing.
_SCRIPT = """
if (this.disabled || event.button) return; this.disabled = true;
var b = this; b.textContent = 'stopping';
Promise.resolve().then(function () {
  var s = {}, h = {'Content-Type': 'application/json'};
  try { s = JSON.parse(document.getElementById('jupyter-config-data').textContent) } catch (e) {}
  var x = /(?:^|; *)_xsrf=([^;]*)/.exec(document.cookie);
  if (x) h['X-XSRFToken'] = decodeURIComponent(x[1]);
  if (s.token) h.Authorization = 'token ' + s.token;
  var u = (s.baseUrl || document.body.dataset.baseUrl || '/').replace(/\\/?$/, '/');
  return fetch(u + b.dataset.route, {method: 'POST', headers: h,
    body: JSON.stringify({kernel: b.dataset.kernel, call: Number(b.dataset.call)})});
}).then(function (r) {
  if (r.status == 409) { b.textContent = 'not stopped: it may have ended' }
  else if (!r.ok) { throw r }
}).catch(function () { b.textContent = 'run ' + b.dataset.command + ' in a terminal' });
"""
_STYLE = (
    "color:inherit;background:#8882;border:1px solid #8888;border-radius:3px;"
    "padding:0 .6em;font:inherit;cursor:pointer"
)


def format_command(notebook: str, number: int) -> str:
    """Return the command that stops a call, for a terminal.

    Args:
        notebook: Its name.
        number: Of the call.
    """
    return f"mcp-notebook stop {shlex.quote(f'{notebook}:{number}')}"


def render_button(kernel: str, number: int, command: str) -> str:
    """Return a button as HTML.

    Args:
        kernel: The id of the kernel's record.
        number: Of the call.
        command: What stops it in a terminal.
    """
    script = escape(" ".join(_SCRIPT.split()))
    return (
        f"<button type='button' style='{_STYLE}' data-route='{ROUTE}' "
        f"data-kernel='{escape(kernel)}' data-call='{number}' "
        f"data-command='{escape(command)}' "
        f'onmousedown="{script}" onclick="{script}">stop</button>'
    )
