"""Starts calls: takes them through the gates, and sends them to a kernel.

Runs on the bridge's event loop. The audit log is notified of the start and the end of each call, or
of its refusal.
"""

from __future__ import annotations

import secrets
import time
from itertools import count, islice

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.bridge.server.calls.gates import (
    Gates,
    OtherAnswer,
    ToolCall,
)
from mcp_notebook.bridge.server.own_tools.meta_tools import describe_running
from mcp_notebook.bridge.telemetry.audit_log import AuditLog
from mcp_notebook.bridge.telemetry.call_events import (
    CallEnd,
    CallRefusal,
    CallStart,
    Outcome,
)
from mcp_notebook.content import Result, Text, measure_content
from mcp_notebook.errors import CallError, KernelGone, NotStarted, UnknownTool
from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.wire import messages

_MAX_NAME = 80
"""Characters of an argument's name that notebooks show of a call of a tool that does not exist."""
_MAX_NAMES = 10
"""Arguments of such a call that they show."""
_CANCELLED = "The call was cancelled before it was started."
_RUNS_ON = "The call was cancelled. The notebook's cells run on, for later calls."
_FAILED = "The call was not started because of an internal error in mcp-notebook: {}."


class CallStarter:
    """Starts the calls of one bridge.

    Args:
        links: The links to the kernels, which run the calls.
        tools: The tools, as callers see them.
        gates: Admit or refuse each call, and count those that run.
        audit: Notified of each call.
    """

    def __init__(
        self,
        links: Links,
        tools: PermittedTools,
        gates: Gates,
        audit: AuditLog,
    ) -> None:
        self._links = links
        self._tools = tools
        self._gates = gates
        self._audit = audit
        self._prefix = secrets.token_hex(4)
        self._numbers = count(1)

    async def start(self, call: ToolCall) -> RunningCall | OtherAnswer:
        """Start a call, or return what its client gets instead.

        Raises:
            CallError: The call cannot be started, or the notebook that it is for cannot be run; the
                audit log has been notified.
        """
        try:
            answer = await self._gates.admit(call)
            if answer is not None:
                return answer
            if call.notebook is None:
                return self._send(call)
        except BaseException as error:
            self.note_refusal(call, error)
            raise
        return await self._run_notebook(call, call.notebook)

    def _send(self, call: ToolCall) -> RunningCall:
        """Send a call to its kernel."""
        request, client = call.request, call.request.profile.client
        entry = call.entry
        link = self._links.find_link(entry)
        start = self._describe_start(call, link.record.id)
        began = time.monotonic()
        running = link.start_call(
            entry.tool.name,
            call.arguments,
            call.listener,
            can_elicit=request.can_elicit,
            shows_views=request.profile.shows_views,
            client=structs.replace(client, is_view=True) if request.is_from_view else client,
            confirmed=entry.tool.revision,
            task_owner=call.task_owner,
            may_become_task=_may_become_task(call),
            guest=request.caller.guest,
            errors=request.caller.errors,
        )
        self._observe(running, call.caller, start, began)
        return running

    async def _run_notebook(self, call: ToolCall, notebook: CatalogEntry) -> Result:
        """Run a notebook whose tools are not known, and return them."""
        start = self._describe_start(call, notebook.kernel_id)
        began = time.monotonic()
        self._note_start(call.caller, start)
        outcome: Result | BaseException
        try:
            await self._links.wait_for_kernel(
                notebook,
                call.listener,
                errors=call.caller.errors,
                code=call.allowed_code,
                guest=call.caller.guest,
            )
            entries = self._tools.list_entries(call.caller)
            own = [each for each in entries if each.kernel_id == notebook.kernel_id]
            outcome = describe_running(notebook.name, own)
        except BaseException as error:
            outcome = error
            raise
        finally:
            self._note_end(call.caller, _describe_run(start, outcome, time.monotonic() - began))
        return outcome

    def note_refusal(self, call: ToolCall, error: BaseException) -> None:
        """Notify the audit log that a call was refused, and why."""
        request, entry = call.request, call.found
        refusal = CallRefusal(
            at=time.time(),
            caller=request.caller.name,
            alias=request.caller.alias,
            client=request.profile.program,
            tool=call.params.name if entry is None else entry.tool.name,
            tool_kind=call.params.kind,
            reason=_explain_refusal(error),
            kernel=None if entry is None else entry.kernel_id,
            notebook=None if entry is None else entry.notebook,
            # Before the tool is found, nobody can tell which of them are secret.
            arguments=None if entry is None else call.arguments,
            input_schema={} if entry is None else entry.tool.input_schema,
        )
        self._audit.note_refusal(refusal)
        if isinstance(error, UnknownTool) and error.kind == "tool":
            self._tell_unknown(call, error)

    def _tell_unknown(self, call: ToolCall, error: UnknownTool) -> None:
        """Show a call of a tool that does not exist in all notebooks: none knows whose it is.

        A guest's call is shown only in those with tools that the guest may call.
        """
        unknown = messages.UnknownCall(
            client=call.request.profile.client,
            tool=error.name,
            arguments=[name[:_MAX_NAME] for name in islice(call.arguments, _MAX_NAMES)],
            error=str(error),
        )
        seen = {entry.kernel_id for entry in self._tools.list_entries(call.caller)}
        for link in self._links.open_links:
            if call.caller.is_user or link.record.id in seen:
                link.tell_unknown_call(unknown)

    def _describe_start(self, call: ToolCall, kernel_id: str) -> CallStart:
        request, tool = call.request, call.entry.tool
        return CallStart(
            id=f"{self._prefix}-{next(self._numbers)}",
            at=time.time(),
            caller=request.caller.name,
            alias=request.caller.alias,
            client=request.profile.program,
            kernel=kernel_id,
            notebook=call.entry.notebook,
            tool=tool.name,
            tool_kind=tool.kind,
            arguments=call.arguments,
            input_schema=tool.input_schema,
            is_from_view=request.is_from_view,
        )

    def _observe(
        self,
        call: RunningCall,
        caller: Caller,
        start: CallStart,
        began: float,
    ) -> None:
        """Report the start of a call now, and its end when it comes.

        Args:
            call: The call, which may already run.
            caller: Its caller.
            start: Its description.
            began: The monotonic time before it was sent.
        """
        self._note_start(caller, start)

        def note_end(outcome: Result | KernelGone) -> None:
            end = _describe_end(start, call, outcome, time.monotonic() - began)
            self._note_end(caller, end)

        call.on_end = note_end

    def _note_start(self, caller: Caller, start: CallStart) -> None:
        self._gates.enter(caller)
        self._audit.note_start(start)

    def _note_end(self, caller: Caller, end: CallEnd) -> None:
        self._gates.leave(caller)
        self._audit.note_end(end)


