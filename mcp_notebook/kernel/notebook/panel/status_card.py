"""The card of ``%mcp status``: where clients reach the notebook, its tools and its calls.

Runs on any thread. Pure: a state goes in, a MIME bundle comes out.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from mcp_notebook.kernel.notebook.call_table import format_time
from mcp_notebook.kernel.notebook.output_html import (
    render_box,
    render_code,
    render_line_to_copy,
    render_soft,
    render_text,
)
from mcp_notebook.text.wording import count, format_seconds, make_printable, shorten
from mcp_notebook.wire import messages

MAX_NAMES = 12
"""Tools that are named."""
INSTALL = "mcp-notebook install claude-code"
"""Connects one of the clients; the command lists the others."""
MAX_ENDED = 8
"""Ended calls that are shown."""
_MAX_TEXT = 120
"""Characters of a call or a result."""
_NO_ADDRESS = (
    "not served over HTTP (`%mcp serve` starts a server); clients that run `mcp-notebook stdio` "
    "find this notebook without it"
)
NO_TOOLS = "No tools yet. Put `%%mcp_tool` on the first line of a cell that defines a function."


_ORIGIN = (
    "<script>(() => {"
    "const code = document.currentScript.parentElement.querySelector('code');"
    "if (document.getElementById('jupyter-config-data'))"
    " code.textContent = location.origin + code.textContent;"
    "})();</script>"
)
"""Completes a path to an address, on the pages of Jupyter: the kernel does not know the host."""


class StatusFacts(Struct, frozen=True, kw_only=True):
    """What the card shows besides the notebook's state."""

    counts: Sequence[str]
    """Lines about the calls so far."""
    names: Sequence[str]
    """Sentences on tools that clients see under other names."""
    files: Sequence[str]
    """Sentences on files that clients were not shown."""
    home: Path
    """The home folder, which clients must share."""
    is_remote: bool
    """Whether the notebook is on Binder or JupyterHub, away from its clients."""


class _Line(Struct, frozen=True):
    label: str
    text: str
    html: str


def build_status(state: messages.NotebookState, facts: StatusFacts, now: float) -> dict[str, str]:
    """Return the MIME bundle of the card.

    Args:
        state: The notebook's state, with all parts.
        facts: What else is shown.
        now: The time, in seconds since the epoch.
    """
    lines = list(_list_lines(state, facts, now))
    width = max(len(line.label) for line in lines)
    title = f"{state.name} {_describe_moment(now)}"
    text = [title, *(f"{line.label:<{width}}  {line.text}" for line in lines)]
    soft = render_soft(render_text(_describe_moment(now)))
    rows = "".join(map(_render_line, lines))
    html = render_box(f"<b>{render_text(state.name or '')}</b> {soft}{rows}")
    return {"text/html": make_printable(html), "text/plain": make_printable("\n".join(text))}


def _render_line(line: _Line) -> str:
    return (
        "<div style='display:flex;gap:1em'>"
        f"<span style='flex:0 0 6em;opacity:.7'>{line.label}</span>"
        f"<span style='min-width:0;overflow-wrap:anywhere'>{line.html}</span></div>"
    )


def _list_lines(state: messages.NotebookState, facts: StatusFacts, now: float) -> Iterator[_Line]:
    for number, address in enumerate(_describe_addresses(state)):
        local = " (only on this server)" * (facts.is_remote and address.startswith("`http://127."))
        text = f"{address}{local}"
        yield _Line("" if number else "Address", text.replace("`", ""), _render_address(text))
    yield from _label("Clients", [_describe_clients(state)])
    yield from _label("Tools", [_name_tools(state.tools or ())])
    yield from _label("Calls", facts.counts or ["none yet"])
    yield from _label("Running", [_describe_open(call) for call in state.open_calls or ()])
    yield from _label("Last calls", list(_describe_ended_calls(state)))
    yield from _label("Questions", [_describe_question(it, now) for it in state.questions or ()])
    yield from _label("Problems", state.problems or ())
    yield from _label("Names", facts.names)
    yield from _label("Files", facts.files)
    if not facts.is_remote:
        where = " in a terminal, once, connects a client"
        yield _Line("Connect", f"{INSTALL}{where}", f"{render_line_to_copy(INSTALL)}{where}")
    yield from _label("Home", [f"`{facts.home}`"])


