"""Renders the live panel as HTML and as plain text.

Runs on any thread. Pure: a state goes in, a MIME bundle comes out. All text is escaped, colours
suit light and dark themes, and only the stop buttons need scripts.
"""

import shlex
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

from mcp_notebook.kernel.notebook.output_html import render_box, render_code
from mcp_notebook.kernel.notebook.panel.panel_state import (
    ClientLine,
    EndedCall,
    OpenCall,
    PanelState,
    Thumbnail,
    ToolLine,
)
from mcp_notebook.text.wording import count, make_printable

MAX_TOOLS = 30
"""Tools in the panel; ``%mcp list`` shows all."""
MAX_OPEN = 12
"""Open calls in the panel."""

_DEPARTED = "#888"
_GOOD, _BAD = "#2e9e4f", "#d9534f"
_HEADING = "<div style='margin:.6em 0 0'><b>{}</b></div>"
_CELL = "<td style='text-align:left;vertical-align:top'>{}</td>"  # notebooks align to the right
_SOFT = "<span style='opacity:.7'>{}</span>"
_NO_ADDRESS = "not served over HTTP (`%mcp serve` starts a server)"
_NO_CLIENTS = "none connected"
_NO_TOOLS = "None yet. Put `%%mcp_tool` on the first line of a cell that defines a function."
_NO_CALLS = "None yet."
_STANDS_STILL = (
    "If this panel stops updating after a page reload or a kernel restart, run `%mcp panel` again."
)
_PICTURES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
ROUTE = "mcp-notebook/calls/stop"
"""Path of the server extension's endpoint, below the server's base URL."""

# The script is joined to one line, so each statement needs its semicolon or braces. Errors on pages
# without Jupyter Server (forbidden cookies, say) end in `catch`. `onmousedown`, because an update
# of the panel between mouse down and mouse up would cancel the click; `onclick` is for keyboards.
# `event.button`: only the main mouse button stops a call.
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
_BUTTON = (
    "color:inherit;background:#8882;border:1px solid #8888;border-radius:3px;"
    "padding:0 .6em;font:inherit;cursor:pointer"
)


def build_panel(state: PanelState, stamp: str) -> dict[str, str]:
    """Return the MIME bundle of a panel.

    Args:
        state: The panel's state.
        stamp: When and by which kernel it was made: stored outputs look live long afterwards.
    """
    return {
        "text/html": make_printable(_render_html(state, stamp)),
        "text/plain": make_printable(_render_text(state, stamp)),
    }


# -- texts for both --------------------------------------------------------------------------------


def _describe_client(client: ClientLine) -> str:
    return client.name if client.number == 1 else f"{client.name} ({client.number} times)"


def _describe_counts(tool: ToolLine) -> str:
    if not tool.calls:  # beyond `call_log.MAX_COUNTED` names, calls are not counted
        return f"last: {tool.last}" if tool.last else "not called yet"
    errors = f", {count(tool.errors, 'error')}" if tool.errors else ""
    return f"{count(tool.calls, 'call')}{errors}; last: {tool.last}"


def _describe_name(tool: ToolLine) -> str:
    return tool.name if tool.listed_as is None else f"{tool.listed_as} (here {tool.name})"


def _describe_stop(state: PanelState, call: OpenCall) -> str:
    interrupt = ", or the notebook's interrupt (■)" if call.on_main_thread else ""
    return f"`{format_command(state.notebook, call.number)}` in a terminal{interrupt}"


def _describe_rest(number: int, what: str, where: str) -> str:
    return f"and {count(number, what)} more: {where}" if number > 0 else ""


def _describe_more_calls(state: PanelState) -> str:
    return _describe_rest(state.more_calls, "call", "`%mcp log` shows them")


def _describe_more_tools(state: PanelState) -> str:
    return _describe_rest(len(state.tools) - MAX_TOOLS, "tool", "`%mcp list` shows them")


