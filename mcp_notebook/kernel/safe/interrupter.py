"""Raises an exception in one thread's code at the request of another thread.

Runs in the user's kernel: `interrupt` is called from other threads, everything else on the thread
whose code is interrupted. `SignalInterrupter` is for the main thread: a signal also ends
``time.sleep`` and other waits in C. `AsyncInterrupter` is for all threads: it raises between two
bytecode instructions. Neither stops C code that does not return to Python.

Three rules keep an interrupt away from all other code; they were tested with many thousand
interrupts at random moments:

1. `interrupt` sends only while it holds the lock, and the code is declared closed under the same
   lock. So nothing is sent for code that has ended.
2. The exception is raised only between `open` and `close`. A signal that arrives later is noted and
   raises nothing; an asynchronous exception that is still pending then is dropped.
3. An interrupter that sent a signal does not restore the old handler before the signal has arrived.

Our own code that acquires something (a descriptor, a file, a process, a handler) runs within a
`Shield`, which holds back all interrupts of the thread until it is released.

A signal that arrives just before a wait in C begins does not end that wait, and Python handles it
only afterwards. An exception that is raised in a finalizer is lost. So `interrupt` may have to be
called again.
"""

import _thread
import ctypes
import signal
import sys
import threading
import time
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, Self, TypeVar

try:
    # The public function also converts its arguments and results to enums: this one is ten times as
    # fast, and each call of a tool sets a handler twice.
    from _signal import signal as set_handler  # type: ignore[import-not-found]
except ImportError:  # not CPython
    from signal import signal as set_handler

_Result = TypeVar("_Result")

REPEAT_AFTER = 0.5
"""Seconds after which another signal is sent, and raises again: the code caught the exception, or
began to wait just as the signal came. Our own code that the exception passes through takes
microseconds."""
_SIGNAL_ARRIVES = 1.0
"""Maximum seconds to wait for a signal that was sent; it normally takes microseconds."""


