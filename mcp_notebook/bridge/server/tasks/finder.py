"""Finds clients' tasks in their kernels, and explains missing ones.

Runs on the bridge's event loop. A task's id names its kernel. The bridge remembers running tasks,
to distinguish those that were lost with their kernels from unknown ones.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio.to_thread

from mcp_notebook.bridge.kernels.kernel_requests import TASK_LIMIT, KernelRequests, KernelTask
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.errors import KernelGone
from mcp_notebook.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
)
from mcp_notebook.wire import messages, task_ids

AskKernel: TypeAlias = Callable[[KernelRequests], Awaitable[KernelTask | None]]
"""Asks a kernel about one of its tasks."""
MAX_REMEMBERED = 1_000
"""Maximum number of running tasks that the bridge remembers."""
_MAX_ID = 200
"""Maximum length of an unknown id that a message repeats."""
_UNKNOWN = (
    "This client has no task {id!r}: the id is wrong, the task belongs to another client, or it "
    "was forgotten, which happens some time after its end and when its kernel is restarted. Call "
    "the tool again."
)
LOST = (
    "The kernel that ran the task {id!r} died, was restarted, or ended after a newer version of "
    "the notebook was saved, and the task was lost with it. Call the tool again; after a restart, "
    "wait until the notebook's cells have run again."
)
_ELSEWHERE = (
    "The kernel that runs the task {id!r} is alive but not connected here: it is on another "
    "machine or belongs to another mcp-notebook process, or its link is being reopened. Ask again "
    "in a moment, or where the task was started."
)
_SILENT = (
    f"The kernel of {{notebook!r}} did not report the task {{id!r}} within {TASK_LIMIT:g} s: its "
    "process is suspended, or C code keeps Python from answering. Ask again."
)


class TaskFinder:
    """Finds the tasks of one bridge's clients.

    Args:
        links: The links to the kernels, which have the tasks.
        ready: Waits until the first kernels can be expected to be linked.
    """

    def __init__(self, links: Links, ready: Callable[[], Awaitable[None]]) -> None:
        self._links = links
        self._ready = ready
        self._running: OrderedDict[tuple[str, str], messages.TaskInfo] = OrderedDict()
        """Clients' tasks that had not ended when the kernel last reported them."""
        self.has_kernel: Callable[[str], bool] = lambda _: False
        """Returns whether the kernel with an id is alive without a link; called in a thread."""

    async def ask(
        self, owner: str, task_id: str, request: AskKernel
    ) -> KernelTask | messages.TaskInfo:
        """Return a task from its kernel, or the last known state of one lost with its kernel.

        Raises:
            ProtocolError: There is no such task, or its kernel does not answer.
        """
        link = self.find_link(task_id)
        if link is None:
            await self._ready()
            link = self.find_link(task_id)
        if link is not None and link.requests.is_open:
            try:
                task = await request(link.requests)
            except KernelGone:
                pass
            except TimeoutError:
                text = _SILENT.format(notebook=link.record.name, id=task_id)
                raise ProtocolError(INTERNAL_ERROR, text) from None
            else:
                if task is not None:
                    self.remember(owner, task.info)
                    return task
                self._running.pop((owner, task_id), None)  # the kernel forgot it after its end
                raise ProtocolError(INVALID_PARAMS, _UNKNOWN.format(id=task_id[:_MAX_ID]))
        return await self._recall_lost(owner, task_id)

    async def _recall_lost(self, owner: str, task_id: str) -> messages.TaskInfo:
        """Return the last known state of a task whose kernel is gone.

        Raises:
            ProtocolError: The task is unknown, or the kernel is alive.
        """
        kernel_id = task_ids.find_kernel_id(task_id)
        if kernel_id is None:
            raise ProtocolError(INVALID_PARAMS, _UNKNOWN.format(id=task_id[:_MAX_ID]))
        if await anyio.to_thread.run_sync(self.has_kernel, kernel_id):
            raise ProtocolError(INTERNAL_ERROR, _ELSEWHERE.format(id=task_id[:_MAX_ID]))
        lost = self._running.get((owner, task_id))
        if lost is None:
            raise ProtocolError(INVALID_PARAMS, LOST.format(id=task_id[:_MAX_ID]))
        return lost

    async def ask_or_recall(
        self, owner: str, task_id: str, request: AskKernel
    ) -> KernelTask | messages.TaskInfo:
        """Like `ask`, but return the last known state if the kernel does not answer now."""
        try:
            return await self.ask(owner, task_id, request)
        except ProtocolError as error:
            task = self._running.get((owner, task_id))
            if error.code != INTERNAL_ERROR or task is None:
                raise
            return KernelTask(task)

    def find_link(self, task_id: str) -> Link | None:
        """Return the link to the kernel that an id names."""
        kernel_id = task_ids.find_kernel_id(task_id)
        return next((link for link in self._links.open_links if link.record.id == kernel_id), None)

    def remember(self, owner: str, task: messages.TaskInfo) -> None:
        """Note the state of a task that a client is sent."""
        key = owner, task.id
        self._running.pop(key, None)
        if task.ends is None:
            self._running[key] = task
            if len(self._running) > MAX_REMEMBERED:
                self._running.popitem(last=False)
