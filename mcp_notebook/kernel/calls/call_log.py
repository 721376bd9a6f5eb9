"""The log of a kernel's calls: who called what, when, and how it ended.

Runs in the user's kernel, on any thread: an `ActiveCall` notifies the log of each change on the
thread where it happens. The log belongs to the extension, and survives ``%reload_ext``. It is
bounded: it keeps the latest ended calls, and up to `MAX_BYTES` of their results. It contains no
secrets. Of the calls that a bridge refuses, it has the latest of tools that do not exist; the
others are in the bridge's audit log only.
"""

import logging
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any

from msgspec import Struct, structs

from mcp_notebook.content import ContentBlock, ResourceLink, Result, Text, measure_content
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import ENDED, CallState
from mcp_notebook.kernel.calls.outcome import scrub_texts
from mcp_notebook.kernel.schemas.secrets import scrub
from mcp_notebook.kernel.tools.context import ClientProgram, describe_program
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

MAX_BYTES = 64 * 2**20
"""Bytes of all stored results together; a single result may take a quarter."""
MAX_UNKNOWN = 20
"""Calls of tools that do not exist. They are kept apart: clients that guess displace no others."""
MAX_COUNTED = 200
"""Tools and clients that are counted by name; clients choose both names."""
OTHERS = "others"
"""The name under which all further ones are counted."""
MAX_ARGUMENTS = 10_000
"""Approximate bytes of arguments that an entry keeps; larger ones are replaced by their kind."""
MAX_ERROR = 2_000
"""Characters of an error."""
_IMMUTABLE = frozenset({str, int, float, bool, type(None)})
_OVERHEAD = 50
"""Bytes counted for each JSON value, in addition to its characters."""


class LoggedCall(Struct, frozen=True, kw_only=True):
    """A snapshot of a call."""

    number: int
    """Its number in this kernel, from 1."""
    came: float
    """When it arrived, in seconds since the epoch."""
    client: ClientProgram | None
    """The calling program, by its own account; None: the notebook, by ``%mcp call``."""
    tool: str
    """The tool's name in this kernel."""
    kind: messages.Kind = "tool"
    """Whether a tool was called, a prompt was got or a resource was read."""
    arguments: Mapping[str, Any]
    """The arguments as the client sent them, with `redaction.MASK` in place of secrets."""
    is_complete: bool = True
    """Whether all arguments are present; large ones are left out when the call has ended."""
    state: CallState
    """Its current or final state."""
    never_ran: bool = False
    """Whether it was refused or stopped before the tool's function started."""
    task_id: str | None = None
    """The id of its task; None if its client waits for the call itself."""
    queue_seconds: float = 0.0
    """How long it waited for its turn."""
    run_seconds: float = 0.0
    """How long it ran, or has been running."""
    size: int = 0
    """Bytes and characters of the result's content."""
    kinds: tuple[str, ...] = ()
    """The kinds of content, each once: "text", "structured", "link" or a MIME type."""
    error: str | None = None
    """The error for the client if the call failed or was stopped, without secrets."""
    stopped_by: str = ""
    """Who stopped it, and how; empty if nobody did."""

    @property
    def client_label(self) -> str:
        """The caller's name, for display."""
        return describe_program(self.client)

    @property
    def has_failed(self) -> bool:
        """Whether it ended with an error; a call that somebody stopped did not."""
        return self.error is not None and self.state is not CallState.CANCELLED