class InterruptSafeLock(_thread.RLock):  # type: ignore[misc]  # final only for type checkers
    """A lock for ``with`` that an interrupt never leaves locked.

    Since Python 3.14, an exception may be raised after a plain lock was taken and before the block
    begins, and then nothing releases it. Between the end of a method in Python and the block, none
    is raised. ``__exit__`` is C's, which releases before it can be interrupted.
    """

    def __enter__(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        """Take the lock; it is not held if this raises."""
        try:
            return self.acquire(blocking, timeout)
        except BaseException:
            with suppress(RuntimeError):  # it was not taken yet
                self.release()
            raise


class Scope(Protocol):
    """A thread's temporary change that has to be removed even after an interrupt."""

    def remove(self) -> None:
        """Undo the change; idempotent."""


class _Thread(threading.local):
    """The scopes that a thread has entered and not left, outermost first."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []


_here = _Thread()


def enter(scope: Scope) -> None:
    """Have a scope removed with the enclosing scope at the latest.

    An interrupt that arrives as an ``__exit__`` begins keeps that from removing its scope. The
    outermost scope is left by code that cannot be interrupted.
    """
    if scope not in _here.scopes:
        _here.scopes.append(scope)


def leave(scope: Scope) -> None:
    """Forget a scope that is being removed, and remove the scopes within it."""
    while scope in _here.scopes:
        last = _here.scopes.pop()
        if last is not scope:
            last.remove()


class Interrupter(ABC):
    """Raises an exception in this thread's code between `open` and `close`.

    Args:
        error: The exception to raise.
    """

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self._thread = threading.get_ident()
        self._lock = InterruptSafeLock()
        self._is_open = False
        self._is_held = False
        """Whether interrupts are noted, to be raised by `lift`."""
        self._is_due = False
        """Whether an interrupt was noted."""

    def open(self) -> None:
        """Let interrupts raise from now on."""
        enter(self)
        self._is_open = True

    def close(self) -> bool:
        """Stop interrupts from raising.

        Returns:
            Whether one came while the interrupter was closing or held; it is not raised.
        """
        was_held, self._is_held = self._is_held, False
        was_interrupted = self._shut(is_held=False) or (was_held and self._is_due)
        self._is_due = False
        return was_interrupted

    def hold(self) -> None:
        """Note interrupts from now on instead of raising them; does nothing if it is closed.

        Raises:
            BaseException: Another interrupter's exception, which came in the meantime.
        """
        if not self._is_open:
            return
        if self._shut(is_held=True):
            self._is_due = True

    def lift(self) -> None:
        """Undo `hold`, and raise a noted interrupt; does nothing if it was closed in between."""
        with self._lock:
            if not self._is_held:
                return
            self._is_held, self._is_open = False, True
            is_due, self._is_due = self._is_due, False  # after the last signal that is noted
        if is_due:
            self._raise()

    def _raise(self) -> None:
        raise self._error

    def _shut(self, *, is_held: bool) -> bool:
        """Stop interrupts from raising, and return whether one came in the meantime."""
        was_interrupted = False
        other: BaseException | None = None
        while self._is_open:
            try:
                with self._lock:
                    was_sent = self._take_back()
                    self._is_due = was_sent and is_held
                    self._is_open, self._is_held = False, is_held
            except self._error:  # it had already been sent
                was_interrupted = True
            except BaseException as error:  # noqa: BLE001 - of another interrupter; raised below
                other = error
        if other is not None:
            raise other
        return was_interrupted

    def remove(self) -> None:
        """Stop interrupting for good."""
        self.close()
        leave(self)

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
            Whether it will be raised: not if the code has ended, nor if another one is being sent.
        """
        with self._lock:
            if self._is_held:
                self._is_due = True
                return True
            return self._is_open and self._send()

    @abstractmethod
    def _send(self) -> bool:
        """Have the exception raised in the thread, and return whether it will be."""

    @abstractmethod
    def _take_back(self) -> bool:
        """Drop an interrupt that was sent; called on the thread itself.

        Returns:
            Whether one was sent that may not have arrived.
        """


class AsyncInterrupter(Interrupter):
    """Raises between two bytecode instructions, in any thread.

    Args:
        error: The exception to raise.
    """

    def __init__(self, error: type[BaseException]) -> None:
        super().__init__(error)
        self._is_sent = False

    def _send(self) -> bool:
        self._is_sent = True
        raise_in(self._thread, self._error)
        return True

    def _take_back(self) -> bool:
        was_sent, self._is_sent = self._is_sent, False
        if was_sent:  # else a pending exception may be another interrupter's
            _drop_pending()
        return was_sent


class SignalInterrupter(Interrupter):
    """Raises by a signal, in the main thread.

    Args:
        error: The exception to raise.
        signum: The signal. Its handler is ours from `install` to `remove`.
        takes_foreign: Whether the signal also interrupts if it was not sent by `interrupt`; else it
            is passed on to the previous handler.
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
        self._raised_at = float("-inf")
        self.signal_count = 0
        """Number of interrupting signals that have arrived, at any time."""

    def install(self) -> bool:
        """Install our handler.

        Returns:
            Whether that was possible: only the main thread can set handlers.
        """
        try:
            self._previous = set_handler(self._signum, self._handle)
        except ValueError:
            return False
        self._is_installed = True
        return True

    def remove(self) -> None:
        """Stop interrupting for good, and restore the old handler.

        This also replaces a handler that the code has set and left behind.
        """
        try:
            self.close()
            give_up_at = time.monotonic() + _SIGNAL_ARRIVES
            is_due = self._is_sent  # at least one round: of two signals, the last may be missing
            while is_due:
                # When a system call returns, a signal that was sent has arrived. Python runs the
                # handler between two instructions of this loop.
                time.sleep(0)
                is_due = not self._is_seen and time.monotonic() < give_up_at
        finally:
            # None: a handler that was not set from Python, which cannot be restored.
            if self._is_installed and self._previous is not None:
                set_handler(self._signum, self._previous)
            self._is_installed = False
            leave(self)

    def _send(self) -> bool:
        now = time.monotonic()
        is_on_its_way = self._is_sent and not self._is_seen
        if not self._is_installed or (is_on_its_way and now - self._sent_at < REPEAT_AFTER):
            return False
        if threading.get_ident() == self._thread:
            return False
        if signal.getsignal(self._signum) == signal.SIG_DFL:
            return False  # the code has restored the default handler, which may end the process
        self._is_sent, self._is_seen, self._sent_at = True, False, now
        if sys.platform == "win32":
            import _thread  # noqa: PLC0415

            _thread.interrupt_main(self._signum)
        else:
            signal.pthread_kill(self._thread, self._signum)
        return True

    def raise_unnoticed(self) -> None:
        """Raise in the code if Python has not handled its signal; from any thread."""
        with self._lock:
            if self.signal_count:
                return
            if self._is_held:
                self._is_due = True
            elif self._is_open:
                self._raised_at = time.monotonic()  # so the handler, which runs later, does not
                raise_in(self._thread, self._error)

    def _raise(self) -> None:
        self._raised_at = time.monotonic()
        raise self._error

    def _take_back(self) -> bool:
        """Do nothing: the handler raises only while the interrupter is open."""
        return False

    def _handle(self, signum: int, frame: types.FrameType | None) -> None:
        self._is_seen = True
        if not self._takes_foreign and not self._is_sent:
            if callable(self._previous):
                self._previous(signum, frame)
            return
        self.signal_count += 1
        if time.monotonic() - self._raised_at <= REPEAT_AFTER:
            return
        if self._is_open:
            self._raise()
        if self._is_held:
            self._is_due = True


class Shield:
    """Protects a block from interrupts of this thread, and raises them at its end.

    So the block always releases what it acquires. `run` runs the part that may be interrupted::

        with Shield() as shield:
            resource = acquire()
            try:
                return shield.run(use, resource)
            finally:
                resource.close()
    """

    def __init__(self) -> None:
        self._interrupters: list[Interrupter] = []

    def __enter__(self) -> Self:
        self._interrupters += [s for s in _here.scopes if isinstance(s, Interrupter)]
        self._hold()
        return self

    def __exit__(self, *exc: object) -> None:
        self._lift()

    def run(self, function: Callable[..., _Result], *args: Any) -> _Result:
        """Run code within the block that interrupts may stop.

        Args:
            function: Runs the code. Its result is lost if an interrupt comes as it ends.
            args: Its arguments.
        """
        try:
            try:
                self._lift()
                return function(*args)
            finally:
                self._hold()
        except BaseException:
            self._hold()  # again: it may just have been there that something was raised
            raise

    # Inner interrupters are held first and lifted last: an outer one's exception that is raised in
    # between also ends their code, and closes them.

    def _hold(self) -> None:
        for interrupter in reversed(self._interrupters):
            interrupter.hold()

    def _lift(self) -> None:
        for interrupter in self._interrupters:
            interrupter.lift()


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread, replacing a pending one.

    Args:
        thread: The thread's identifier.
        error: The exception.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class _Dropped(BaseException):
    """Takes the place of a pending exception."""


def _drop_pending() -> None:
    """Drop the exception that is pending in this thread.

    It is replaced by another one, which is raised here. Python can clear it without that, but up to
    3.12 then checks for it at every instruction forever: slower, and an endless loop in a debugger.
    """
    try:
        raise_in(threading.get_ident(), _Dropped)
        while True:
            pass  # it is raised at the end of the first round
    except _Dropped:
        pass
