"""Notifies clients of changes of their tasks, on their subscription streams.

Runs on the bridge's event loop. The SDK serves the streams and does not know tasks: their ids are
added to its acknowledgement, and their notifications are sent on the same stream.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest, read_request
from mcp_notebook.bridge.server.protocol.protocol_error import ProtocolError
from mcp_notebook.bridge.server.tasks.forms import TaskForm
from mcp_notebook.bridge.server.tasks.tasks import Tasks, refuse_undeclared

MAX_TASKS = 100
"""Maximum number of tasks per stream; clients poll the others."""
INTERVAL = 0.5
"""Seconds between two notifications of one task."""
_Serve: TypeAlias = Callable[
    [ServerRequestContext[Any], SubscriptionsListenRequestParams],
    Awaitable[SubscriptionsListenResult],
]


class TaskNotification(types.Notification[dict[str, Any], Literal["notifications/tasks"]]):
    """The state of a task."""

    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: dict[str, Any]


class TaskNotices:
    """Adds notifications of tasks to the streams of one bridge.

    Args:
        tasks: Knows the tasks.
        serve: Serves a stream without tasks.
        default_caller: The caller if the transport does not name one.
    """

    def __init__(self, tasks: Tasks, serve: _Serve, default_caller: Caller) -> None:
        self._tasks = tasks
        self._serve = serve
        self._default_caller = default_caller

    async def listen(
        self, ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve a stream until its client closes it.

        Raises:
            ProtocolError: The client subscribes to tasks without declaring the extension.
        """
        ids = (params.notifications.model_extra or {}).get("taskIds")
        if not ids or not isinstance(ids, list):
            return await self._serve(ctx, params)
        request = read_request(ctx, self._default_caller)
        if not request.profile.can_follow_tasks:
            raise refuse_undeclared("A subscription to tasks")
        texts = dict.fromkeys(task_id for task_id in ids if isinstance(task_id, str))
        forms = await self._find_forms(request, list(texts)[:MAX_TASKS])
        session = _Session(ctx.session, list(forms))
        watchers = [
            asyncio.create_task(self._watch(request, session, form)) for form in forms.values()
        ]
        try:
            return await self._serve(replace(ctx, session=cast("ServerSession", session)), params)
        finally:
            for watcher in watchers:
                watcher.cancel()

    async def _find_forms(self, request: ClientRequest, ids: list[str]) -> dict[str, TaskForm]:
        """Return those of the tasks that exist for this client, found concurrently."""
        forms = await asyncio.gather(*(self._find_form(request, task_id) for task_id in ids))
        return {task_id: form for task_id, form in zip(ids, forms, strict=True) if form is not None}

    async def _find_form(self, request: ClientRequest, task_id: str) -> TaskForm | None:
        try:
            return await self._tasks.find_form(request, task_id)
        except ProtocolError:
            return None

    async def _watch(self, request: ClientRequest, session: "_Session", form: TaskForm) -> None:
        """Send a task's state, now and after each change, until it has ended or is gone."""
        await session.acknowledged.wait()
        meta = {SUBSCRIPTION_ID_META_KEY: request.id}
        while True:
            await session.send_notification(
                TaskNotification(params={**form, "_meta": meta}),  # type: ignore[arg-type]
                request.id,
            )
            if form["status"] in ("completed", "failed", "cancelled"):
                return
            await asyncio.sleep(INTERVAL)
            try:
                form = await self._tasks.find_form(request, form["taskId"], changed_from=form)
            except ProtocolError:
                return


class _Session:
    """The session of a stream's request; its acknowledgement also names the tasks."""

    def __init__(self, session: ServerSession, task_ids: list[str]) -> None:
        self._session = session
        self._task_ids = task_ids
        self.acknowledged = asyncio.Event()
        """Set when the acknowledgement has been sent."""

    async def send_notification(
        self,
        notification: types.ServerNotification,
        related_request_id: types.RequestId | None = None,
    ) -> None:
        """Send a notification."""
        if isinstance(notification, types.SubscriptionsAcknowledgedNotification):
            honored = notification.params.notifications.model_copy(
                update={"taskIds": self._task_ids}
            )
            params = notification.params.model_copy(update={"notifications": honored})
            notification = notification.model_copy(update={"params": params})
        await self._session.send_notification(notification, related_request_id)
        self.acknowledged.set()
