"""MCP's extension ``io.modelcontextprotocol/tasks``: calls that outlive client and bridge.

Runs on the bridge's event loop. The tasks live in the kernel. If the client supports tasks, a call
becomes one at once if its tool requests that, or after it has run for a while. The client then gets
the task's id, by which it can poll, answer and cancel the task, through this bridge or a later one.
The specification is https://github.com/modelcontextprotocol/ext-tasks (2026-07-28).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from mcp_notebook.bridge.kernels.kernel_requests import KernelTask
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.bridge.server.forms.result_forms import make_call_form
from mcp_notebook.bridge.server.sessions.client_profile import TASKS_EXTENSION
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.tasks.finder import LOST, TaskFinder
from mcp_notebook.bridge.server.tasks.forms import (
    TaskForm,
    make_created_form,
    make_error_form,
    make_task_form,
    read_answer,
)
from mcp_notebook.content import Result
from mcp_notebook.protocol.errors import (
    INTERNAL_ERROR,
    ProtocolError,
    refuse_capabilities,
)
from mcp_notebook.protocol.methods import TaskParameters, UpdateParameters
from mcp_notebook.wire import messages

_NOT_DECLARED = (
    "{what} is for clients that support tasks: declare the extension "
    f"{TASKS_EXTENSION!r} in the client capabilities of the request."
)


class Tasks:
    """The tasks of one bridge's clients.

    The answers to requests raise `ProtocolError` if there is no such task, or if the client has not
    declared that it supports tasks.

    Args:
        links: The links to the kernels, which have the tasks.
        after: Seconds after which a call that still runs becomes a task, if its client can take
            one or a handle.
        adapt_result: Returns a call's result as the client of a request can take it.
        ready: Waits until the first kernels can be expected to be linked.
    """

    def __init__(
        self,
        links: Links,
        after: float,
        adapt_result: Callable[[ClientRequest, Result], Result],
        *,
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        self._after = after
        self._adapt_result = adapt_result
        self.finder = TaskFinder(links, ready)
        """Finds tasks in the kernels."""

    @contextmanager
    def watch(self, call: RunningCall, owner: str) -> Iterator[None]:
        """Make a call a task of this owner if it runs for long; not while its user is asked."""
        loop = asyncio.get_running_loop()

        def become_task() -> None:
            if call.questions:
                timer[0] = loop.call_later(self._after, become_task)
            else:
                call.become_task(owner)

        timer = [loop.call_later(self._after, become_task)]
        try:
            yield
        finally:
            timer[0].cancel()

    def announce(self, request: ClientRequest, task: messages.TaskInfo) -> TaskForm:
        """Return the answer to a call that has become a task that its client can follow."""
        self.finder.remember(request.caller.owns, task)
        return make_created_form(task)

    async def get(self, request: ClientRequest, params: TaskParameters) -> TaskForm:
        """Answer ``tasks/get``: the task's state, with its questions, result or error."""
        _check(request, "tasks/get")
        owner, task_id = request.caller.owns, params.task_id
        task = await self.finder.ask_or_recall(
            owner, task_id, lambda kernel: kernel.find_task(task_id, owner)
        )
        if isinstance(task, messages.TaskInfo):
            return make_error_form(task, INTERNAL_ERROR, LOST.format(id=task.id))
        result = None
        if task.result is not None:
            adapted = self._adapt_result(request, task.result)
            result = {"resultType": "complete", **make_call_form(adapted, request.protocol_version)}
        return make_task_form(task.info, result)

    async def update(self, request: ClientRequest, params: UpdateParameters) -> TaskForm:
        """Answer ``tasks/update``: answer the task's questions."""
        _check(request, "tasks/update")
        owner, task_id = request.caller.owns, params.task_id
        task = await self.finder.ask(
            owner, task_id, lambda kernel: kernel.find_task(task_id, owner)
        )
        if isinstance(task, KernelTask):
            answers = {
                key: read_answer(key, params.input_responses[key])
                for key in task.info.questions
                if key in params.input_responses
            }
            await self.finder.ask(
                owner, task_id, lambda kernel: kernel.answer_task(task_id, owner, answers)
            )
        return {}

    async def cancel(self, request: ClientRequest, params: TaskParameters) -> TaskForm:
        """Answer ``tasks/cancel``."""
        _check(request, "tasks/cancel")
        owner, task_id = request.caller.owns, params.task_id
        await self.finder.ask(owner, task_id, lambda kernel: kernel.cancel_task(task_id, owner))
        return {}


def _check(request: ClientRequest, method: str) -> None:
    if not request.profile.can_follow_tasks:
        raise refuse_undeclared(method)


def refuse_undeclared(what: str) -> ProtocolError:
    """Return the error for a client that has not declared that it supports tasks."""
    text = _NOT_DECLARED.format(what=what)
    return refuse_capabilities(text, {"extensions": {TASKS_EXTENSION: {}}})
