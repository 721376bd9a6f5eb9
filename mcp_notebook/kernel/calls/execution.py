"""Executes one call: checks its arguments, runs the function, converts its value.

Runs in the user's kernel, on the thread that a runner chose. Every exception becomes a result: one
that escaped into the event loop could end the kernel.
"""

import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from mcp_notebook.content import Result
from mcp_notebook.errors import CallError, NotConfirmed, OtherKind, ToolGone, UnknownTool
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.environment import CallEnvironment
from mcp_notebook.kernel.calls.executor_call import run_in_executor
from mcp_notebook.kernel.calls.interrupts import Gate
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.executors.engine_finder import EngineFinder
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.schemas.parameters.bound_objects import (
    describe_way,
    explain_sent,
    read_objects,
)
from mcp_notebook.kernel.schemas.parameters.unhinted import explain_list
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.text.missing_tools import explain_dropped

_Wait = TypeVar("_Wait")


class Execution:
    """Executes calls; shared by all runners.

    Args:
        registry: Holds the tools.
        environment: Isolates the outputs of calls.
        converter: Creates the results.
        stopper: Limits the time of calls.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        environment: CallEnvironment,
        converter: CallConverter,
        stopper: Stopper,
    ) -> None:
        self.environment = environment
        self.converter = converter
        self._registry = registry
        self.stopper = stopper
        self._engines = EngineFinder()

    def begin(self, call: ActiveCall, interrupt: Callable[[], object]) -> bool:
        """Begin a call, unless it was stopped while it waited.

        Args:
            call: The call.
            interrupt: Asks its code to stop, from any thread.

        Returns:
            Whether it has begun; if so, `run` it.
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
            wait: Awaits a coroutine that returns the function's value, and returns the result; or
                schedules that, and returns the task. Until then, the gate is closed.

        Returns:
            The call's result, or the value of `wait`.
        """
        try:
            # As IPython does before each cell: else the second call would not warn.
            self.environment.shell.user_ns.get("__warningregistry__", {}).clear()
            with self.environment.surround(call.capture), gate:
                return self._run_in_gate(call, gate, wait)
        except BaseException as error:  # noqa: BLE001 - the edge that runs user code
            return self.convert_error(call, error, by_user=gate.interrupted)

    def convert_in_gate(self, call: ActiveCall, gate: Gate, value: Any) -> Result:
        """Return the result of a call whose value was awaited while the gate was closed.

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
            error: The exception.
            by_user: Whether the user pressed "Interrupt" while it ran.
        """
        cause = call.find_cause(error, by_user=by_user)
        if (tool := call.declared) is not None:
            note = explain_list(cause, call.arguments, tool.schema.input_schema)
            if note is None and isinstance(cause, AttributeError):
                schema = tool.schema
                way = partial(describe_way, tool.variable or tool.name, schema.parameters)
                names = {name: schema.aliases.get(name, name) for name in schema.untyped}
                sent = {own: call.arguments.get(name) for own, name in names.items()}
                note = explain_sent(cause, sent, way)
            if note is not None and note not in getattr(cause, "__notes__", ()):
                cause.add_note(note)
        # Text that figures print while they are drawn also belongs to the call.
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
                _raise_if_stopped(call)  # before the gate was open
                function = self._bind_function(call)
                call.has_run = True
                is_coroutine = inspect.iscoroutinefunction(function)
                if not is_coroutine:
                    value = function()
                    if not self.converter.values.is_async(value):
                        self.environment.descriptors.settle()
                        return self.converter.convert_value(call, value)
            finally:
                gate.close()
            if is_coroutine:
                value = function()  # with the gate open, an interrupt could lose the coroutine
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
        """Have a function's value awaited, unless the call already has to stop."""
        coroutine = self.converter.await_value(call, value)
        try:
            _raise_if_stopped(call)
            return wait(call, coroutine)
        except BaseException:
            _close_coroutine(coroutine)
            raise

    def find_tool(self, call: ActiveCall) -> DeclaredTool:
        """Return the tool that a call runs, as currently declared.

        Raises:
            CallError: The tool is gone, or the call was not approved.
        """
        tool, before = self._registry.get(call.tool), call.declared
        if tool is None:
            raise _explain_missing(call, self._registry)
        if before is not None and tool.info.kind != before.info.kind:
            # While a call waited, a prompt, say, has taken the place of its tool.
            raise OtherKind(call.tool, tool.info.kind, before.info.kind)
        if not tool.is_confirmed(call.client.confirmed):
            raise NotConfirmed(call.tool, was_asked=bool(call.client.confirmed))
        if tool is not call.declared:  # redeclared while the call waited
            call.set_target(tool)
        return tool

    def _reload_modules(self) -> None:
        """Reload edited files if the user has ``%autoreload`` do so before each cell."""
        shell = self.environment.shell
        magics = shell.magics_manager.registry.get("AutoreloadMagics")
        reloader = getattr(magics, "_reloader", None)
        if reloader is None or not reloader.enabled:
            return

        def reload() -> None:
            reloader.check()
            self._registry.follow(shell.user_ns)

        self.environment.run_on_main(reload)

    def _bind_function(self, call: ActiveCall) -> Callable[[], Any]:
        """Return the tool's function bound to the call's validated arguments."""
        self._reload_modules()
        tool = self.find_tool(call)
        arguments = tool.validate(call.arguments)
        call.output_schema = tool.output
        if tool.schema.injected:
            arguments |= dict.fromkeys(tool.schema.injected, call.make_context())
        if tool.schema.bound:
            arguments |= read_objects(tool.schema.bound, self.environment.shell.user_ns)
        function: Callable[..., Any] = tool.function
        if not tool.schema.binding.is_by_name:
            function, arguments = tool.schema.binding.bind(function, arguments)
        executor = tool.options.executor
        if executor is not None:
            with Shield():
                engine = self._engines.find(executor)
            return partial(run_in_executor, call, self.stopper, function, engine, arguments)
        return partial(function, **arguments)


def _raise_if_stopped(call: ActiveCall) -> None:
    if call.stop_request is not None:
        raise call.stop_request.error


def _close_coroutine(value: Any) -> None:
    """Close a coroutine that will not be awaited, so that Python does not warn about it."""
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()


def _explain_missing(call: ActiveCall, registry: ToolRegistry) -> CallError:
    """Return the error for a tool that has gone since the bridge sent the call."""
    name, kind = call.tool, call.kind
    dropped = registry.dropped.get(name)
    if dropped is None:
        names = tuple(tool.name for tool in registry.tools if tool.info.kind == kind)
        return UnknownTool(name, names, kind)
    missing = explain_dropped("", name, dropped, registry.find_new_name(dropped))
    return ToolGone(name, f"{missing.reason} {missing.next_step}", kind=kind)
