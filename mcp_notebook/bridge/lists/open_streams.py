"""The streams on which clients wait for news, and how many of them callers may have open.

Runs on the bridge's event loop. Clients of 2026-07-28 open one by a request (`OpenStreams.listen`),
those of the handshake era by a GET of the HTTP endpoint, which asks `OpenStreams.shares` for it.
What is said on them is the business of `change_notices` and `resource_notices`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from pydantic_core import to_json

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.shares import Shares
from mcp_notebook.bridge.protocol.callers import find_caller
from mcp_notebook.settings.limits import Limits

_Handler: TypeAlias = Callable[
    [ServerRequestContext[Any], SubscriptionsListenRequestParams],
    Awaitable[SubscriptionsListenResult],
]
MAX_FILTER = 2**14
"""Bytes of the parameters with which a stream is opened: they are kept as long as it is open."""


class OpenStreams:
    """The open streams of one bridge.

    Args:
        handler: Serves the streams that are opened by a request.
        limits: How many there may be.
        default_caller: Who makes a request if the transport does not say.
    """

    def __init__(self, handler: _Handler, limits: Limits, default_caller: Caller) -> None:
        self._handler = handler
        self._default_caller = default_caller
        self.shares = Shares(
            "open streams", per_caller=limits.max_caller_streams, in_all=limits.max_streams
        )
        """Who has how many."""

    async def listen(
        self, ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve a stream until its client closes it, or refuse it."""
        if len(to_json(ctx.params)) > MAX_FILTER:
            what = (
                f"The parameters of `subscriptions/listen` may have {MAX_FILTER:,} bytes at most."
            )
            raise MCPError(INVALID_PARAMS, what)
        caller = find_caller(ctx, self._default_caller)
        lack = self.shares.explain_lack(caller)
        if lack is not None:
            raise MCPError(INTERNAL_ERROR, lack)
        with self.shares.hold(caller):
            return await self._handler(ctx, params)
