"""Where the live panel's values come from: the notebook's tools, its log of calls, its bridges.

Runs on any thread; changes nothing. What it reads may change meanwhile: each value is right for
itself, and the next update has the rest.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from mcp_notebook.call_cells import describe_call
from mcp_notebook.content import Result, Text
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import ENDED, CallState
from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.calls.logged_call import LoggedCall
from mcp_notebook.kernel.notebook.absent_tools import explain_absent_tools
from mcp_notebook.kernel.notebook.background_bridge import find_bridge
from mcp_notebook.kernel.notebook.call_table import MAX_CALL, format_seconds, format_time
from mcp_notebook.kernel.notebook.panel.panel_state import (
    ClientLine,
    EndedCall,
    OpenCall,
    PanelState,
    Thumbnail,
    ToolLine,
)
from mcp_notebook.kernel.notebook.panel.thumbnails import make_thumbnail
from mcp_notebook.kernel.notebook.public_address import find_public_address
from mcp_notebook.kernel.tools.context import ClientProgram
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.settings.settings import SERVER_PATH, Settings
from mcp_notebook.wire import messages

LAST_CALLS = 8
"""Calls that have ended, in the panel."""
_LONG_WAIT = 1.0
"""Seconds that a call waits before its line says so."""
_ENDED = frozenset({CallState.DONE, CallState.FAILED})


@dataclass(frozen=True, kw_only=True)
class PanelSource:
    """The parts of the notebook that the panel reads."""

    registry: ToolRegistry
    """Its tools."""
    invoker: Invoker
    """Its calls and their log."""
    settings: Settings
    """Where the background bridge is."""
    kernel: str
    """The id of its record."""
    get_name: Callable[[], str]
    """Returns the notebook's name."""
    get_refusal: Callable[[], str | None]
    """Returns why the last bridge was refused, if it was."""
    get_listed_names: Callable[[], Mapping[str, messages.ListedName]]
    """Returns the tools that clients see under other names, by their own."""
    list_clients: Callable[[], Iterable[messages.ClientCount]]
    """Returns the clients that are connected, of each bridge."""
    server_address: str | None = None
    """Where the Jupyter server of the notebook serves its tools, in words."""
    _thumbnails: dict[int, Thumbnail] = field(default_factory=dict)
    """Of the calls that were shown last, by their numbers: a picture takes milliseconds."""

    @property
    def log(self) -> CallLog:
        """Tells of the calls."""
        return self.invoker.log

    def read(self) -> PanelState:
        """Return what the panel shows now."""
        logged = [call for call in self.invoker.log.list_calls() if call.state in ENDED]
        counts = self.invoker.log.count_calls()
        bridge, names = find_bridge(self.settings), self.get_listed_names()
        last = {call.tool: call for call in logged}
        latest = logged[: -LAST_CALLS - 1 : -1]
        for number in self._thumbnails.keys() - {call.number for call in latest}:
            self._thumbnails.pop(number, None)
        return PanelState(
            notebook=self.get_name(),
            kernel=self.kernel,
            addresses=tuple(
                filter(None, [f"`{bridge.url}`" if bridge else None, self.server_address])
            ),
            clients=_join_clients(self.list_clients()),
            tools=tuple(
                ToolLine(
                    name=tool.name,
                    listed_as=names[tool.name].name if tool.name in names else None,
                    calls=counts.tools[tool.name],
                    errors=counts.tool_failures[tool.name],
                    last=_describe_last(last.get(tool.name)),
                )
                for tool in self.registry.tools
            ),
            missing=tuple(explain_absent_tools(self.registry, self.get_refusal())),
            open_calls=tuple(map(self._describe_open, self.invoker.calls)),
            ended_calls=tuple(map(self._describe_ended, latest)),
            more_calls=max(counts.calls - len(latest), 0),
        )

    def _describe_open(self, call: ActiveCall) -> OpenCall:
        program = call.client.program
        return OpenCall(
            number=call.number,
            tool=call.tool,
            client="this notebook" if program is None else program.label,
            doing=_describe_doing(call, runs_cell=self.invoker.runs_cell),
            is_stopping=call.is_stopping or call.stop_request is not None,
            on_main_thread=call.run == "main" and call.state is not CallState.QUEUED,
        )

    def _describe_ended(self, call: LoggedCall) -> EndedCall:
        return EndedCall(
            number=call.number,
            at=format_time(_find_end(call)),
            text=describe_call(call.tool, call.arguments, MAX_CALL),
            client=call.client_label,
            outcome=_describe_outcome(call),
            is_error=call.has_failed,
            thumbnail=self._find_thumbnail(call),
        )

    def _find_thumbnail(self, call: LoggedCall) -> Thumbnail:
        if call.error is not None:  # without secrets, which the result may have
            return make_thumbnail(Result([Text(call.error)], is_error=True))
        thumbnail = self._thumbnails.get(call.number)
        if thumbnail is None:
            result = self.invoker.log.find_result(call.number)
            if result is None:  # not kept, or not yet
                return Thumbnail(", ".join(call.kinds))
            thumbnail = self._thumbnails[call.number] = make_thumbnail(result)
        return thumbnail


def find_server_address(env: Mapping[str, str]) -> str | None:
    """Return where the Jupyter server of the notebook serves its tools, in words; None if nowhere.

    Args:
        env: The kernel's environment variables, which Jupyter Server hands on.
    """
    path = env.get(SERVER_PATH)
    if path is None:
        return None
    public = find_public_address(env)
    if public is not None and public.origin is not None:
        return f"`{public.url}`"
    return f"`{path}` on this Jupyter server"


def _join_clients(counts: Iterable[messages.ClientCount]) -> tuple[ClientLine, ...]:
    """Return the clients of all bridges, each program once."""
    numbers: Counter[str] = Counter()
    for count in counts:
        numbers[ClientProgram(count.name, count.version).label] += count.number
    return tuple(ClientLine(name=name, number=number) for name, number in sorted(numbers.items()))


def _describe_doing(call: ActiveCall, *, runs_cell: bool) -> str:
    """Return what a call does, with times that stay right while nothing happens."""
    since = format_time(time.time() - (monotonic() - call.since))
    if call.is_stopping:
        return f"answered at {since}, and its code is still running"
    if call.state is CallState.WAITING:
        return f"waiting for {call.waits_for} since {since}"
    if call.state is CallState.QUEUED:
        turn = "the end of the cell" if runs_cell and call.run == "main" else "its turn"
        return f"waiting for {turn} since {since}"
    return f"{call.state!s} since {since}"


def _describe_last(call: LoggedCall | None) -> str:
    return "" if call is None else f"{format_time(_find_end(call))}, {_describe_outcome(call)}"


def _describe_outcome(call: LoggedCall) -> str:
    if call.is_cached:
        return "done, from the cache"
    seconds = format_seconds(call.run_seconds)
    outcome = f"{call.state!s} in {seconds}" if call.state in _ENDED else str(call.state)
    is_long = call.queue_seconds >= _LONG_WAIT
    return outcome + (f", waited {format_seconds(call.queue_seconds)}" if is_long else "")


def _find_end(call: LoggedCall) -> float:
    return call.came + call.queue_seconds + call.run_seconds