class CallLog:
    """The calls of one kernel.

    Args:
        most: How many ended calls are kept.
    """

    def __init__(self, most: int = 1_000) -> None:
        self.most = most
        """How many ended calls are kept."""
        self._lock = threading.Lock()
        self._last = 0
        self._open: dict[int, tuple[ActiveCall, float]] = {}
        """Calls that have not ended, and when they arrived."""
        self._large: set[int] = set()
        """The numbers of open calls with large arguments."""
        self._ended: OrderedDict[int, LoggedCall] = OrderedDict()
        self._unknown: OrderedDict[int, LoggedCall] = OrderedDict()
        """Calls of tools that do not exist."""
        self._results: OrderedDict[int, tuple[Result, int]] = OrderedDict()
        """Results and their bytes, the oldest first."""
        self._bytes = 0
        self._counts = CallCounts()
        self._observers: tuple[Callable[[], object], ...] = ()
        """Called after each change of a call, on any thread."""

    # -- for those that show the calls -------------------------------------------------------------

    def list_calls(self) -> list[LoggedCall]:
        """Return all logged calls, in the order of their arrival."""
        with self._lock:
            ended = [*self._ended.values(), *self._unknown.values()]
            opened = list(self._open.values())
        calls = {call.number: call for call in ended}
        calls |= {call.number: make_entry(call, came) for call, came in opened}
        return [calls[number] for number in sorted(calls)]

    def find(self, number: int) -> LoggedCall | None:
        """Return a call by its number; None if it is unknown or was dropped."""
        with self._lock:
            ended = self._ended.get(number) or self._unknown.get(number)
            opened = self._open.get(number)
        return ended if opened is None else make_entry(*opened)

    def find_result(self, number: int) -> Result | None:
        """Return a call's result, without secrets; None if it is not stored."""
        with self._lock:
            result, _ = self._results.get(number, (None, 0))
            return result

    def count_calls(self) -> "CallCounts":
        """Return how many calls have ended since the extension was loaded."""
        with self._lock:
            return deepcopy(self._counts)

    def subscribe(self, observer: Callable[[], object]) -> None:
        """Call a function after each change of a call, on any thread, from now on.

        It is told of an end once the client has the answer. Its exceptions are logged.
        """
        with self._lock:
            if observer not in self._observers:
                self._observers = (*self._observers, observer)

    def unsubscribe(self, observer: Callable[[], object]) -> None:
        """Stop calling a function; harmless if it is not subscribed."""
        with self._lock:
            self._observers = tuple(other for other in self._observers if other != observer)

    # -- for the calls -----------------------------------------------------------------------------

    def add(self, call: ActiveCall) -> None:
        """Add a new call, and give it its number."""
        came, arguments = time.time(), copy_small(call.shown_arguments)
        if arguments is not None:
            call.shown_arguments = arguments
        with self._lock:
            self._last += 1
            call.number = self._last
            self._open[call.number] = (call, came)
            if arguments is None:
                self._large.add(call.number)
        call.follower = self
        self.note_change()

    def note_change(self) -> None:
        """Notify the observers that a call has changed."""
        for observer in self._observers:
            try:
                observer()
            except Exception:
                logger.exception("an observer of the calls failed")

    def end(self, call: ActiveCall, result: Result) -> Callable[[], None]:
        """Note how a call ended, before its client has the result.

        Returns:
            A function that stores the result and notifies the observers, to be called once the
            client has the result.
        """
        with self._lock:
            opened = self._open.get(call.number)
        if opened is None:
            return lambda: None
        entry = make_entry(*opened, result)
        if call.number in self._large:
            entry = leave_out_large(entry)
        with self._lock:
            del self._open[call.number]
            self._large.discard(call.number)
            self._keep(entry)
        return partial(self._tell_end, call, entry, result)

    def note_unknown(
        self, client: ClientProgram, tool: str, arguments: Mapping[str, Any], error: str
    ) -> None:
        """Note a call of a tool that does not exist, which the bridge has refused.

        Args:
            client: The calling program.
            tool: The name that it called.
            arguments: Masked.
            error: What it was told.
        """
        with self._lock:
            self._last += 1
            entry = LoggedCall(
                number=self._last,
                came=time.time(),
                client=client,
                tool=tool,
                arguments=arguments,
                state=CallState.FAILED,
                never_ran=True,
                error=error,
            )
            self._counts.add(structs.replace(entry, tool=OTHERS))
            self._unknown[entry.number] = entry
            if len(self._unknown) > MAX_UNKNOWN:
                self._unknown.popitem(last=False)
        self.note_change()

    def _keep(self, entry: LoggedCall) -> None:
        """Keep an ended call, and drop the oldest ones; the lock is held."""
        self._counts.add(entry)
        self._ended[entry.number] = entry
        while len(self._ended) > self.most:
            number, _ = self._ended.popitem(last=False)
            self._forget_result(number)

    def _tell_end(self, call: ActiveCall, entry: LoggedCall, result: Result) -> None:
        size = entry.size + measure_structured(result, MAX_BYTES // 4)
        with self._lock:
            if call.number in self._ended and size <= MAX_BYTES / 4:
                self._results[call.number] = (scrub_texts(result, call.capture.secrets), size)
                self._bytes += size
            while self._bytes > MAX_BYTES:
                self._forget_result(next(iter(self._results)))
        self.note_change()

    def _forget_result(self, number: int) -> None:
        _, size = self._results.pop(number, (None, 0))
        self._bytes -= size


class CallCounts:
    """Counts of ended and failed calls, by tool and client."""

    def __init__(self) -> None:
        self.calls = 0
        """All calls."""
        self.failures = 0
        """Calls that failed, without those that somebody stopped."""
        self.tools: Counter[str] = Counter()
        """Calls by the tool's name."""
        self.tool_failures: Counter[str] = Counter()
        """Failures by the tool's name."""
        self.clients: Counter[str] = Counter()
        """Calls by the client's label."""

    def add(self, call: LoggedCall) -> None:
        """Count a call that has ended."""
        self.calls += 1
        _count(self.tools, call.tool)
        _count(self.clients, call.client_label)
        if call.has_failed:
            self.failures += 1
            _count(self.tool_failures, call.tool)


def _count(counter: Counter[str], name: str) -> None:
    counter[name if name in counter or len(counter) < MAX_COUNTED else OTHERS] += 1


def make_entry(call: ActiveCall, came: float, result: Result | None = None) -> LoggedCall:
    """Return a snapshot of a call.

    Args:
        call: The call.
        came: When it arrived, in seconds since the epoch.
        result: Its result, if it has one.
    """
    with call.lock:
        state, since, began, now = call.state, call.since, call.began, monotonic()
    end = since if state in ENDED else now
    request = call.stop_request if state is CallState.CANCELLED else None
    content: Sequence[ContentBlock] = () if result is None else result.content
    return LoggedCall(
        number=call.number,
        came=came,
        client=call.client.program,
        tool=call.tool,
        kind=call.kind,
        arguments=call.shown_arguments,
        state=state,
        never_ran=result is not None and result.is_error and not call.has_run,
        task_id=call.task_id,
        queue_seconds=(end if began is None else began) - call.arrived,
        run_seconds=0.0 if began is None else end - began,
        size=measure_content(content),
        kinds=() if result is None else _list_kinds(result),
        error=_find_error(call, result) if result is not None and result.is_error else None,
        stopped_by="" if request is None else request.by,
    )


def _find_error(call: ActiveCall, result: Result) -> str:
    text = next((block.text for block in result.content if isinstance(block, Text)), "")
    text = scrub(text, call.capture.secrets)
    return text if len(text) <= MAX_ERROR else f"{text[:MAX_ERROR]}..."


def _list_kinds(result: Result) -> tuple[str, ...]:
    """Return the kinds of a result's content, each once."""
    kinds: dict[str, None] = {}
    for block in result.content:
        match block:
            case Text():
                kinds["text"] = None
            case ResourceLink():
                kinds["link"] = None
            case _:
                kinds[block.mime_type] = None
    if result.structured is not None:
        kinds["structured"] = None
    return tuple(kinds)


def measure_result(result: Result) -> int:
    """Return the approximate bytes of a result."""
    return measure_content(result.content) + measure_structured(result, sys.maxsize)


def measure_structured(result: Result, most: int) -> int:
    """Return the approximate bytes of structured content; any number above `most` if larger."""
    return 0 if result.structured is None else _measure_value(result.structured, most)


def copy_small(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return a copy of the arguments, which the tool cannot change; None if they are large."""
    is_small = _measure_value(arguments, MAX_ARGUMENTS) <= MAX_ARGUMENTS
    if not is_small:
        return None
    return {n: v if type(v) in _IMMUTABLE else deepcopy(v) for n, v in arguments.items()}


def leave_out_large(call: LoggedCall) -> LoggedCall:
    """Return a call with its large arguments replaced by their kind."""
    most = MAX_ARGUMENTS // max(len(call.arguments), 10)
    arguments = {
        name[:100]: value if _measure_value(value, most) <= most else f"<large {_name(value)}>"
        for name, value in islice(call.arguments.items(), 100)
    }
    return structs.replace(call, arguments=arguments, is_complete=False)


def _name(value: Any) -> str:
    match value:
        case str():
            return "text"
        case list():
            return "array"
        case dict():
            return "object"
    return "number"


def _measure_value(value: Any, most: int) -> int:
    """Return the approximate bytes of a JSON value; any number above `most` if larger."""
    size, waiting = 0, [value]
    while waiting and size <= most:
        item = waiting.pop()
        size += _OVERHEAD
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, dict):
            size += sum(map(len, item))
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return size
