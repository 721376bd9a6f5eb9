"""The sessions that the SDK has opened, and the plain requests that their clients may cancel.

Runs on the bridge's event loop. A plain request (`plain_requests`) of the handshake era belongs to
a session of the SDK's. A client cancels one, in a session and over stdio, by a notification. Over
HTTP that comes in by the SDK.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp_types import INVALID_PARAMS, InitializeRequestParams, RequestId
from pydantic_core import to_json

from mcp_notebook.bridge.server.protocol.client_request import (
    MOST_OF_NAME,
    ClientProfile,
    describe_program,
    get_connection,
)

EndReason: TypeAlias = Literal["cancelled", "session ended"]
"""Why a plain request ends early."""
OnEnd: TypeAlias = Callable[[EndReason], object]
MAX_INITIALIZE = 2**14
"""Bytes of what a client may say of itself when it opens a session."""
TOO_LONG = f"`initialize` may have {MAX_INITIALIZE:,} bytes at most."


class ClientSession:
    """A session of a client of the handshake era.

    Args:
        connection: The SDK's.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._said: InitializeRequestParams | None = None
        self._profile: ClientProfile | None = None

    @property
    def profile(self) -> ClientProfile:
        """What the client has said of itself; the same object until it says it anew."""
        said = self.connection.client_params
        if self._profile is None or self._said is not said:
            self._said = said
            self._profile = ClientProfile(
                self.connection.protocol_version,
                describe_program(said),
                self.connection.client_capabilities,
                self.connection,
            )
        return self._profile


class ClientSessions:
    """The sessions of one bridge; middleware of the SDK's server.

    A session's id is HTTP's; over stdio it is None, in both eras. Sessions last, and there may be
    thousands, so the SDK keeps only what is used of what a client says of itself.
    """

    def __init__(self) -> None:
        self._sessions: dict[str | None, ClientSession] = {}
        self._running: dict[str | None, dict[RequestId, OnEnd]] = {}
        """By session and id of the request: what ends it."""
        self._followed: dict[tuple[str | None, RequestId], Callable[[], object]] = {}
        """By the same: what has to know if its client cancels it, although it may be answered."""

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Note a session that begins, and cancel what a client of HTTP cancels.

        Raises:
            MCPError: A client says too much of itself.
        """
        if ctx.method == "initialize":
            return await self._initialize(ctx, call_next)
        if ctx.method == "notifications/cancelled":
            session_id = get_connection(ctx).session_id
            if session_id is not None:  # stdio's transport has done it when the message came in
                self.cancel(session_id, ctx.params)
        return await call_next(ctx)

    def find(self, session_id: str | None) -> ClientSession | None:
        """Return a session whose client may make requests, or None."""
        session = self._sessions.get(session_id)
        return session if session and session.connection.client_params is not None else None

    def run(
        self, session_id: str | None, request_id: RequestId, end: OnEnd
    ) -> AbstractContextManager[None]:
        """Have a plain request ended if its client cancels it, or its session ends."""
        return _Run(self._running, session_id, coerce_request_id(request_id), end)

    def follow_cancel(
        self, session_id: str | None, request_id: RequestId, on_cancel: Callable[[], object]
    ) -> Callable[[], object]:
        """Have a function called if a request is cancelled, although it may be answered by then.

        Args:
            session_id: The session.
            request_id: Of the request.
            on_cancel: Called when a ``notifications/cancelled`` that names it has come in.

        Returns:
            What ends this.
        """
        key = session_id, coerce_request_id(request_id)
        self._followed[key] = on_cancel

        def forget() -> None:
            if self._followed.get(key) is on_cancel:  # else its id has been used again
                del self._followed[key]

        return forget

    def cancel(self, session_id: str | None, params: Mapping[str, Any] | None) -> None:
        """End the plain request that a ``notifications/cancelled`` names, if there is one."""
        named = cancelled_request_id_from_params(params)
        if named is None:
            return
        request_id = coerce_request_id(named)
        if (on_cancel := self._followed.pop((session_id, request_id), None)) is not None:
            on_cancel()
        end = self._running.get(session_id, {}).get(request_id)
        if end is not None:
            end("cancelled")

    async def _initialize(
        self, ctx: ServerRequestContext[Any], call_next: CallNext
    ) -> HandlerResult:
        if len(to_json(ctx.params)) > MAX_INITIALIZE:
            raise MCPError(INVALID_PARAMS, TOO_LONG)
        self._add(get_connection(ctx))
        result = await call_next(ctx)
        if isinstance(ctx.params, dict):
            _forget_unused(ctx.params)  # before the SDK reads them once more and keeps them
        return result

    def _add(self, connection: Connection) -> None:
        self._sessions[connection.session_id] = ClientSession(connection)
        # The SDK has no other hook for the end of a session.
        connection.exit_stack.callback(self._end, connection)

    def _end(self, connection: Connection) -> None:
        session = self._sessions.get(connection.session_id)
        if session is not None and session.connection is connection:
            del self._sessions[connection.session_id]
        for end in tuple(self._running.get(connection.session_id, {}).values()):
            end("session ended")


class _Run(AbstractContextManager[None]):
    """Has a plain request among those that can be ended for a block."""

    def __init__(
        self,
        sessions: dict[str | None, dict[RequestId, OnEnd]],
        session_id: str | None,
        request_id: RequestId,
        end: OnEnd,
    ) -> None:
        self._sessions = sessions
        self._session_id = session_id
        self._request_id = request_id
        self._end = end
        self._requests: dict[RequestId, OnEnd] = {}

    def __enter__(self) -> None:
        self._requests = self._sessions.setdefault(self._session_id, self._requests)
        self._requests[self._request_id] = self._end

    def __exit__(self, *error: object) -> None:
        requests = self._requests
        if requests.get(self._request_id) is self._end:  # else its id has been used again
            del requests[self._request_id]
        if not requests and self._sessions.get(self._session_id) is requests:
            del self._sessions[self._session_id]


def _forget_unused(params: dict[str, Any]) -> None:
    """Leave of the valid parameters of an `initialize` only what is used during the session."""
    capabilities: dict[str, Any] = {}
    elicitation = params["capabilities"].get("elicitation")
    if elicitation is not None:
        modes = (mode for mode in ("form", "url") if elicitation.get(mode) is not None)
        capabilities["elicitation"] = {mode: {} for mode in modes}
    info = params["clientInfo"]
    used = {
        "protocolVersion": params["protocolVersion"],
        "capabilities": capabilities,
        "clientInfo": {name: info[name][:MOST_OF_NAME] for name in ("name", "version")},
    }
    params.clear()
    params.update(used)
