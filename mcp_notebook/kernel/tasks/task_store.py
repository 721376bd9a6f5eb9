"""Has the tasks of one kernel, and forgets them some time after their ends.

Belongs to the endpoint's thread; `TaskStore.list_tasks` may be called on any.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CannotElicit
from mcp_notebook.kernel.calls.call import Call
from mcp_notebook.kernel.calls.call_log import measure_result
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tools.open_questions import Elicitations
from mcp_notebook.wire import messages, task_ids

MAX_ENDED = 1_000
"""Tasks that have ended and are not forgotten; beyond it, the oldest of whoever has the most is."""
_DROPPED = (
    "The task's result was dropped: all results of tasks together may take up {most:,} bytes in "
    "the kernel (the setting `max_resource_bytes`). Call the tool again."
)


class TaskStore:
    """The tasks of one kernel.

    Args:
        kernel_id: Id of the kernel's record. It is part of each task's id, so that bridges know
            which kernel to ask.
        ttl: Seconds for which a task is found after its end, and for which its questions wait.
        max_bytes: Bytes of all results together; the oldest ones are dropped.
        reserve: Called with the bytes that all results take, whenever that has changed: originals
            of results share the memory with them, and give way.
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
        """Calls whose results nobody has got yet."""
        self._tasks: dict[str, Task] = {}
        self._ended: OrderedDict[str, int] = OrderedDict()
        """The tasks that have ended, in that order, and the bytes of their results."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """What will forget them."""

    def add(self, owner: str, call: Call, elicitations: Elicitations) -> Task:
        """Make a call a task.

        Args:
            owner: Whose it is.
            call: The call, which has not ended.
            elicitations: The call's questions.
        """
        task = self._make(owner, call, elicitations)
        call.task_id = task.id
        return task

    def hold(self, owner: str, call: Call, result: Result) -> Task:
        """Return a task that has a result which was just sent, for as long as it may come back.

        Args:
            owner: Whose it is.
            call: The call, which has ended.
            result: Its result.
        """
        task = self._make(owner, call, Elicitations())
        self.kept_calls.note_taken(task)
        self._end(task, result, messages.HOLD_SECONDS)
        return task

    def give_back(self, task: Task) -> None:
        """Let the same call find a task's result: the client to which it was sent had given up."""
        if task.id in self._ended:
            self.kept_calls.give_back(task)
            self._forget_in(task, self._ttl)

    def _make(self, owner: str, call: Call, elicitations: Elicitations) -> Task:
        task_id = task_ids.make_id(call.tool, self._kernel_id)
        task = self._tasks[task_id] = Task(task_id, owner, call, elicitations)
        self.kept_calls.note_task(task)
        return task

    def find(self, task_id: str, owner: str) -> Task | None:
        """Return a task by its id; None if this owner has no such task, or it was forgotten."""
        task = self._tasks.get(task_id)
        return task if task is not None and task.owner == owner else None

    def list_tasks(self) -> tuple[Task, ...]:
        """Return the tasks, in the order in which they were made."""
        return tuple(self._tasks.values())

    def end(self, task: Task, result: Result) -> None:
        """Take the result of a task's call; the task is forgotten in time."""
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
        """End a question that nobody answers in time: the main thread may be waiting."""
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
        """Drop the oldest results until the others have room, or the newest if it never has."""
        if self._ended[newest] > self._max_bytes:
            self._drop_result(newest)
        while sum(self._ended.values()) > self._max_bytes:
            self._drop_result(self._find_oldest(self._ended))
        self._reserve(sum(self._ended.values()))

    def _drop_result(self, task_id: str) -> None:
        self._ended[task_id] = 0
        task = self._tasks[task_id]
        task.end(Result([Text(_DROPPED.format(most=self._max_bytes))], is_error=True))
        self.kept_calls.forget(task)  # the same call runs, as the text says

    def _find_oldest(self, sizes: Mapping[str, int]) -> str:
        """Return the oldest ended task that takes anything, of the owner who takes the most."""
        shares: Counter[str] = Counter()
        for task_id, size in sizes.items():
            shares[self._tasks[task_id].owner] += size
        ((owner, _),) = shares.most_common(1)
        return next(id_ for id_ in sizes if sizes[id_] and self._tasks[id_].owner == owner)


@dataclass(eq=False)
class _KeptCall:
    work: Call | Task
    """The task that the call has become, or the call."""
    make_task: Callable[[], Task | None]
    """Makes it a task; None: its client has just got the result."""
    declaration: object
    """That of its tool when it came."""
    is_taken: bool = False
    """Whether a client was sent the result, and has not given it back."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be found."""
        if isinstance(self.work, Call):  # its result may be about to be sent
            return self.work.has_ended and monotonic() - self.work.since > messages.HOLD_SECONDS
        return self.work.ends is not None and self.work.ends <= time.time()


class KeptCalls:
    """The calls of one kernel that the same call again finds."""

    def __init__(self) -> None:
        self._calls: dict[str, _KeptCall] = {}
        self.find_declaration: Callable[[str], object] = lambda _: None
        """Returns the declaration of a tool, another one after each change; called on the
        endpoint's thread."""

    def add(
        self,
        owner: str,
        arguments: dict[str, Any],
        call: Call,
        make_task: Callable[[], Task | None],
    ) -> None:
        """Let the same call find this one, which has not begun.

        Args:
            owner: Whose it is.
            arguments: As the client gave them.
            call: The call.
            make_task: Makes it a task; returns None if its client has got the result.
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
        """Return the task that the same call has become; None if it has to run."""
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
        """Note that a client was sent a task's result: the same call has to run."""
        self._mark(task, is_taken=True)

    def give_back(self, task: Task) -> None:
        """Let the same call find a result that was sent: its client had given the call up.

        Nothing happens if the same call has run since.
        """
        self._mark(task, is_taken=False)

    def _mark(self, task: Task, *, is_taken: bool) -> None:
        for entry in self._calls.values():
            if entry.work is task:
                entry.is_taken = is_taken

    def forget(self, task: Task) -> None:
        """Forget the call of a task that is gone."""
        for key, entry in tuple(self._calls.items()):
            if entry.work is task:
                del self._calls[key]


def _make_key(owner: str, tool: str, arguments: dict[str, Any]) -> str:
    text = json.dumps([owner, tool, arguments], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
