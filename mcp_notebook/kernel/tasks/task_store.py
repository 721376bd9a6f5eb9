"""Holds the tasks of one kernel, and drops them some time after their end.

Belongs to the endpoint's thread; `TaskStore.list_tasks` may be called on any thread.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from msgspec import Struct

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CannotElicit
from mcp_notebook.kernel.calls.call import Call
from mcp_notebook.kernel.calls.call_log import measure_result
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tools.open_questions import Elicitations
from mcp_notebook.wire import messages, task_ids

MAX_ENDED = 1_000
"""Ended tasks that are kept; above that, the oldest task of the owner with the most is dropped."""
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
    """

    def __init__(
        self,
        kernel_id: str,
        *,
        ttl: float,
        max_bytes: int,
        reserve: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._kernel_id = kernel_id
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._reserve = reserve
        self.kept_calls = KeptCalls()
        """Calls whose results were not delivered yet."""
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
        task = self._make(owner, call, elicitations)
        call.task_id = task.id
        return task

    def hold(self, owner: str, call: Call, result: Result) -> Task:
        """Return a task for a result that was just sent, kept while the bridge may give it back.

        Args:
            owner: Who may see it.
            call: The call, which has ended.
            result: Its result.
        """
        task = self._make(owner, call, Elicitations())
        self.kept_calls.note_taken(task)
        self._end(task, result, messages.HOLD_SECONDS)
        return task

    def give_back(self, task: Task) -> None:
        """Let the same call find a task's result again: its client had given up waiting."""
        if task.id in self._ended:
            self.kept_calls.give_back(task)
            self._forget_in(task, self._ttl)

    def _make(self, owner: str, call: Call, elicitations: Elicitations) -> Task:
        task_id = task_ids.make_id(call.tool, self._kernel_id)
        task = self._tasks[task_id] = Task(task_id, owner, call, elicitations)
        self.kept_calls.note_task(task)
        return task

    def find(self, task_id: str, owner: str) -> Task | None:
        """Return a task by its id; None if this owner has no such task, or it was dropped."""
        task = self._tasks.get(task_id)
        return task if task is not None and task.owner == owner else None

    def list_tasks(self) -> tuple[Task, ...]:
        """Return all tasks, oldest first."""
        return tuple(self._tasks.values())

    def end(self, task: Task, result: Result) -> None:
        """Store the result of a task's call; the task is dropped after its time."""
        self._end(task, result, self._ttl)

    def _end(self, task: Task, result: Result, seconds: float) -> None:
        self._forget_in(task, seconds)
        task.end(result)
        self._ended[task.id] = measure_result(result)
        if len(self._ended) > MAX_ENDED:
            self._forget(self._find_oldest(dict.fromkeys(self._ended, 1)))
        self._drop_results(newest=task.id)

    def _forget_in(self, task: Task, seconds: float) -> None:
        task.ends = time.time() + seconds
        if (earlier := self._timers.get(task.id)) is not None:
            earlier.cancel()
        loop = asyncio.get_running_loop()
        self._timers[task.id] = loop.call_later(seconds, self._forget, task.id)

    def limit_question(self, task: Task, question: messages.Ask) -> None:
        """Limit the time for an answer: the main thread may be waiting for it."""
        error = CannotElicit(f"Nobody answered the tool's question within {self._ttl / 60:g} min.")

        def refuse() -> None:
            task.withdraw_question(question.question)
            task.elicitations.answer(question.question, error)

        asyncio.get_running_loop().call_later(self._ttl, refuse)

    def _forget(self, task_id: str) -> None:
        self._timers.pop(task_id).cancel()
        self.kept_calls.forget(self._tasks.pop(task_id))
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
        self.kept_calls.forget(task)  # so that the same call runs again

    def _find_oldest(self, sizes: Mapping[str, int]) -> str:
        """Return the oldest ended task with a size, of the owner with the largest total."""
        shares: Counter[str] = Counter()
        for task_id, size in sizes.items():
            shares[self._tasks[task_id].owner] += size
        ((owner, _),) = shares.most_common(1)
        return next(id_ for id_ in sizes if sizes[id_] and self._tasks[id_].owner == owner)


class _KeptCall(Struct, eq=False):
    work: Call | Task
    """The call, or the task that it has become."""
    make_task: Callable[[], Task | None]
    """Makes it a task; returns None if its client has just received the result."""
    declaration: object
    """The declaration of its tool when the call arrived."""
    is_taken: bool = False
    """Whether the result was sent to a client, which has not given it back."""

    @property
    def is_over(self) -> bool:
        """Whether its result can no longer be found."""
        if isinstance(self.work, Call):  # its result may be about to be sent
            return self.work.has_ended and monotonic() - self.work.since > messages.HOLD_SECONDS
        return self.work.ends is not None and self.work.ends <= time.time()


class KeptCalls:
    """The calls of one kernel that an identical later call finds."""

    def __init__(self) -> None:
        self._calls: dict[str, _KeptCall] = {}
        self.find_declaration: Callable[[str], object] = lambda _: None
        """Returns the declaration of a tool, a new object after each change; called on the
        endpoint's thread."""

    def add(
        self,
        owner: str,
        arguments: dict[str, Any],
        call: Call,
        make_task: Callable[[], Task | None],
    ) -> None:
        """Let an identical call find this one, which has not begun.

        Args:
            owner: Who may see it.
            arguments: As the client gave them.
            call: The call.
            make_task: Makes it a task; returns None if its client has received the result.
        """
        self._calls = {key: entry for key, entry in self._calls.items() if not entry.is_over}
        key = _make_key(owner, call.tool, arguments)
        self._calls[key] = _KeptCall(call, make_task, self.find_declaration(call.tool))

    def note_task(self, task: Task) -> None:
        """Note that a call has become a task."""
        for entry in self._calls.values():
            if entry.work is task.call:
                entry.work = task

    def find(self, owner: str, tool: str, arguments: dict[str, Any]) -> Task | None:
        """Return the task of an identical call; None if the call has to run."""
        key = _make_key(owner, tool, arguments)
        entry = self._calls.get(key)
        if entry is None or entry.is_taken:
            return None
        if not entry.is_over and entry.declaration is self.find_declaration(tool):
            task = entry.work if isinstance(entry.work, Task) else entry.make_task()
            if task is not None:
                entry.work = task
                return task
        del self._calls[key]
        return None

    def note_taken(self, task: Task) -> None:
        """Note that a task's result was sent: an identical call has to run."""
        self._mark(task, is_taken=True)

    def give_back(self, task: Task) -> None:
        """Let an identical call find a result that was sent: its client had given up waiting.

        Does nothing if an identical call has run since.
        """
        self._mark(task, is_taken=False)

    def _mark(self, task: Task, *, is_taken: bool) -> None:
        for entry in self._calls.values():
            if entry.work is task:
                entry.is_taken = is_taken

    def forget(self, task: Task) -> None:
        """Drop the call of a dropped task."""
        for key, entry in tuple(self._calls.items()):
            if entry.work is task:
                del self._calls[key]


def _make_key(owner: str, tool: str, arguments: dict[str, Any]) -> str:
    text = json.dumps([owner, tool, arguments], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
