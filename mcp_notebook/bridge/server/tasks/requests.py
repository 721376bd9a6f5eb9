"""The requests about tasks: ``tasks/get``, ``tasks/update`` and ``tasks/cancel``.

Runs on the bridge's event loop.
"""

from mcp_notebook.bridge.kernels.kernel_requests import KernelTask
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.tasks.forms import TaskForm, read_answer
from mcp_notebook.bridge.server.tasks.tasks import Tasks, refuse_undeclared
from mcp_notebook.protocol.methods import TaskParameters, UpdateParameters


class TaskRequests:
    """Answers the requests of one bridge's clients about their tasks.

    Each method raises `ProtocolError` if there is no such task, or if the client has not declared
    that it supports tasks.

    Args:
        tasks: The tasks.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def get(self, request: ClientRequest, params: TaskParameters) -> TaskForm:
        """Answer ``tasks/get``."""
        _check(request, "tasks/get")
        return await self._tasks.find_form(request, params.task_id)

    async def update(self, request: ClientRequest, params: UpdateParameters) -> TaskForm:
        """Answer ``tasks/update``: answer the task's questions."""
        _check(request, "tasks/update")
        owner, task_id = request.caller.owns, params.task_id
        task = await self._tasks.finder.ask(
            owner, task_id, lambda kernel: kernel.find_task(task_id, owner)
        )
        if isinstance(task, KernelTask):
            answers = {
                key: read_answer(key, params.input_responses[key])
                for key in task.info.questions
                if key in params.input_responses
            }
            await self._tasks.finder.ask(
                owner, task_id, lambda kernel: kernel.answer_task(task_id, owner, answers)
            )
        return {}

    async def cancel(self, request: ClientRequest, params: TaskParameters) -> TaskForm:
        """Answer ``tasks/cancel``."""
        _check(request, "tasks/cancel")
        owner, task_id = request.caller.owns, params.task_id
        await self._tasks.finder.ask(
            owner, task_id, lambda kernel: kernel.cancel_task(task_id, owner)
        )
        return {}


def _check(request: ClientRequest, method: str) -> None:
    if not request.profile.can_follow_tasks:
        raise refuse_undeclared(method)
