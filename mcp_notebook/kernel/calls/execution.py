"""The code of one call: check its arguments, run the function, convert what it returns.

Runs in the user's kernel, on the thread that a runner chose. Whatever the code raises becomes a
result: an exception that escaped into the event loop would end the kernel.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from mcp_notebook.content import Result
from mcp_notebook.errors import CallError, NotConfirmed, ToolGone, UnknownTool
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.environment import CallEnvironment
from mcp_notebook.kernel.calls.interrupts import Gate
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.result_cache import ResultCache
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.executors.executor_call import EngineFinder, run_in_executor
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.tools.context import LogMessage, Update
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.missing_tools import explain_dropped

_Wait = TypeVar("_Wait")


class Execution:
    """Runs the code of calls; what all runners share.

    Args:
        registry: Where the tools are.
        cache: Of results of read-only tools.
        environment: Surrounds the code.
        converter: Makes the results.
        stopper: Limits the time of calls.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        cache: ResultCache,
        environment: CallEnvironment,
        converter: CallConverter,
        stopper: Stopper,
    ) -> None:
        self.environment = environment
        self.converter = converter
        self._registry = registry
        self._cache = cache
        self.stopper = stopper
        self._engines = EngineFinder()

    def begin(self, call: ActiveCall, interrupt: Callable[[], object]) -> bool:
        """Let a call begin, unless it was stopped while it waited.

        Args:
            call: The call.
            interrupt: Asks its code to stop, from any thread.

        Returns:
            Whether it has begun; `run` it then.
        """
        if not call.begin(interrupt):
            return False
        if call.declared is None or call.declared.options.executor is None:
            self.stopper.limit_time(call)
        return True

    def run(
        self,
        call: ActiveCall,
        gate: Gate,
        wait: Callable[[ActiveCall, Coroutine[Any, Any, Any]], _Wait],
    ) -> Result | _Wait:
        """Run the code of a call that has begun.

        Args:
            call: The call.
            gate: Interrupts the code; not entered yet.
            wait: Waits for a coroutine that gives the function's value, or has somebody else wait
                for it, and returns the result or who waits. The gate is closed meanwhile.

        Returns:
            The call's result, or what `wait` returned.
        """
        try:
            with self.environment.surround(call.capture), gate:
                return self._run_in_gate(call, gate, wait)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            return self.convert_error(call, error, by_user=gate.interrupted)

    def convert_in_gate(self, call: ActiveCall, gate: Gate, value: Any) -> Result:
        """Return the result of a call whose value had to be awaited while the gate was closed.

        Raises:
            BaseException: The call was stopped, or a figure's own code failed.
        """
        try:
            gate.open()
            _raise_if_stopped(call)
            return self.converter.convert_value(call, value)
        finally:
            gate.close()

    def convert_error(self, call: ActiveCall, error: BaseException, *, by_user: bool) -> Result:
        """Return the result of a call whose code raised.

        Args:
            call: The call.
            error: What it raised.
            by_user: Whether the user pressed "Interrupt" while it ran.
        """
        cause = call.find_cause(error, by_user=by_user)
        # What figures print or warn of while they are drawn also belongs to the call.
        with self.environment.route_outputs(call.capture):
            return self.converter.convert_error(call, cause)

    def _run_in_gate(
        self,
        call: ActiveCall,
        gate: Gate,
        wait: Callable[[ActiveCall, Coroutine[Any, Any, Any]], _Wait],
    ) -> Result | _Wait:
        value: Any = None
        try:
            try:
                gate.open()
                _raise_if_stopped(call)  # it came before the gate took interrupts
                function = self._bind_function(call)
                call.has_run = True
                is_coroutine = inspect.iscoroutinefunction(function)
                if not is_coroutine:
                    value = function()
                    if not self.converter.is_async(value):
                        self.environment.descriptors.settle()
                        return self.converter.convert_value(call, value)
            finally:
                gate.close()
            if is_coroutine:
                value = function()  # in the gate, an interrupt just then would lose the coroutine
            return self._pass_on(call, value, wait)
        except BaseException:
            _close_coroutine(value)
            raise

    def _pass_on(
        self,
        call: ActiveCall,
        value: Any,
        wait: Callable[[ActiveCall, Coroutine[Any, Any, Any]], _Wait],
    ) -> _Wait:
        """Have what a function returned awaited, unless the call has to stop already."""
        coroutine = self.converter.await_value(call, value)
        try:
            _raise_if_stopped(call)
            return wait(call, coroutine)
        except BaseException:
            _close_coroutine(coroutine)
            raise

    def find_time_limit(self, call: ActiveCall) -> float:
        """Return the seconds that a call may run that always has a limit."""
        limit = self.stopper.find_limit(call)
        assert limit is not None
        return limit

    def find_tool(self, call: ActiveCall) -> DeclaredTool:
        """Return the tool that a call runs, as it is declared now.

        Raises:
            CallError: It is gone, or nobody has agreed to the call.
        """
        tool = self._registry.get(call.tool)
        if tool is None:
            raise _explain_missing(call.tool, self._registry)
        if not tool.is_confirmed(call.client.confirmed):
            raise NotConfirmed(call.tool, was_asked=bool(call.client.confirmed))
        if tool is not call.declared:  # it was changed while the call waited
            lifetime = tool.options.cache_time
            call.ticket = None
            if lifetime is not None:
                call.ticket = self._cache.make_ticket(tool, call.arguments, lifetime)
            call.set_target(tool)
        return tool

    def _bind_function(self, call: ActiveCall) -> Callable[[], Any]:
        """Return the tool's function with the arguments of a call, once they are checked."""
        tool = self.find_tool(call)
        arguments = tool.schema.validate(call.arguments)
        call.output_schema = tool.output
        call.capture.max_chars = tool.options.max_result_chars
        if tool.schema.injected:
            arguments |= dict.fromkeys(tool.schema.injected, call.make_context())
        function, arguments = tool.schema.binding.bind(tool.function, arguments)
        executor = tool.options.executor
        if executor is not None:
            elsewhere = CallElsewhere(call, self.stopper)
            with Shield():
                engine = self._engines.find(executor)
            return partial(run_in_executor, elsewhere, function, engine, arguments)
        return partial(function, **arguments)


