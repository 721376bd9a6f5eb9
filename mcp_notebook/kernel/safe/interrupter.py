"""Raising an exception in the code of one thread, asked for by any other thread.

Runs in the user's kernel: `interrupt` is called from other threads, all else on the thread whose
code is interrupted. `SignalInterrupter` is for the main thread: a signal also ends ``time.sleep``
and other waits in C. `AsyncInterrupter` is for all threads: what it raises comes between two
instructions of Python. Code in C that does not come back to Python is not reached by either.

Three rules keep an interrupt away from all other code; they are what remained after many thousand
interrupts at random moments:

1. `interrupt` sends only while it holds the lock under which the code, at its end, is declared
   closed. So nothing is sent for code that has ended.
2. The exception is raised only between `open` and `close`. A signal that comes later is noted and
   raises nothing; an asynchronous exception that comes later is taken back.
3. An interrupter that sent a signal does not put the old handler back before it has seen it.

A signal that comes just before a wait in C begins does not end that wait, and Python does not look
at it before the wait ends: `interrupt` may have to be called again.
"""

import ctypes
import signal
import sys
import threading
import time
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

try:
    # Without the enumerations that the public function makes of what it takes and returns: ten
    # times as fast, and each call of a tool sets a handler twice.
    from _signal import signal as set_handler  # type: ignore[import-not-found]
except ImportError:  # not CPython
    from signal import signal as set_handler

_Result = TypeVar("_Result")

REPEAT_AFTER = 0.5
"""Seconds after which another signal is sent, and raises again: the code caught the first one, or
began to wait just then. Our own code that the first one leaves through takes microseconds."""
_SIGNAL_ARRIVES = 1.0
"""Seconds to wait for a signal that was sent to be seen; it takes microseconds."""


class Interrupter(ABC):
    """Raises an exception in this thread's code between `open` and `close`.

    Args:
        error: What is raised.
    """

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._is_open = False

    def open(self) -> None:
        """Let interrupts raise from now on."""
        self._is_open = True

    def close(self) -> bool:
        """Let interrupts raise no more.

        Returns:
            Whether one came while it closed; it is not raised.
        """
        was_interrupted = False
        other: BaseException | None = None
        while self._is_open:
            try:
                with self._lock:
                    self._take_back()
                    self._is_open = False
            except self._error:  # it was on its way
                was_interrupted = True
            except BaseException as error:  # noqa: BLE001 - of another interrupter; raised below
                other = error
        if other is not None:
            raise other
        return was_interrupted

    def remove(self) -> None:
        """Interrupt nothing any more."""
        self.close()

    def run(self, function: Callable[..., _Result], *args: Any) -> _Result:
        """Run code that interrupts may stop.

        Args:
            function: Runs the code.
            args: Its arguments.
        """
        try:
            try:
                self.open()
                return function(*args)
            finally:
                self.close()
        except BaseException:
            self.close()  # again: it may just have been there that something was raised
            raise

    def interrupt(self) -> bool:
        """Raise the exception in the code, from another thread.

        Returns:
            Whether that is due: not when the code has ended, nor when one is on its way.
        """
        with self._lock:
            return self._is_open and self._send()

    @abstractmethod
    def _send(self) -> bool:
        """Have the exception raised in the thread, and return whether that is due."""

    @abstractmethod
    def _take_back(self) -> None:
        """Forget what was sent and has not arrived; on the thread itself."""


class AsyncInterrupter(Interrupter):
    """Raises between two instructions of Python, in any thread.

    Args:
        error: What is raised.
    """

    def __init__(self, error: type[BaseException]) -> None:
        super().__init__(error)
        self._is_sent = False

    def _send(self) -> bool:
        self._is_sent = True
        raise_in(self._thread, self._error)
        return True

    def _take_back(self) -> None:
        if self._is_sent:  # else what is pending may be another interrupter's
            _drop_pending()


class SignalInterrupter(Interrupter):
    """Raises by a signal, in the main thread.

    Args:
        error: What is raised.
        signum: The signal. Its handler is ours from `install` to `remove`.
        takes_foreign: Whether the signal also interrupts when somebody else sends it; else it is
            passed on to the handler that was there before.
    """

    def __init__(
        self, error: type[BaseException], signum: int, *, takes_foreign: bool = False
    ) -> None:
        super().__init__(error)
        self._signum = signum
        self._takes_foreign = takes_foreign
        self._previous: Any = None
        self._is_installed = False
        self._is_sent = False
        self._is_seen = False
        self._sent_at = 0.0
        self._raised_at = 0.0
        self.signal_count = 0
        """Signals that interrupt which have come, at whichever moment."""

    def install(self) -> bool:
        """Take the signal.

        Returns:
            Whether that was possible: it is not outside of the main thread.
        """
        try:
            self._previous = set_handler(self._signum, self._handle)
        except ValueError:
            return False
        self._is_installed = True
        return True

    def remove(self) -> None:
        """Interrupt nothing any more, and put the old handler back.

        A handler that the code has set and left behind goes with it.
        """
        try:
            self.close()
            give_up_at = time.monotonic() + _SIGNAL_ARRIVES
            is_due = self._is_sent  # once in any case: of two, the last may not be here yet
            while is_due:
                # A call of the system, by whose end a signal that was sent has come. Python runs
                # the handler between two instructions of this loop.
                time.sleep(0)
                is_due = not self._is_seen and time.monotonic() < give_up_at
        finally:
            # None: a handler that was not set from Python, which cannot be put back.
            if self._is_installed and self._previous is not None:
                set_handler(self._signum, self._previous)

    def _send(self) -> bool:
        now = time.monotonic()
        is_on_its_way = self._is_sent and not self._is_seen
        if not self._is_installed or (is_on_its_way and now - self._sent_at < REPEAT_AFTER):
            return False
        if threading.get_ident() == self._thread:
            return False
        if signal.getsignal(self._signum) == signal.SIG_DFL:
            return False  # the code has put the default in place, which may end the process
        self._is_sent, self._is_seen, self._sent_at = True, False, now
        if sys.platform == "win32":
            import _thread  # noqa: PLC0415

            _thread.interrupt_main(self._signum)
        else:
            signal.pthread_kill(self._thread, self._signum)
        return True

    def raise_unnoticed(self) -> None:
        """Raise in the code if its signal has come and Python has not noticed; from any thread."""
        with self._lock:
            if self._is_open and not self.signal_count:
                self._raised_at = time.monotonic()  # the handler, which comes later, raises nothing
                raise_in(self._thread, self._error)

    def _take_back(self) -> None:
        """Do nothing: the handler raises only while the interrupter is open."""

    def _handle(self, signum: int, frame: types.FrameType | None) -> None:
        self._is_seen = True
        if not self._takes_foreign and not self._is_sent:
            if callable(self._previous):
                self._previous(signum, frame)
            return
        self.signal_count += 1
        now = time.monotonic()
        if self._is_open and now - self._raised_at > REPEAT_AFTER:
            self._raised_at = now
            raise self._error


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread, in place of one that is pending there.

    Args:
        thread: Its identifier.
        error: The exception.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class _Dropped(BaseException):
    """Takes the place of a pending exception."""


def _drop_pending() -> None:
    """Forget the exception that is pending in this thread.

    Another one takes its place and is raised. Python could take the pending one back, but would
    then, up to 3.12, look for it at every step for ever: slower, and endless under a debugger.
    """
    try:
        raise_in(threading.get_ident(), _Dropped)
        while True:
            pass  # it comes at the end of the first round
    except _Dropped:
        pass
