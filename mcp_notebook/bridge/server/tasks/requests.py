"""The requests about tasks: ``tasks/get``, ``tasks/update`` and ``tasks/cancel``.

Runs on the bridge's event loop; imported with the SDK.
"""

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.kernel_requests import KernelTask
from mcp_notebook.bridge.server.sessions.client_profile import TASKS_EXTENSION
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest, read_request
from mcp_notebook.bridge.server.sessions.protocol_error import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    ProtocolError,
)
from mcp_notebook.bridge.server.tasks.forms import TaskForm, read_answer
from mcp_notebook.bridge.server.tasks.tasks import Tasks, refuse_undeclared


class TaskParams(types.RequestParams):
    """The parameters of ``tasks/get`` and ``tasks/cancel``."""

    task_id: str


class UpdateParams(TaskParams):
    """The parameters of ``tasks/update``."""

    input_responses: dict[str, Any]


class TaskRequests:
    """Answers the requests of one bridge's clients about their tasks.

    Args:
        tasks: The tasks.
        default_caller: The caller if the transport does not name one.
    """

    def __init__(self, tasks: Tasks, default_caller: Caller) -> None:
        self._tasks = tasks
        self._default_caller = default_caller

    def add_to(self, server: Server[Any]) -> None:
        """Declare the extension, and answer its requests."""
        server.extensions[TASKS_EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    async def _get(self, ctx: ServerRequestContext[Any], params: TaskParams) -> TaskForm:
        return await self._tasks.find_form(self._check(ctx, params), params.task_id)

    async def _update(self, ctx: ServerRequestContext[Any], params: UpdateParams) -> TaskForm:
        owner, task_id = self._check(ctx, params).caller.owns, params.task_id
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

    async def _cancel(self, ctx: ServerRequestContext[Any], params: TaskParams) -> TaskForm:
        owner, task_id = self._check(ctx, params).caller.owns, params.task_id
        await self._tasks.finder.ask(
            owner, task_id, lambda kernel: kernel.cancel_task(task_id, owner)
        )
        return {}

    def _check(self, ctx: ServerRequestContext[Any], params: TaskParams) -> ClientRequest:
        """Return a request about a task.

        Raises:
            ProtocolError: The client cannot make such requests, or its header names another task.
        """
        request = read_request(ctx, self._default_caller)
        if request.is_handshake:  # the handshake era has a different kind of tasks
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        headers = request.headers
        if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != (
            params.task_id
        ):
            raise ProtocolError(
                HEADER_MISMATCH,
                f"The header {MCP_NAME_HEADER} must be the task's id, as in the request's body.",
            )
        if not request.profile.can_follow_tasks:
            raise refuse_undeclared(ctx.method)
        return request
