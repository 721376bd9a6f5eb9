"""From a client's request to a running call: which tool is meant, and whether it may run.

Runs on the bridge's event loop. Everything that can refuse a call is asked here, in order, and the
observers hear what happened: the start and the end of each call, or its refusal.
"""

import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.access.rate_limits import RateLimits
from mcp_notebook.bridge.access.shares import Shares
from mcp_notebook.bridge.calls.argument_limits import check_arguments
from mcp_notebook.bridge.calls.kernel_choice import KernelChoice, choose_kernel
from mcp_notebook.bridge.calls.trace_headers import describe_request, read_trace_headers
from mcp_notebook.bridge.consent.consent import Consent, ConsentRequest
from mcp_notebook.bridge.consent.policy import make_denial
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener, RunningCall
from mcp_notebook.bridge.lists import meta_tools
from mcp_notebook.bridge.protocol.client_request import ClientRequest
from mcp_notebook.bridge.questions.elicitation import can_elicit
from mcp_notebook.bridge.telemetry.call_events import (
    CallEnd,
    CallObserver,
    CallObservers,
    CallRefusal,
    CallStart,
    Outcome,
)
from mcp_notebook.bridge.telemetry.call_tracer import CallTracer
from mcp_notebook.content import Audio, Image, Resource, Result, Text
from mcp_notebook.errors import CallError, KernelGone, UnknownTool
from mcp_notebook.missing_tools import READ_RESOURCE
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages, task_messages

FindKeep: TypeAlias = Callable[[ClientRequest, messages.ToolInfo], task_messages.Keep | None]
_Arguments: TypeAlias = dict[str, Any] | bytes
_OwnAnswer: TypeAlias = (
    Result | meta_tools.RequestedCall | meta_tools.RequestedResult | meta_tools.RequestedPage
)
_CANCELLED = "The call was cancelled before it was started."
_FAILED = "The call was not started because of an internal error in mcp-notebook: {}."
_IS_STOPPED = (
    "The bridge has been stopped, and the call was not started. Connect again when it is back."
)


