"""Rate limits for requests of any kind.

Runs on the bridge's event loop. Requests over HTTP are counted before their bodies are read
(`transports.endpoint`), all others here. `calls.gates` also limits the rate of calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.access.caller_limits import Excess, RateLimits
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.protocol_error import INTERNAL_ERROR, ProtocolError
from mcp_notebook.settings.limits import Limits

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext


class RequestRates:
    """Counts the requests of one bridge; middleware of the SDK's server.

    Args:
        limits: How many requests are allowed.
        default_caller: The caller if the transport does not name one.
    """

    def __init__(self, limits: Limits, default_caller: Caller) -> None:
        self._rates = RateLimits(
            "requests",
            per_caller=limits.max_caller_requests_per_minute,
            in_all=limits.max_requests_per_minute,
        )
        self._default_caller = default_caller

    def take(self, caller: Caller) -> Excess | None:
        """Count one request, or return why it is refused."""
        return self._rates.take(caller)

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Count a request whose transport has not done so."""
        if ctx.request_id is not None and SCOPE_KEY not in getattr(ctx.request, "scope", ()):
            self._take_or_refuse(self._default_caller)
        return await call_next(ctx)

    def check(self, request: ClientRequest) -> None:
        """Count a plain request, unless its transport has done so.

        Raises:
            ProtocolError: It is refused.
        """
        if request.headers is None:
            self._take_or_refuse(request.caller)

    def _take_or_refuse(self, caller: Caller) -> None:
        excess = self.take(caller)
        if excess is not None:
            raise ProtocolError(INTERNAL_ERROR, excess.reason)
