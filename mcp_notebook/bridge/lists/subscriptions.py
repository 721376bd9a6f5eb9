"""Who hears which news: each caller of what it can see, and of nothing else.

Runs on the bridge's event loop. The SDK's handler serves a stream of a client of 2026-07-28, and
would tell all of them the same; here each has a handler of its own, and its caller is known. What
is news is the business of `change_notices` and `resource_notices`.
"""

from collections.abc import Callable
from typing import Any

import anyio.lowlevel
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ListenHandler, ServerEvent, ToolsListChanged
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from mcp_notebook.bridge.access.caller import Caller


class ToolsWatcher:
    """Knows whether the tools that one caller sees have changed.

    Args:
        caller: The caller.
        list_tools: Returns the tools that a caller sees; the same object while they are the same.
    """

    def __init__(self, caller: Caller, list_tools: Callable[[Caller], object]) -> None:
        self.caller = caller
        self._list_tools = list_tools
        self._tools = list_tools(caller)

    def take_change(self) -> bool:
        """Return whether a change of the tools, of which there was one, is one for this caller."""
        if self.caller.permissions.is_everything():
            return True
        tools = self._list_tools(self.caller)
        has_changed = tools is not self._tools
        self._tools = tools
        return has_changed


class Subscriptions:
    """The streams on which clients of 2026-07-28 wait for news."""

    def __init__(self) -> None:
        self._streams: dict[ListenHandler, _Stream] = {}

    async def listen(
        self,
        ctx: ServerRequestContext[Any],
        params: SubscriptionsListenRequestParams,
        watcher: ToolsWatcher,
    ) -> SubscriptionsListenResult:
        """Serve a stream until its client closes it, or `close`."""
        stream = _Stream(watcher)
        handler = ListenHandler(stream)
        self._streams[handler] = stream
        try:
            return await handler(ctx, params)
        finally:
            del self._streams[handler]

    async def publish(
        self, event: ServerEvent, is_for: Callable[[Caller], bool] = lambda _caller: True
    ) -> None:
        """Tell callers what has happened; of tools, those who see a difference.

        Args:
            event: What has happened.
            is_for: Who is told.
        """
        for stream in tuple(self._streams.values()):
            concerns_tools = isinstance(event, ToolsListChanged)
            if is_for(stream.watcher.caller) and (
                not concerns_tools or stream.watcher.take_change()
            ):
                await stream.publish(event)
        await anyio.lowlevel.checkpoint()

    def close(self) -> None:
        """End all streams gracefully."""
        for handler in tuple(self._streams):
            handler.close()


class _Stream:
    """What the SDK calls a bus: passes events on to the one stream that is served with it."""

    def __init__(self, watcher: ToolsWatcher) -> None:
        self.watcher = watcher
        self._deliver: Callable[[ServerEvent], None] | None = None

    async def publish(self, event: ServerEvent) -> None:
        """Deliver an event; does nothing before the stream is there, or when it has ended."""
        if self._deliver is not None:
            self._deliver(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Take the stream."""
        self._deliver = listener
        return self._end

    def _end(self) -> None:
        self._deliver = None
