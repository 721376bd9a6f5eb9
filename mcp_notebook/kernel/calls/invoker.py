"""Accepts calls, starts them in order, and answers each exactly once.

Runs in the user's kernel. `Invoker.take`, `start` and `cancel` are called on the endpoint's thread;
a result is sent on the thread where the code ended. Whatever a tool raises, the call's ``reply``
receives a `content.Result`.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook import meta_keys
from mcp_notebook.content import Result
from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState, describe
from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.calls.call_queue import CallQueue
from mcp_notebook.kernel.calls.capture import Capture, current_capture
from mcp_notebook.kernel.calls.environment import CallEnvironment
from mcp_notebook.kernel.calls.execution import Execution
from mcp_notebook.kernel.calls.outcome import CallConverter, error_result, last_result
from mcp_notebook.kernel.calls.runners import Runners, ThreadRunner
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.tools.context import NO_CLIENT, Client
from mcp_notebook.kernel.tools.declared_tool import OWN_VIEW, DeclaredTool
from mcp_notebook.kernel.tools.open_questions import Elicitations
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import describe_switched_off

logger = logging.getLogger(__name__)

RESTART_FOLLOWS = 0.5
"""Seconds by which the answer to an interrupted call is delayed: a restart begins with an
interrupt, and the goodbye that follows tells the client what happened."""
_ENDED = "The question can no longer be answered, because the call that asked it has ended."


class Invoker:
    """Runs the calls of one notebook.

    Args:
        shell: The notebook's IPython.
        loop: The main thread's event loop.
        registry: Holds the tools.
        converter: Converts values to results.
        settings: Limits on waiting calls, logged calls and run time.
        log: Records all calls.
        fork_runner: Runs calls in copies of the kernel.
    """

    def __init__(  # noqa: PLR0913 - each is of another part
        self,
        shell: InteractiveShell,
        loop: asyncio.AbstractEventLoop,
        registry: ToolRegistry,
        converter: Converter,
        settings: Settings,
        *,
        log: CallLog,
        fork_runner: type[ThreadRunner],
    ) -> None:
        self.log = log
        """All calls, including those that have ended."""
        self.on_submitted: Callable[[], object] = lambda: None
        """Called when a client's call arrives, on the thread that submits it."""
        self.on_ended: Callable[[DeclaredTool], object] = lambda _tool: None
        """Called when the code of a call has ended, before its client has the answer; on any
        thread."""
        self._shell = shell
        self._loop = loop
        self._registry = registry
        self._queue = CallQueue(settings.max_waiting_calls, self._run)
        results = CallConverter(
            converter, lambda: any(tool.info.view == OWN_VIEW for tool in registry.tools)
        )
        environment = CallEnvironment(shell, loop, results.format_display)
        self._stopper = Stopper(self._queue, results, settings.call_timeout)
        execution = Execution(registry, environment, results, self._stopper)
        self._runners = Runners(loop, execution, fork_runner, self._queue.choose)
        self._pid = os.getpid()

    # -- called by the notebook (main thread) ------------------------------------------------------

    def cell_started(self) -> None:
        """A cell of the user's starts."""
        self._runners.cells.begin()

    @property
    def runs_cell(self) -> bool:
        """Whether a cell of the user's runs; on any thread."""
        return self._runners.cells.is_running()

    def cell_ended(self) -> None:
        """A cell of the user's has ended; calls see the ContextVars that it set."""
        self._runners.cells.end()

    def abandon_in_child(self) -> None:
        """In a forked child: end it before it runs the kernel's loop as a second kernel."""
        if current_capture() is not None:  # otherwise no call has forked it
            self._loop.call_soon(os._exit, 0)

    def close(self, reason: str) -> None:
        """End all calls, and undo the patches of the process."""
        for call in self.calls:
            if call.capture is not current_capture():  # a tool that unloads us runs to its end
                self._stopper.stop(call, StopRequest(CallState.LOST, Cancelled(reason)))
        self._runners.close()

    # -- called by the endpoint (its thread) -------------------------------------------------------

    def take(
        self,
        tool: str,
        arguments: dict[str, Any],
        reply: Callable[[Result], None],
        client: Client = NO_CLIENT,
    ) -> ActiveCall:
        """Return a new call, to be passed to `start`.

        Args:
            tool: Name of the tool.
            arguments: As the client gave them.
            reply: Receives the result, exactly once, on any thread.
            client: What else the client wants to receive.
        """
        self.on_submitted()
        call = self._make_call(tool, arguments, reply, client)
        call.restart_delay = RESTART_FOLLOWS
        return call

    def start(self, call: ActiveCall) -> None:
        """Start a new call, or let it wait for its turn."""
        if call.tool in self._registry.switched_off:  # the client does not know it yet
            call.answer(CallState.FAILED, error_result(describe_switched_off(call.tool, call.kind)))
            return
        lack = self._queue.add(call)
        if lack is None:
            self._queue.start_waiting(call.tool)
        else:
            text = f"The kernel is busy: {lack} Try again when some of them have ended."
            call.answer(CallState.FAILED, error_result(text))

    def cancel(self, call: ActiveCall, reason: str, by: str = "its client") -> None:
        """Stop a call. It is answered when its code has stopped, or at once if it has not begun.

        Args:
            call: The call.
            reason: A sentence for its client.
            by: Who stops it, and how, for the author.
        """
        self._stopper.stop(call, StopRequest(CallState.CANCELLED, Cancelled(reason), by))

    def describe(self, call: ActiveCall) -> str:
        """Describe in a few words what a call is doing."""
        return describe(call, self._queue.line, cell_since=self._runners.cells.since)

    @property
    def calls(self) -> tuple[ActiveCall, ...]:
        """The calls that wait, run or are still stopping, oldest first."""
        return self._queue.calls

    def run_here(self, tool: str, arguments: dict[str, Any]) -> Result:
        """Run a call inside the cell that asks for it, and return its result."""
        results: list[Result] = []
        call = self._make_call(tool, arguments, results.append, NO_CLIENT)
        if self._is_copied:
            self._runners.run_here(call, results.append)
        else:
            self._queue.add_started(call)
            self._runners.run_here(call, partial(self._end, call))
        return results[0]

    # -- starting ----------------------------------------------------------------------------------

    def _make_call(
        self,
        tool: str,
        arguments: dict[str, Any],
        reply: Callable[[Result], None],
        client: Client,
    ) -> ActiveCall:
        declared = self._registry.get(tool)
        call = ActiveCall(
            tool,
            arguments,
            reply=reply,
            lock=self._queue.lock,
            client=client,
            declared=declared,
            capture=Capture(client),
            elicitations=Elicitations() if client.elicitations is None else client.elicitations,
        )
        if client.elicitations is not None:
            call.elicitations.set_waiting_callback(partial(_track_waiting, call))
        if self._is_copied:  # the log and the queue are the kernel's, and their locks may be held
            call.lock = threading.Lock()
            return call
        if client.is_trial:
            call.run = "fork"
            return call
        if declared is not None:
            call.run = declared.options.run_mode
        self.log.add(call)
        return call

    def _run(self, call: ActiveCall) -> None:
        try:
            self._runners.start(call, partial(self._end, call))
        except Exception as error:  # noqa: BLE001 - of our own code: the call needs an answer
            self._end(call, last_result(call, error))

    # -- ending (any thread) -----------------------------------------------------------------------

    @property
    def _is_copied(self) -> bool:
        """Whether this process is a child of the kernel: the copy of a call, or a tool's own."""
        return os.getpid() != self._pid

    def _end(self, call: ActiveCall, result: Result) -> None:
        """Answer a call whose code has ended, and let the next one begin."""
        if self._is_copied:
            # A child that the tool forked has returned from the tool's code. It is not a kernel:
            # it must not answer through its copies of the kernel's sockets.
            os._exit(0)
        request = call.stop_request
        try:
            self._note_end(call, result)
        except Exception:
            logger.exception("the end of a call of %r could not be noted", call.tool)
        try:
            if not result.is_error:
                call.answer(CallState.DONE, result)
            else:
                call.answer(CallState.FAILED if request is None else request.state, result)
        finally:
            self._queue.finish(call)
            self._queue.start_waiting(call.tool)
            self.log.note_change()

    def _note_end(self, call: ActiveCall, result: Result) -> None:
        call.elicitations.close(Cancelled(_ENDED))
        self._follow_variables(call)
        if call.declared is not None and not call.client.is_trial:
            self._note_code_ended(call, call.declared, result)

    def _note_code_ended(self, call: ActiveCall, tool: DeclaredTool, result: Result) -> None:
        if call.began is not None:
            with suppress(Exception):  # it reads the user's variables
                self.on_ended(tool)
        if meta_keys.VIEW in result.meta:
            self._registry.note_view(tool)

    def _follow_variables(self, call: ActiveCall) -> None:
        """Update the tools whose variables a call has rebound, before its client has the answer.

        While a cell or another call runs, a variable may be between two values. The update then
        happens when that ends.
        """
        namespace = self._shell.user_ns
        if self._registry.is_current(namespace) or self._runners.cells.is_running():
            return
        if any(other is not call and other.runs_code for other in self.calls):
            return
        # The user's values may raise anything, and the call must be answered. `%mcp status` tells
        # why a tool was dropped, because calls do not print into the user's cells.
        with suppress(BaseException):
            self._registry.follow(namespace)


def _track_waiting(call: ActiveCall, waits: bool) -> None:  # noqa: FBT001 - as it is called
    if waits:
        call.wait_for("the user's answer")
    else:
        call.resume()
