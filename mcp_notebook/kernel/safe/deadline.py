"""How long the values' own code may take while one result is made: reprs, display methods.

Runs in the user's kernel, on the thread of the call. `deadline` is around the making of a result,
`run_bounded` around each piece of the values' code in it; all of them together may take so long,
and what takes longer is stopped with `DeadlineExceeded`. What the tool does itself has no bound
here: that is its own time, which its client and its user can end. Drawing plots has a bound of its
own, see `kernel.results.plots.renderer`; only how long it took for one result is noted here.

How code is stopped:

- On the main thread by SIGURG, whose handler raises. Nothing else in a kernel uses that signal, so
  it is never mistaken for the SIGINT of `kernel.calls.interrupts`; nobody is hurt by one that is
  left over, since the system ignores it where it has no handler. It ends ``time.sleep``, too.
- In other threads (on Windows in all) by an asynchronous exception, between two instructions of
  Python.

Two rules keep it away from all other code: the watch sends only while it holds the lock under which
the piece is declared open and, at its end, closed; the handler raises only while a piece is open.
Code in C that does not come back to Python is not stopped: the call goes on until it does, or is
cancelled.
"""

import contextlib
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from contextvars import ContextVar
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any, Self, TypeVar
from uuid import UUID

from mcp_notebook.kernel.safe.threads import raise_in

CONVERSION_SECONDS = 5.0
"""Seconds that the values' own code may take for one result: a repr that is waited for longer asks
a server or computes, and the next call waits behind it."""
_AGAIN_AFTER = 0.5
"""Seconds after which it is raised again: the values' code caught the first one. Our own code that
the first one leaves through takes microseconds."""
_SIGNAL_ARRIVES = 1.0
"""Seconds to wait for a signal that was sent to be seen; it takes microseconds."""
_LEAST_LOOK = 0.01

_PLAIN = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, bytearray),
        *(date, datetime, timedelta, time_of_day, Decimal, UUID, range),
    }
)
"""Types whose methods end: they are run as they are."""
_SCALARS = frozenset({"numpy", "pandas", "pandas.api.typing"})
_Result = TypeVar("_Result")


class DeadlineExceeded(BaseException):
    """The values' code took longer than it may.

    No Exception: IPython's formatters and much of the users' code catch those.
    """


def run_bounded(function: Callable[[Any], _Result], value: Any) -> _Result:
    """Run what runs a value's own code, in the time that is left for it.

    Args:
        function: Takes the value.
        value: Whose code it is.

    Raises:
        DeadlineExceeded: There is no time left, or not enough; its message says so of "an object".
    """
    current = _current.get()
    if current is None or _is_plain(type(value)):
        return function(value)
    return current.run(function, value)


def compute_drawing_time_left(seconds: float) -> float:
    """Return how much of a number of seconds drawing has left for the result being converted."""
    current = _current.get()
    return seconds - (current.drawing_seconds if current is not None else 0.0)


def record_drawing_time(seconds: float) -> None:
    """Count seconds that drawing took for the result being converted."""
    current = _current.get()
    if current is not None:
        current.drawing_seconds += seconds


def _is_plain(kind: type) -> bool:
    # Of numpy and pandas the scalars: what has a length may hold objects of anybody's.
    return kind in _PLAIN or (kind.__module__ in _SCALARS and not hasattr(kind, "__len__"))


class deadline:  # noqa: N801 - used as the functions of contextlib are
    """A block in which `run_bounded` is bounded; a nested block shares the outer one's bound.

    Args:
        seconds: What all pieces of code together may take.
    """

    def __init__(self, seconds: float = CONVERSION_SECONDS) -> None:
        self._seconds = seconds
        self._made: _Deadline | None = None

    def __enter__(self) -> Self:
        outer = _current.get()
        if outer is None or not outer.is_here():
            self._made = _Deadline(self._seconds)
            self._token = _current.set(self._made)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._made is not None:
            _current.reset(self._token)
            self._made.end()


