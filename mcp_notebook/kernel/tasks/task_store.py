"""Holds the tasks of one kernel, and drops them some time after their end.

Belongs to the endpoint's thread.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CannotElicit
from mcp_notebook.kernel.calls.call import Call
from mcp_notebook.kernel.calls.call_log import measure_result
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tools.open_questions import Elicitations
from mcp_notebook.wire import messages, task_ids

_DROPPED = (
    "The task's result was dropped: all results of tasks together may take up {most:,} bytes in "
    "the kernel (the setting `max_resource_bytes`). Call the tool again."
)


class TaskStore:
    """The tasks of one kernel.

    Args:
        kernel_id: Id of the kernel's record. It is part of each task's id, so that bridges know
            which kernel to ask.
        ttl: Seconds for which a task is kept after its end, and for which its questions wait.
        max_bytes: Bytes of all results together; the oldest results are dropped.
        reserve: Called with the bytes of all results whenever that changes: originals of results
            share the same memory, and expire to make room.
        max_ended: Ended tasks that are kept; above that, the oldest task of the owner with the most
            is dropped.
    """

    def __init__(
        self,
        kernel_id: str,
        *,
        ttl: float,
        max_bytes: int,
        reserve: Callable[[int], None] = lambda _: None,
        max_ended: int = 1_000,
    ) -> None:
        self._max_ended = max_ended
        self._kernel_id = kernel_id
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._reserve = reserve
        self._tasks: dict[str, Task] = {}
        self._ended: OrderedDict[str, int] = OrderedDict()
        """Ids of ended tasks, in the order of their ends, with the bytes of their results."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """The timers that drop them."""

    def add(self, owner: str, call: Call, elicitations: Elicitations) -> Task:
        """Make a call a task.

        Args:
            owner: Who may see it.
            call: The call, which has not ended.
            elicitations: The call's questions.
        """
        task_id = task_ids.make_id(call.tool, self._kernel_id)
        task = self._tasks[task_id] = Task(task_id, owner, call, elicitations)
        call.task_id = task_id
        return task

    def find(self, task_id: str, owner: str) -> Task | None:
        """Return a task by its id; None if this owner has no such task, or it was dropped."""
        task = self._tasks.get(task_id)
        return task if task is not None and task.owner == owner else None

    def end(self, task: Task, result: Result) -> None:
        """Store the result of a task's call; the task is dropped after its time."""
        task.ends = time.time() + self._ttl
        loop = asyncio.get_running_loop()
        self._timers[task.id] = loop.call_later(self._ttl, self._forget, task.id)
        task.end(result)
        self._ended[task.id] = measure_result(result)
        if len(self._ended) > self._max_ended:
            self._forget(self._find_oldest(dict.fromkeys(self._ended, 1)))
        self._drop_results(newest=task.id)

    def limit_question(self, task: Task, question: messages.Ask) -> None:
        """Limit the time for an answer: the main thread may be waiting for it."""
        error = CannotElicit(f"Nobody answered the tool's question within {self._ttl / 60:g} min.")

        def refuse() -> None:
            task.withdraw_question(question.question)
            task.elicitations.answer(question.question, error)

        asyncio.get_running_loop().call_later(self._ttl, refuse)

    def _forget(self, task_id: str) -> None:
        self._timers.pop(task_id).cancel()
        del self._tasks[task_id]
        if self._ended.pop(task_id):
            self._reserve(sum(self._ended.values()))

    def _drop_results(self, newest: str) -> None:
        """Drop the oldest results until the rest fits; the newest if it is too large by itself."""
        if self._ended[newest] > self._max_bytes:
            self._drop_result(newest)
        while sum(self._ended.values()) > self._max_bytes:
            self._drop_result(self._find_oldest(self._ended))
        self._reserve(sum(self._ended.values()))

    def _drop_result(self, task_id: str) -> None:
        self._ended[task_id] = 0
        task = self._tasks[task_id]
        task.end(Result([Text(_DROPPED.format(most=self._max_bytes))], is_error=True))

    def _find_oldest(self, sizes: Mapping[str, int]) -> str:
        """Return the oldest ended task with a size, of the owner with the largest total."""
        shares: Counter[str] = Counter()
        for task_id, size in sizes.items():
            shares[self._tasks[task_id].owner] += size
        ((owner, _),) = shares.most_common(1)
        return next(id_ for id_ in sizes if sizes[id_] and self._tasks[id_].owner == owner)
