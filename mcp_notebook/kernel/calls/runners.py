"""Where calls run: on the main thread between cells, in a thread each, or inside a cell.

Runs in the user's kernel. A runner can be started from any thread. It calls ``on_result`` exactly
once, even if code of ours raises, or never if the call was stopped before it began.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError as FutureCancelled
from functools import partial
from time import monotonic
from typing import Any, Protocol

from mcp_notebook.content import Result
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.environment import CallEnvironment
from mcp_notebook.kernel.calls.execution import Execution
from mcp_notebook.kernel.calls.interrupts import Gate, InterruptGate, InterruptWatch, ThreadGate
from mcp_notebook.kernel.calls.outcome import error_result, last_result
from mcp_notebook.kernel.tools.options import RunMode

_LOOK = 0.1
"""Seconds between two checks for the user's interrupt of a cell."""


class Cells:
    """The user's cells: whether one runs, and the ContextVars that the last one left.

    Written on the main thread, read on any.

    Args:
        environment: Has patches between cells only.
    """

    def __init__(self, environment: CallEnvironment) -> None:
        self._environment = environment
        self.since: float | None = None
        """When the running cell started, on the monotonic clock; None if none runs."""
        self._context = contextvars.copy_context()

    def begin(self) -> None:
        """A cell starts."""
        self.since = monotonic()
        self._environment.begin_cell()

    def end(self) -> None:
        """A cell has ended; calls see the ContextVars that it set."""
        self.since = None
        self._context = contextvars.copy_context()
        self._environment.end_cell()

    def is_running(self) -> bool:
        """Return whether a cell runs."""
        return self.since is not None

    def copy_context(self) -> contextvars.Context:
        """Return the ContextVars that a cell would see."""
        return self._context.copy()


