"""What a bridge asks one kernel about its tasks: where they are, and what is to become of them.

Runs on the bridge's event loop. A `Link` sends the requests, hands over the answers, and ends the
requests when the kernel is gone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mcp_notebook.bridge.kernels.pending_requests import PendingRequests
from mcp_notebook.content import Result
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import content_blocks, messages, task_messages

ANSWER_LIMIT = 10.0
"""Seconds that a kernel has to answer. Its link thread does so immediately, unless code in C holds
the interpreter's lock."""
_State: TypeAlias = tuple[task_messages.TaskState, list[bytes]]


@dataclass(frozen=True)
class KernelTask:
    """A task as its kernel has it."""

    info: task_messages.TaskInfo
    result: Result | None = None
    """Of a task that has ended."""


class TaskRequests:
    """The requests about one kernel's tasks.

    Args:
        notebook: The notebook's name, for messages.
        next_id: Returns a number that no other request of the conversation has.
        send: Sends a message to the kernel, if it is still connected.
    """

    def __init__(
        self,
        notebook: str,
        next_id: Callable[[], int],
        send: Callable[[messages.AnyMessage], None],
    ) -> None:
        self._notebook = notebook
        self._requests: PendingRequests[_State] = PendingRequests(next_id, send)
        self.are_possible = False
        """Whether the kernel is connected and has tasks."""

    async def find(self, task: str, owner: str, *, after: int | None = None) -> KernelTask | None:
        """Return a task; None if the kernel has no such task of this owner.

        Args:
            task: Its id.
            owner: Whose it is.
            after: Wait for a while until the task has another version than this one.

        Raises:
            KernelGone: The kernel is gone, and the task with it.
            TimeoutError: The kernel has not answered in time.
        """
        return await self._request(
            lambda number: task_messages.AskTask(id=number, task=task, owner=owner, after=after),
            ANSWER_LIMIT + (0.0 if after is None else task_messages.MAX_WAIT),
        )

    async def answer(
        self, task: str, owner: str, answers: Mapping[str, task_messages.TaskAnswer]
    ) -> KernelTask | None:
        """Answer a task's open questions; otherwise as `find`.

        Args:
            task: Its id.
            owner: Whose it is.
            answers: By the questions' keys; others are ignored.
        """
        return await self._request(
            lambda number: task_messages.AnswerTask(
                id=number, task=task, owner=owner, answers=dict(answers)
            )
        )

    async def cancel(self, task: str, owner: str) -> KernelTask | None:
        """Stop a task, which may end a moment later; otherwise as `find`."""
        return await self._request(
            lambda number: task_messages.CancelTask(id=number, task=task, owner=owner)
        )

    def take_state(self, message: task_messages.TaskState, attachments: list[bytes]) -> None:
        """Take what the kernel sent; nothing happens if nobody waits for it."""
        self._requests.take(message.id, (message, attachments))

    def close(self, reason: str) -> None:
        """End all requests: the kernel is gone, for this reason."""
        self.are_possible = False
        self._requests.end(reason)

    async def _request(
        self,
        make_message: Callable[[int], task_messages.TaskRequest],
        seconds: float | None = None,
    ) -> KernelTask | None:
        if not self.are_possible:
            raise KernelGone(f"The kernel of {self._notebook!r} has no tasks.")
        limit = ANSWER_LIMIT if seconds is None else seconds
        message, attachments = await self._requests.ask(make_message, seconds=limit)
        if message.task is None:
            return None
        result = message.result
        unpacked = None if result is None else content_blocks.unpack_result(result, attachments)
        return KernelTask(message.task, unpacked)
