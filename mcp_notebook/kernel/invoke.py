"""Runs calls: validate, run the function, capture what it shows, turn the outcome into a result.

Runs in the user's kernel. `Invoker.submit` and `Invoker.cancel` are called on the endpoint's
thread; the functions run on the main thread, between cells, as if the user had run a cell
(coroutines on its event loop, many at a time). Whatever a tool raises, nothing leaves `Invoker` but
a `content.Result`, handed to the call's `reply` exactly once: a KeyboardInterrupt that escaped into
the event loop would end the kernel.

Not here: sending results (`kernel.endpoint`), what a value becomes (`kernel.results`), stopping the
main thread (`kernel.interrupts`).
"""

import asyncio
import contextvars
import inspect
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import Cancelled, UnknownTool
from mcp_notebook.kernel.capture import Capture, OutputRouter, current_capture
from mcp_notebook.kernel.interrupts import InterruptGate
from mcp_notebook.kernel.pyplot import close_figures, holds
from mcp_notebook.kernel.results import Converter
from mcp_notebook.kernel.tools import ToolRegistry

logger = logging.getLogger(__name__)


class _Run:
    """What `Invoker` needs while one call runs: its captured output."""

    def __init__(self, call: "ActiveCall") -> None:
        self.call = call
        self.capture = Capture()


