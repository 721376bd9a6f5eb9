"""Stopping the code of one call, and nothing else.

While a call runs on the main thread, SIGINT's handler is `InterruptGate`'s. A SIGINT then raises
KeyboardInterrupt in the tool's code, whether the user pressed "Interrupt" or another thread asked
for it with `InterruptGate.interrupt`. Before and after, the handler that was there stays in force,
and no signal of ours is ever left over for the user's next cell. `ThreadGate` does the same for a
call in a thread of its own, without signals. Coroutine calls are cancelled as tasks: a
KeyboardInterrupt inside the idle event loop would end the kernel. `InterruptWatch` hears the user's
"Interrupt" for them.

Runs in the user's kernel: a gate is entered on the thread of its call, `interrupt` is called from
any other.
"""

import asyncio
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any, Protocol, Self

from mcp_notebook.kernel.safe.threads import raise_in

_SIGNAL_ARRIVES = 1.0
"""Seconds to wait for a signal that was sent to be seen; it takes microseconds."""
_AGAIN_AFTER = 0.5
"""Seconds after which another signal raises again: the tool's code caught the first one. Our own
code that the first one leaves through takes microseconds."""
_LOOK_AGAIN, _LOOK_SELDOM = 0.001, 0.1
"""Seconds until the watch tries again to listen, while a cell has the signal: at first, and at most
after doubling."""


class Gate(Protocol):
    """A context manager around the code of one call, by which it is interrupted."""

    @property
    def interrupted(self) -> bool:
        """Whether the user's "Interrupt" came while the call was active."""

    def __enter__(self) -> Self:
        """Take interrupts from now on."""

    def __exit__(self, *exc: object) -> None:
        """Take none any more; none is left over."""

    def open(self) -> None:
        """Let interrupts raise from now on; one that came early raises here."""

    def close(self) -> None:
        """Let interrupts raise no more."""

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the call, from another thread; return whether that is due."""


class InterruptGate:
    """A context manager around the code of one call on the main thread.

    Three rules make it safe; they are what remained after many thousand cancels at random moments:

    1. The sender sends (once) while it holds the lock under which the call is declared active and,
       at its end, no longer active. So no signal is sent for a call that has ended.
    2. The handler raises only between `open` and `close`: while the tool's own code runs. A signal
       that comes later is noted and raises nothing.
    3. A gate that was sent a signal does not put the old handler back before it has seen it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = False
        self._sent = False
        self._seen = False
        self._raising = False
        self._raised_at = 0.0
        self._previous: Any = None
        self._installed = False
        self.interrupted = False
        """A SIGINT came while the call was active."""

    def __enter__(self) -> Self:
        try:
            self._previous = signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        except ValueError:
            # The kernel does not run on the process's main thread: nothing can be interrupted.
            return self
        with self._lock:
            self._active = True
        return self

    def open(self) -> None:
        """Let signals raise from now on; one that came early raises here."""
        self._raising = True
        if self.interrupted:
            self.close()
            raise KeyboardInterrupt

    def close(self) -> None:
        """Let signals raise no more."""
        self._raising = False

    def __exit__(self, *exc: object) -> None:
        self._raising = False
        if not self._installed:
            return
        with self._lock:
            self._active = False
        deadline = time.monotonic() + _SIGNAL_ARRIVES
        while self._sent and not self._seen and time.monotonic() < deadline:
            time.sleep(0)  # Python runs the handler between two instructions of this loop
        # A tool may have installed a handler of its own and left it: it goes with the call.
        signal.signal(signal.SIGINT, self._previous)

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the call, from another thread.

        Returns:
            Whether a signal was sent: not when the call has ended, or one is on its way; when the
            call itself asks (it unloads the extension); when its code has put SIGINT's default in
            place, by which the signal would end the kernel.
        """
        main = threading.main_thread().ident
        with self._lock:
            if not self._active or (self._sent and not self._seen):
                return False
            if threading.get_ident() == main:
                return False
            if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
                return False
            self._sent, self._seen = True, False
            if sys.platform == "win32":
                import _thread  # noqa: PLC0415

                _thread.interrupt_main()
            else:
                assert main is not None
                signal.pthread_kill(main, signal.SIGINT)
            return True

    def _handle(self, _signum: int, _frame: types.FrameType | None) -> None:
        self._seen = True
        self.interrupted = True
        now = time.monotonic()
        if self._raising and now - self._raised_at > _AGAIN_AFTER:
            self._raised_at = now
            raise KeyboardInterrupt


class ThreadGate:
    """A context manager around the code of one call in a thread of its own.

    What is raised there from outside arrives between two instructions of Python; code that does not
    come back to Python is not reached. Nothing is left over when the block has been left.
    """

    interrupted = False
    """The user's "Interrupt" does not come here by itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        return self

    def open(self) -> None:
        """Do nothing: an interrupt is held back only outside of the block."""

    def close(self) -> None:
        """Do nothing, as `open`."""

    def __exit__(self, *exc: object) -> None:
        while self._thread is not None:
            try:
                with self._lock:
                    raise_in(self._thread, None)
                    self._thread = None
            except KeyboardInterrupt:  # it was on its way
                continue

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the call, from another thread.

        Returns:
            Whether the call was still there.
        """
        with self._lock:
            if self._thread is not None:
                raise_in(self._thread, KeyboardInterrupt)
            return self._thread is not None


class InterruptWatch:
    """Hears the user's "Interrupt" while calls run that do not hold the main thread.

    ipykernel ignores SIGINT between cells. Used on the main thread only.

    Args:
        loop: The main thread's event loop.
        on_interrupt: Called on the loop when the user asks to interrupt and no cell runs.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_interrupt: Callable[[], None]) -> None:
        self._loop = loop
        self._on_interrupt = on_interrupt
        self._calls = 0
        self._previous: Any = signal.SIG_IGN
        self._due = False
        self._look_after = _LOOK_AGAIN

    def acquire(self) -> None:
        """Listen, from now on or when the cell that runs has ended."""
        self._calls += 1
        self._refresh()

    def release(self) -> None:
        """Stop listening when the last one stops."""
        self._calls -= 1
        self._refresh()

    def _refresh(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # the kernel runs in a thread, which gets no signals
        current = signal.getsignal(signal.SIGINT)
        if self._calls and current is signal.default_int_handler:
            # ipykernel's, for the time of a cell: that one is the user's to interrupt.
            if not self._due:
                self._due = True
                self._loop.call_later(self._look_after, self._look_again)
                self._look_after = min(2 * self._look_after, _LOOK_SELDOM)
            return
        self._look_after = _LOOK_AGAIN
        if self._calls and current != self._handle:
            self._previous = signal.signal(signal.SIGINT, self._handle)
        elif not self._calls and current == self._handle:
            signal.signal(signal.SIGINT, self._previous)

    def _look_again(self) -> None:
        self._due = False
        self._refresh()

    def _handle(self, signum: int, frame: types.FrameType | None) -> None:
        if self._calls:
            self._loop.call_soon_threadsafe(self._on_interrupt)
        elif callable(self._previous):  # it was put back by a cell that began before the last end
            self._previous(signum, frame)
