"""The conversation with one bridge: its calls, and their progress, log messages and questions.

Runs on the endpoint's thread, which owns everything in here. Other threads pass progress, log
messages, questions and contents of resources to that thread. They send a result themselves, unless
something else has to be sent first. Two classes do not concern the conversation's own calls:
`CallStops` stops any call of the kernel by its number, and `ConsentQuestions` asks in the notebook
whether a call may run.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, get_args

from msgspec import Struct, structs

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, CannotElicit, FrameError
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.link.call_notices import (
    LogNotices,
    ProgressNotices,
    ShownProgress,
    make_ask,
    make_asker,
)
from mcp_notebook.kernel.link.frame_sender import FrameSender
from mcp_notebook.kernel.link.resource_reader import Read, ResourceReader
from mcp_notebook.kernel.link.side_panel_updates import Watchers
from mcp_notebook.kernel.link.tool_changes import ToolChanges
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.tasks.task_calls import TaskCalls
from mcp_notebook.kernel.tasks.task_store import TaskStore
from mcp_notebook.kernel.tools.context import (
    NO_CLIENT,
    Client,
    ClientProgram,
    Update,
)
from mcp_notebook.kernel.tools.open_questions import (
    Elicitations,
    Reply,
    refuse_undeclared,
)
from mcp_notebook.text.redaction import MASK
from mcp_notebook.wire import content_blocks, frames, messages
from mcp_notebook.wire.frames import FrameProtocol

logger = logging.getLogger(__name__)

_CANCELLED = "The client cancelled the call."
MAX_BACKLOG = 8 * 2**20
"""Bytes that may wait for a bridge that does not read; above this, progress and logs are lost."""

_FromBridge: TypeAlias = (
    messages.Call
    | messages.Cancel
    | messages.Answer
    | messages.AskConsent
    | messages.WithdrawConsent
    | messages.StopCall
    | messages.Clients
    | messages.UnknownCall
    | messages.NotebookMoved
    | messages.ListResources
    | messages.ReadResource
    | messages.Complete
    | messages.EndRead
    | messages.AboutTasks
    | messages.AboutPanel
)
_FROM_BRIDGES = get_args(_FromBridge)
"""The messages that bridges send after the welcome."""
_ABOUT_PANEL, _PANEL_ACTIONS = get_args(messages.AboutPanel), get_args(messages.PanelAction)


class NotebookPrompts(Protocol):
    """Shows questions in the notebook: `kernel.notebook.consent_prompts`."""

    def ask(
        self, question: messages.AskConsent, answer: Callable[[messages.ConsentDecision], None]
    ) -> int:
        """Show a question, and return its number; `answer` is called once, on any thread."""

    def withdraw(self, number: int) -> None:
        """Close a question, if it is open."""


class _Channels(Struct, frozen=True, eq=False):
    """What a call sends to its client besides its result."""

    elicitations: Elicitations
    notices: ProgressNotices | None
    """None: its client did not ask for progress."""
    shown: ProgressNotices | ShownProgress | None
    """The progress that side panels show; None if the notebook can have none."""
    logs: LogNotices | None
    """None: its client did not ask for log messages."""


class _OpenCall(_Channels, frozen=True, eq=False):
    """A call whose result was not sent yet."""

    call: ActiveCall

    @property
    def last_progress(self) -> messages.Progress | None:
        """The last progress that was sent; None if none was."""
        return None if self.notices is None else self.notices.last

    @property
    def open_questions(self) -> list[messages.Ask]:
        """The unanswered questions; their call ids are 0."""
        return [make_ask(0, question) for question in self.elicitations.open_questions]

    @property
    def sends_only_result(self) -> bool:
        """Whether no progress, log message or question may still be on its way."""
        return not (
            self.elicitations.is_used
            or (self.notices is not None and self.notices.is_used)
            or (self.logs is not None and self.logs.is_used)
        )

    def close(self) -> None:
        """Send nothing more except the result."""
        if self.notices is not None:
            self.notices.close()
        if self.logs is not None:
            self.logs.close()


class Conversation:
    """The conversation with one bridge, from its hello on.

    Args:
        calls: Runs the bridge's calls.
        reader: Lists and reads resources.
        connection: To the bridge.
        changes: Sends changed tools to all bridges.
        watchers: The side panels that show the notebook.
        tasks: Holds the calls that outlive the conversation.
        prompts: Asks in the notebook whether calls may run; None if no person sees the notebook.
    """

    def __init__(  # noqa: PLR0913 - one for each part that it uses
        self,
        calls: Invoker,
        reader: ResourceReader,
        connection: FrameProtocol,
        changes: ToolChanges,
        *,
        watchers: Watchers | None = None,
        tasks: TaskStore,
        prompts: NotebookPrompts | None = None,
    ) -> None:
        self._calls = calls
        self._reader = reader
        self._connection = connection
        self._sender = FrameSender(connection.transport)
        self._changes = changes
        self._watchers = watchers
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, _OpenCall] = {}
        self._reads: dict[int, Read] = {}
        """The reads and completions that were not answered yet, by their ids."""
        self._due_results: set[int] = set()
        """Calls whose results are scheduled on the loop and not sent yet."""
        self._consent = ConsentQuestions(prompts, self.send)
        self._stops = CallStops(calls, self.send)
        self._tasks = TaskCalls(tasks, calls.cancel, self.send, self._open)
        self.inspects = False
        """Whether the bridge offers the notebook's variables."""
        self.clients: tuple[messages.ClientCount, ...] = ()
        """The bridge's clients; empty if it does not report them."""
        self.on_clients: Callable[[], None] = lambda: None
        """Called when `clients` or `listed_names` has changed."""
        self.on_moved: Callable[[str], None] = lambda _: None
        """Called with the new path of the notebook's file."""
        self.listed_names: tuple[messages.ListedName, ...] = ()
        self.last_tools: messages.Tools | None = None
        """The tools that the bridge knows; None before the welcome."""

    @property
    def progress(self) -> dict[int, Update]:
        """The reported progress of open calls, by their numbers in the log."""
        return {
            open_call.call.number: open_call.shown.reported
            for open_call in tuple(self._open.values())
            if open_call.shown is not None and open_call.shown.reported is not None
        }

    @property
    def sockets(self) -> Sequence[Any]:
        """The connection's sockets, for reading and for writing."""
        return self._sender.sockets

    async def listen(self) -> None:
        """Handle messages until the bridge disconnects; its calls continue.

        An error in one message is answered and logged; further messages are still handled.

        Raises:
            FrameError: The bridge sent an invalid message.
        """
        await self._connection.listen(self._take_frame)

    def _take_frame(self, message: messages.AnyMessage, _attachments: list[bytes]) -> None:
        if not isinstance(message, _FROM_BRIDGES):
            raise FrameError(f"A bridge does not send {message.type!r}.")
        try:
            self._take(message)
        except Exception as error:
            logger.exception("a %r message could not be handled", message.type)
            self._answer_failure(message, error)

    def send(self, message: messages.AnyMessage, attachments: Sequence[bytes] = ()) -> None:
        """Send a message; does nothing if the bridge has disconnected."""
        if isinstance(message, messages.Welcome | messages.Tools):
            self.last_tools = messages.Tools(
                tools=message.tools,
                missing=message.missing,
                modified=message.modified,
            )
        self._sender.send(frames.encode(message, attachments))

    def close(self, last_message: messages.Refused | messages.Goodbye | None = None) -> None:
        """End the conversation; messages that wait are still sent."""
        if last_message is not None:
            self.send(last_message)
        if self._watchers is not None:
            self._watchers.remove(self.send)
        self._tasks.close()
        for open_call in tuple(self._open.values()):  # other threads may answer calls meanwhile
            open_call.close()
            open_call.elicitations.close(CannotElicit("The client that called the tool is gone."))
        self._open.clear()
        for read in self._reads.values():
            self._reader.forget(read)
        self._reads.clear()
        self._consent.close()
        self._stops.close()
        self._sender.close()

    @property
    def _is_behind(self) -> bool:
        """Whether the bridge does not read: it hangs, or its process is stopped."""
        return self._sender.backlog > MAX_BACKLOG

    def _send_progress(self, progress: messages.Progress) -> None:
        if self._watchers is not None:
            self._watchers.note_change()
        if not self._tasks.take(progress) and not self._is_behind:
            self.send(progress)

    def _send_logs(self, logs: Sequence[messages.Log]) -> bool:
        """Send log messages in one write; return whether they were sent."""
        if self._is_behind:
            return False
        self._sender.send([b"".join(part for log in logs for part in frames.encode(log))])
        return True

    # -- messages from the bridge ------------------------------------------------------------------

    def _take(self, message: _FromBridge) -> None:
        match message:
            case messages.Call():
                self._start_call(message)
            case messages.Cancel():
                self._cancel_call(message)
            case messages.Answer():
                self._pass_answer(message)
            case messages.UnknownCall():
                program = ClientProgram(message.client.name, message.client.version)
                arguments = dict.fromkeys(message.arguments, MASK)
                self._calls.log.note_unknown(program, message.tool, arguments, message.error)
            case messages.KeepCall():
                self._tasks.add(message.id, message.owner)
            case _:
                self._take_other(message)

    def _take_other(self, message: _FromBridge) -> None:
        """Handle a message that does not concern a call of this conversation."""
        match message:
            case messages.AskConsent():
                self._consent.ask(message)
            case messages.WithdrawConsent():
                self._consent.withdraw(message.id)
            case messages.Clients():
                self.clients, self.listed_names = tuple(message.clients), tuple(message.names)
                self.on_clients()
            case messages.NotebookMoved():
                self.on_moved(message.path)
            case messages.StopCall():
                self._stops.stop(message)
            case (
                messages.ListResources()
                | messages.ReadResource()
                | messages.Complete()
                | messages.EndRead()
            ):
                self._read(message)
            case messages.AskTask() | messages.AnswerTask() | messages.CancelTask():
                self._tasks.answer_request(message)
            case _ if self._watchers is not None and isinstance(message, _ABOUT_PANEL):
                self._watchers.take(message, self.send, lambda: self._is_behind)

    def _read(
        self,
        message: messages.ListResources
        | messages.ReadResource
        | messages.Complete
        | messages.EndRead,
    ) -> None:
        match message:
            case messages.ListResources():
                resources = self._reader.list_resources(message.after, message.limit)
                self.send(messages.Resources(id=message.id, resources=resources))
            case messages.ReadResource():
                self._reads[message.id] = self._reader.read(message, self._answer_read)
            case messages.Complete():
                self._reads[message.id] = self._reader.complete(message, self._answer_read)
            case messages.EndRead():
                if (read := self._reads.pop(message.id, None)) is not None:
                    self._reader.forget(read)

    def _answer_failure(self, message: _FromBridge, error: Exception) -> None:
        """Answer a message that failed, if the bridge waits for an answer."""
        text = f"The kernel could not do that: {describe_error(error)}. Try again."
        if isinstance(message, messages.Call):
            self._send_result(message.id, Result([Text(text)], is_error=True))
        elif (answer := _make_failure_answer(message, text)) is not None:
            self.send(answer)

    def _start_call(self, message: messages.Call) -> None:
        def reply(result: Result) -> None:
            # A call that becomes a task has to be one before it ends.
            is_due = self._changes.are_due or self._due_results
            is_first = message.task_owner is None and not is_due
            if is_first and open_call.sends_only_result:
                open_call.close()
                self._send_result(message.id, result)
            else:
                self._due_results.add(message.id)
                self._loop.call_soon_threadsafe(self._send_last, message.id, result)

        channels = self._open_channels(message)
        client = self._make_client(message, channels)
        call = self._calls.take(message.tool, message.arguments, reply, client)
        self._open[message.id] = open_call = _OpenCall(**structs.asdict(channels), call=call)
        if channels.notices is not None:
            channels.notices.start(call, self._calls.describe)
        self._calls.start(call)
        is_refused = call.has_ended and call.began is None  # for lack of room, for example
        if message.task_owner is not None and not is_refused:
            self._tasks.add(message.id, message.task_owner)

    def _open_channels(self, message: messages.Call) -> _Channels:
        notices: ProgressNotices | None = None
        shown: ProgressNotices | ShownProgress | None = None
        if message.progress:
            shown = notices = ProgressNotices(message.id, self._loop, self._send_progress)
        elif self._watchers is not None:
            shown = ShownProgress(self._watchers.note_change)
        logs = None
        if message.log_level is not None:
            logs = LogNotices(message.id, message.log_level, self._loop, self._send_logs)
        ask = None
        if message.can_elicit:
            ask = make_asker(message.id, self._loop, self._send_question)
        elicitations = Elicitations(ask, refuse_undeclared(message.tool))
        return _Channels(elicitations, notices, shown, logs)

    def _make_client(self, message: messages.Call, channels: _Channels) -> Client:
        shown, logs, program = channels.shown, channels.logs, message.client
        watchers = self._watchers if channels.notices is None else None
        return Client(
            report=None if shown is None else shown.report,
            sees_progress=NO_CLIENT.sees_progress if watchers is None else watchers.are_there,
            send_log=None if logs is None else logs.take,
            elicitations=channels.elicitations,
            program=ClientProgram(program.name, program.version, program.is_view),
            guest=message.guest,
            errors=message.errors,
            confirmed=message.confirmed or "",
            shows_views=message.shows_views,
            is_trial=message.is_trial,
        )

    def _cancel_call(self, message: messages.Cancel) -> None:
        open_call = self._open.get(message.id)
        if not self._tasks.cancel(message.id) and open_call is not None:
            self._calls.cancel(open_call.call, message.reason or _CANCELLED)

    def _pass_answer(self, message: messages.Answer) -> None:
        open_call = self._open.get(message.id)
        if open_call is None:
            return
        reply: Reply | CallError = Reply(message.action, message.content)
        if message.error is not None:
            reply = CannotElicit(message.error)
        open_call.elicitations.answer(message.question, reply)

    # -- messages to the bridge --------------------------------------------------------------------

    def _answer_read(
        self, message: messages.Contents | messages.Completed, attachments: Sequence[bytes] = ()
    ) -> None:
        """Send the answer to a read or completion; on any thread."""

        def answer() -> None:
            if self._reads.pop(message.id, None) is not None:  # else nobody waits for it
                self.send(message, attachments)

        self._loop.call_soon_threadsafe(answer)

    def _send_question(self, message: messages.Ask | messages.Withdraw) -> None:
        if self._tasks.take(message):
            return
        open_call = self._open.get(message.id)
        if open_call is None:
            return
        if open_call.logs is not None:
            open_call.logs.write()  # earlier log messages are sent before the question
        try:
            self.send(message)
        except FrameError as error:
            self._pass_answer(
                messages.Answer(id=message.id, question=message.question, error=str(error))
            )

    def _send_last(self, call_id: int, result: Result) -> None:
        """Send everything that has to precede a result, and the result."""
        if (open_call := self._open.get(call_id)) is not None:
            if open_call.notices is not None:
                open_call.notices.flush()
            open_call.close()
        self._changes.send()  # the client may call the tools that this call declared
        self._send_result(call_id, result)
        self._due_results.discard(call_id)

    def _send_result(self, call_id: int, result: Result) -> None:
        """Send a result that nothing has to precede; on any thread."""
        open_call = self._open.pop(call_id, None)
        if open_call is None and self._tasks.has(call_id):
            self._loop.call_soon_threadsafe(self._tasks.end, call_id, result)
            return
        try:
            about_call = {} if open_call is None else open_call.call.describe_end()
            self.send(*content_blocks.pack_result(call_id, result, **about_call))
        except Exception as error:
            logger.exception("a result could not be sent")
            self.send(*content_blocks.pack_result(call_id, content_blocks.make_failure(error)))


