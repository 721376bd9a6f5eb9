"""The card of ``%mcp status``: where clients reach the notebook, its tools and its calls.

Runs on any thread. Pure: a state goes in, a MIME bundle comes out.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mcp_notebook.kernel.notebook.output_html import (
    render_box,
    render_code,
    render_line_to_copy,
    render_soft,
    render_text,
)
from mcp_notebook.kernel.notebook.panel.snapshot import (
    describe_addresses,
    describe_clients,
    describe_doing,
    describe_moment,
    describe_question,
    render_address,
)
from mcp_notebook.text.wording import make_printable
from mcp_notebook.wire import messages

MAX_NAMES = 12
"""Tools that are named."""
INSTALL = "mcp-notebook install claude-code"
"""Connects one of the clients; the command lists the others."""
NO_TOOLS = "No tools yet. Put `%%mcp_tool` on the first line of a cell that defines a function."


class StatusFacts(Struct, frozen=True, kw_only=True):
    """What the card shows besides the notebook's state."""

    counts: Sequence[str]
    """Lines about the calls so far."""
    recording: Sequence[str]
    """A line about the recording, if there is one."""
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
    title = f"{state.name} {describe_moment(now)}"
    text = [title, *(f"{line.label:<{width}}  {line.text}" for line in lines)]
    soft = render_soft(render_text(describe_moment(now)))
    rows = "".join(map(_render_line, lines))
    html = render_box(f"<b>{render_text(state.name or '')}</b> {soft}{rows}")
    return {"text/html": make_printable(html), "text/plain": make_printable("\n".join(text))}


def _render_line(line: _Line) -> str:
    return (
        "<div style='display:flex;gap:1em'>"
        f"<span style='flex:0 0 5em;opacity:.7'>{line.label}</span>"
        f"<span style='min-width:0;overflow-wrap:anywhere'>{line.html}</span></div>"
    )


def _list_lines(state: messages.NotebookState, facts: StatusFacts, now: float) -> Iterator[_Line]:
    for number, address in enumerate(describe_addresses(state)):
        local = " (only on this server)" * (facts.is_remote and address.startswith("`http://127."))
        text = f"{address}{local}"
        yield _Line("" if number else "Address", text.replace("`", ""), render_address(text))
    yield from _label("Clients", [describe_clients(state)])
    yield from _label("Tools", [_name_tools(state.tools or ())])
    yield from _label("Calls", facts.counts or ["none yet"])
    yield from _label("Running", [_describe_open(call) for call in state.open_calls or ()])
    yield from _label("Questions", [describe_question(it, now) for it in state.questions or ()])
    yield from _label("Recording", facts.recording)
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


def _describe_open(call: messages.OpenCall) -> str:
    task = f", as the task {call.task}" if call.task else ""
    stop = "" if call.is_stopping else f"; `%mcp stop {call.number}` stops it"
    return f"{call.number} {call.call} ({call.client}): {describe_doing(call)}{task}{stop}"