class CallState(Enum):
    """Where a call is on its way; it only ever moves downwards."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(eq=False)
class ActiveCall:
    """A call from its arrival to its result. `Invoker` writes it, under its lock."""

    tool: str
    arguments: dict[str, Any]
    reply: Callable[[Result], None]
    """Takes the result; called once, on the thread that the call ran on."""
    state: CallState = CallState.WAITING
    since: float = field(default_factory=time.monotonic)
    """When the state was entered, on the monotonic clock, in seconds."""
    cancelled: str | None = None
    """Why the call was asked to stop, if it was."""
    gate: InterruptGate | None = None
    """Stops the call while it runs on the main thread."""
    task: "asyncio.Task[None] | None" = None
    """Stops the call while it runs as a coroutine."""


class Invoker:
    """Runs the calls of one notebook.

    Args:
        shell: The notebook's IPython.
        loop: The main thread's event loop.
        registry: Where the tools are.
        converter: Makes results of values.
        max_calls: Calls that may wait or run at once.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        loop: asyncio.AbstractEventLoop,
        registry: ToolRegistry,
        converter: Converter,
        *,
        max_calls: int,
    ) -> None:
        self._shell = shell
        self._loop = loop
        self._registry = registry
        self._converter = converter
        self._max_calls = max_calls
        self._router = OutputRouter(shell, loop)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._calls: list[ActiveCall] = []
        self._context = contextvars.copy_context()
        self._cell_since: float | None = None

    # -- what the notebook tells us (main thread) --------------------------------------------------

    def cell_started(self) -> None:
        """A cell of the user's begins to run."""
        self._cell_since = time.monotonic()

    def cell_ended(self) -> None:
        """A cell of the user's ended; calls see the ContextVars that it left."""
        self._cell_since = None
        self._context = contextvars.copy_context()

    # -- what the endpoint asks for (its thread) ---------------------------------------------------

    def submit(
        self, tool: str, arguments: dict[str, Any], reply: Callable[[Result], None]
    ) -> ActiveCall:
        """Take a call; its result goes to `reply`, sooner or later, exactly once."""
        call = ActiveCall(tool, arguments, reply)
        with self._lock:
            busy = len(self._calls) >= self._max_calls
            if not busy:
                self._calls.append(call)
        if busy:
            call.state = CallState.DONE
            reply(
                _error(
                    f"The kernel is busy: {self._max_calls} calls are running or waiting already. "
                    "Try again when some of them have ended."
                )
            )
            return call
        self._loop.call_soon_threadsafe(self._start, call)
        return call

    def cancel(self, call: ActiveCall, reason: str) -> None:
        """Stop a call: it is answered when its code has stopped, at once if it has not begun."""
        with self._lock:
            if call.state is CallState.DONE or call.cancelled is not None:
                return
            call.cancelled = reason
            waiting = call.state is CallState.WAITING
            gate, task = call.gate, call.task
        if waiting:
            self._finish(call, self._converter.failure(Cancelled(reason), ()))
        elif gate is not None:
            gate.interrupt()
        elif task is not None:
            self._loop.call_soon_threadsafe(task.cancel)

    def describe(self, call: ActiveCall) -> str:
        """Say in a sentence what a call is doing, for a client that wants to know."""
        seconds = time.monotonic() - call.since
        if call.state is not CallState.WAITING:
            return f"running for {seconds:.0f} s"
        before = [other for other in self.calls if other.since < call.since]
        cell_since = self._cell_since
        if cell_since is not None:
            reason = f"a cell has been running for {time.monotonic() - cell_since:.0f} s"
        elif any(other.state is CallState.RUNNING for other in before):
            reason = "another call is running"
        else:
            reason = "the kernel's main thread is busy"
        queue = f"; {len(before)} calls before this one" if before else ""
        return f"waiting: {reason}{queue}"

    @property
    def calls(self) -> tuple[ActiveCall, ...]:
        """The calls that wait or run now, oldest first."""
        with self._lock:
            return tuple(self._calls)

    # -- running (main thread) ---------------------------------------------------------------------

    def run_here(self, tool: str, arguments: dict[str, Any]) -> Result:
        """Run a call inside the cell that asks for it, and return its result.

        The cell holds the main thread's event loop, so a coroutine gets a loop in another thread.
        """
        results: list[Result] = []
        call = ActiveCall(tool, arguments, results.append)
        with self._lock:
            self._calls.append(call)
        contextvars.copy_context().run(self._run, call, self._await_elsewhere)
        return results[0]

    def close(self, reason: str) -> None:
        """Answer all calls that wait, and stop those that run."""
        for call in self.calls:
            self.cancel(call, reason)

    def abandon_in_child(self) -> None:
        """In a forked child: end it before the kernel's loop runs in it, as a second kernel."""
        if current_capture() is not None:  # otherwise it is not a call that forked
            self._loop.call_soon(os._exit, 0)

    def _start(self, call: ActiveCall) -> None:
        # A callback of the loop: an exception that left it could end the kernel.
        self._context.copy().run(self._run, call, self._await_on_loop)

    def _run(self, call: ActiveCall, wait: Callable[[_Run, Awaitable[Any]], Result | None]) -> None:
        gate = InterruptGate()
        with self._lock:
            if call.state is CallState.DONE:
                return
            call.state, call.since, call.gate = CallState.RUNNING, time.monotonic(), gate
        run = _Run(call)
        try:
            with self._router.routed(), run.capture.active(), run.capture.figures, gate:
                result = self._run_gated(run, gate, wait)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            result = self._failure(run, error)
        if result is not None:
            self._finish(call, result)

    def _run_gated(
        self,
        run: _Run,
        gate: InterruptGate,
        wait: Callable[[_Run, Awaitable[Any]], Result | None],
    ) -> Result | None:
        try:
            gate.open()
            if run.call.cancelled is not None:  # it came before the gate took signals
                raise Cancelled(run.call.cancelled)
            tool = self._registry.get(run.call.tool)
            if tool is None:
                raise UnknownTool(run.call.tool, tuple(tool.name for tool in self._registry.tools))
            value = tool.function(**tool.schema.validate(run.call.arguments))
            if not inspect.isawaitable(value):
                return self._convert(run, value)
        finally:
            gate.close()
        return wait(run, value)

    def _await_on_loop(self, run: _Run, value: Awaitable[Any]) -> None:
        self._router.acquire()
        with self._lock:
            run.call.gate = None
            run.call.task = task = self._loop.create_task(
                self._await(run, value), context=contextvars.copy_context()
            )
        if run.call.cancelled is not None:
            # Later: a task that has not begun would not get to the answer in `_await`.
            self._loop.call_soon(task.cancel)

    async def _await(self, run: _Run, value: Awaitable[Any]) -> None:
        # What left a task besides Exception and CancelledError would end the kernel's loop.
        try:
            result = self._convert(run, await value)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            result = self._failure(run, error)
        finally:
            self._router.release()
        self._finish(run.call, result)

    def _await_elsewhere(self, run: _Run, value: Awaitable[Any]) -> Result:
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - for %mcp call only

        async def awaited() -> Any:
            return await value

        with start_blocking_portal() as portal:
            future = portal.start_task_soon(awaited)
            try:
                return self._convert(run, future.result())
            except BaseException:
                future.cancel()
                raise

    def _convert(self, run: _Run, value: Any) -> Result:
        figures = run.capture.figures.still_open()
        for figure in figures:
            if not holds(value, figure):
                data, metadata = self._shell.display_formatter.format(figure)
                run.capture.show(data, metadata, None)
        try:
            # The outputs are read at last: an object's own display method may print or show.
            return self._converter.result(value, lambda: run.capture.outputs)
        finally:
            close_figures(figures)

    def _failure(self, run: _Run, error: BaseException) -> Result:
        call = run.call
        if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            if call.cancelled is not None:
                error = Cancelled(call.cancelled)
            elif call.gate is not None and call.gate.interrupted:
                error = Cancelled("The user interrupted the call in the notebook.")
        try:
            close_figures(run.capture.figures.still_open())
            return self._converter.failure(error, run.capture.outputs)
        except BaseException:  # noqa: BLE001 - an exception's own str or repr may do anything
            return _error(f"The tool {call.tool!r} failed with {type(error).__name__}.")

    def _finish(self, call: ActiveCall, result: Result) -> None:
        if os.getpid() != self._pid:
            # A child that the tool forked and that came back out of the tool's code. It is no
            # kernel: with its copies of the kernel's sockets it must answer nobody.
            os._exit(0)
        with self._lock:
            if call.state is CallState.DONE:
                return
            call.state = CallState.DONE
            self._calls.remove(call)
        try:
            call.reply(result)
        except RuntimeError:
            # The endpoint's loop is closed: the extension is being unloaded, nobody waits.
            logger.debug("nobody takes the result of %s", call.tool)


def _error(text: str) -> Result:
    return Result([Text(text)], is_error=True)
