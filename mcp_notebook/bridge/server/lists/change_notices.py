"""Tells clients that the list of tools has changed: once for each burst, and before an answer.

Runs on the bridge's event loop. Clients of the handshake era hear of changes in a notification to
their session, those of 2026-07-28 through their subscriptions. Whoever calls a tool that declares
another one hears of the change before the answer, so that it can call the new one. A caller who
does not see all tools hears only of changes of those that it sees.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ServerEvent, ToolsListChanged
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.server.lists.news_streams import Subscriptions, ToolsWatcher
from mcp_notebook.bridge.server.protocol.accommodations import find_accommodation
from mcp_notebook.bridge.server.protocol.client_request import find_caller, read_request

logger = logging.getLogger(__name__)

CHANGE_DELAY = 0.05
"""Seconds within which several changes of the catalogue become one notification."""
SEND_LIMIT = 1.0
"""Seconds that one client may take to receive a notification."""


@dataclass
class _Listener:
    """A client of the handshake era."""

    session: ServerSession
    watcher: ToolsWatcher
    last_notice: int
    """The last change that it was notified of."""
    is_busy: bool = False
    """Whether a notification is on its way to it."""


class ChangeNotices:
    """Notifies the clients of one bridge of changes.

    Args:
        list_tools: Returns the tools that a caller sees; the same object while they are the same.
        default_caller: Who makes a request if the transport does not say.
    """

    def __init__(self, list_tools: Callable[[Caller], object], default_caller: Caller) -> None:
        self._list_tools = list_tools
        self._default_caller = default_caller
        self._subscriptions = Subscriptions()
        self._listeners: dict[Any, _Listener] = {}
        """By connection: each request has a session object of its own."""
        self._last_change = 0
        self._last_published = 0
        self._change = anyio.Event()

    def note_change(self) -> None:
        """Note that the list has changed; clients are notified soon."""
        self._last_change += 1
        self._change.set()

    async def add_client(self, ctx: ServerRequestContext[Any], _params: object) -> None:
        """Take a client that is initialized; those of the handshake era get notifications."""
        if ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return
        request = read_request(ctx, self._default_caller)
        if find_accommodation(request).hears_of_changes:
            connection = request.connection
            self._listeners[connection] = _Listener(
                ctx.session, self._watch(ctx), self._last_published
            )
            # The SDK has no other hook for the end of a connection.
            connection.exit_stack.callback(self._listeners.pop, connection, None)

    async def listen(
        self, ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve a subscription."""
        return await self._subscriptions.listen(ctx, params, self._watch(ctx))

    def close(self) -> None:
        """End the subscriptions gracefully."""
        self._subscriptions.close()

    def _watch(self, ctx: ServerRequestContext[Any]) -> ToolsWatcher:
        return ToolsWatcher(find_caller(ctx, self._default_caller), self._list_tools)

    async def run(self) -> None:
        """Notify all clients, once for each burst of changes; runs forever."""
        async with anyio.create_task_group() as tasks:
            while True:
                await self._change.wait()
                await anyio.sleep(CHANGE_DELAY)
                self._change = anyio.Event()
                await self._publish()
                for connection in tuple(self._listeners):
                    # One task each: a client that does not read delays no other.
                    tasks.start_soon(self._notify, connection)

    async def notify_caller(self, connection: Any) -> None:
        """Notify a client at once of changes that it has not heard of: its answer follows."""
        await self._publish()
        if self._listeners:
            await self._notify(connection)

    async def broadcast(
        self,
        event: ServerEvent,
        send: Callable[[ServerSession], Awaitable[None]],
        is_for: Callable[[Caller], bool],
    ) -> None:
        """Notify clients of something else.

        Args:
            event: For clients with subscriptions.
            send: Notifies a client of the handshake era; none gets more than a second.
            is_for: Whose clients are notified.
        """
        await self._subscriptions.publish(event, is_for)

        async def notify(connection: Any, session: ServerSession) -> None:
            try:
                with anyio.move_on_after(SEND_LIMIT):
                    await send(session)
            except Exception:
                logger.debug("a client could not be notified", exc_info=True)
                self._listeners.pop(connection, None)

        async with anyio.create_task_group() as tasks:
            for connection, listener in tuple(self._listeners.items()):
                if is_for(listener.watcher.caller):
                    tasks.start_soon(notify, connection, listener.session)

    async def _publish(self) -> None:
        if self._last_published != self._last_change:
            self._last_published = self._last_change
            await self._subscriptions.publish(ToolsListChanged())

    async def _notify(self, connection: Any) -> None:
        listener = self._listeners.get(connection)
        if listener is None or listener.is_busy:
            return
        listener.is_busy = True
        try:
            while listener.last_notice != self._last_change:
                listener.last_notice = self._last_change
                if not listener.watcher.take_change():
                    continue
                with anyio.move_on_after(SEND_LIMIT):
                    await listener.session.send_tool_list_changed()
        except Exception:
            # The client left without closing; the SDK raises whatever its stream raised.
            logger.debug("a client could not be notified of a change", exc_info=True)
            self._listeners.pop(connection, None)
        finally:
            listener.is_busy = False
