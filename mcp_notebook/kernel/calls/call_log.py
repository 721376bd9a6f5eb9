"""The log of a kernel's calls: who called what, when, and what came of it.

Runs in the user's kernel, on any thread: an `ActiveCall` tells the log of each step on the thread
where it happens. The log belongs to the extension, and ``%reload_ext`` keeps it. It is bounded:
of calls that have ended, it has the last ones, and the results of those as far as `MAX_BYTES` go.
Secrets are not in it. Calls that a bridge refuses, because nobody agreed to them for instance,
never come to a kernel; the bridge's audit log has those.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Protocol

from mcp_notebook.content import Result
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.logged_call import (
    LoggedCall,
    copy_small,
    leave_out_large,
    make_entry,
    measure_structured,
)
from mcp_notebook.kernel.calls.outcome import scrub_texts

logger = logging.getLogger(__name__)

MAX_BYTES = 64 * 2**20
"""Of the results that are kept, together; of one, a quarter."""
MAX_COUNTED = 200
"""Tools and clients that are counted by name: both names come from clients."""
OTHERS = "others"
"""Under this name come those beyond."""


class CallLogObserver(Protocol):
    """Hears of all calls, those of ``%mcp call`` too, on any thread.

    What it raises is logged, and nothing else comes of it. It hears of an end when the client has
    its answer; a move that is told on another thread may come after that.
    """

    def call_came(self, call: LoggedCall) -> None:
        """A call came; it waits."""

    def call_moved(self, call: LoggedCall) -> None:
        """A call runs now, or waits for somebody."""

    def call_ended(self, call: LoggedCall, result: Result) -> None:
        """A call was answered with this result; its entry has all arguments, even large ones."""


class CallLog:
    """The calls of one kernel."""

    def __init__(self) -> None:
        self.most = 0
        """How many calls that have ended are kept."""
        self._lock = threading.Lock()
        self._last = 0
        self._open: dict[int, tuple[ActiveCall, float]] = {}
        """Calls that have not ended, and when they came."""
        self._large: set[int] = set()
        """Those of them with large arguments."""
        self._ended: OrderedDict[int, LoggedCall] = OrderedDict()
        self._results: OrderedDict[int, tuple[Result, int]] = OrderedDict()
        """Results and their bytes, the oldest first."""
        self._bytes = 0
        self._counts = CallCounts()
        self._observers: tuple[CallLogObserver, ...] = ()

    # -- for who shows the calls -------------------------------------------------------------------

    def list_calls(self) -> list[LoggedCall]:
        """Return all calls that the log has, in the order in which they came."""
        with self._lock:
            ended, opened = list(self._ended.values()), list(self._open.values())
        calls = {call.number: call for call in ended}
        calls |= {call.number: make_entry(call, came) for call, came in opened}
        return [calls[number] for number in sorted(calls)]

    def find(self, number: int) -> LoggedCall | None:
        """Return a call by its number; None if the log has none, or none any more."""
        with self._lock:
            ended, opened = self._ended.get(number), self._open.get(number)
        return ended if opened is None else make_entry(*opened)

    def find_result(self, number: int) -> Result | None:
        """Return a call's result, its texts without secrets; None if it is not kept."""
        with self._lock:
            result, _ = self._results.get(number, (None, 0))
            return result

    def count_calls(self) -> "CallCounts":
        """Return how many calls have ended since the extension was loaded."""
        with self._lock:
            return deepcopy(self._counts)

    def subscribe(self, observer: CallLogObserver) -> None:
        """Tell an observer of what happens to calls from now on."""
        with self._lock:
            if observer not in self._observers:
                self._observers = (*self._observers, observer)

    def unsubscribe(self, observer: CallLogObserver) -> None:
        """Tell an observer nothing more; harmless if it is told nothing."""
        with self._lock:
            self._observers = tuple(other for other in self._observers if other != observer)

    # -- for the calls -----------------------------------------------------------------------------

    def add(self, call: ActiveCall) -> None:
        """Note that a call came, and give it its number."""
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
        if self._observers:
            _tell(self._observers, "call_came", make_entry(call, came))

    def note_move(self, call: ActiveCall) -> None:
        """Hear that a call runs now, or waits."""
        if not self._observers:
            return
        with self._lock:
            opened = self._open.get(call.number)
        if opened is not None:
            _tell(self._observers, "call_moved", make_entry(*opened))

    def end(self, call: ActiveCall, result: Result) -> Callable[[], None]:
        """Note what became of a call, before its client has the result.

        Returns:
            What keeps the result and tells the observers, to be called when the client has it.
        """
        with self._lock:
            opened = self._open.get(call.number)
        if opened is None:
            return lambda: None
        entry = make_entry(*opened, result)
        kept_entry = leave_out_large(entry) if call.number in self._large else entry
        with self._lock:
            del self._open[call.number]
            self._large.discard(call.number)
            self._counts.add(kept_entry)
            self._ended[call.number] = kept_entry
            while len(self._ended) > self.most:
                number, _ = self._ended.popitem(last=False)
                self._forget_result(number)
        return partial(self._tell_end, call, entry, result)

    def _tell_end(self, call: ActiveCall, entry: LoggedCall, result: Result) -> None:
        size = entry.size + measure_structured(result, MAX_BYTES // 4)
        with self._lock:
            if call.number in self._ended and size <= MAX_BYTES / 4:
                self._results[call.number] = (scrub_texts(result, call.capture.secrets), size)
                self._bytes += size
            while self._bytes > MAX_BYTES:
                self._forget_result(next(iter(self._results)))
        _tell(self._observers, "call_ended", entry, result)

    def _forget_result(self, number: int) -> None:
        _, size = self._results.pop(number, (None, 0))
        self._bytes -= size


class CallCounts:
    """How many calls have ended, of which tools and clients, and how many of them failed."""

    def __init__(self) -> None:
        self.calls = 0
        """All calls."""
        self.failures = 0
        """Those that failed or were stopped."""
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


def _tell(observers: Iterable[CallLogObserver], method: str, *news: object) -> None:
    for observer in observers:
        try:
            getattr(observer, method)(*news)
        except Exception:
            logger.exception("an observer of the calls failed")