def _make_failure_answer(message: _FromBridge, text: str) -> messages.AnyMessage | None:
    """Return the answer to a failed message that is not a call; None if it needs no answer."""
    answer: messages.AnyMessage | None = None
    match message:
        case messages.ListResources():
            answer = messages.Resources(id=message.id, resources=[])
        case messages.ReadResource():
            answer = messages.Contents(id=message.id, error=text)
        case messages.Complete():
            answer = messages.Completed(id=message.id)
        case messages.AskConsent():
            answer = messages.Consent(id=message.id, decision="deny")
        case messages.StopCall():
            answer = messages.CallStopped(id=message.id)
        case messages.AskTask() | messages.AnswerTask() | messages.CancelTask():
            answer = messages.TaskState(id=message.id)
        case messages.AskCall():
            answer = messages.CallDetails(id=message.id, is_known=False)
        case _ if isinstance(message, _PANEL_ACTIONS):
            answer = messages.PanelAnswer(id=message.id, message=text, is_error=True)
    return answer


class CallStops:
    """Stops calls for one bridge, and answers when they have ended.

    Args:
        calls: All calls of the kernel.
        send: Sends the bridge a message; on the endpoint's thread.
    """

    def __init__(self, calls: Invoker, send: Callable[[messages.CallStopped], None]) -> None:
        self._calls = calls
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._open: list[tuple[int, ActiveCall]] = []
        """Ids of open requests, with their calls."""

    def stop(self, request: messages.StopCall) -> None:
        """Stop a call; the answer is sent when the call has ended for its client."""
        call = next((call for call in self._calls.calls if call.number == request.number), None)
        if call is None:
            self._send(messages.CallStopped(id=request.id))
            return
        self._open.append((request.id, call))
        self._calls.log.subscribe(self._look)
        self._calls.cancel(call, request.reason, request.by)
        self._answer()

    def close(self) -> None:
        """Drop all requests: the bridge has disconnected."""
        if self._open:
            self._open.clear()
            self._calls.log.unsubscribe(self._look)

    def _answer(self) -> None:
        """Answer the requests whose calls have ended."""
        for request_id, call in [item for item in self._open if item[1].has_ended]:
            self._open.remove((request_id, call))
            self._send(
                messages.CallStopped(
                    id=request_id,
                    tool=call.tool,
                    state=str(call.state),
                    is_stopping=call.is_stopping,
                )
            )
        if not self._open:
            self._calls.log.unsubscribe(self._look)

    def _look(self) -> None:
        """Check whether an open request can be answered; called by the log, on any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            self._loop.call_soon_threadsafe(self._answer)


class ConsentQuestions:
    """The open questions of one conversation.

    Args:
        prompts: Shows them; None if no person sees the notebook.
        send: Sends the bridge a message; on the endpoint's thread.
    """

    def __init__(
        self, prompts: NotebookPrompts | None, send: Callable[[messages.Consent], None]
    ) -> None:
        self._prompts = prompts
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._numbers: dict[int, int] = {}
        """Numbers of the prompts, by the ids of the questions."""

    def ask(self, question: messages.AskConsent) -> None:
        """Show a question in the notebook."""
        if self._prompts is None:
            self._send(messages.Consent(id=question.id, decision="deny"))
        else:
            answer = partial(self._answer, question.id)
            self._numbers[question.id] = self._prompts.ask(question, answer)

    def withdraw(self, question_id: int) -> None:
        """Close a question; does nothing if it was answered."""
        number = self._numbers.pop(question_id, None)
        if number is not None and self._prompts is not None:
            self._prompts.withdraw(number)

    def close(self) -> None:
        """Close all questions: the bridge has disconnected."""
        for question_id in tuple(self._numbers):
            self.withdraw(question_id)

    def _answer(self, question_id: int, decision: messages.ConsentDecision) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            self._loop.call_soon_threadsafe(self._send_answer, question_id, decision)

    def _send_answer(self, question_id: int, decision: messages.ConsentDecision) -> None:
        if self._numbers.pop(question_id, None) is not None:
            self._send(messages.Consent(id=question_id, decision=decision))
