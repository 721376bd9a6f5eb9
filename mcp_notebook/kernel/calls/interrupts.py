"""Interrupting the code of one call, and nothing else.

Runs in the user's kernel: a gate is entered on the thread of its call, `interrupt` is called from
any other. While a call runs on the main thread, SIGINT's handler is `InterruptGate`'s. A SIGINT
then raises KeyboardInterrupt in the tool's code, whether the user pressed "Interrupt" or another
thread asked for it with `InterruptGate.interrupt`. Before and after, the handler that was there
stays in force, and none of our signals is ever left pending for the user's next cell. `ThreadGate`
does the same for a call in its own thread, without signals. Coroutine calls are cancelled as tasks:
a KeyboardInterrupt inside the idle event loop would end the kernel. For them, `InterruptWatch`
receives the user's "Interrupt".

A SystemExit or KeyboardInterrupt that leaves a task ends asyncio's loop, and with it the kernel, so
a guarded task (`guard_coroutine`) raises something else. A task that never awaits blocks the kernel
as a sync tool does, so each of its `Steps` can be interrupted.
"""

import asyncio
import inspect
import signal
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol, Self

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.safe.interrupter import AsyncInterrupter, SignalInterrupter
from mcp_notebook.kernel.safe.text import describe_error

_LOOK_AGAIN, _LOOK_SELDOM = 0.001, 0.1
"""Seconds until the watch tries again to listen while a cell owns the signal: first and largest
interval (it doubles)."""


class Gate(Protocol):
    """A context manager that interrupts the code of one call."""

    @property
    def interrupted(self) -> bool:
        """Whether the user's "Interrupt" came while the call was active."""

    def __enter__(self) -> Self:
        """Take interrupts from now on."""

    def __exit__(self, *exc: object) -> None:
        """Stop taking interrupts; none is left pending."""

    def open(self) -> None:
        """Let interrupts raise from now on; an earlier one raises here."""

    def close(self) -> None:
        """Stop interrupts from raising."""

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the call, from another thread; return whether it will."""


class InterruptGate:
    """A gate on the main thread; elsewhere it takes no interrupts."""

    def __init__(self) -> None:
        self._interrupter = SignalInterrupter(KeyboardInterrupt, signal.SIGINT, takes_foreign=True)
        self._signals_before = 0
        """Number of signals when it was last closed: these have raised already."""

    @property
    def interrupted(self) -> bool:
        """Whether a SIGINT arrived since the gate was entered."""
        return self._interrupter.signal_count > 0

    def __enter__(self) -> Self:
        self._interrupter.install()
        return self

    def open(self) -> None:
        """Let signals raise from now on; a SIGINT since the gate was closed raises here."""
        self._interrupter.open()
        if self._interrupter.signal_count > self._signals_before:
            self._interrupter.close()
            raise KeyboardInterrupt

    def close(self) -> None:
        """Stop signals from raising; one that arrives right now raises here."""
        was_interrupted = self._interrupter.close()
        self._signals_before = self._interrupter.signal_count
        if was_interrupted:
            raise KeyboardInterrupt

    def __exit__(self, *exc: object) -> None:
        self._interrupter.remove()

    def raise_unnoticed(self) -> None:
        """Raise KeyboardInterrupt in the call for a SIGINT that Python has not noticed."""
        self._interrupter.raise_unnoticed()

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the call, from another thread.

        Returns:
            Whether a signal was sent. None is sent when the call has ended; when a signal is
            already on its way; when the call itself asks (it unloads the extension); and when its
            code has restored SIGINT's default, so that the signal would end the kernel.
        """
        return self._interrupter.interrupt()