class Runner(Protocol):
    """A place where calls run."""

    def start(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        """Run a call now or later, and hand its result to `on_result`.

        Args:
            call: It waits in the queue.
            on_result: Called once, on the thread where the code ended.
        """


class _OutsideCellsRunner:
    """Base of the runners whose calls run outside of cells.

    Args:
        loop: The main thread's event loop.
        execution: Runs the code.
        watch: Receives the user's "Interrupt" while calls run off the main thread.
        cells: The user's.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        execution: Execution,
        watch: InterruptWatch,
        cells: Cells,
    ) -> None:
        self._loop = loop
        self._execution = execution
        self._watch = watch
        self._cells = cells

    def _run(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        # On the main thread, this is a callback of the loop: an exception could end the kernel.
        try:
            self._cells.copy_context().run(self._run_in_context, call, on_result)
        except BaseException as error:  # noqa: BLE001 - of our own code: the call needs an answer
            on_result(last_result(call, error))

    def _run_in_context(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        """Run a call in the context that a cell would see."""
        raise NotImplementedError


class MainRunner(_OutsideCellsRunner):
    """Runs calls on the main thread between cells; coroutines run concurrently on its loop.

    Args:
        parts: Those of `_OutsideCellsRunner`.
        choose: Returns the one of the waiting calls whose turn it is.
    """

    def __init__(self, *parts: Any, choose: Callable[[Sequence[ActiveCall]], ActiveCall]) -> None:
        super().__init__(*parts)
        self._choose = choose
        self._waiting: dict[ActiveCall, Callable[[Result], None]] = {}
        """The calls that wait for the main thread, oldest first; each has a callback on the loop.
        Added on any thread, removed on the main thread."""

    def start(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        """Schedule a call on the loop."""
        self._waiting[call] = on_result
        self._loop.call_soon_threadsafe(self._run_next)

    def _run_next(self) -> None:
        waiting = tuple(self._waiting)
        try:
            call = self._choose(waiting)
        except Exception:  # noqa: BLE001 - of our own code: each call needs its turn
            call = waiting[0]
        self._run(call, self._waiting.pop(call))

    def _run_in_context(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        gate = InterruptGate()
        if not self._execution.begin(call, gate.interrupt):
            return
        outcome = self._execution.run(call, gate, partial(self._start_task, on_result))
        if isinstance(outcome, Result):
            on_result(outcome)  # otherwise it is a task, which calls `on_result` later

    def _start_task(
        self,
        on_result: Callable[[Result], None],
        call: ActiveCall,
        coroutine: Coroutine[Any, Any, Any],
    ) -> "asyncio.Task[Result | BaseException]":
        self._execution.environment.acquire()
        context = contextvars.copy_context()
        task = self._loop.create_task(self._await(call, coroutine), context=context)
        self._loop.call_soon(self._watch.acquire)  # later: this step owns SIGINT
        task.add_done_callback(partial(self._finish, call, on_result), context=context)
        call.set_interrupt(partial(_cancel_task, self._loop, task))
        if call.stop_request is not None:
            # Later: a task that has not started would never await the coroutine.
            self._loop.call_soon(task.cancel)
        return task

    async def _await(
        self, call: ActiveCall, coroutine: Coroutine[Any, Any, Any]
    ) -> Result | BaseException:
        # A BaseException that left the task could end the kernel's loop.
        try:
            return self._execution.converter.convert_value(call, await coroutine)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            return error

    def _finish(
        self,
        call: ActiveCall,
        on_result: Callable[[Result], None],
        task: "asyncio.Task[Result | BaseException]",
    ) -> None:
        # Not in the task, whose steps can be interrupted, even while the result is sent.
        try:
            outcome = task.result()
        except BaseException as error:  # noqa: BLE001 - an interrupt at the end of the last step
            outcome = error
        try:
            if not isinstance(outcome, Result):
                by_user = call.capture.steps.interrupted
                outcome = self._execution.convert_error(call, outcome, by_user=by_user)
        except BaseException as error:  # noqa: BLE001 - as in `_run`
            outcome = last_result(call, error)
        self._execution.environment.release()
        on_result(outcome)
        self._watch.release()


class ThreadRunner(_OutsideCellsRunner):
    """Runs each call in a new thread, even while a cell runs."""

    def start(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        """Run a call at once; it fails if the system has no more threads."""
        self._loop.call_soon_threadsafe(self._watch.acquire)
        # Not a pool, whose threads would be joined when the kernel ends.
        thread = threading.Thread(
            target=self._run_thread,
            args=(call, on_result),
            name=f"mcp-notebook-{call.tool}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._loop.call_soon_threadsafe(self._watch.release)
            text = f"The {call.kind} {call.tool!r} cannot be run: {error}. Try again."
            on_result(error_result(text))

    def _run_thread(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        self._run(call, on_result)
        with contextlib.suppress(RuntimeError):  # the kernel has ended
            self._loop.call_soon_threadsafe(self._watch.release)

    def _run_in_context(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        gate = ThreadGate()
        if self._execution.begin(call, gate.interrupt):
            on_result(self._execution.run(call, gate, partial(self._await, gate)))

    def _await(self, gate: Gate, call: ActiveCall, coroutine: Coroutine[Any, Any, Any]) -> Result:
        # The gate is closed while the loop exists: an exception while it is created or closed would
        # leave its sockets open. Code on the loop is cancelled as a task.
        async def wait() -> Any:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            call.set_interrupt(partial(_cancel_task, loop, task))
            try:
                if call.stop_request is not None:
                    raise asyncio.CancelledError
                return await coroutine
            finally:
                call.set_interrupt(gate.interrupt)

        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            value = runner.run(wait(), context=contextvars.copy_context())
        return self._execution.convert_in_gate(call, gate, value)


class InlineRunner:
    """Runs calls inside the cell that asks for them, before `start` returns.

    The cell holds the main thread's event loop, so a coroutine gets a loop in another thread.

    Args:
        execution: Runs the code.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def start(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        """Run a call to its end."""
        try:
            contextvars.copy_context().run(self._run, call, on_result)
        except BaseException as error:  # noqa: BLE001 - as in `_OutsideCellsRunner`
            on_result(last_result(call, error))

    def _run(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        gate = InterruptGate()
        if self._execution.begin(call, gate.interrupt):
            on_result(self._execution.run(call, gate, partial(self._await, gate)))

    def _await(
        self, gate: InterruptGate, call: ActiveCall, coroutine: Coroutine[Any, Any, Any]
    ) -> Result:
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - for %mcp call only

        async def wait() -> Any:
            with self._execution.environment.route_outputs(call.capture):
                return await coroutine

        with start_blocking_portal() as portal:
            future = portal.start_task_soon(wait)
            call.set_interrupt(future.cancel)
            if call.stop_request is not None:
                future.cancel()
            try:
                gate.open()
                return self._execution.converter.convert_value(call, future.result())
            except FutureCancelled:
                raise asyncio.CancelledError from None
            except BaseException:
                future.cancel()
                raise
            finally:
                gate.close()


def _cancel_task(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]") -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the coroutine has ended
        loop.call_soon_threadsafe(task.cancel)


def _run_and_wait(
    runner: Runner,
    call: ActiveCall,
    on_result: Callable[[Result], None],
    on_interrupt: Callable[[], None],
) -> None:
    """Run a call inside the cell that asks for it, and wait for its end.

    Args:
        runner: Runs it.
        call: A call in the queue.
        on_result: Called once, on the thread where the code ended.
        on_interrupt: Called when the user interrupts the cell.
    """
    ended = threading.Event()

    def end(result: Result) -> None:
        on_result(result)
        ended.set()

    try:
        with InterruptGate() as gate:  # an interrupt raises only once the call has started
            runner.start(call, end)
            try:
                gate.open()
                # A signal that arrives just before a wait does not end it.
                while not ended.wait(_LOOK):
                    pass
            finally:
                gate.close()
    except KeyboardInterrupt:
        on_interrupt()
        if call.began is not None:  # otherwise it never will, and was answered
            ended.wait()


class Runners:
    """Starts each call with the runner for its tool's `run` mode.

    Args:
        loop: The main thread's event loop.
        execution: Runs the code.
        fork_runner: Runs calls in copies of the kernel.
        choose: Returns the one of several waiting calls whose turn it is.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        execution: Execution,
        fork_runner: type[ThreadRunner],
        choose: Callable[[Sequence[ActiveCall]], ActiveCall],
    ) -> None:
        self.cells = Cells(execution.environment)
        """The user's cells, which calls run between."""
        self._execution = execution
        watch = InterruptWatch(loop, execution.stopper.interrupt_all, self.cells.is_running)
        parts = (loop, execution, watch, self.cells)
        self._runners: dict[RunMode, Runner] = {
            "main": MainRunner(*parts, choose=choose),
            "thread": ThreadRunner(*parts),
            "fork": fork_runner(*parts),
        }
        self._inline_runner = InlineRunner(execution)

    def start(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        """Run a call now or later; `on_result` is called on any thread."""
        self._runners[call.run].start(call, on_result)

    def run_here(self, call: ActiveCall, on_result: Callable[[Result], None]) -> None:
        """Run a call to its end, inside the cell that asks for it."""
        if call.run == "fork":
            interrupt = partial(self._execution.stopper.interrupt, call)
            _run_and_wait(self._runners["fork"], call, on_result, interrupt)
        else:
            self._inline_runner.start(call, on_result)

    def close(self) -> None:
        """Undo the patches of the process; on the main thread."""
        self._execution.environment.close()
