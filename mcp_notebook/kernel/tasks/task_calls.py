"""The tasks among one conversation's calls, and its bridge's requests about tasks.

Runs on the endpoint's thread. The conversation hands over a call; its progress, questions and
result then go to the task, which other conversations can find. The bridge that started the call is
notified of its end, without the result, for its audit log.
"""

import asyncio
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, Protocol

from msgspec import Struct, structs

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import FrameError
from mcp_notebook.kernel.calls.call import Call
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tasks.task_store import TaskStore
from mcp_notebook.kernel.tools.open_questions import Elicitations, Reply
from mcp_notebook.wire import content_blocks, frames, messages

_CANCELLED = "The client cancelled the task."
_LEFT = (
    "The client no longer waits for this call, which continues: repeat the call to get its result."
)
_UNKNOWN = "The call has ended, and its result was forgotten. Call the tool again."


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
    is_kept: bool
    """Whether it continues if its client gives up before it knows the task."""


class _TaskFollower:
    """A bridge that waits for a task as if it had started the call.

    A client that repeats a call that continues as a task waits for it like for any other call: it
    receives the task's progress, questions and result.

    Args:
        call: The bridge's message.
        task: The task.
        send: Sends the bridge a message.
        send_result: Sends the bridge a result; called once, unless the bridge leaves.
    """

    def __init__(
        self,
        call: messages.Call | messages.FollowTask,
        task: Task,
        send: Callable[[messages.AnyMessage], None],
        send_result: Callable[["_TaskFollower", Result], None],
    ) -> None:
        self.call_id = call.id
        self.task = task
        self._progress = call.progress
        self._can_elicit = call.can_elicit
        self._send = send
        self._send_result = send_result
        self._message: str | None = None
        self._numbers: set[int] = set()

    def start(self) -> None:
        """Send the task's state, and each change."""
        self.task.watch(self._tell)
        self._tell()

    def stop(self) -> None:
        """Send nothing more."""
        self.task.unwatch(self._tell)

    def leave(self) -> None:
        """Answer the bridge, whose client has stopped waiting; the task continues."""
        self.stop()
        result = Result([Text(_LEFT)], is_error=True)
        packed, _ = content_blocks.pack_result(self.call_id, result, stopped="cancelled")
        self._send(packed)

    def answer(self, answer: messages.Answer) -> None:
        """Pass on the answer to a question."""
        for key, question in self.task.questions.items():
            if question.question == answer.question:
                action = "cancel" if answer.error is not None else answer.action
                self.task.answer(key, Reply(action, answer.content))
                return

    def _tell(self) -> None:
        if self.task.result is not None:
            self.stop()
            self._send_result(self, self.task.result)
            return
        message = self.task.message
        if self._progress and message != self._message and message is not None:
            self._message = message
            self._send(messages.Progress(id=self.call_id, message=message))
        if self._can_elicit:
            self._tell_questions()

    def _tell_questions(self) -> None:
        questions = {question.question: question for question in self.task.questions.values()}
        for number in self._numbers - questions.keys():
            self._send(messages.Withdraw(id=self.call_id, question=number))
        for number in questions.keys() - self._numbers:
            self._send(structs.replace(questions[number], id=self.call_id))
        self._numbers = set(questions)


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
        self._offers: dict[int, messages.Call] = {}
        """Calls that become tasks when their clients give up."""
        self._followers: dict[int, _TaskFollower] = {}
        self._sent: dict[int, Task] = {}
        """Recently sent results of kept calls, which the bridge may give back."""
        self._waiting: set[Callable[[], None]] = set()
        """Functions that unwatch the tasks that the bridge waits for."""

    def has(self, call_id: int) -> bool:
        """Return whether a call is a task, or is becoming one; on any thread."""
        return call_id in self._calls

    def add(self, call_id: int, owner: str) -> None:
        """Make an open call a task, unless it has ended, and send its state."""
        follower = self._followers.pop(call_id, None)
        if follower is not None:  # another bridge has started it
            self._send_state(call_id, follower.task)
            follower.leave()
            return
        task = self._take_over(call_id, owner, is_kept=call_id in self._offers)
        if task is not None:
            self._send_state(call_id, task)

    def keep(self, call: messages.Call) -> None:
        """Keep a call as the bridge has requested; its result was not sent yet."""
        assert call.keep is not None
        if call.keep.how == "task":
            self.add(call.id, call.keep.owner)
            return
        self._offers = {
            id_: offer for id_, offer in self._offers.items() if id_ in self._open_calls
        }
        self._offers[call.id] = call
        open_call = self._open_calls[call.id]
        share = partial(self._share, call.id, call.keep.owner)
        self._store.kept_calls.add(call.keep.owner, call.arguments, open_call.call, share)

    def join(self, call: messages.Call) -> bool:
        """Let the bridge wait for an identical kept call; return False if there is none."""
        assert call.keep is not None
        if call.keep.how != "give_up":
            return False
        task = self._store.kept_calls.find(call.keep.owner, call.tool, call.arguments)
        if task is None:
            return False
        self._follow(call, task)
        return True

    def follow(self, message: messages.FollowTask) -> None:
        """Let the bridge wait for a task."""
        task = self._store.find(message.task, message.owner)
        if task is None:
            unknown = Result([Text(_UNKNOWN)], is_error=True)
            self._send(*content_blocks.pack_result(message.id, unknown))
        else:
            self._follow(message, task)

    def leave(self, call_id: int) -> bool:
        """Let a call continue without its bridge, or take its result back.

        Returns:
            False if the call is not a task and does not become one.
        """
        sent = self._sent.pop(call_id, None)
        if sent is not None:
            self._store.give_back(sent)
            return True
        follower = self._followers.pop(call_id, None)
        if follower is not None:
            follower.leave()
            return True
        task_call = self._calls.get(call_id)
        if task_call is not None and not task_call.is_kept:
            # Bridges never cancel a call whose client knows the task, so this task's id is unknown.
            self._cancel(task_call.task.call, _CANCELLED)
            return True
        if (offer := self._find_offer(call_id)) is None or offer.keep is None:
            return False
        del self._offers[call_id]
        self._take_over(call_id, offer.keep.owner, is_kept=True)
        return True

    def pass_answer(self, answer: messages.Answer) -> bool:
        """Pass on the answer to a task's question; False if the bridge does not follow it."""
        follower = self._followers.get(answer.id)
        if follower is not None:
            follower.answer(answer)
        return follower is not None

    def close(self) -> None:
        """Send nothing more: the bridge has disconnected. Kept calls become tasks and continue."""
        for call_id in tuple(self._offers):
            self.leave(call_id)
        for follower in self._followers.values():
            follower.stop()
        for unwatch in tuple(self._waiting):
            unwatch()
        self._sent.clear()

    def hold(self, call_id: int, call: Call, result: Result) -> None:
        """Hold the result that was just sent for a call, if the bridge may give it back."""
        offer = self._offers.pop(call_id, None)
        if offer is None or offer.keep is None or call.began is None:
            return
        if monotonic() - call.arrived >= offer.keep.after:
            self._note_sent(call_id, self._store.hold(offer.keep.owner, call, result))

    def _note_sent(self, call_id: int, task: Task) -> None:
        self._sent[call_id] = task
        loop = asyncio.get_running_loop()
        loop.call_later(messages.HOLD_SECONDS, self._sent.pop, call_id, None)

    def _take_over(self, call_id: int, owner: str, *, is_kept: bool) -> Task | None:
        """Make a call a task, and return that; None if the call has ended."""
        task_call = self._calls.get(call_id)
        if task_call is not None:
            return task_call.task
        self._calls[call_id] = None  # first, for threads that no longer find it among open calls
        open_call = self._open_calls.pop(call_id, None)
        if open_call is None:
            del self._calls[call_id]
            return None
        task = self._store.add(owner, open_call.call, open_call.elicitations)
        self._calls[call_id] = _TaskCall(task, open_call.close, is_kept)
        if open_call.last_progress is not None:
            task.take_progress(open_call.last_progress)
        for question in open_call.open_questions:  # the task's clients answer them from now on
            self.take(structs.replace(question, id=call_id))
        return task

    def _share(self, call_id: int, owner: str) -> Task | None:
        """Let other clients wait for a call of this bridge; its own client may still wait."""
        is_task = call_id in self._calls
        offer = self._find_offer(call_id)
        self._offers.pop(call_id, None)
        is_open = is_task or offer is not None
        task = self._take_over(call_id, owner, is_kept=True) if is_open else None
        if task is not None and offer is not None:
            self._follow(offer, task)
        return task

    def _find_offer(self, call_id: int) -> messages.Call | None:
        """Return the bridge's message if the call would continue without its client."""
        offer, open_call = self._offers.get(call_id), self._open_calls.get(call_id)
        if offer is None or offer.keep is None or open_call is None:
            return None
        return offer if monotonic() - open_call.call.arrived >= offer.keep.after else None

    def _follow(self, call: messages.Call | messages.FollowTask, task: Task) -> None:
        follower = _TaskFollower(call, task, self._send, self._send_result)
        self._followers[call.id] = follower
        follower.start()

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
        is_followed = call_id in self._followers
        self._store.end(task_call.task, result)
        if is_followed:
            return
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
                    task.answer(key, Reply(answer.action, answer.content))
            case messages.CancelTask() if task.result is None:
                self._cancel(task.call, _CANCELLED)
            case messages.AskTask() if request.after == task.version:
                self._send_next_state(request.id, task)
                return
            case messages.AskTask():
                self._tell_client(request.id, task)
                return
        self._send_state(request.id, task)

    def _send_result(self, follower: _TaskFollower, result: Result) -> None:
        """Send a task's result to a bridge that waited for it as for a call."""
        self._followers.pop(follower.call_id, None)
        self._store.kept_calls.note_taken(follower.task)
        self._note_sent(follower.call_id, follower.task)
        packed, attachments = _pack(follower.call_id, result, follower.task.call.describe_end())
        self._send(packed, attachments)

    def _send_next_state(self, request_id: int, task: Task) -> None:
        """Send a task's state after its next change, or after a while without one."""

        def tell() -> None:
            unwatch()
            self._tell_client(request_id, task)

        def unwatch() -> None:
            timer.cancel()
            task.unwatch(tell)
            self._waiting.discard(unwatch)

        timer = asyncio.get_running_loop().call_later(messages.MAX_TASK_WAIT, tell)
        self._waiting.add(unwatch)
        task.watch(tell)

    def _tell_client(self, request_id: int, task: Task) -> None:
        """Send a task's state, with its result, for delivery to the client."""
        if task.result is not None:
            self._store.kept_calls.note_taken(task)
        self._send_state(request_id, task)

    def _send_state(self, request_id: int, task: Task | None) -> None:
        if task is None:
            self._send(messages.TaskState(id=request_id))
            return
        make_state = partial(messages.TaskState, id=request_id, task=task.describe())
        if task.result is None:
            self._send(make_state())
            return
        packed, attachments = _pack(request_id, task.result, {})
        self._send(make_state(result=packed), attachments)


def _pack(
    call_id: int, result: Result, about_call: dict[str, Any]
) -> tuple[messages.Returned, list[bytes]]:
    """Return the message for a result, or for the error if it cannot be sent."""
    try:
        packed, attachments = content_blocks.pack_result(call_id, result, **about_call)
        frames.encode(packed, attachments)
    except (FrameError, TypeError) as error:
        return content_blocks.pack_result(call_id, content_blocks.make_failure(error), **about_call)
    return packed, attachments
