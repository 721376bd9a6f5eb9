"""The notebook's state at one moment, for ``%mcp panel`` where there is no side panel.

Runs on any thread. Pure: a state goes in, a MIME bundle comes out. All text in it is untrusted and
escaped. `status_card` describes the same state in fewer lines.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from mcp_notebook.kernel.notebook.call_table import format_time
from mcp_notebook.kernel.notebook.output_html import (
    Column,
    render_box,
    render_code,
    render_line_to_copy,
    render_soft,
    render_table,
    render_text,
    write_table,
)
from mcp_notebook.kernel.notebook.panel.thumbnails import Thumbnail
from mcp_notebook.text.wording import count, format_seconds, make_printable, shorten
from mcp_notebook.wire import messages

MAX_TOOLS = 12
"""Tools that are all shown; of more, those that were called."""
MAX_CALLED = 30
"""Called tools that are shown."""
MAX_OPEN = 12
"""Open calls that are shown."""
MAX_ENDED = 8
"""Ended calls that are shown."""
_MAX_TEXT = 60
"""Characters of a call or a result in plain text."""
_NO_ADDRESS = (
    "not served over HTTP (`%mcp serve` starts a server); clients that run `mcp-notebook stdio` "
    "find this notebook without it"
)
_NO_TOOLS = "None yet. Put `%%mcp_tool` on the first line of a cell that defines a function."
_PICTURES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_MARKS = {"done": ("&#10003;", "#2e9e4f"), "stopped": ("&#9632;", "#888")}
_FAILED = ("&#10007;", "#d9534f")
_OPEN = (
    Column("no.", 2),
    Column("call", 15, grows=True, is_code=True),
    Column("client", 9),
    Column("state", 14, grows=True),
    Column("to stop it", 9, is_code=True),
)
_TOOLS = (
    Column("tool", 14, grows=True, is_code=True),
    Column("calls", 4),
    Column("errors", 4),
    Column("description", 20, grows=True),
)
_ENDED = (
    Column("no.", 2),
    Column("received", 6),
    Column("call", 15, grows=True, is_code=True),
    Column("client", 9),
    Column("outcome", 11),
    Column("result", 12, grows=True),
)
_ORIGIN = (
    "<script>(() => {"
    "const code = document.currentScript.parentElement.querySelector('code');"
    "if (document.getElementById('jupyter-config-data'))"
    " code.textContent = location.origin + code.textContent;"
    "})();</script>"
)
"""Completes a path to an address, on the pages of Jupyter: the kernel does not know the host."""


def build_snapshot(
    state: messages.NotebookState, thumbnails: Mapping[int, Thumbnail], now: float
) -> dict[str, str]:
    """Return the MIME bundle of a snapshot.

    Args:
        state: The notebook's state, with all parts.
        thumbnails: Pictures that calls returned, by the calls' numbers.
        now: The time, in seconds since the epoch.
    """
    return {
        "text/html": make_printable(_render_html(state, thumbnails, now)),
        "text/plain": make_printable(_write_text(state, now)),
    }


# -- phrases that panel and status share -----------------------------------------------------------


def describe_moment(now: float) -> str:
    """Return when something was shown: stored outputs are read long afterwards."""
    return f"as of {datetime.fromtimestamp(now):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006 - the author's


def describe_clients(state: messages.NotebookState) -> str:
    """Return the names of the connected clients."""
    clients = state.clients or ()
    names = [
        client.name if client.number == 1 else f"{client.name} ({client.number} times)"
        for client in clients
    ]
    return ", ".join(names) or "none connected"


def describe_addresses(state: messages.NotebookState) -> Sequence[str]:
    """Return where clients reach the notebook over HTTP."""
    return state.addresses or [_NO_ADDRESS]


def render_address(address: str) -> str:
    """Return an address, or a sentence, as HTML; an address has a copy button."""
    if not address.startswith("`"):
        return render_code(address)
    url, _, place = address.removeprefix("`").partition("`")
    complete = _ORIGIN if url.startswith("/") else ""
    return f"<span>{render_line_to_copy(url)}{complete}{render_text(place)}</span>"


def describe_doing(call: messages.OpenCall) -> str:
    """Return what an open call does, and since when."""
    if call.is_stopping:
        return "stopping"
    if call.waits_for:
        return f"waiting for {call.waits_for} since {format_time(call.came)}"
    doing = f"running since {format_time(call.began or call.came)}"
    if call.progress is not None and call.total:
        doing += f", {call.progress / call.total:.0%}"
    return f"{doing}: {call.message}" if call.message else doing


def describe_question(question: messages.OpenQuestion, now: float) -> str:
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


def _select_tools(tools: Sequence[messages.SeenTool]) -> tuple[Sequence[messages.SeenTool], str]:
    """Return the tools to show, and a sentence about the others."""
    if len(tools) <= MAX_TOOLS:
        return tools, ""
    called = sorted((tool for tool in tools if tool.calls), key=lambda tool: -tool.calls)
    shown = called[:MAX_CALLED]
    others = count(len(tools) - len(shown), "tool")
    what = "others" if len(called) > len(shown) else "never called"
    return shown, f"and {others} more, {what}: `%mcp list` shows them"


def _describe_name(tool: messages.SeenTool) -> str:
    name = tool.name if tool.listed_as is None else f"{tool.listed_as} (here {tool.name})"
    if tool.package is not None:
        name = f"{name} (from {tool.package})"
    return name if tool.on else f"{name} (switched off)"


def _count_more(number: int) -> str:
    return f"and {count(number, 'call')} more: `%mcp log` shows them" if number > 0 else ""


def _count_more_ended(state: messages.NotebookState) -> str:
    return _count_more((state.number_of_calls or 0) - len((state.ended_calls or [])[:MAX_ENDED]))


# -- HTML ------------------------------------------------------------------------------------------


def _render_html(
    state: messages.NotebookState, thumbnails: Mapping[int, Thumbnail], now: float
) -> str:
    moment = f"{describe_moment(now)}; run `%mcp panel` again to update it"
    addresses = ", ".join(map(render_address, describe_addresses(state)))
    parts = [
        f"<b>{render_text(state.name or '')}</b> {render_soft(render_code(moment))}",
        f"{render_soft('Address')} {addresses}",
        f"{render_soft('Clients')} {render_text(describe_clients(state))}",
        *(f"&#9888; {render_code(problem)}" for problem in state.problems or ()),
        *(render_code(describe_question(question, now)) for question in state.questions or ()),
    ]
    lines = "".join(f"<div>{part}</div>" for part in parts)
    ended = (state.ended_calls or [])[:MAX_ENDED]
    rows = [_render_ended(call, thumbnails.get(call.number)) for call in ended]
    return render_box(
        lines
        + _render_open_calls(state.open_calls or ())
        + _render_tools(state.tools or ())
        + _render_section("Last calls", _ENDED, rows, "None yet.", _count_more_ended(state))
    )


def _render_open_calls(calls: Sequence[messages.OpenCall]) -> str:
    rows = [
        (
            str(call.number),
            render_text(call.call),
            render_text(call.client),
            render_text(describe_doing(call)),
            "" if call.is_stopping else f"%mcp stop {call.number}",
        )
        for call in calls[:MAX_OPEN]
    ]
    more = _count_more(len(calls) - MAX_OPEN)
    return _render_section("Running and waiting", _OPEN, rows, "", more) if rows else ""


def _render_tools(tools: Sequence[messages.SeenTool]) -> str:
    shown, more = _select_tools(tools)
    rows = [
        (
            render_text(_describe_name(tool)),
            str(tool.calls),
            str(tool.errors),
            render_text(tool.description),
        )
        for tool in shown
    ]
    return _render_section("Tools", _TOOLS, rows, "" if more else _NO_TOOLS, more)


def _render_ended(call: messages.EndedCall, thumbnail: Thumbnail | None) -> Sequence[str]:
    mark, color = _FAILED if call.is_error else _MARKS.get(call.state.split()[0], _MARKS["done"])
    return (
        str(call.number),
        render_text(format_time(call.came)),
        render_text(call.call),
        render_text(call.client),
        f"<span style='color:{color}'>{mark}</span> {render_text(_describe_outcome(call))}",
        _render_picture(thumbnail) + render_text(call.result),
    )


def _render_picture(thumbnail: Thumbnail | None) -> str:
    if thumbnail is None or thumbnail.picture is None or thumbnail.mime_type not in _PICTURES:
        return ""
    data = b64encode(thumbnail.picture).decode("ascii")
    return (
        f"<img src='data:{thumbnail.mime_type};base64,{data}' alt='' "
        "style='display:inline;max-height:64px;max-width:100%;vertical-align:middle'> "
    )


def _render_section(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], empty: str, more: str
) -> str:
    table = render_table(columns, rows) if rows else f"<div>{render_code(empty)}</div>"
    below = f"<div>{render_soft(render_code(more))}</div>" if more else ""
    return f"<div style='margin-top:.6em'><b>{title}</b></div>{table}{below}"


# -- plain text ------------------------------------------------------------------------------------


def _write_text(state: messages.NotebookState, now: float) -> str:
    lines = [
        f"{state.name} {describe_moment(now)}",
        f"Address: {', '.join(describe_addresses(state))}",
        f"Clients: {describe_clients(state)}",
        *(f"Problem: {problem}" for problem in state.problems or ()),
        *(describe_question(question, now) for question in state.questions or ()),
    ]
    calls = state.open_calls or []
    if calls:
        rows = [_list_open(call) for call in calls[:MAX_OPEN]]
        lines += _write_section("Running and waiting", _OPEN, rows)
        lines += filter(None, [_count_more(len(calls) - MAX_OPEN)])
    tools, more = _select_tools(state.tools or ())
    lines += _write_section("Tools", _TOOLS, map(_list_tool, tools), "" if more else _NO_TOOLS)
    lines += filter(None, [more])
    ended = map(_list_ended, (state.ended_calls or [])[:MAX_ENDED])
    lines += _write_section("Last calls", _ENDED, ended, "None yet.")
    return "\n".join([*lines, *filter(None, [_count_more_ended(state)])])


def _list_open(call: messages.OpenCall) -> Sequence[str]:
    stop = "" if call.is_stopping else f"%mcp stop {call.number}"
    return (
        str(call.number),
        shorten(call.call, _MAX_TEXT),
        call.client,
        shorten(describe_doing(call), _MAX_TEXT),
        stop,
    )


def _list_tool(tool: messages.SeenTool) -> Sequence[str]:
    description = shorten(tool.description, _MAX_TEXT)
    return _describe_name(tool), str(tool.calls), str(tool.errors), description


def _list_ended(call: messages.EndedCall) -> Sequence[str]:
    return (
        str(call.number),
        format_time(call.came),
        shorten(call.call, _MAX_TEXT),
        call.client,
        _describe_outcome(call),
        shorten(call.result, _MAX_TEXT),
    )


def _write_section(
    title: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], empty: str = ""
) -> list[str]:
    found = list(rows)
    titles = [column.title for column in columns]
    table = write_table(titles, found) if found else list(filter(None, [empty]))
    return [f"{title}:", *(f"    {line}" for line in table)]
