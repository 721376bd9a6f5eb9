"""Runs code that is not ours: reprs, display methods, serializers, and libraries behind them.

Runs in the user's kernel, on the thread of the call. Such code may raise anything, SystemExit and
its own BaseExceptions included. `run_guarded` keeps all of it from the kernel's event loop, except
KeyboardInterrupt, by which the user or the client stops the call.

Such code may also take forever. `deadline` surrounds the making of a result, and `run_bounded` each
piece of foreign code in it. The pieces share one time limit; a piece that exceeds it is interrupted
with `DeadlineExceeded`. The tool's own running time is not limited here. Plots have a limit of
their own (`results.plots.renderer`); only their drawing time is counted here.

On the main thread, code is interrupted by SIGURG. Nothing else in a kernel uses that signal, so it
is never mistaken for the SIGINT of `calls.interrupts`, and the system ignores it where it has no
handler. In other threads, and in all threads on Windows, code is interrupted by an asynchronous
exception. C code that does not return to Python is not interrupted: the call goes on until it
returns or is cancelled.
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
"""Seconds that foreign code may take for one result. A slower repr queries a server or computes,
and the next call waits behind it."""
_RETRY_AFTER = REPEAT_AFTER + 0.05
"""Seconds until it is raised again, since foreign code may have caught the first one."""
_SHORTEST_WAIT = 0.01
"""Seconds between two checks of the watchdog while no foreign code runs."""

_PLAIN = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, bytearray),
        *(date, datetime, timedelta, time_of_day, Decimal, UUID, range),
    }
)
"""Types whose methods are Python's own and return soon: they run without a limit."""
_SCALARS = frozenset({"numpy", "pandas", "pandas.api.typing"})
_Result = TypeVar("_Result")


def run_guarded(
    function: Callable[[], _Result], recover: Callable[[BaseException], _Result]
) -> _Result:
    """Run foreign code, and replace whatever it raises by another result.

    Args:
        function: Runs the code.
        recover: Takes the exception and returns the result instead.

    Raises:
        KeyboardInterrupt: The call was stopped.
    """
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return recover(error)


class DeadlineExceeded(BaseException):
    """Foreign code exceeded the time limit.

    A BaseException, since IPython's formatters and much of users' code catch Exception.
    """


def run_bounded(function: Callable[[Any], _Result], value: Any) -> _Result:
    """Run a function that runs a value's own code, within the time that is left.

    Args:
        function: Takes the value.
        value: The value whose code runs.

    Raises:
        DeadlineExceeded: The time ran out before or during the call.
    """
    current = _current.get()
    if current is None or _is_plain(type(value)):
        return function(value)
    return current.run(function, value)


def compute_drawing_time_left(seconds: float) -> float:
    """Return how many of these seconds are left to draw plots of the current result."""
    current = _current.get()
    return seconds - (current.drawing_seconds if current is not None else 0.0)


def get_drawing_count() -> int:
    """Return how many plots of the current result were drawn, successfully or not."""
    current = _current.get()
    return 0 if current is None else current.drawing_count


def record_drawing(seconds: float) -> None:
    """Count a plot of the current result that was drawn, successfully or not, and its seconds."""
    current = _current.get()
    if current is not None:
        current.drawing_seconds += seconds
        current.drawing_count += 1


def _is_plain(kind: type) -> bool:
    # Scalars of numpy and pandas, but no containers: those may hold any objects.
    return kind in _PLAIN or (kind.__module__ in _SCALARS and not hasattr(kind, "__len__"))


class deadline:  # noqa: N801 - used as the functions of contextlib are
    """Context manager that limits the time of `run_bounded`; a nested one shares the outer limit.

    Args:
        seconds: Limit for all pieces of foreign code together.
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
    """The time limit of one result.

    Only the thread of the call writes. The watchdog, a thread that is started with the first piece
    of foreign code, reads and interrupts.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clock: tuple[float, float | None] = (0.0, None)
        """Seconds used so far, and the start time of the piece that is running."""
        self._thread = threading.get_ident()
        self._interrupter: Interrupter | None = None
        self._is_over = False
        self._ended: threading.Event | None = None
        """Stops the watchdog, once it has been started."""
        self.drawing_seconds = 0.0
        self.drawing_count = 0

    def is_here(self) -> bool:
        """Return whether it is in force on this thread; contexts are copied to other threads."""
        return self._thread == threading.get_ident() and not self._is_over

    def run(self, function: Callable[[Any], _Result], value: Any) -> _Result:
        if not self.is_here():
            return function(value)
        if self._compute_time_left(self._clock) <= 0:
            raise DeadlineExceeded(
                f"that is not shown: the objects before it used up the {self._seconds:g} s that "
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
                self._start_watchdog(self._interrupter)
        used, began = self._clock[0], time.monotonic()
        self._clock = used, began
        try:
            return self._interrupter.run(function, value)
        finally:
            self._clock = used + time.monotonic() - began, None

    def remove(self) -> None:
        """Disarm the watchdog."""
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

    def _start_watchdog(self, interrupter: Interrupter) -> None:
        self._ended = threading.Event()
        watch = threading.Thread(
            target=self._watch,
            args=(interrupter, self._ended),
            name="mcp-notebook-watchdog",
            daemon=True,
        )
        # If the system is out of threads, the code runs without a limit.
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
                    return  # `run` starts no more code
                interrupter.interrupt()
                wait = _RETRY_AFTER
            elif not is_running:
                wait = max(wait, _SHORTEST_WAIT)


def _make_interrupter() -> Interrupter:
    # None: the handler was not set from Python, so it could not be restored.
    if sys.platform != "win32" and signal.getsignal(signal.SIGURG) is not None:
        by_signal = SignalInterrupter(DeadlineExceeded, signal.SIGURG)
        if by_signal.install():
            return by_signal
    return AsyncInterrupter(DeadlineExceeded)


_current: ContextVar[_Deadline | None] = ContextVar("mcp_notebook_deadline", default=None)
