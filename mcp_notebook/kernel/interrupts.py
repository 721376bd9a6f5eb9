"""Stopping what runs on the kernel's main thread, and nothing else.

While a call runs on the main thread, SIGINT's handler is `InterruptGate`'s. A SIGINT then raises
KeyboardInterrupt in the tool's code, whether the user pressed "Interrupt" or another thread asked
for it with `InterruptGate.interrupt`. Before and after, the handler that was there stays in force,
and no signal of ours is ever left over for the user's next cell.

Runs in the user's kernel: the gate is entered on the main thread, `interrupt` is called from the
endpoint's thread. Coroutine calls do not come here: a KeyboardInterrupt inside the idle event loop
would end the kernel.
"""

import signal
import sys
import threading
import time
import types
from typing import Any, Self

_SIGNAL_ARRIVES = 1.0
"""Seconds to wait for a signal that was sent to be seen; it takes microseconds."""


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
            Whether a signal was sent: not when the call has ended, or was interrupted before; when
            the call itself asks (it unloads the extension); when its code has put SIGINT's default
            in place, by which the signal would end the kernel.
        """
        main = threading.main_thread().ident
        with self._lock:
            if not self._active or self._sent or threading.get_ident() == main:
                return False
            if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
                return False
            self._sent = True
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
        if self._raising:
            self._raising = False
            raise KeyboardInterrupt
