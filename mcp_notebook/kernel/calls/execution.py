"""The code of one call: check its arguments, run the function, convert what it returns.

Runs in the user's kernel, on the thread that a runner chose. Whatever the code raises becomes a
result: an exception that escaped into the event loop would end the kernel.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mcp_notebook.content import Result
from mcp_notebook.errors import UnknownTool
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.environment import CallEnvironment
from mcp_notebook.kernel.calls.executor_call import run_in_executor
from mcp_notebook.kernel.calls.interrupts import Gate
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.result_cache import ResultCache
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

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
        self._stopper = stopper

    def begin(self, call: ActiveCall, gate: Gate) -> bool:
        """Let a call begin, unless it was stopped while it waited.

        Args:
            call: The call.
            gate: By which its code will be interrupted.

        Returns:
            Whether it has begun; `run` it then.
        """
        if not call.begin(gate.interrupt):
            return False
        if call.declared is None or call.declared.options.executor is None:
            self._stopper.limit_time(call)
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

    def convert_error(self, call: ActiveCall, error: BaseException, *, by_user: bool) -> Result:
        """Return the result of a call whose code raised.

        Args:
            call: The call.
            error: What it raised.
            by_user: Whether the user pressed "Interrupt" while it ran.
        """
        return self.converter.convert_error(call, call.find_cause(error, by_user=by_user))

    def _run_in_gate(
        self,
        call: ActiveCall,
        gate: Gate,
        wait: Callable[[ActiveCall, Coroutine[Any, Any, Any]], _Wait],
    ) -> Result | _Wait:
        try:
            gate.open()
            if call.stop_request is not None:  # it came before the gate took interrupts
                raise call.stop_request.error
            value = self._call_function(call)
            if not self.converter.is_async(value):
                return self.converter.convert_value(call, value)
        finally:
            gate.close()
        return wait(call, self.converter.await_value(call, value))

    def _call_function(self, call: ActiveCall) -> Any:
        tool = self._registry.get(call.tool)
        if tool is None:
            raise UnknownTool(call.tool, tuple(tool.name for tool in self._registry.tools))
        if tool is not call.declared:  # it was changed while the call waited
            call.ticket = self._cache.ticket(tool, tool.options, call.arguments)
        arguments = tool.schema.validate(call.arguments)
        call.output_schema = tool.output
        call.capture.max_chars = tool.options.max_result_chars
        if tool.schema.injected:
            arguments |= dict.fromkeys(tool.schema.injected, call.make_context())
        executor = tool.options.executor
        if executor is not None:
            return run_in_executor(call, tool, executor, arguments, self._stopper)
        return tool.function(**arguments)