class ThreadGate:
    """A gate in the thread of one call.

    An exception that is set from outside is raised between two Python instructions, so code that
    does not return to Python is not reached. Interrupts while the gate is closed are dropped.
    """

    interrupted = False
    """The user's "Interrupt" does not reach other threads by itself."""

    def __init__(self) -> None:
        self._interrupter = AsyncInterrupter(KeyboardInterrupt)

    def __enter__(self) -> Self:
        return self

    def open(self) -> None:
        """Let interrupts raise from now on."""
        self._interrupter.open()

    def close(self) -> None:
        """Stop interrupts from raising; a pending one raises here."""
        if self._interrupter.close():
            raise KeyboardInterrupt

    def __exit__(self, *exc: object) -> None:
        self._interrupter.remove()

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the call, from another thread.

        Returns:
            Whether the gate was open.
        """
        return self._interrupter.interrupt()


class InterruptWatch:
    """Receives the user's "Interrupt" while calls run off the main thread.

    ipykernel ignores SIGINT between cells. Used on the main thread only.

    Args:
        loop: The main thread's event loop.
        on_interrupt: Called on the loop when the user interrupts and no cell runs.
        is_cell_running: Returns whether a cell runs: the user then interrupts that. An async cell
            runs concurrently with calls, under a handler of ipykernel's that cannot be recognised.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_interrupt: Callable[[], None],
        is_cell_running: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._on_interrupt = on_interrupt
        self._is_cell_running = is_cell_running
        self._calls = 0
        self._previous: Any = signal.SIG_IGN
        self._due = False
        self._look_after = _LOOK_AGAIN

    def acquire(self) -> None:
        """Listen, from now on or from the end of the running cell."""
        self._calls += 1
        self._refresh()

    def release(self) -> None:
        """Stop listening when the last call stops."""
        self._calls -= 1
        self._refresh()

    def _refresh(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # the kernel runs in another thread, which receives no signals
        current = signal.getsignal(signal.SIGINT)
        is_cells = current is signal.default_int_handler or self._is_cell_running()
        if self._calls and is_cells and current != self._handle:
            # ipykernel's handler, while a cell runs: the user interrupts the cell.
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
        elif callable(self._previous):  # a cell that began earlier has restored this handler
            self._previous(signum, frame)


class Steps:
    """The steps of one call's tasks; one runs at a time."""

    def __init__(self) -> None:
        self._gate: InterruptGate | None = None
        self._interrupted = False

    @property
    def interrupted(self) -> bool:
        """Whether a SIGINT arrived during a step, including the current one."""
        return self._interrupted or (self._gate is not None and self._gate.interrupted)

    def run(self, step: Callable[..., Any], *args: Any) -> Any:
        """Run a step; on the main thread.

        Raises:
            KeyboardInterrupt: It was interrupted.
        """
        outer, self._gate = self._gate, InterruptGate()  # a tool may run a nested loop
        try:
            with self._gate as gate:
                try:
                    gate.open()
                    return step(*args)
                finally:
                    gate.close()
        finally:
            self._interrupted = self._interrupted or gate.interrupted
            self._gate = outer

    def interrupt(self) -> bool:
        """Raise KeyboardInterrupt in the current step, from another thread.

        Returns:
            Whether a step was running.
        """
        gate = self._gate
        return gate is not None and gate.interrupt()


def guard_coroutine(coroutine: Any, steps: Steps) -> Any:
    """Wrap a coroutine so that it raises nothing that would end the loop.

    Args:
        coroutine: The coroutine of a task; anything else is returned unchanged.
        steps: The steps of its call's tasks.
    """
    return _Guarded(coroutine, steps) if inspect.iscoroutine(coroutine) else coroutine


class _Guarded(Coroutine[Any, Any, Any]):
    """A coroutine that wraps another.

    Not an ``async def``: if that were cancelled before its first step, the inner coroutine would
    never start, and Python would warn about it.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._coroutine = coroutine
        self._steps = steps

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coroutine.throw, *error)

    def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        try:
            try:
                return self._steps.run(step, *args)
            except KeyboardInterrupt as error:
                if inspect.getcoroutinestate(self._coroutine) != inspect.CORO_SUSPENDED:
                    raise
                # The interrupt came just after the step, whose result is lost.
                return self._coroutine.throw(error)
        except (KeyboardInterrupt, SystemExit) as error:
            if isinstance(error, KeyboardInterrupt) and self._steps.interrupted:
                raise asyncio.CancelledError from error
            raise ToolError(
                f"A task that the tool started raised {describe_error(error)}."
            ) from error

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()
