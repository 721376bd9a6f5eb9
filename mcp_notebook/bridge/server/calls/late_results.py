"""The results of long calls for clients that cannot follow tasks: a handle, and a tool to wait.

Runs on the bridge's event loop. A call that takes long becomes a task in its kernel, and is
answered with the task's id as a handle. The bridge's own tool `meta_tools.RESULT` waits for the
result by the same requests that MCP's tasks are polled with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio

from mcp_notebook.bridge.kernels.kernel_requests import KernelTask
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.server.calls.tool_questions import ask_user, make_form
from mcp_notebook.bridge.server.own_tools import meta_tools
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.tasks.finder import LOST, TaskFinder
from mcp_notebook.bridge.server.tasks.forms import read_answer
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.protocol.elicitation import ElicitResult, InputRequired
from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.wire import messages

_STILL_RUNS = (
    "The call of {tool!r} is still running{state}. It continues even if you do not wait: call "
    f"`{meta_tools.RESULT}` with the handle {{id!r}} to get its result."
)


class LateResults:
    """Waits for the results of one bridge's calls that were answered with a handle.

    Args:
        finder: Finds tasks in the kernels.
        wait_limit: Seconds that one call waits for a result.
    """

    def __init__(self, finder: TaskFinder, *, wait_limit: float = meta_tools.RESULT_WAIT) -> None:
        self._finder = finder
        self._wait_limit = wait_limit

    def announce(self, owner: str, task: messages.TaskInfo) -> Result:
        """Return the answer to a call that has become a task of this owner: a handle."""
        self._finder.remember(owner, task)
        state = "" if task.message is None else f" ({task.message})"
        return Result([Text(_STILL_RUNS.format(tool=task.tool, state=state, id=task.id))])

    async def wait(
        self,
        request: ClientRequest,
        handle: str,
        responses: Mapping[str, Any],
        listener: Listener,
    ) -> Result | InputRequired:
        """Return a call's result, or how far it is after `wait_limit`.

        Args:
            request: The request.
            handle: The task's id.
            responses: The user's answers to the call's questions, by key.
            listener: Receives the call's progress.

        Returns:
            The result, the handle again, or questions that the client has to show its user.

        Raises:
            CallError: There is no such task, or an answer does not fit its question.
        """
        try:
            owner, loop = request.caller.owns, asyncio.get_running_loop()
            end = loop.time() + self._wait_limit
            task = await self._ask(owner, handle, None)
            while task.result is None:
                if task.info.questions and request.can_elicit:
                    asked = await self._answer(request, task, responses)
                    if asked is not None:
                        return asked
                    responses, end = {}, loop.time() + self._wait_limit
                elif listener.progress is not None and task.info.latest is not None:
                    await listener.progress(task.info.latest)
                with anyio.move_on_after(end - loop.time()) as scope:
                    task = await self._ask(owner, handle, task.info.version)
                if scope.cancelled_caught:
                    return self.announce(owner, task.info)
        except ProtocolError as error:
            raise CallError(error.message) from None
        return task.result

    async def _answer(
        self, request: ClientRequest, task: KernelTask, responses: Mapping[str, Any]
    ) -> InputRequired | None:
        """Answer a call's questions, or return them for the client to show its user.

        Up to 2025-11-25 the client is asked now.
        """
        owner, questions = request.caller.owns, task.info.questions
        if request.is_handshake:
            responses = await self._ask_user(request, task)
            if not responses:
                return None
        answers = {
            key: _read_response(key, responses[key]) for key in questions if key in responses
        }
        if not answers:
            return InputRequired({key: make_form(each) for key, each in questions.items()})
        await self._finder.ask(
            owner, task.info.id, lambda kernel: kernel.answer_task(task.info.id, owner, answers)
        )
        return None

    async def _ask_user(
        self, request: ClientRequest, task: KernelTask
    ) -> Mapping[str, ElicitResult | str]:
        """Ask the client's user a call's questions; return the first answer.

        Returns:
            The answer by its question's key; nothing if the call goes on without an answer.
        """
        questions = task.info.questions
        answers: dict[str, ElicitResult | str] = {}
        errors: list[CallError | ProtocolError] = []

        async def ask(key: str, question: messages.TaskQuestion) -> None:
            answers[key] = await ask_user(request, question)
            asking.cancel_scope.cancel()

        async def watch() -> None:
            now = task
            try:
                while now.result is None and questions.keys() <= now.info.questions.keys():
                    now = await self._ask(request.caller.owns, task.info.id, now.info.version)
            except (CallError, ProtocolError) as error:
                errors.append(error)
            asking.cancel_scope.cancel()

        async with anyio.create_task_group() as asking:
            asking.start_soon(watch)
            for key, question in questions.items():
                asking.start_soon(ask, key, question)
        if errors:
            raise errors[0]
        return answers

    async def _ask(self, owner: str, handle: str, after: int | None) -> KernelTask:
        """Return the state of a task; wait a while for another version than this one."""
        task = await self._finder.ask(
            owner, handle, lambda kernel: kernel.find_task(handle, owner, after=after)
        )
        if isinstance(task, messages.TaskInfo):
            raise CallError(LOST.format(id=handle))
        return task


def _read_response(key: str, response: ElicitResult | str) -> messages.TaskAnswer:
    if isinstance(response, str):  # the user could not be asked
        return messages.TaskAnswer(error=response)
    return read_answer(key, response)
