"""The streams on which clients wait for news: how many there may be, and who hears what on them.

Runs on the bridge's event loop. Clients of 2026-07-28 open one by a request (`OpenStreams.listen`),
those of the handshake era by a GET of the HTTP endpoint, which asks `OpenStreams.shares` for it.
The SDK's handler serves a stream of 2026-07-28, and would tell all of them the same; here each has
a handler of its own, whose caller is known. What is news is the business of `change_notices` and
`resource_notices`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio.lowlevel
from pydantic_core import to_json

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.server.protocol.client_request import find_caller
from mcp_notebook.bridge.server.protocol.protocol_error import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
)
from mcp_notebook.settings.limits import Limits

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ListenHandler, ServerEvent
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

_Handler: TypeAlias = (
    "Callable[[ServerRequestContext[Any], SubscriptionsListenRequestParams],"
    "Awaitable[SubscriptionsListenResult]]"
)
ListName: TypeAlias = Literal["tools", "resources"]
"""A list whose changes clients are told of."""
MAX_FILTER = 2**14
"""Bytes of the parameters with which a stream is opened: they are kept as long as it is open."""


class OpenStreams:
    """The open streams of one bridge.

    Args:
        limits: How many there may be.
        default_caller: Who makes a request if the transport does not say.
    """

    def __init__(self, limits: Limits, default_caller: Caller) -> None:
        self._default_caller = default_caller
        self.shares = Shares(
            "open streams", per_caller=limits.max_caller_streams, in_all=limits.max_streams
        )
        """Who has how many."""

    async def listen(
        self,
        handler: _Handler,
        ctx: ServerRequestContext[Any],
        params: SubscriptionsListenRequestParams,
    ) -> SubscriptionsListenResult:
        """Have a handler serve a stream until its client closes it, or refuse it."""
        if len(to_json(ctx.params)) > MAX_FILTER:
            what = (
                f"The parameters of `subscriptions/listen` may have {MAX_FILTER:,} bytes at most."
            )
            raise ProtocolError(INVALID_PARAMS, what)
        caller = find_caller(ctx, self._default_caller)
        lack = self.shares.explain_lack(caller)
        if lack is not None:
            raise ProtocolError(INTERNAL_ERROR, lack)
        with self.shares.hold(caller):
            return await handler(ctx, params)


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
        """Return whether the last change of the tools concerns this caller."""
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
        from mcp.server.subscriptions import ListenHandler  # noqa: PLC0415 - see `postponed_sdk`

        stream = _Stream(watcher)
        handler = ListenHandler(stream)
        self._streams[handler] = stream
        try:
            return await handler(ctx, params)
        finally:
            del self._streams[handler]

    async def publish(
        self, changed: ListName, is_for: Callable[[Caller], bool] = lambda _caller: True
    ) -> None:
        """Tell callers what has happened; of tools, those who see a difference.

        Args:
            changed: The list that has changed.
            is_for: Who is told.
        """
        for stream in tuple(self._streams.values()):
            if is_for(stream.watcher.caller) and (
                changed != "tools" or stream.watcher.take_change()
            ):
                await stream.publish(_make_event(changed))
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


def _make_event(changed: ListName) -> ServerEvent:
    from mcp.server import subscriptions  # noqa: PLC0415 - see `postponed_sdk`

    if changed == "tools":
        return subscriptions.ToolsListChanged()
    return subscriptions.ResourcesListChanged()
