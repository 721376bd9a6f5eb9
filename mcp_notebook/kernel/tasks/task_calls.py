"""The tasks among one conversation's calls, and its bridge's requests about tasks.

Runs on the endpoint's thread. The conversation hands over a call; its progress, questions and
result then go to the task, which other conversations can find. The bridge that started the call is
notified of its end, without the result, for its audit log.
"""

import asyncio
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct, structs

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, CannotElicit, FrameError
from mcp_notebook.kernel.calls.call import Call
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tasks.task_store import TaskStore
from mcp_notebook.kernel.tools.open_questions import Elicitations, Reply
from mcp_notebook.wire import content_blocks, messages

_CANCELLED = "The client cancelled the task."


class Sender(Protocol):
    """Sends the bridge a message."""

    def __call__(self, message: messages.AnyMessage, attachments: Sequence[bytes] = ..., /) -> None:
        """Send it; does nothing if the bridge has disconnected."""


class OpenCall(Protocol):
    """A call of the conversation without a result."""

    @property
    def call(self) -> Call:
        """The call."""

    @property
    def elicitations(self) -> Elicitations:
        """Its questions."""

    @property
    def last_progress(self) -> messages.Progress | None:
        """The last progress that was sent; None if none was."""

    @property
    def open_questions(self) -> Sequence[messages.Ask]:
        """The unanswered questions, with any call id."""

    def close(self) -> None:
        """Stop its notices."""


class _TaskCall(Struct, frozen=True, eq=False):
    task: Task
    close: Callable[[], None]
    """Stops the call's notices."""


class TaskCalls:
    """The tasks among one conversation's calls.

    Args:
        store: All tasks of the kernel.
        cancel: Stops a call, for a reason.
        send: Sends the bridge a message.
        open_calls: The conversation's ordinary calls without a result, by id; other threads remove
            them.
    """

    def __init__(
        self,
        store: TaskStore,
        cancel: Callable[[Any, str], None],
        send: Sender,
        open_calls: MutableMapping[int, Any],
    ) -> None:
        self._store = store
        self._cancel = cancel
        self._send = send
        self._open_calls: MutableMapping[int, OpenCall] = open_calls
        self._calls: dict[int, _TaskCall | None] = {}
        """None: the call is about to become a task."""
        self._waiting: set[Callable[[], None]] = set()
        """Functions that unwatch the tasks that the bridge waits for."""

    def has(self, call_id: int) -> bool:
        """Return whether a call is a task, or is becoming one; on any thread."""
        return call_id in self._calls

    def add(self, call_id: int, owner: str) -> None:
        """Make an open call a task, unless it has ended, and send its state."""
        if call_id in self._calls:
            return
        self._calls[call_id] = None  # first, for threads that no longer find it among open calls
        open_call = self._open_calls.pop(call_id, None)
        if open_call is None:
            del self._calls[call_id]
            return
        task = self._store.add(owner, open_call.call, open_call.elicitations)
        self._calls[call_id] = _TaskCall(task, open_call.close)
        if open_call.last_progress is not None:
            task.take_progress(open_call.last_progress)
        for question in open_call.open_questions:  # the task's clients answer them from now on
            self.take(structs.replace(question, id=call_id))
        self._send_state(call_id, task)

    def cancel(self, call_id: int) -> bool:
        """Stop a call whose client does not know that it is a task; False if it is none.

        Bridges never cancel a call whose client knows the task.
        """
        task_call = self._calls.get(call_id)
        if task_call is not None:
            self._cancel(task_call.task.call, _CANCELLED)
        return task_call is not None

    def close(self) -> None:
        """Send nothing more: the bridge has disconnected."""
        for unwatch in tuple(self._waiting):
            unwatch()

    # -- messages from a task's call ---------------------------------------------------------------

    def take(self, message: messages.Progress | messages.Ask | messages.Withdraw) -> bool:
        """Take progress or a question of a call; return whether the call is a task."""
        task_call = self._calls.get(message.id)
        if task_call is None:
            return False
        match message:
            case messages.Progress():
                task_call.task.take_progress(message)
            case messages.Ask():
                task_call.task.take_question(message)
                self._store.limit_question(task_call.task, message)
            case messages.Withdraw():
                task_call.task.withdraw_question(message.question)
        return True

    def end(self, call_id: int, result: Result) -> None:
        """Take a call's result."""
        task_call = self._calls.pop(call_id, None)
        if task_call is None:
            return
        task_call.close()
        self._store.end(task_call.task, result)
        error = [block for block in result.content if isinstance(block, Text)][:1]
        brief = Result(error if result.is_error else (), is_error=result.is_error)
        end = task_call.task.call.describe_end()
        self._send(*content_blocks.pack_result(call_id, brief, **end))

    # -- requests of the bridge --------------------------------------------------------------------

    def answer_request(self, request: messages.TaskRequest) -> None:
        """Handle a request about a task, and send the task's state."""
        task = self._store.find(request.task, request.owner)
        match request:
            case _ if task is None:
                pass
            case messages.AnswerTask():
                for key, answer in request.answers.items():
                    reply: Reply | CallError = Reply(answer.action, answer.content)
                    if answer.error is not None:
                        reply = CannotElicit(answer.error)
                    task.answer(key, reply)
            case messages.CancelTask() if task.result is None:
                self._cancel(task.call, _CANCELLED)
            case messages.AskTask() if request.after == task.version:
                self._send_next_state(request.id, task)
                return
        self._send_state(request.id, task)

    def _send_next_state(self, request_id: int, task: Task) -> None:
        """Send a task's state after its next change, or after a while without one."""

        def tell() -> None:
            unwatch()
            self._send_state(request_id, task)

        def unwatch() -> None:
            timer.cancel()
            task.unwatch(tell)
            self._waiting.discard(unwatch)

        timer = asyncio.get_running_loop().call_later(messages.MAX_TASK_WAIT, tell)
        self._waiting.add(unwatch)
        task.watch(tell)

    def _send_state(self, request_id: int, task: Task | None) -> None:
        if task is None:
            self._send(messages.TaskState(id=request_id))
            return
        make_state = partial(messages.TaskState, id=request_id, task=task.describe())
        if task.result is None:
            self._send(make_state())
            return
        try:
            packed, attachments = content_blocks.pack_result(request_id, task.result)
            self._send(make_state(result=packed), attachments)
        except (FrameError, TypeError) as error:
            packed, _ = content_blocks.pack_result(request_id, content_blocks.make_failure(error))
            self._send(make_state(result=packed))
