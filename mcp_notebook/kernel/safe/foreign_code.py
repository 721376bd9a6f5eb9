"""Runs code that is not ours: reprs, display methods, serializers, and libraries behind them.

Runs in the user's kernel, on the thread of the call. Such code may raise anything, SystemExit and
its own BaseExceptions included. `guard` runs it, and keeps all of it from the kernel's event loop,
except KeyboardInterrupt, by which the user or the client stops the call.

Such code may also take forever. `deadline` surrounds the making of a result; within it, the pieces
of values' own code that `guard` runs share one time limit. A piece that exceeds it is interrupted
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
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from itertools import islice
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
from mcp_notebook.kernel.safe.libraries import claims_class

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
_COLLECTIONS = frozenset({list, tuple, set, frozenset, deque})
MAX_ASKED = 10_000
"""Items of a value's collections that `ask_classes` looks at."""
_SCALARS = frozenset({"numpy", "pandas", "pandas.api.typing"})
_Result = TypeVar("_Result")


class DeadlineExceeded(BaseException):
    """Foreign code exceeded the time limit.

    A BaseException, since IPython's formatters and much of users' code catch Exception.
    """


def guard(
    function: Callable[..., _Result],
    *value: Any,
    recover: Callable[[BaseException], _Result] | None = None,
) -> _Result:
    """Run foreign code: a value's own within the time that is left, other code as long as it takes.

    Args:
        function: Runs the code.
        value: The value whose code runs; the function takes it. Without one, time is not limited.
        recover: Takes whatever the code raises, and returns the result instead; None: it is raised.

    Raises:
        KeyboardInterrupt: The call was stopped.
        DeadlineExceeded: The time ran out before or during the call.
    """
    try:
        current = _current.get() if value else None
        if current is None or _is_plain(type(value[0])):
            return function(*value)
        return current.run(function, value[0])
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if recover is None:
            raise
        return recover(error)


def ask_classes(value: Any) -> None:
    """Ask the proxies in a value for their classes, within the time that is left.

    Afterwards `isinstance` may ask them again: a lazy proxy has loaded what it stands for.

    Args:
        value: Anything; a collection is searched for proxies.

    Raises:
        DeadlineExceeded: One of them does not answer.
        Exception: The value itself has no class.
    """
    waiting = [value]
    for _ in range(MAX_ASKED):
        if not waiting:
            return
        item = waiting.pop()
        kind = type(item)
        if kind in _PLAIN:
            continue
        if kind is dict or kind in _COLLECTIONS:
            with contextlib.suppress(RuntimeError):  # another thread changes it
                waiting += islice(item.values() if kind is dict else item, MAX_ASKED)
        elif claims_class(kind):
            try:
                guard(_ask_class, item)
            except Exception:
                if item is value:  # an item that stands for nothing does not hide the others
                    raise


def _ask_class(proxy: Any) -> None:
    _ = proxy.__class__


def list_drawings() -> list[float]:
    """Return the seconds that each plot of the current result took; a caller appends to them."""
    current = _current.get()
    return [] if current is None else current.drawings


def _is_plain(kind: type) -> bool:
    # Scalars of numpy and pandas, but no containers: those may hold any objects.
    return kind in _PLAIN or (kind.__module__ in _SCALARS and not hasattr(kind, "__len__"))


class deadline:  # noqa: N801 - used as the functions of contextlib are
    """Context manager that limits the time of `guard`; a nested one shares the outer limit.

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
        self.drawings: list[float] = []

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
