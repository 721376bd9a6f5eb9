"""Time limit for the code of values: reprs, display methods, serializers.

Runs in the user's kernel, on the thread of the call. `deadline` is around the making of a result,
`run_bounded` around each piece of the values' code in it. All pieces together may take so long;
what takes longer is interrupted with `DeadlineExceeded`. What the tool does itself is not bounded
here: that is its own time, which its client and its user can end. Plots are drawn under a limit of
their own, see `results.plots.renderer`; only the time that drawing took is counted here.

On the main thread, code is interrupted by SIGURG. Nothing else in a kernel uses that signal, so it
is never mistaken for the SIGINT of `calls.interrupts`, and the system ignores it where it has no
handler. In other threads, and on Windows in all, code is interrupted by an asynchronous exception.
Code in C that does not come back to Python is not stopped: the call goes on until it does, or is
cancelled.
"""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any, Self, TypeVar
from uuid import UUID

from mcp_notebook.kernel.safe.interrupter import (
    REPEAT_AFTER,
    AsyncInterrupter,
    Interrupter,
    Shield,
    SignalInterrupter,
    enter,
    leave,
)

CONVERSION_SECONDS = 5.0
"""Seconds that the values' own code may take for one result: a repr that is waited for longer asks
a server or computes, and the next call waits behind it."""
_RETRY_AFTER = REPEAT_AFTER + 0.05
"""Seconds after which it is raised again: the values' code caught the first one."""
_SHORTEST_WAIT = 0.01
"""Seconds between two looks of the watch while no code runs."""

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
        DeadlineExceeded: The time is up, before or during the call.
    """
    current = _current.get()
    if current is None or _is_plain(type(value)):
        return function(value)
    return current.run(function, value)


def compute_drawing_time_left(seconds: float) -> float:
    """Return how much of a number of seconds drawing has left for the result being converted."""
    current = _current.get()
    return seconds - (current.drawing_seconds if current is not None else 0.0)


def get_drawing_count() -> int:
    """Return how many plots were drawn, or tried, for the result being converted."""
    current = _current.get()
    return 0 if current is None else current.drawing_count


def record_drawing(seconds: float) -> None:
    """Count a plot that was drawn, or tried, for the result being converted, and its seconds."""
    current = _current.get()
    if current is not None:
        current.drawing_seconds += seconds
        current.drawing_count += 1


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
        self._deadline: _Deadline | None = None

    def __enter__(self) -> Self:
        outer = _current.get()
        if outer is None or not outer.is_here():
            self._deadline = _Deadline(self._seconds)
            enter(self._deadline)
            self._token = _current.set(self._deadline)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._deadline is not None:
            _current.reset(self._token)
            self._deadline.remove()


class _Deadline:
    """The time of one result.

    Its thread writes everything; the watch, a thread that is begun with the first piece of code,
    only reads, and interrupts.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clock: tuple[float, float | None] = (0.0, None)
        """Seconds that code took so far, and since when a piece of code has been running."""
        self._thread = threading.get_ident()
        self._interrupter: Interrupter | None = None
        self._is_over = False
        self._ended: threading.Event | None = None
        """Ends the watch, once there is one."""
        self.drawing_seconds = 0.0
        self.drawing_count = 0

    def is_here(self) -> bool:
        """Whether it is this thread's and still goes on; contexts are copied to other threads."""
        return self._thread == threading.get_ident() and not self._is_over

    def run(self, function: Callable[[Any], _Result], value: Any) -> _Result:
        if not self.is_here():
            return function(value)
        if self._compute_time_left(self._clock) <= 0:
            raise DeadlineExceeded(
                f"that is not shown: the objects before it took the {self._seconds:g} s that "
                "showing a result may take"
            )
        try:
            if self._clock[1] is not None:
                return function(value)
            return self._run_timed(function, value)
        except DeadlineExceeded:
            raise DeadlineExceeded(f"whose repr took longer than {self._seconds:g} s") from None

    def _run_timed(self, function: Callable[[Any], _Result], value: Any) -> _Result:
        if self._interrupter is None:
            with Shield():
                self._interrupter = _make_interrupter()
                self._start_watch(self._interrupter)
        used, began = self._clock[0], time.monotonic()
        self._clock = used, began
        try:
            return self._interrupter.run(function, value)
        finally:
            self._clock = used + time.monotonic() - began, None

    def remove(self) -> None:
        """Disarm the watch."""
        self._is_over = True
        if self._interrupter is None:
            leave(self)
            return
        with Shield():
            if self._ended is not None:
                self._ended.set()
            self._interrupter.remove()
            leave(self)

    def _compute_time_left(self, clock: tuple[float, float | None]) -> float:
        used, began = clock
        return self._seconds - used - (0.0 if began is None else time.monotonic() - began)

    def _start_watch(self, interrupter: Interrupter) -> None:
        self._ended = threading.Event()
        watch = threading.Thread(
            target=self._watch,
            args=(interrupter, self._ended),
            name="mcp-notebook-watch",
            daemon=True,
        )
        # If the system has no more threads, the code runs without a bound.
        with contextlib.suppress(RuntimeError):
            watch.start()

    def _watch(self, interrupter: Interrupter, ended: threading.Event) -> None:
        wait = self._seconds
        while not ended.wait(wait):
            clock = self._clock
            is_running = clock[1] is not None
            wait = self._compute_time_left(clock)
            if wait <= 0:
                if not is_running:
                    return  # nothing begins any more
                interrupter.interrupt()
                wait = _RETRY_AFTER
            elif not is_running:
                wait = max(wait, _SHORTEST_WAIT)


def _make_interrupter() -> Interrupter:
    # None: a handler that was not set from Python could not be put back.
    if sys.platform != "win32" and signal.getsignal(signal.SIGURG) is not None:
        by_signal = SignalInterrupter(DeadlineExceeded, signal.SIGURG)
        if by_signal.install():
            return by_signal
    return AsyncInterrupter(DeadlineExceeded)


_current: ContextVar[_Deadline | None] = ContextVar("mcp_notebook_deadline", default=None)