class _Deadline:
    """The time of one result.

    Its thread writes all but `_seen`, and `_began` under the lock when it closes; the watch, a
    thread that is begun with the first piece, only reads, and sends.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._used = 0.0
        self._began: float | None = None
        """Since when a piece has been open."""
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._watch: threading.Thread | None = None
        self._ended: threading.Event | None = None
        self._is_over = False
        self._previous: Any = None
        self._by_signal = False
        self._sent = False
        self._seen = True
        self._raised_at = 0.0
        self.drawing_seconds = 0.0

    def is_here(self) -> bool:
        """Whether it is this thread's and still goes on; contexts are copied to other threads."""
        return self._thread == threading.get_ident() and not self._is_over

    def run(self, function: Callable[[Any], _Result], value: Any) -> _Result:
        if not self.is_here():
            return function(value)
        if self._left() <= 0:
            raise DeadlineExceeded(
                f"that is not shown: the objects before it took the {self._seconds:g} s that "
                "showing a result may take"
            )
        try:
            if self._began is not None:
                return function(value)
            return self._run_open(function, value)
        except DeadlineExceeded:
            raise DeadlineExceeded(f"whose repr took longer than {self._seconds:g} s") from None

    def _run_open(self, function: Callable[[Any], _Result], value: Any) -> _Result:
        try:
            try:
                self._open()
                return function(value)
            finally:
                self._close()
        except BaseException:
            self._close()  # again: it may just have been there that something was raised
            raise

    def end(self) -> None:
        """Stop nothing any more."""
        self._is_over = True
        self._close()
        if self._ended is not None:
            self._ended.set()
        if not self._by_signal:
            return
        give_up = time.monotonic() + _SIGNAL_ARRIVES
        while not self._seen and time.monotonic() < give_up:
            time.sleep(0)  # Python runs the handler between two instructions of this loop
        if signal.getsignal(signal.SIGURG) == self._handle:
            signal.signal(signal.SIGURG, self._previous)

    def _left(self) -> float:
        began = self._began
        return self._seconds - self._used - (0.0 if began is None else time.monotonic() - began)

    def _open(self) -> None:
        if self._watch is None:
            self._listen()
            self._ended = threading.Event()
            self._watch = threading.Thread(
                target=self._watch_over, args=(self._ended,), name="mcp-notebook-watch", daemon=True
            )
            # If the system gives no more threads there is no bound.
            with contextlib.suppress(RuntimeError):
                self._watch.start()
        self._began = time.monotonic()

    def _listen(self) -> None:
        """Take the signal, where there is one; else what is raised comes between instructions."""
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            return
        previous = signal.getsignal(signal.SIGURG)
        if previous is None:
            return  # a handler that was not set from Python could not be put back
        self._previous = previous
        signal.signal(signal.SIGURG, self._handle)
        self._by_signal = True

    def _close(self) -> None:
        stopped: KeyboardInterrupt | None = None
        while self._began is not None:
            try:
                with self._lock:
                    if self._sent and not self._by_signal:
                        raise_in(self._thread, None)
                    if self._began is not None:
                        self._used += time.monotonic() - self._began
                    self._began = None
            except DeadlineExceeded:  # it was on its way
                continue
            except KeyboardInterrupt as error:
                stopped = error
        if stopped is not None:
            raise stopped

    def _watch_over(self, ended: threading.Event) -> None:
        wait = self._seconds
        while not ended.wait(wait):
            with self._lock:
                wait = self._left()
                if wait > 0 and not self._is_over:
                    if self._began is None:  # it does not run: not to look all the time
                        wait = max(wait, _LEAST_LOOK)
                    continue
                if self._began is None or self._is_over:
                    return
                self._send()
            wait = _AGAIN_AFTER

    def _send(self) -> None:
        self._sent = True
        if self._by_signal:
            self._seen = False
            signal.pthread_kill(self._thread, signal.SIGURG)
        else:
            raise_in(self._thread, DeadlineExceeded)

    def _handle(self, signum: int, frame: types.FrameType | None) -> None:
        self._seen = True
        if not self._sent:
            if callable(self._previous):
                self._previous(signum, frame)
            return
        now = time.monotonic()
        if self._began is not None and now - self._raised_at > _AGAIN_AFTER / 2:
            self._raised_at = now
            raise DeadlineExceeded


_current: ContextVar[_Deadline | None] = ContextVar("mcp_notebook_deadline", default=None)
