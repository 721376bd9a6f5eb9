"""The conversation with one bridge: its calls, what they report, the questions they ask.

Runs on the endpoint's thread, which owns everything in here. What the calls of other threads hand
in (a result, progress, a log message, a question, a resource's contents) goes to that thread first.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, get_args

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, CannotElicit, FrameError
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.link.call_stops import CallStops
from mcp_notebook.kernel.link.consent_questions import ConsentQuestions, NotebookPrompts
from mcp_notebook.kernel.link.log_notices import LogNotices
from mcp_notebook.kernel.link.progress_notices import ProgressNotices
from mcp_notebook.kernel.link.resource_reader import ResourceReader
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.tools.context import Client, ClientProgram
from mcp_notebook.kernel.tools.elicitation import (
    Elicitation,
    Elicitations,
    Reply,
    Withdrawal,
    refuse_undeclared,
)
from mcp_notebook.kernel.tools.trace import Trace
from mcp_notebook.wire import content_blocks, frames, messages

logger = logging.getLogger(__name__)

MAX_BACKLOG = 8 * 2**20
"""Bytes that may wait for a bridge that does not read; beyond, it gets no progress and no logs."""

_FromBridge: TypeAlias = (
    messages.Call
    | messages.Cancel
    | messages.Answer
    | messages.AskConsent
    | messages.WithdrawConsent
    | messages.StopCall
    | messages.Clients
    | messages.ListResources
    | messages.ReadResource
)
_FROM_BRIDGES = get_args(_FromBridge)
"""What bridges send once they are welcome."""


class CallHandler(Protocol):
    """Runs the calls that bridges send: the `Invoker`, or what stands before it."""

    log: CallLog
    """Tells of the end of calls."""

    @property
    def calls(self) -> Sequence[ActiveCall]:
        """The calls that wait or run."""

    def submit(
        self,
        tool: str,
        arguments: dict[str, Any],
        reply: Callable[[Result], None],
        client: Client,
    ) -> Call:
        """Take a call and return it; `reply` is called once, on any thread."""

    def cancel(self, call: Any, reason: str) -> None:
        """Stop a call."""

    def describe(self, call: Any) -> str:
        """Return what a call does now, for people."""


@dataclass(frozen=True, eq=False)
class _OpenCall:
    """A call that the bridge has not been given the result of."""

    call: Call
    elicitations: Elicitations
    notices: ProgressNotices | None
    """None: its client did not ask for progress."""
    logs: LogNotices | None
    """None: its client did not ask for log messages."""

    def close(self) -> None:
        """Send nothing more of it but its result."""
        if self.notices is not None:
            self.notices.close()
        if self.logs is not None:
            self.logs.close()


class Conversation:
    """The conversation with one bridge, from its hello on.

    Args:
        calls: Runs the bridge's calls.
        reader: Lists and reads resources.
        writer: The connection to the bridge.
        send_changes: Sends all bridges the tools if they have changed; called before each result.
        prompts: Asks in the notebook whether calls may run; None if nobody sees it.
    """

    def __init__(
        self,
        calls: CallHandler,
        reader: ResourceReader,
        writer: asyncio.StreamWriter,
        send_changes: Callable[[], None],
        prompts: NotebookPrompts | None = None,
    ) -> None:
        self._calls = calls
        self._reader = reader
        self._writer = writer
        self._send_changes = send_changes
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, _OpenCall] = {}
        self._consent = ConsentQuestions(prompts, self.send)
        self._stops = CallStops(calls, self.send)
        self.clients: tuple[messages.ClientCount, ...] = ()
        """The bridge's clients; empty if it does not say."""
        self.on_clients: Callable[[], None] = lambda: None
        """Called when these have changed, or the names that they see."""
        self.listed_names: tuple[messages.ListedName, ...] = ()
        self.last_tools: messages.Tools | None = None
        """The tools as the bridge knows them; None: it was not welcomed."""

    @property
    def socket(self) -> Any:
        """The connection's socket."""
        return self._writer.get_extra_info("socket")

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Take messages until the bridge leaves; its calls run on, as it cancels them itself.

        What goes wrong with one message is answered and logged; all others are still taken.

        Raises:
            FrameError: The bridge sent what bridges do not send.
        """
        while (frame := await frames.read_message(reader)) is not None:
            message, attachments = frame
            if not isinstance(message, _FROM_BRIDGES):
                raise FrameError(f"A bridge does not send {message.type!r}.")
            try:
                if isinstance(message, messages.Call) and attachments:
                    self._take_large_call(message, attachments.pop())
                else:
                    self._take(message)
            except Exception as error:
                logger.exception("a %r message could not be handled", message.type)
                self._answer_failure(message, error)

    def send(self, message: messages.AnyMessage, attachments: Sequence[bytes] = ()) -> None:
        """Send a message; does nothing when the bridge is gone."""
        if isinstance(message, messages.Welcome | messages.Tools):
            self.last_tools = messages.Tools(tools=message.tools, missing=message.missing)
        if self._writer.is_closing():
            return
        for buffer in frames.encode(message, attachments):
            # As bytes, Python 3.11 would copy what the socket does not take once more.
            self._writer.write(memoryview(buffer))

    def close(self, last_message: messages.Refused | messages.Goodbye | None = None) -> None:
        """End the conversation; what was written still goes out."""
        if last_message is not None:
            self.send(last_message)
        for open_call in self._open.values():
            open_call.close()
            open_call.elicitations.close(CannotElicit("The client that called the tool is gone."))
        self._open.clear()
        self._consent.close()
        self._stops.close()
        self._writer.close()

    @property
    def _is_behind(self) -> bool:
        """Whether the bridge does not read: it hangs, or its process is halted."""
        return self._writer.transport.get_write_buffer_size() > MAX_BACKLOG

    def _send_progress(self, progress: messages.Progress) -> None:
        if not self._is_behind:
            self.send(progress)

    def _send_logs(self, logs: Sequence[messages.Log]) -> bool:
        """Send log messages in one write; return whether they were sent."""
        if self._is_behind:
            return False
        if not self._writer.is_closing():
            self._writer.write(b"".join(part for log in logs for part in frames.encode(log)))
        return True

    # -- what the bridge sends ---------------------------------------------------------------------

    def _take(self, message: _FromBridge) -> None:
        match message:
            case messages.Call():
                self._start_call(message)
            case messages.Cancel():
                self._cancel_call(message)
            case messages.Answer():
                self._pass_answer(message)
            case messages.AskConsent():
                self._consent.ask(message)
            case messages.WithdrawConsent():
                self._consent.withdraw(message.id)
            case messages.Clients():
                self.clients, self.listed_names = tuple(message.clients), tuple(message.names)
                self.on_clients()
            case messages.StopCall():
                self._stops.stop(message)
            case messages.ListResources():
                resources = self._reader.list_resources(message.after, message.limit)
                self.send(messages.Resources(id=message.id, resources=resources))
            case messages.ReadResource():
                self._reader.read(message, self._send_contents)

    def _take_large_call(self, message: messages.Call, attachment: bytes) -> None:
        try:
            arguments = frames.parse_arguments(attachment)
        except FrameError as error:
            text = f"The tool was not called, because its arguments cannot be read. {error}"
            self._send_result(message.id, Result([Text(text)], is_error=True))
        else:
            self._start_call(message.model_copy(update={"arguments": arguments}))

    def _answer_failure(self, message: _FromBridge, error: Exception) -> None:
        """Answer a message that could not be handled, if the bridge waits for an answer."""
        text = f"The kernel could not do that: {describe_error(error)}. Try again."
        match message:
            case messages.Call():
                self._send_result(message.id, Result([Text(text)], is_error=True))
            case messages.ListResources():
                self.send(messages.Resources(id=message.id, resources=[]))
            case messages.ReadResource():
                self.send(messages.Contents(id=message.id, error=text))
            case messages.AskConsent():
                self.send(messages.Consent(id=message.id, decision="deny"))
            case messages.StopCall():
                self.send(messages.CallStopped(id=message.id))

    def _start_call(self, message: messages.Call) -> None:
        def reply(result: Result) -> None:
            self._loop.call_soon_threadsafe(self._send_result, message.id, result)

        notices = None
        if message.progress:
            notices = ProgressNotices(message.id, self._loop, self._send_progress)
        logs = None
        if message.log_level is not None:
            logs = LogNotices(message.id, message.log_level, self._loop, self._send_logs)
        elicitations = Elicitations(
            self._make_asker(message.id) if message.can_elicit else None,
            refuse_undeclared(message.tool),
        )
        client = Client(
            report=None if notices is None else notices.report,
            send_log=None if logs is None else logs.take,
            elicitations=elicitations,
            trace=Trace.from_headers(message.trace),
            program=ClientProgram(message.client.name, message.client.version),
            confirmed=message.confirmed or "",
        )
        call = self._calls.submit(message.tool, message.arguments, reply, client)
        self._open[message.id] = _OpenCall(call, elicitations, notices, logs)
        if notices is not None:
            notices.start(call, self._calls.describe)

    def _cancel_call(self, message: messages.Cancel) -> None:
        open_call = self._open.get(message.id)
        if open_call is not None:
            reason = message.reason or "The client cancelled the call."
            self._calls.cancel(open_call.call, reason)

    def _pass_answer(self, message: messages.Answer) -> None:
        open_call = self._open.get(message.id)
        if open_call is None:
            return
        reply: Reply | CallError = Reply(message.action, message.content)
        if message.error is not None:
            reply = CannotElicit(message.error)
        open_call.elicitations.answer(message.question, reply)

    # -- what calls hand in, on any thread ---------------------------------------------------------

    def _make_asker(self, call_id: int) -> Callable[[Elicitation | Withdrawal], None]:
        """Return what sends a call's questions, and takes them back."""

        def ask(question: Elicitation | Withdrawal) -> None:
            message: messages.Ask | messages.Withdraw
            if isinstance(question, Withdrawal):
                message = messages.Withdraw(id=call_id, question=question.number)
            else:
                message = messages.Ask(
                    id=call_id,
                    question=question.number,
                    key=question.key,
                    message=question.message,
                    form=question.schema,
                )
            with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
                self._loop.call_soon_threadsafe(self._send_question, message)

        return ask

    def _send_contents(self, message: messages.Contents, attachments: Sequence[bytes]) -> None:
        self._loop.call_soon_threadsafe(self.send, message, attachments)

    # -- what is sent of a call --------------------------------------------------------------------

    def _send_question(self, message: messages.Ask | messages.Withdraw) -> None:
        open_call = self._open.get(message.id)
        if open_call is None:
            return
        if open_call.logs is not None:
            open_call.logs.write()  # what was logged before the question comes before it
        try:
            self.send(message)
        except FrameError as error:
            self._pass_answer(
                messages.Answer(id=message.id, question=message.question, error=str(error))
            )

    def _send_result(self, call_id: int, result: Result) -> None:
        open_call = self._open.pop(call_id, None)
        if open_call is not None:
            open_call.close()
        self._send_changes()  # the client may call the tools that this call declared
        try:
            message, attachments = content_blocks.pack_result(call_id, result)
            if open_call is not None:
                message = message.model_copy(update=_describe_end(open_call.call))
            self.send(message, attachments)
        except Exception as error:
            logger.exception("a result could not be sent")
            text = f"The result could not be sent: {type(error).__name__}: {error}"
            self.send(*content_blocks.pack_result(call_id, Result([Text(text)], is_error=True)))


def _describe_end(call: Call) -> dict[str, Any]:
    """Return what a `Returned` says of a call besides its result."""
    is_stopped = call.state in (CallState.CANCELLED, CallState.TIMED_OUT)
    return {
        "lacks": call.missing_capability,
        "queue_seconds": call.queue_seconds,
        "run_seconds": call.run_seconds,
        "stopped": str(call.state) if is_stopped else None,
    }
