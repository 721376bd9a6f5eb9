"""Tells a bridge of a task as if it were a call that the bridge has started.

Runs on the endpoint's thread. A client that makes a call again that goes on as a task waits for it
like for any call: it is told how far it is, asked what it asks, and gets its result.
"""

from collections.abc import Callable
from typing import Any

from mcp_notebook.content import Result, Text
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tools.open_questions import Reply
from mcp_notebook.wire import content_blocks, messages, task_messages

_LEFT = "The client no longer waits for this call, which goes on: the same call again finds it."


class TaskFollower:
    """A bridge that waits for a task.

    Args:
        call: What the bridge has sent.
        task: The task.
        send: Sends the bridge a message.
        send_result: Sends the bridge a result; called once, unless the bridge leaves.
    """

    def __init__(
        self,
        call: messages.Call | task_messages.FollowTask,
        task: Task,
        send: Callable[[messages.AnyMessage], None],
        send_result: Callable[["TaskFollower", Result], None],
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
        """Tell the bridge where the task is, and of each change."""
        self.task.watch(self._tell)
        self._tell()

    def stop(self) -> None:
        """Tell the bridge nothing more."""
        self.task.unwatch(self._tell)

    def leave(self) -> None:
        """Answer the bridge, whose client waits no more; the task goes on."""
        self.stop()
        result = Result([Text(_LEFT)], is_error=True)
        packed, _ = content_blocks.pack_result(self.call_id, result, stopped="cancelled")
        self._send(packed)

    def answer(self, answer: messages.Answer) -> None:
        """Pass on what became of a question."""
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
            self._send(questions[number].model_copy(update={"id": self.call_id}))
        self._numbers = set(questions)


def describe_end(call: Call) -> dict[str, Any]:
    """Return what a `Returned` says of a call besides its result."""
    is_stopped = call.state in (CallState.CANCELLED, CallState.TIMED_OUT)
    return {
        "lacks": call.missing_capability,
        "queue_seconds": call.queue_seconds,
        "run_seconds": call.run_seconds,
        "stopped": str(call.state) if is_stopped else None,
    }
