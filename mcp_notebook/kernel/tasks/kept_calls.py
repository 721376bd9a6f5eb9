"""Calls of tools with ``--keep`` whose results no client has got: the same call again finds them.

Belongs to the endpoint's thread. A call is the same if tool, arguments and owner are. While its
client waits for it, it is a call like any other; when the client gives it up, or another one makes
the same call, it becomes a task.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_notebook.kernel.calls.call import Call
from mcp_notebook.kernel.tasks.task import Task


@dataclass(eq=False)
class _KeptCall:
    work: Call | Task
    """The task that the call has become, or the call."""
    make_task: Callable[[], Task | None]
    """Makes it a task; None: its client has just got the result."""
    declaration: object
    """That of its tool when it came."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be found."""
        if isinstance(self.work, Call):
            return self.work.has_ended
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
        """Return the task that the same call has become; None if it has to run.

        If the task has ended, whoever asks gets its result, and nobody after that.
        """
        key = _make_key(owner, tool, arguments)
        entry = self._calls.get(key)
        if entry is None:
            return None
        task = None
        if not entry.is_over and entry.declaration is self.find_declaration(tool):
            task = entry.work if isinstance(entry.work, Task) else entry.make_task()
            if task is not None and task.result is None:
                entry.work = task
                return task
        del self._calls[key]
        return task

    def forget(self, task: Task) -> None:
        """Let nobody find a task by its call any more: a client has its result, or it is gone."""
        for key, entry in tuple(self._calls.items()):
            if entry.work is task:
                del self._calls[key]


def _make_key(owner: str, tool: str, arguments: dict[str, Any]) -> str:
    text = json.dumps([owner, tool, arguments], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
