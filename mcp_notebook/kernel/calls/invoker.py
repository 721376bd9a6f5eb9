"""Runs calls: validate, run the function, capture what it shows, turn the outcome into a result.

Runs in the user's kernel. `Invoker.submit` and `Invoker.cancel` are called on the endpoint's
thread; the functions run on the main thread between cells, as if the user had run a cell
(coroutines on its event loop, many at a time), or in a thread of their own, also while a cell runs.
Whatever a tool raises, nothing leaves `Invoker` but a `content.Result`, handed to the call's
`reply` exactly once: a KeyboardInterrupt that escaped into the event loop would end the kernel.

A call is stopped by its client, by the user or by its time limit, always in the same way: its code
is asked to stop, and it is answered when the code has stopped, or after `STOP_LIMIT` if it does not
react.

Not here: what a call's states are (`kernel.calls.call`), sending results (`kernel.link.endpoint`),
what a value becomes (`kernel.results.converter`), how code is stopped (`kernel.calls.interrupts`).
"""

import asyncio
import contextlib
import contextvars
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import (
    CallError,
    Cancelled,
    CannotElicit,
    TimedOut,
    ToolError,
    UnknownTool,
)
from mcp_notebook.kernel.calls.call import Call, CallState, describe
from mcp_notebook.kernel.calls.capture import Capture, OutputRouter, current_capture
from mcp_notebook.kernel.calls.interrupts import InterruptGate, InterruptWatch, ThreadGate
from mcp_notebook.kernel.calls.logs import Logs
from mcp_notebook.kernel.calls.progress_bars import ProgressBarPatcher, ProgressBars
from mcp_notebook.kernel.calls.pyplot import Figures, close_figures, open_figures
from mcp_notebook.kernel.calls.result_cache import ResultCache, Ticket
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.schemas.output_schema import OutputSchema
from mcp_notebook.kernel.tools.context import LEVELS, NO_CLIENT, Client, Context, LogMessage, Update
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.elicitation import Elicitations
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.settings import Settings

logger = logging.getLogger(__name__)

STOP_LIMIT = 1.0
"""Seconds that stopped code has until its call is answered without it."""
_WORKER_LOOK = 0.1
"""Seconds between two looks at whether an executor's worker has begun."""

RESTART_FOLLOWS = 0.2
"""Seconds that the answer of a call that the user interrupted is held back: a restart begins with
an interrupt, and the goodbye that follows tells the client what happened."""
_BROKEN = (
    "A worker of the executor of {!r} ended: {} The executor is of no more use: the user has to "
    "make a new one and declare the tool again. (A worker process must be able to import the "
    "function: put it into a module.)"
)
_INTERRUPTED = "The user interrupted the call in the notebook."
_ENDED = "The question cannot be answered any more: the call that asked has ended."


@dataclass(eq=False)
class ActiveCall(Call):
    """A call with what its run needs. `Invoker` writes it, under its lock."""

    reply: Callable[[Result], None] = field(kw_only=True, repr=False)
    """Takes the result; called once, on whichever thread has it."""
    declared: DeclaredTool | None = field(kw_only=True, default=None, repr=False)
    """The tool as it was when the call came; it runs as it is when its turn comes."""
    capture: Capture = field(kw_only=True, default_factory=Capture, repr=False)
    """What it printed and showed."""
    context: Context = field(kw_only=True, default_factory=Context, repr=False)
    """What the tool gets, if it wants it."""
    output: OutputSchema | None = field(default=None, init=False, repr=False)
    """What its result is for a program, as the tool that runs says it."""
    ticket: Ticket | None = field(kw_only=True, default=None, repr=False)
    """Where its result goes to be given again, if it may."""
    elicitations: Elicitations = field(kw_only=True, default_factory=Elicitations, repr=False)
    """What it asks its client's user."""
    started: bool = field(default=False, init=False)
    """It was handed to where it will run."""
    stop: Callable[[], object] | None = field(default=None, init=False, repr=False)
    """Asks its code to stop, from any thread."""
    asked: tuple[CallState, CallError] | None = field(default=None, init=False, repr=False)
    """How it shall end, and what the client is told, if it was asked to stop."""
    interrupted: bool = field(default=False, init=False)
    """It was the user who asked it to stop."""
    timers: list[threading.Timer] = field(default_factory=list, init=False, repr=False)


_Wait = Callable[[ActiveCall, Awaitable[Any]], Result | None]
"""Waits for a coroutine, or sees to it that somebody does, who then ends the call (None)."""