def _raise_if_stopped(call: ActiveCall) -> None:
    if call.stop_request is not None:
        raise call.stop_request.error


def _close_coroutine(value: Any) -> None:
    """Close what may be a coroutine that nobody will await: Python would warn about it."""
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()


def _explain_missing(name: str, registry: ToolRegistry) -> CallError:
    """Return the error for a tool that was there when the bridge sent the call."""
    dropped = registry.dropped.get(name)
    if dropped is None:
        return UnknownTool(name, tuple(tool.name for tool in registry.tools))
    missing = explain_dropped("", name, dropped, registry.find_new_name(dropped))
    return ToolGone(name, f"{missing.reason} {missing.next_step}")


class CallElsewhere:
    """A call whose function runs elsewhere, as `kernel.executors` sees it: on the call's thread.

    Args:
        call: The call; its capture is active.
        stopper: Limits the call's time, and answers it if it has to stop and the worker goes on.
    """

    def __init__(self, call: ActiveCall, stopper: Stopper) -> None:
        self._call = call
        self._stopper = stopper

    @property
    def tool(self) -> str:
        """Name of the tool."""
        return self._call.tool

    @property
    def trace(self) -> Mapping[str, str]:
        """The trace that spans of the function belong to, as W3C's headers; empty if none is."""
        return {} if self._call.span is None else self._call.span.trace.headers

    @property
    def has_to_stop(self) -> bool:
        """Whether it has to stop."""
        return self._call.stop_request is not None

    def set_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Set what asks it to stop."""
        self._call.set_interrupt(interrupt)

    def wait_for(self, whom: str) -> None:
        """Count as waiting for somebody."""
        self._call.wait_for(whom)

    def resume(self) -> None:
        """Count as running again."""
        self._call.resume()

    def limit_time(self) -> None:
        """Let its time begin."""
        self._stopper.limit_time(self._call)

    def answer_early(self) -> None:
        """Answer it, as it has to stop, while its function runs on."""
        self._stopper.answer_early(self._call)

    def write(self, text: str) -> None:
        """Take what the function printed."""
        self._call.capture.write(text)

    def display(self, function: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Display what the function displayed, by a function of ``IPython.display``."""
        from IPython import display  # noqa: PLC0415 - nearly all calls do without

        getattr(display, function)(*args, **options)

    def tell(self, kind: str, *fields: Any) -> None:
        """Take a message of the function's context: progress, or one for the log."""
        capture = self._call.capture
        if kind == "log":
            capture.log(LogMessage(*fields))
        elif capture.report is not None:
            capture.report(Update(*fields))