def _describe_more_open(state: PanelState) -> str:
    return _describe_rest(len(state.open_calls) - MAX_OPEN, "call", "`%mcp log` shows them")


def _explain_life(state: PanelState) -> str:
    return _STANDS_STILL if state.departure is None else "`%mcp panel` shows a new one."


# -- HTML ------------------------------------------------------------------------------------------


def _render_html(state: PanelState, stamp: str) -> str:
    is_live = state.departure is None
    status = "live" if is_live else "gone"
    title = (
        f"<div><b>mcp-notebook</b> {escape(state.notebook)} "
        f"<span style='color:{_GOOD if is_live else _DEPARTED}'>&#9679;</span> {status} "
        f"{_SOFT.format(f'<small>{escape(stamp)}</small>')}</div>"
    )
    departure = "" if is_live else f"<div>{render_code(state.departure or '')}</div>"
    body = _render_connections(state) if is_live else ""
    calls = _render_open_calls(state) if is_live else ""
    html = (
        f"{title}{departure}{body}{_render_tools(state)}{calls}"
        f"{_render_ended_calls(state)}<div style='margin:.6em 0 0;opacity:.7'>"
        f"<small>{render_code(_explain_life(state))}</small></div>"
    )
    return render_box(html) if is_live else render_box(html, _DEPARTED)


def _render_connections(state: PanelState) -> str:
    addresses = render_code(", ".join(state.addresses) or _NO_ADDRESS)
    clients = ", ".join(map(_describe_client, state.clients)) or _NO_CLIENTS
    return f"<div>Address: {addresses}</div><div>Clients: {escape(clients)}</div>"


def _render_tools(state: PanelState) -> str:
    rows = [
        (
            f"<code>{escape(tool.name)}</code>"
            + ("" if tool.listed_as is None else f" {_render_listed(tool.listed_as)}"),
            escape(_describe_counts(tool)),
        )
        for tool in state.tools[:MAX_TOOLS]
    ]
    missing = "".join(f"<div>&#9888; {render_code(text)}</div>" for text in state.missing)
    more = _describe_more_tools(state)
    return _render_section("Tools", rows, _NO_TOOLS, more) + missing


def _render_listed(name: str) -> str:
    return _SOFT.format(f"clients see <code>{escape(name)}</code>")


def _render_open_calls(state: PanelState) -> str:
    rows = [_render_open_call(state, call) for call in state.open_calls[:MAX_OPEN]]
    more = _describe_more_open(state)
    return _render_section("Running and waiting", rows, "", more) if rows else ""


def _render_open_call(state: PanelState, call: OpenCall) -> Sequence[str]:
    command = format_command(state.notebook, call.number)
    stop = "stopping" if call.is_stopping else render_button(state.kernel, call.number, command)
    how = f"<small>or {render_code(_describe_stop(state, call))}</small>"
    return (
        str(call.number),
        f"<code>{escape(call.tool)}</code>",
        escape(call.client),
        escape(call.doing),
        stop if call.is_stopping else f"{stop} {_SOFT.format(how)}",
    )


def _render_ended_calls(state: PanelState) -> str:
    rows = [_render_ended_call(call) for call in state.ended_calls]
    return _render_section("Last calls", rows, _NO_CALLS, _describe_more_calls(state))


def _render_ended_call(call: EndedCall) -> Sequence[str]:
    color = _BAD if call.is_error else _GOOD
    mark = "&#10007;" if call.is_error else "&#10003;"
    return (
        str(call.number),
        escape(call.at),
        f"<code>{escape(call.text)}</code>",
        escape(call.client),
        f"<span style='color:{color}'>{mark}</span> {escape(call.outcome)}",
        _render_thumbnail(call.thumbnail),
    )


def _render_thumbnail(thumbnail: Thumbnail) -> str:
    text = escape(thumbnail.text)
    if thumbnail.picture is None or thumbnail.mime_type not in _PICTURES:
        return text
    data = b64encode(thumbnail.picture).decode("ascii")
    return (
        f"<img src='data:{thumbnail.mime_type};base64,{data}' alt='{text}' title='{text}' "
        "style='max-height:64px;max-width:128px;border-radius:2px'>"
    )