def _label(label: str, lines: Sequence[str]) -> Iterator[_Line]:
    for number, line in enumerate(lines):
        yield _Line("" if number else label, line, render_code(line))


def _name_tools(tools: Sequence[messages.SeenTool]) -> str:
    if not tools:
        return NO_TOOLS
    names = [tool.name if tool.on else f"{tool.name} (switched off)" for tool in tools]
    more = f", and {len(names) - MAX_NAMES:,} more: `%mcp list` shows them"
    return ", ".join(names[:MAX_NAMES]) + (more if len(names) > MAX_NAMES else "")


def _describe_ended_calls(state: messages.NotebookState) -> Iterator[str]:
    shown = (state.ended_calls or [])[:MAX_ENDED]
    for call in shown:
        outcome = f"{format_time(call.came)} {call.client}: {_describe_outcome(call)}"
        text, result = shorten(call.call, _MAX_TEXT), shorten(call.result, _MAX_TEXT)
        yield f"{call.number} {text}, {outcome}{f': {result}' if result else ''}"
    more = (state.number_of_calls or 0) - len(shown)
    if more > 0 and shown:
        yield f"and {count(more, 'call')} more: `%mcp log` shows them"


def _describe_open(call: messages.OpenCall) -> str:
    task = f", as the task {call.task}" if call.task else ""
    stop = "" if call.is_stopping else f"; `%mcp stop {call.number}` stops it"
    return f"{call.number} {call.call} ({call.client}): {_describe_doing(call)}{task}{stop}"


def _describe_moment(now: float) -> str:
    """Return when something was shown: stored outputs are read long afterwards."""
    return f"as of {datetime.fromtimestamp(now):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006 - the author's


def _describe_clients(state: messages.NotebookState) -> str:
    """Return the names of the connected clients."""
    clients = state.clients or ()
    names = [
        client.name if client.number == 1 else f"{client.name} ({client.number} times)"
        for client in clients
    ]
    return ", ".join(names) or "none connected"


def _describe_addresses(state: messages.NotebookState) -> Sequence[str]:
    """Return where clients reach the notebook over HTTP."""
    return state.addresses or [_NO_ADDRESS]


def _render_address(address: str) -> str:
    """Return an address, or a sentence, as HTML; an address has a copy button."""
    if not address.startswith("`"):
        return render_code(address)
    url, _, place = address.removeprefix("`").partition("`")
    complete = _ORIGIN if url.startswith("/") else ""
    return f"<span>{render_line_to_copy(url)}{complete}{render_text(place)}</span>"


def _describe_doing(call: messages.OpenCall) -> str:
    """Return what an open call does, and since when."""
    if call.is_stopping:
        return "stopping"
    if call.waits_for:
        return f"waiting for {call.waits_for} since {format_time(call.came)}"
    doing = f"running since {format_time(call.began or call.came)}"
    if call.progress is not None and call.total:
        doing += f", {call.progress / call.total:.0%}"
    return f"{doing}: {call.message}" if call.message else doing


def _describe_question(question: messages.OpenQuestion, now: float) -> str:
    """Return an open question, and how to answer it."""
    left = format_seconds(max(question.ends - now, 0))
    number = question.number
    return (
        f"Question {number}: may {question.tool} run? {left} left to answer with "
        f"`%mcp allow {number}` or `%mcp deny {number}`"
    )


def _describe_outcome(call: messages.EndedCall) -> str:
    is_short = call.state in ("done", "failed")
    return f"{call.state} in {format_seconds(call.seconds)}" if is_short else call.state