class CallStarter:
    """Starts the calls of one bridge.

    Args:
        tools: The tools, as callers see them.
        links: Run the calls.
        observers: Hear what happens to calls. A `CallTracer` among them is also asked which trace
            each call belongs to.
        limits: How many calls there may be, how often, and with how many arguments.
        consent: Asks a person where a call needs that.
        ready: Waits until the first tools can be expected, if they need time to appear.
        meta_tools_hint: What the list of the meta tools says if it is empty; None if the bridge
            does not offer these tools.
    """

    def __init__(  # noqa: PLR0913 - one for each part that it uses
        self,
        tools: PermittedTools,
        links: Links,
        *,
        observers: Sequence[CallObserver],
        limits: Limits,
        consent: Consent,
        ready: Callable[[], Awaitable[None]] | None = None,
        meta_tools_hint: str | None = None,
    ) -> None:
        self.tools = tools
        """The tools, as callers see them."""
        self._links = links
        self._observer = CallObservers(observers)
        self._tracer = next((item for item in observers if isinstance(item, CallTracer)), None)
        self._limits = limits
        self._rates = RateLimits(
            "calls",
            per_caller=limits.max_caller_calls_per_minute,
            in_all=limits.max_calls_per_minute,
        )
        self._running = Shares(
            "running calls", per_caller=limits.max_caller_calls, in_all=limits.max_calls
        )
        self._consent = consent
        self._ready = ready
        self._meta_tools_hint = meta_tools_hint
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._is_closed = False

    def close(self) -> None:
        """Start no more calls, and take the open questions about consent back."""
        self._is_closed = True
        self._consent.close()

    def is_meta_tool(self, name: str) -> bool:
        """Return whether it is the bridge itself that offers a tool of this name."""
        if name == READ_RESOURCE:
            return True
        return self._meta_tools_hint is not None and name in meta_tools.NAMES

    async def start(
        self,
        request: ClientRequest,
        params: types.CallToolRequestParams,
        arguments: _Arguments,
        listener: Listener,
        find_keep: FindKeep,
    ) -> (
        RunningCall
        | Result
        | types.InputRequiredResult
        | meta_tools.RequestedResult
        | meta_tools.RequestedPage
    ):
        """Start a call, or return the bridge's own answer, question, or what else is requested.

        Args:
            request: The request.
            params: What the client has sent.
            arguments: The arguments; if large, as the client's JSON.
            listener: Takes what the call sends besides its result.
            find_keep: Returns what lets a call outlive its client.

        Raises:
            CallError: The call cannot be started; the observers have heard of it.
        """
        requested: meta_tools.RequestedCall | None = None
        try:
            self._check_rate(request.caller)
            answer = await self._find_requested(request.caller, params.name, arguments)
            if not isinstance(answer, meta_tools.RequestedCall):
                return answer
            requested = answer
            return await self._start(request, params, requested, listener, find_keep)
        except BaseException as error:
            self.note_refusal(request, params.name, error, requested)
            raise

    async def _start(
        self,
        request: ClientRequest,
        params: types.CallToolRequestParams,
        requested: meta_tools.RequestedCall,
        listener: Listener,
        find_keep: FindKeep,
    ) -> RunningCall | types.InputRequiredResult:
        entry, arguments = requested.entry, requested.arguments
        keep = find_keep(request, entry.tool)
        await check_arguments(arguments, self._limits)
        self._check_room(request.caller)
        if self._consent.is_needed(entry):
            consent = ConsentRequest(request, params, entry, arguments, listener)
            if (question := await self._ask_for_consent(consent)) is not None:
                return question
        choice = choose_kernel(self._links, request, entry, arguments, keep)
        start = self._describe_start(request, entry, arguments, choice.link.record.id)
        began = time.monotonic()
        with self._open_trace(request, start) as trace:
            call = choice.link.start_call(
                entry.tool.name,
                arguments,
                listener,
                can_elicit=can_elicit(request),
                client=request.client,
                confirmed=choice.revision,
                trace=trace,
                keep=keep,
                request=request.text if arguments is params.arguments else None,
                guest="" if request.caller.is_user else request.caller.owns,
            )
        call.is_on_main_thread = entry.tool.place == "main"
        self._observe(call, request.caller, start, began, choice)
        return call

    def _open_trace(
        self, request: ClientRequest, start: CallStart
    ) -> AbstractContextManager[dict[str, str]]:
        """Return what gives the block the trace that a call belongs to in its kernel."""
        headers = read_trace_headers(request)
        if self._tracer is None:
            return nullcontext(headers)
        return self._tracer.open(start, headers, describe_request(request))

    async def _find_requested(self, caller: Caller, name: str, arguments: _Arguments) -> _OwnAnswer:
        """Return which tool is to be called with what, or the bridge's own answer."""
        if self.is_meta_tool(name):
            return await self._ask_meta_tool(caller, name, arguments)
        return meta_tools.RequestedCall(await self._find(caller, name), arguments)

    async def _ask_meta_tool(self, caller: Caller, name: str, arguments: _Arguments) -> _OwnAnswer:
        if self._ready is not None:
            await self._ready()
        return await meta_tools.answer(
            name, arguments, self.tools, caller, no_tools=self._meta_tools_hint or ""
        )

    async def _find(self, caller: Caller, name: str) -> CatalogEntry:
        try:
            return self.tools.find(caller, name)
        except UnknownTool:
            if self._ready is None:
                raise
        await self._ready()  # a client may know the tool from an earlier session
        return self.tools.find(caller, name)

    def _check_rate(self, caller: Caller) -> None:
        if (excess := self._rates.take(caller)) is not None:
            raise CallError(excess.reason)

    def _check_room(self, caller: Caller) -> None:
        if self._is_closed:
            raise CallError(_IS_STOPPED)
        lack = self._running.explain_lack(caller)
        if lack is not None:
            raise CallError(lack)

    async def _ask_for_consent(self, request: ConsentRequest) -> types.InputRequiredResult | None:
        """Return what the client is to come back with; None if the call may start."""
        question = await self._consent.ask(request)
        if question is None:
            self._check_room(request.caller)
            if request.entry not in self.tools.list_entries(request.caller):
                raise make_denial(
                    request.entry.name,
                    "The tool was changed while a person was asked. Call it again.",
                )
        return question

    def note_refusal(
        self,
        client: ClientRequest,
        tool: str,
        error: BaseException,
        request: meta_tools.RequestedCall | None = None,
    ) -> None:
        """Tell the observers that a call is not started.

        Args:
            client: The request.
            tool: The name in it.
            error: Why.
            request: What was found requested, if that is known.
        """
        entry = None if request is None else request.entry
        self._observer.note_refusal(
            CallRefusal(
                at=time.time(),
                caller=client.caller.name,
                alias=client.caller.alias,
                client=client.program,
                tool=tool if entry is None else entry.tool.name,
                reason=_explain_refusal(error),
                kernel=None if entry is None else entry.kernel_id,
                notebook=None if entry is None else entry.notebook,
                arguments=None if request is None else request.arguments,
                input_schema={} if entry is None else entry.tool.input_schema,
            )
        )

    def _describe_start(
        self, request: ClientRequest, entry: CatalogEntry, arguments: _Arguments, kernel_id: str
    ) -> CallStart:
        return CallStart(
            id=f"{self._prefix}-{next(self._numbers)}",
            at=time.time(),
            caller=request.caller.name,
            alias=request.caller.alias,
            client=request.program,
            kernel=kernel_id,
            notebook=entry.notebook,
            tool=entry.tool.name,
            arguments=arguments,
            input_schema=entry.tool.input_schema,
            may_have_escapes=request.text is None or b"\\" in request.text,
        )

    def _observe(
        self,
        call: RunningCall,
        caller: Caller,
        start: CallStart,
        began: float,
        choice: KernelChoice,
    ) -> None:
        """Report the start of a call now, and its end when it comes.

        Args:
            call: The call, which may already run.
            caller: Who has made it.
            start: What it is.
            began: The monotonic clock's time before it was sent.
            choice: Its kernel.
        """
        self._running.add(caller)
        self._observer.note_start(start)

        def note_end(outcome: Result | KernelGone) -> None:
            self._running.remove(caller)
            choice.note_end(call)
            self._observer.note_end(_describe_end(start, call, outcome, time.monotonic() - began))

        call.on_end = note_end


def _explain_refusal(error: BaseException) -> str:
    if isinstance(error, CallError | MCPError):
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
        size=0 if isinstance(outcome, KernelGone) else _measure(outcome),
        task=None if call.task is None else call.task.id,
    )


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
    return "error", error


def _measure(result: Result) -> int:
    """Return the characters and bytes of all content blocks of a result."""
    size = 0
    for block in result.content:
        if isinstance(block, Text):
            size += len(block.text)
        elif isinstance(block, Image | Audio | Resource):
            size += len(block.data)
    return size