def _render_section(title: str, rows: Iterable[Sequence[str]], empty: str, more: str) -> str:
    lines = "".join(f"<tr>{''.join(_CELL.format(cell) for cell in row)}</tr>" for row in rows)
    table = f"<table style='margin:.2em 0'><tbody>{lines}</tbody></table>"
    content = table if lines else f"<div>{render_code(empty)}</div>"
    return _HEADING.format(title) + content + (f"<div>{render_code(more)}</div>" if more else "")


# -- plain text ------------------------------------------------------------------------------------


def _render_text(state: PanelState, stamp: str) -> str:
    lines = [f"mcp-notebook {state.notebook} ({'gone' if state.departure else 'live'}) {stamp}"]
    if state.departure is not None:
        lines.append(state.departure)
    else:
        clients = ", ".join(map(_describe_client, state.clients)) or _NO_CLIENTS
        lines += [f"Address: {', '.join(state.addresses) or _NO_ADDRESS}", f"Clients: {clients}"]
    tools = [
        f"{_describe_name(tool)}: {_describe_counts(tool)}" for tool in state.tools[:MAX_TOOLS]
    ]
    tools.append(_describe_more_tools(state))
    tools += [f"Missing: {text}" for text in state.missing]
    lines += _indent("Tools", tools, _NO_TOOLS)
    if state.open_calls and state.departure is None:
        calls = [_describe_open_call(state, call) for call in state.open_calls[:MAX_OPEN]]
        lines += _indent("Running and waiting", [*calls, _describe_more_open(state)], "")
    ended = [_describe_ended_call(call) for call in state.ended_calls]
    lines += _indent("Last calls", [*ended, _describe_more_calls(state)], _NO_CALLS)
    return "\n".join([*lines, _explain_life(state)])


def _describe_open_call(state: PanelState, call: OpenCall) -> str:
    stop = "stopping" if call.is_stopping else f"to stop it: {_describe_stop(state, call)}"
    return f"{call.number} {call.tool}{_describe_caller(call.client)}: {call.doing}; {stop}"


def _describe_ended_call(call: EndedCall) -> str:
    who = _describe_caller(call.client)
    what = f"{call.text}{who}: {call.outcome}"
    returned = f": {call.thumbnail.text}" if call.thumbnail.text else ""
    return f"{call.number} {call.at} {what}{returned}"


def _describe_caller(client: str) -> str:
    return f" ({client})" if client else ""


def _indent(title: str, lines: Sequence[str], empty: str) -> list[str]:
    return [f"{title}:", *(f"    {line}" for line in [*filter(None, lines)] or [empty])]


# -- the button that stops a call ------------------------------------------------------------------
#
# A click goes to the page's own server, where the extension of `mcp_notebook.jupyter` stops calls
# even while the kernel is busy. On a page without that server (VS Code, an older installation), the
# button shows the command to run instead. Untrusted notebooks and pages without scripts show no
# button, but always the command.


def format_command(notebook: str, number: int) -> str:
    """Return the command that stops a call, for a terminal.

    Args:
        notebook: Its name.
        number: Of the call.
    """
    return f"mcp-notebook call --stop {shlex.quote(f'{notebook}:{number}')}"


def render_button(kernel: str, number: int, command: str) -> str:
    """Return a button as HTML.

    Args:
        kernel: The id of the kernel's record.
        number: Of the call.
        command: What stops it in a terminal.
    """
    script = escape(" ".join(_SCRIPT.split()))
    return (
        f"<button type='button' style='{_BUTTON}' data-route='{ROUTE}' "
        f"data-kernel='{escape(kernel)}' data-call='{number}' "
        f"data-command='{escape(command)}' "
        f'onmousedown="{script}" onclick="{script}">stop</button>'
    )