def _may_become_task(call: ToolCall) -> bool:
    """Return whether the client can take a task, or a handle for the result.

    A handle is a text, which a tool with an output schema must not answer with.
    """
    tool, profile = call.entry.tool, call.request.profile
    takes_handle = tool.task is not None and tool.output_schema is None
    return tool.kind == "tool" and (profile.can_follow_tasks or takes_handle)


def _explain_refusal(error: BaseException) -> str:
    if isinstance(error, NotStarted):
        return error.details
    if isinstance(error, CallError | ProtocolError):
        return str(error)
    # The text of an error in our own code may quote arguments.
    return _FAILED.format(type(error).__name__) if isinstance(error, Exception) else _CANCELLED


def _describe_end(
    start: CallStart, call: RunningCall, outcome: Result | KernelGone, seconds: float
) -> CallEnd:
    kind, error = _classify(call, outcome)
    return CallEnd(
        start=start,
        outcome=kind,
        seconds=seconds,
        queue_seconds=call.queue_seconds,
        run_seconds=call.run_seconds,
        error=error,
        size=0 if isinstance(outcome, KernelGone) else measure_content(outcome.content),
        task=None if call.task is None else call.task.id,
        view=None if isinstance(outcome, KernelGone) else _find_view(outcome),
    )


def _describe_run(start: CallStart, outcome: Result | BaseException, seconds: float) -> CallEnd:
    """Describe the end of a call that runs a notebook."""
    if isinstance(outcome, Result):
        return CallEnd(
            start=start, outcome="ok", seconds=seconds, size=measure_content(outcome.content)
        )
    if isinstance(outcome, Exception):
        error = _explain_refusal(outcome)
        return CallEnd(start=start, outcome="error", seconds=seconds, error=error)
    return CallEnd(start=start, outcome="cancelled", seconds=seconds, error=_RUNS_ON)


def _find_view(result: Result) -> str | None:
    """Return the URI that the live view of a result reads."""
    view = result.meta.get(meta_keys.VIEW)
    uri = view.get("uri") if isinstance(view, dict) else None
    return uri if isinstance(uri, str) else None


def _classify(call: RunningCall, outcome: Result | KernelGone) -> tuple[Outcome, str | None]:
    """Return how a call ended, and its error."""
    if isinstance(outcome, KernelGone):
        return "lost", str(outcome)
    if not outcome.is_error:
        return "ok", None
    error = next((block.text for block in outcome.content if isinstance(block, Text)), "")
    match call.stopped:
        case "cancelled" | "timed out" as stopped:
            return stopped, error
    return "error", call.details or error