class Invoker:
    """Runs the calls of one notebook.

    Args:
        shell: The notebook's IPython.
        loop: The main thread's event loop.
        registry: Where the tools are.
        converter: Makes results of values.
        settings: How many calls may wait, and how long they may run.
        cache: Of results of read-only tools.
    """

    def __init__(  # noqa: PLR0913 - each is of another part
        self,
        shell: InteractiveShell,
        loop: asyncio.AbstractEventLoop,
        registry: ToolRegistry,
        converter: Converter,
        settings: Settings,
        *,
        cache: ResultCache,
    ) -> None:
        self._shell = shell
        self._loop = loop
        self._registry = registry
        self._converter = converter
        self._max_calls = settings.max_waiting_calls
        self._time_limit = settings.call_timeout
        self.cache = cache
        """Results of read-only tools that are given again."""
        self._router = OutputRouter(shell, loop, self._displayed)
        self._figures = Figures()
        self._bars = ProgressBarPatcher(_current_bars)
        self._logs = Logs(current_capture)
        self._watch = InterruptWatch(loop, self._interrupted)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._calls: list[ActiveCall] = []
        self._context = contextvars.copy_context()
        self._cell_since: float | None = None

    # -- what the notebook tells us (main thread) --------------------------------------------------

    def cell_started(self) -> None:
        """A cell of the user's begins to run."""
        self._cell_since = monotonic()

    def cell_ended(self) -> None:
        """A cell of the user's ended; calls see the ContextVars that it left."""
        self._cell_since = None
        self._context = contextvars.copy_context()

    def abandon_in_child(self) -> None:
        """In a forked child: end it before the kernel's loop runs in it, as a second kernel."""
        if current_capture() is not None:  # otherwise it is not a call that forked
            self._loop.call_soon(os._exit, 0)

    def close(self, reason: str) -> None:
        """End all calls, and put back what was changed in the process for them."""
        for call in self.calls:
            if call.capture is not current_capture():  # a tool that unloads us goes on to its end
                self._stop(call, CallState.LOST, Cancelled(reason))
        self._router.close()
        self._figures.uninstall()
        self._bars.uninstall()
        self._logs.uninstall()

    # -- what the endpoint asks for (its thread) ---------------------------------------------------

    def submit(
        self,
        tool: str,
        arguments: dict[str, Any],
        reply: Callable[[Result], None],
        client: Client = NO_CLIENT,
    ) -> ActiveCall:
        """Take a call; its result goes to `reply`, sooner or later, exactly once.

        Args:
            tool: Name of the tool.
            arguments: As the client gave them.
            reply: Takes the result, on any thread.
            client: What else the client wants to hear.
        """
        call = self._make_call(tool, arguments, reply, client)
        if self._answer_again(call):
            return call
        with self._lock:
            busy = len(self._calls) >= self._max_calls
            if not busy:
                self._calls.append(call)
        if busy:
            text = (
                f"The kernel is busy: {self._max_calls} calls are running or waiting already. "
                "Try again when some of them have ended."
            )
            self._answer(call, CallState.FAILED, _error(text))
        else:
            self._start_next(tool)
        return call

    def cancel(self, call: ActiveCall, reason: str) -> None:
        """Stop a call: it is answered when its code has stopped, at once if it has not begun."""
        self._stop(call, CallState.CANCELLED, Cancelled(reason))

    def describe(self, call: ActiveCall) -> str:
        """Say in a few words what a call is doing, for somebody who wants to know."""
        return describe(call, self.calls, cell_since=self._cell_since)

    @property
    def calls(self) -> tuple[ActiveCall, ...]:
        """The calls that wait, run or are still stopping now, oldest first."""
        with self._lock:
            return tuple(self._calls)

    # -- starting ----------------------------------------------------------------------------------

    def run_here(self, tool: str, arguments: dict[str, Any]) -> Result:
        """Run a call inside the cell that asks for it, and return its result.

        The cell holds the main thread's event loop, so a coroutine gets a loop in another thread.
        """
        results: list[Result] = []
        call = self._make_call(tool, arguments, results.append, NO_CLIENT)
        if self._answer_again(call):
            return results[0]
        call.started = True
        with self._lock:
            self._calls.append(call)
        contextvars.copy_context().run(self._run, call, InterruptGate(), self._await_in_thread)
        return results[0]

    def _answer_again(self, call: ActiveCall) -> bool:
        """Answer with the result of an earlier call, if that may be: nothing of the tool runs."""
        result = self.cache.find(call.ticket) if call.ticket is not None else None
        if result is None:
            return False
        call.move(CallState.RUNNING)
        call.move(CallState.DONE)
        _reply(call, result)
        return True

    def _make_call(
        self,
        tool: str,
        arguments: dict[str, Any],
        reply: Callable[[Result], None],
        client: Client,
    ) -> ActiveCall:
        report, send_log = client.report, client.send_log
        declared = self._registry.get(tool)
        call = ActiveCall(tool, arguments, reply=reply, declared=declared)
        if declared is not None:
            call.run = declared.options.run_mode
            call.ticket = self.cache.ticket(declared, declared.options, arguments)
        least = None if declared is None else declared.options.logs

        def log(message: LogMessage, printed: bool = False) -> None:  # noqa: FBT001, FBT002
            if send_log is not None:
                send_log(message)
            if least is not None and not printed and LEVELS[message.level] >= LEVELS[least]:
                call.capture.write(f"{message.level}: {message.text}\n")

        if send_log is not None or least is not None:
            call.capture.log = log
        if client.elicitations is not None:
            call.elicitations = client.elicitations
            call.elicitations.set_waiting_callback(
                lambda waits: self._wait_for_user(call, waits=waits)
            )
        call.context = Context(
            tool,
            report=report,
            send_log=log,
            stopped=lambda: None if call.asked is None else str(call.asked[1]),
            elicitations=call.elicitations,
        )
        if report is not None:
            call.capture.on_line = lambda line: report(Update(message=line))
            call.capture.bars = ProgressBars(report)
        else:
            call.capture.bars = ProgressBars(lambda _update: None)
        return call

    def _start_next(self, tool: str) -> None:
        """Hand calls of a tool to where they run, as many as may run at once."""
        while True:
            with self._lock:
                same = [call for call in self._calls if call.tool == tool]
                waiting = [call for call in same if not call.started and not call.ended]
                if not waiting:
                    return
                call = waiting[0]
                most = call.declared.options.max_concurrency if call.declared else None
                if most is not None and sum(other.started for other in same) >= most:
                    return
                call.started = True
            if call.run == "main":
                self._loop.call_soon_threadsafe(self._run_on_main, call)
            else:
                self._run_in_thread(call)

    def _run_on_main(self, call: ActiveCall) -> None:
        # A callback of the loop: an exception that left it could end the kernel.
        self._context.copy().run(self._run, call, InterruptGate(), self._await_on_loop)

    def _run_in_thread(self, call: ActiveCall) -> None:
        def run() -> None:
            self._context.copy().run(self._run, call, ThreadGate(), self._await_here)
            with contextlib.suppress(RuntimeError):  # the kernel ended meanwhile
                self._loop.call_soon_threadsafe(self._watch.release)

        self._loop.call_soon_threadsafe(self._watch.acquire)
        # Not a pool: its threads would be waited for when the kernel ends.
        thread = threading.Thread(target=run, name=f"mcp-notebook-{call.tool}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system gives no more threads
            self._loop.call_soon_threadsafe(self._watch.release)
            self._end(call, _error(f"The tool {call.tool!r} cannot be run: {error}. Try again."))

    # -- running (on the call's thread) ------------------------------------------------------------

    def _run(self, call: ActiveCall, gate: InterruptGate | ThreadGate, wait: _Wait) -> None:
        with self._lock:
            if call.ended:
                return
            call.move(CallState.RUNNING)
            call.stop = gate.interrupt
            if call.declared is None or call.declared.options.executor is None:
                self._limit_time(call)
        try:
            self._figures.begin()
            self._bars.install()
            if call.capture.log is not None:
                self._logs.install()
            with self._router.routed(), call.capture.active(), gate:
                result = self._run_gated(call, gate, wait)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            result = self._failure(call, error, interrupted=gate.interrupted)
        if result is not None:
            self._end(call, result)

    def _run_gated(
        self, call: ActiveCall, gate: InterruptGate | ThreadGate, wait: _Wait
    ) -> Result | None:
        try:
            gate.open()
            if call.asked is not None:  # it came before the gate took interrupts
                raise call.asked[1]
            tool = self._registry.get(call.tool)
            if tool is None:
                raise UnknownTool(call.tool, tuple(tool.name for tool in self._registry.tools))
            if tool is not call.declared:  # it was changed while the call waited
                call.ticket = self.cache.ticket(tool, tool.options, call.arguments)
            arguments = tool.schema.validate(call.arguments)
            call.output = tool.output
            call.capture.max_chars = tool.options.max_result_chars
            for name in tool.schema.injected:
                arguments[name] = call.context
            if tool.options.executor is not None:
                value = self._run_in_executor(call, tool.options.executor, tool, arguments)
            else:
                value = tool.function(**arguments)
            if not self._converter.is_async(value):
                return self._convert(call, value)
        finally:
            gate.close()
        return wait(call, self._converter.await_value(value, call.output))

    def _run_in_executor(
        self, call: ActiveCall, executor: Executor, tool: DeclaredTool, arguments: dict[str, Any]
    ) -> Any:
        stopped: Future[None] = Future()
        with self._lock:
            call.stop = lambda: stopped.set_result(None)
        future = executor.submit(tool.function, **arguments)
        self._move(call, CallState.WAITING)
        while not future.done() and not stopped.done() and call.asked is None:
            if call.state is CallState.WAITING and future.running():
                self._move(call, CallState.RUNNING)
                self._limit_time(call)  # not before a worker has begun
            look = _WORKER_LOOK if call.state is CallState.WAITING else None
            wait_for((future, stopped), timeout=look, return_when=FIRST_COMPLETED)
        if future.done():
            if call.state is CallState.WAITING:
                self._move(call, CallState.RUNNING)
            try:
                return future.result()
            except BrokenExecutor as error:
                raise ToolError(_BROKEN.format(call.tool, error)) from error
        if not future.cancel():
            # The worker cannot be stopped: the call is answered, and its result thrown away.
            assert call.asked is not None
            self._answer_stopped(call)
            wait_for((future,))
        raise KeyboardInterrupt

    def _await_on_loop(self, call: ActiveCall, value: Awaitable[Any]) -> None:
        self._router.acquire()
        task = self._loop.create_task(self._await(call, value), context=contextvars.copy_context())
        with self._lock:
            call.stop = lambda: self._loop.call_soon_threadsafe(task.cancel)
        if call.asked is not None:
            # Later: a task that has not begun would not get to the answer in `_await`.
            self._loop.call_soon(task.cancel)

    async def _await(self, call: ActiveCall, value: Awaitable[Any]) -> None:
        self._loop.call_soon(self._watch.acquire)  # not within a step, which has the signal
        # What left a task besides Exception and CancelledError would end the kernel's loop.
        try:
            result = self._convert(call, await value)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            result = self._failure(call, error, interrupted=call.capture.steps.interrupted)
        finally:
            self._loop.call_soon(self._watch.release)
            self._router.release()
        self._end(call, result)

    def _await_here(self, call: ActiveCall, value: Awaitable[Any]) -> Result:
        async def awaited() -> Any:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            with self._lock:
                call.stop = lambda: loop.call_soon_threadsafe(task.cancel)
            if call.asked is not None:
                task.cancel()
            return await value

        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            return self._convert(call, runner.run(awaited(), context=contextvars.copy_context()))

    def _await_in_thread(self, call: ActiveCall, value: Awaitable[Any]) -> Result:
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - for %mcp call only

        async def awaited() -> Any:
            with self._router.routed():
                return await value

        with start_blocking_portal() as portal:
            future = portal.start_task_soon(awaited)
            with self._lock:
                call.stop = future.cancel
            if call.asked is not None:
                future.cancel()
            try:
                return self._convert(call, future.result())
            except FutureCancelled:
                raise asyncio.CancelledError from None
            except BaseException:
                future.cancel()
                raise

    # -- stopping (any thread) ---------------------------------------------------------------------

    def _stop(self, call: ActiveCall, to: CallState, error: CallError) -> None:
        with self._lock:
            if call.ended or call.asked is not None:
                return
            call.asked = (to, error)
            queued, stop = call.state is CallState.QUEUED, call.stop
            if queued:
                call.move(to)
                self._calls.remove(call)
        if queued:
            _reply(call, self._converter.make_failure(error, ()))
            self._start_next(call.tool)
            return
        if stop is not None:
            stop()
        if to is CallState.LOST:
            return  # the conversation ends, and says why
        if call.run == "thread":
            self._answer_stopped(call)
        else:
            self._later(call, STOP_LIMIT, self._insist)

    def _insist(self, call: ActiveCall) -> None:
        """Interrupt a coroutine that does not give way, as one does a sync tool."""
        if call.capture.steps.interrupt():
            self._later(call, STOP_LIMIT, self._give_up)
        else:
            self._give_up(call)

    def _give_up(self, call: ActiveCall) -> None:
        """Wait no longer for code that does not react, and ask it once more."""
        stop = call.stop
        if not call.ended and stop is not None:
            self._answer_stopped(call)
            stop()

    def _answer_stopped(self, call: ActiveCall) -> None:
        """Answer a call whose code has not stopped yet."""
        assert call.asked is not None
        to, error = call.asked
        with self._lock:
            if call.ended:
                return
            call.stopping = True
        capture = call.capture
        result = self._converter.make_failure(error, capture.outputs, max_chars=capture.max_chars)
        self._answer(call, to, result)

    def _limit_time(self, call: ActiveCall) -> None:
        options = None if call.declared is None else call.declared.options
        own = None if options is None else options.time_limit
        limit = self._time_limit if own is None else own
        if limit is not None:
            error = TimedOut(call.tool, limit, own=own is not None)
            self._later(call, limit, lambda call: self._stop(call, CallState.TIMED_OUT, error))

    def _later(
        self, call: ActiveCall, seconds: float, function: Callable[[ActiveCall], None]
    ) -> None:
        # A thread, and only for calls that are limited or stopped: the main thread may be held by
        # the very code that is to be stopped.
        timer = threading.Timer(seconds, function, (call,))
        timer.daemon = True
        call.timers.append(timer)
        timer.start()

    def _interrupted(self) -> None:
        """The user pressed "Interrupt" while no cell ran."""
        for call in self.calls:
            if call.state is not CallState.QUEUED:
                call.interrupted = True
                self.cancel(call, _INTERRUPTED)

    # -- ending (any thread) -----------------------------------------------------------------------

    def _displayed(
        self, capture: Capture, *args: Any, **kwargs: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._converter.format_display(*args, **kwargs, max_chars=capture.max_chars)

    def _convert(self, call: ActiveCall, value: Any) -> Result:
        figures = open_figures()
        for data, metadata in self._converter.format_figures(figures, value):
            call.capture.show(data, metadata, None)
        try:
            # The outputs are read at last: an object's own display method may print or show.
            return self._converter.make_result(
                value, lambda: call.capture.outputs, call.output, max_chars=call.capture.max_chars
            )
        finally:
            close_figures(figures)

    def _failure(
        self, call: ActiveCall, error: BaseException, *, interrupted: bool = False
    ) -> Result:
        if isinstance(error, KeyboardInterrupt | asyncio.CancelledError | Cancelled):
            if call.asked is not None:
                error = call.asked[1]
            elif interrupted:
                call.interrupted = True
                call.asked = (CallState.CANCELLED, Cancelled(_INTERRUPTED))
                error = call.asked[1]
        try:
            close_figures(open_figures())
            if isinstance(error, CannotElicit) and error.undeclared:
                call.lacks = "elicitation"
            return self._converter.make_failure(
                error, call.capture.outputs, max_chars=call.capture.max_chars
            )
        except BaseException:  # noqa: BLE001 - an exception's own str or repr may do anything
            return _error(f"The tool {call.tool!r} failed with {type(error).__name__}.")

    def _end(self, call: ActiveCall, result: Result) -> None:
        """Answer a call whose code has ended, and let the next one begin."""
        if os.getpid() != self._pid:
            # A child that the tool forked and that came back out of the tool's code. It is no
            # kernel: with its copies of the kernel's sockets it must answer nobody.
            os._exit(0)
        call.elicitations.close(Cancelled(_ENDED))
        to = CallState.FAILED if result.is_error else CallState.DONE
        if result.is_error and call.asked is not None:
            to = call.asked[0]
        again = call.asked is None and not result.is_error and not call.elicitations.is_used
        if call.ticket is not None and again:
            self.cache.store(call.ticket, result)
        self._answer(call, to, result)
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
            call.stopping = False
            call.stop = None
        for timer in call.timers:
            timer.cancel()
        self._start_next(call.tool)

    def _answer(self, call: ActiveCall, to: CallState, result: Result) -> None:
        with self._lock:
            if call.ended:
                return
            call.move(to)
        if call.interrupted:
            timer = threading.Timer(RESTART_FOLLOWS, _reply, (call, result))
            timer.daemon = True
            timer.start()
        else:
            _reply(call, result)

    def _move(self, call: ActiveCall, to: CallState) -> None:
        with self._lock:
            if not call.ended:
                call.move(to)

    def _wait_for_user(self, call: ActiveCall, *, waits: bool) -> None:
        with self._lock:
            if waits and call.state is CallState.RUNNING:
                call.waits_for = "the user's answer"
                call.move(CallState.WAITING)
            elif not waits and call.state is CallState.WAITING:
                call.move(CallState.RUNNING)


def _reply(call: ActiveCall, result: Result) -> None:
    try:
        call.reply(result)
    except RuntimeError:
        # The endpoint's loop is closed: the extension is being unloaded, nobody waits.
        logger.debug("nobody takes the result of %s", call.tool)


def _current_bars() -> ProgressBars | None:
    capture = current_capture()
    return None if capture is None else capture.bars


def _error(text: str) -> Result:
    return Result([Text(text)], is_error=True)
