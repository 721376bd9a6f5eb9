"""MCP's extension ``io.modelcontextprotocol/tasks``: calls that outlive client and bridge.

Runs on the bridge's event loop. The tasks live in the kernel. If the client supports tasks, a call
becomes one at once if its tool requests that, or after it has run for a while. The client then gets
the task's id, by which it can poll, answer and cancel the task, through this bridge or a later one.
The specification is https://github.com/modelcontextprotocol/ext-tasks (2026-07-28).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from mcp_notebook.bridge.kernels.kernel_requests import KernelRequests, KernelTask
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.bridge.server.lists import meta_tools
from mcp_notebook.bridge.server.protocol.accommodations import find_accommodation
from mcp_notebook.bridge.server.protocol.client_profile import TASKS_EXTENSION
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.protocol_error import (
    INTERNAL_ERROR,
    ProtocolError,
    refuse_capabilities,
)
from mcp_notebook.bridge.server.protocol.result_forms import make_call_result, restore_null
from mcp_notebook.bridge.server.tasks.finder import LOST, TaskFinder
from mcp_notebook.bridge.server.tasks.forms import (
    TaskForm,
    make_created_form,
    make_error_form,
    make_task_form,
)
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.settings.settings import MetaTools, Settings
from mcp_notebook.wire import messages

_NEWS = ("status", "statusMessage", "inputRequests")
"""The fields of a form whose changes clients are notified of."""
_PAUSE = 0.5
"""Seconds before the kernel is asked again about a task that has not changed."""
_STILL_RUNS = (
    "The call of {tool!r} is still running{state}. It continues even if you do not wait: call "
    "`{result}` with the handle {id!r} to get its result."
)
_NOT_DECLARED = (
    "{what} is for clients that support tasks: declare the extension "
    f"{TASKS_EXTENSION!r} in the client capabilities of the request."
)


@dataclass(frozen=True)
class TaskPolicy:
    """Which calls outlive their clients, besides those whose tools request it."""

    after: float
    """Seconds after which a call that still runs becomes a task, if its client can follow one."""
    keeps_all: bool
    """Whether calls that have run for that long continue when their clients give up."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the policy in the settings."""
        return cls(settings.task_after, settings.keep_calls)


NO_TASKS = TaskPolicy(math.inf, keeps_all=False)
"""Only calls whose tools request it."""


