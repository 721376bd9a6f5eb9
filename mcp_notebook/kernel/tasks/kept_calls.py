"""Calls of tools with ``--keep`` whose results no client has got: the same call again finds them.

Belongs to the endpoint's thread. A call is the same if tool, arguments and owner are. While its
client waits for it, it is a call like any other; when the client gives it up, or another one makes
the same call, it becomes a task. A client may give a call up while the result is on its way, so a
result that was sent is given back if the bridge says so in time.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from mcp_notebook.kernel.calls.call import Call
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.wire import task_messages


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
            return (
                self.work.has_ended and monotonic() - self.work.since > task_messages.HOLD_SECONDS
            )
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
        """Let nobody find a task by its call any more: it is gone."""
        for key, entry in tuple(self._calls.items()):
            if entry.work is task:
                del self._calls[key]


def _make_key(owner: str, tool: str, arguments: dict[str, Any]) -> str:
    text = json.dumps([owner, tool, arguments], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