class Tasks:
    """The tasks of one bridge's clients.

    Args:
        links: The links to the kernels, which have the tasks.
        policy: Which calls outlive their clients.
        adapt_result: Returns a call's result as the client of a request can take it.
        ready: Waits until the first kernels can be expected to be linked.
        with_meta_tools: Whether the bridge has the tools that call others.
    """

    def __init__(
        self,
        links: Links,
        policy: TaskPolicy,
        adapt_result: Callable[[ClientRequest, Result], Result],
        *,
        ready: Callable[[], Awaitable[None]] | None,
        with_meta_tools: MetaTools = False,
    ) -> None:
        self._policy = policy
        self._adapt_result = adapt_result
        self._with_meta_tools = with_meta_tools
        self.finder = TaskFinder(links, ready)
        """Finds tasks in the kernels."""

    def watch(
        self, request: ClientRequest, call: RunningCall, tool: str
    ) -> asyncio.TimerHandle | None:
        """Start a timer after which a call becomes a task; None if its client cannot follow one.

        Args:
            request: The request.
            call: The call. If it is kept and made through a meta tool, its client gets a handle and
                need not support tasks.
            tool: The name of the tool in the request.
        """
        uses_meta_tool = self._with_meta_tools and tool in meta_tools.NAMES
        if not request.profile.can_follow_tasks and not (uses_meta_tool and call.is_kept):
            return None
        waits = uses_meta_tool and tool == meta_tools.RESULT
        after = meta_tools.RESULT_WAIT if waits else self._policy.after
        loop = asyncio.get_running_loop()
        return loop.call_later(after, call.become_task, request.caller.owns)

    def may_keep(self, tool: messages.ToolInfo) -> bool:
        """Return whether calls of a tool may outlive their clients: see `find_keep`."""
        return tool.kind == "tool" and (
            tool.task is not None or tool.keep or self._policy.keeps_all
        )

    def find_keep(self, request: ClientRequest, tool: messages.ToolInfo) -> messages.Keep | None:
        """Return how a call of a tool outlives its client; None if it does not.

        Raises:
            ProtocolError: The tool is only for clients that support tasks, and this one does not.
        """
        owner, policy = request.caller.owns, self._policy
        if tool.task is not None and request.profile.can_follow_tasks:
            return messages.Keep(owner=owner)
        if tool.task == "required":
            raise refuse_undeclared(f"The tool {tool.name!r}")
        if not tool.keep and not policy.keeps_all:
            return None
        after = 0.0 if tool.keep else policy.after
        return messages.Keep(owner=owner, how="give_up", after=after)

    def announce(self, request: ClientRequest, task: messages.TaskInfo) -> TaskForm | Result:
        """Return the answer to a call that has become a task: a task, or a result with a handle."""
        self.finder.remember(request.caller.owns, task)
        if request.profile.can_follow_tasks:
            return make_created_form(task)
        state = "" if task.message is None else f" ({task.message})"
        text = _STILL_RUNS.format(tool=task.tool, state=state, result=meta_tools.RESULT, id=task.id)
        return Result([Text(text)])

    async def find_result(self, request: ClientRequest, task_id: str) -> Result | RunningCall:
        """Return a task's result, or the task as a call while it has none.

        Raises:
            CallError: There is no such task.
        """
        owner = request.caller.owns
        try:
            task = await self.finder.ask(
                owner, task_id, lambda kernel: kernel.find_task(task_id, owner)
            )
        except ProtocolError as error:
            raise CallError(error.message) from None
        link = self.finder.find_link(task_id)
        if isinstance(task, messages.TaskInfo) or link is None:
            raise CallError(LOST.format(id=task_id))
        if task.result is not None:
            return task.result
        asks = request.can_elicit
        return link.follow_task(
            lambda number: messages.FollowTask(
                id=number, task=task_id, owner=owner, can_elicit=asks
            )
        )

    async def find_form(
        self, request: ClientRequest, task_id: str, *, changed_from: TaskForm | None = None
    ) -> TaskForm:
        """Return the state of a client's task, with its questions, result or error.

        Args:
            request: The client's request.
            task_id: The task's id.
            changed_from: Wait until the task differs from this.

        Raises:
            ProtocolError: There is no such task.
        """
        owner, version = request.caller.owns, None
        while True:
            find = partial(_find, task_id=task_id, owner=owner, after=version)
            task = await self.finder.ask_or_recall(owner, task_id, find)
            if isinstance(task, messages.TaskInfo):
                return make_error_form(task, INTERNAL_ERROR, LOST.format(id=task.id))
            is_unchanged, version = version == task.info.version, task.info.version
            result = None
            if task.result is not None:
                result = _make_result_form(request, self._adapt_result(request, task.result))
            form = make_task_form(task.info, result)
            if changed_from is None or _differ(form, changed_from):
                return form
            if is_unchanged:  # the kernel may be away, and then the request does not wait
                await asyncio.sleep(_PAUSE)


def refuse_undeclared(what: str) -> ProtocolError:
    """Return the error for a client that has not declared that it supports tasks."""
    text = _NOT_DECLARED.format(what=what)
    return refuse_capabilities(text, {"extensions": {TASKS_EXTENSION: {}}})


def _make_result_form(request: ClientRequest, result: Result) -> dict[str, Any]:
    """Return a call's result as the JSON that would have been the answer to the call."""
    from mcp_types.methods import serialize_server_result  # noqa: PLC0415 - see `postponed_sdk`

    structured = find_accommodation(request.profile).takes_structured
    answer = make_call_result(result, request.protocol_version, takes_structured=structured)
    dumped = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    form = serialize_server_result("tools/call", request.protocol_version, dumped)
    return restore_null(form)


def _find(
    kernel: KernelRequests, *, task_id: str, owner: str, after: int | None
) -> Awaitable[KernelTask | None]:
    return kernel.find_task(task_id, owner, after=after)


def _differ(form: TaskForm, other: TaskForm) -> bool:
    """Return whether two forms of a task differ in a field that clients are notified of."""
    return any(form.get(name) != other.get(name) for name in _NEWS)
