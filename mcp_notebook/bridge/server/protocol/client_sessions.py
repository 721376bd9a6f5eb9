"""The sessions of clients of the handshake era, and the plain requests that they may cancel.

Runs on the bridge's event loop. A plain request (`plain_requests`) of the handshake era belongs to
a session of the SDK's. In a session and over stdio, the client cancels it by a
notification, which the SDK receives over HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_core import to_json

from mcp_notebook.bridge.server.protocol.client_profile import (
    MAX_NAME,
    ClientProfile,
    profile_from_sdk,
)
from mcp_notebook.bridge.server.protocol.protocol_error import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
)

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp_types import InitializeRequestParams, RequestId

EndReason: TypeAlias = Literal["cancelled", "session ended"]
"""Why a plain request ends early."""
OnEnd: TypeAlias = Callable[[EndReason], object]
MAX_INITIALIZE = 2**14
"""Maximum size of the parameters of `initialize` in bytes."""
TOO_LONG = f"`initialize` can have at most {MAX_INITIALIZE:,} bytes."
_STATE_KEY = "mcp_notebook.session"
"""Where the SDK's connection has its `ClientSession`."""


class ClientSession:
    """A client of the handshake era, from its `initialize` until it leaves.

    All state of a client hangs on this object. Over stdio it may exist before the SDK is loaded,
    and gets the SDK's connection then.
    """

    def __init__(self, session_id: str | None) -> None:
        self.id = session_id
        """HTTP's; None over stdio."""
        self.connection: Connection | None = None
        """The SDK's."""
        self.open_connection: Callable[[], Awaitable[None]] | None = None
        """Has the SDK open its connection."""
        self.send_notification: Callable[[str], Awaitable[None]] | None = None
        """Sends the client a notification without parameters; None: the SDK does."""
        self._said: InitializeRequestParams | None = None
        self._profile: ClientProfile | None = None
        self._on_end = ExitStack()

    @property
    def profile(self) -> ClientProfile | None:
        """What the client has said of itself, the same object until it says it anew.

        None before it has, or if the SDK has refused it.
        """
        said = None if self.connection is None else self.connection.client_params
        if self.connection is not None and said is not None and self._said is not said:
            self._said = said
            self._profile = profile_from_sdk(
                self.connection.protocol_version,
                said,
                self.connection.client_capabilities,
                self,
            )
        return self._profile

    @profile.setter
    def profile(self, profile: ClientProfile) -> None:
        self._profile = profile

    async def find_connection(self) -> Connection:
        """Return the SDK's connection, which is opened now if there is none."""
        if self.connection is None and self.open_connection is not None:
            await self.open_connection()
        if self.connection is None:
            raise ProtocolError(INTERNAL_ERROR, "The client's session could not be opened.")
        return self.connection

    def call_at_end(self, function: Callable[..., object], *arguments: Any) -> None:
        """Have a function called when the client leaves."""
        self._on_end.callback(function, *arguments)

    def end(self) -> None:
        """Note that the client has left."""
        self._on_end.close()

    async def notify(self, method: str) -> None:
        """Send the client a notification that belongs to no request and has no parameters."""
        if self.send_notification is not None:
            await self.send_notification(method)
        elif self.connection is not None:
            await self.connection.notify(method, None)


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
            ProtocolError: A client says too much of itself.
        """
        if ctx.method == "initialize":
            return await self._initialize(ctx, call_next)
        if ctx.method == "notifications/cancelled":
            session_id = _get_connection(ctx).session_id
            if session_id is not None:  # stdio's transport has done it when the message came in
                self.cancel(session_id, ctx.params)
        return await call_next(ctx)

    def find(self, session_id: str | None) -> ClientSession | None:
        """Return a session whose client may make requests, or None."""
        session = self._sessions.get(session_id)
        return session if session and session.profile is not None else None

    def open(self, session_id: str | None, profile: ClientProfile) -> ClientSession:
        """Open a session without the SDK; whoever opens it ends it."""
        session = self._sessions[session_id] = ClientSession(session_id)
        session.profile = replace(profile, connection=session)
        session.call_at_end(self._end, session)
        return session

    def run(
        self, session_id: str | None, request_id: RequestId, end: OnEnd
    ) -> AbstractContextManager[None]:
        """Have a plain request ended if its client cancels it, or its session ends."""
        return _Run(self._running, session_id, _coerce_id(request_id), end)

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
        key = session_id, _coerce_id(request_id)
        self._followed[key] = on_cancel

        def forget() -> None:
            if self._followed.get(key) is on_cancel:  # else its id has been used again
                del self._followed[key]

        return forget

    def cancel(self, session_id: str | None, params: Mapping[str, Any] | None) -> None:
        """End the plain request that a ``notifications/cancelled`` names, if there is one."""
        named = (params or {}).get("requestId")
        if not isinstance(named, int | str) or isinstance(named, bool):
            return
        request_id = _coerce_id(named)
        if (on_cancel := self._followed.pop((session_id, request_id), None)) is not None:
            on_cancel()
        end = self._running.get(session_id, {}).get(request_id)
        if end is not None:
            end("cancelled")

    async def _initialize(
        self, ctx: ServerRequestContext[Any], call_next: CallNext
    ) -> HandlerResult:
        if len(to_json(ctx.params)) > MAX_INITIALIZE:
            raise ProtocolError(INVALID_PARAMS, TOO_LONG)
        self._add(_get_connection(ctx))
        result = await call_next(ctx)
        if isinstance(ctx.params, dict):
            _forget_unused(ctx.params)  # before the SDK reads them once more and keeps them
        return result

    def _add(self, connection: Connection) -> None:
        session = self._sessions.get(connection.session_id)
        if session is not None and session.connection is None:  # opened without the SDK
            session.connection = connection
            connection.state[_STATE_KEY] = session
            return
        session = get_session(connection)
        if self._sessions.get(connection.session_id) is not session:
            self._sessions[connection.session_id] = session
            session.call_at_end(self._end, session)

    def _end(self, session: ClientSession) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        for end in tuple(self._running.get(session.id, {}).values()):
            end("session ended")


def find_session(ctx: ServerRequestContext[Any]) -> ClientSession:
    """Return the session that a request belongs to."""
    return get_session(_get_connection(ctx))


def get_session(connection: Connection) -> ClientSession:
    """Return the session of the SDK's connection."""
    session: ClientSession | None = connection.state.get(_STATE_KEY)
    if session is None:
        session = connection.state[_STATE_KEY] = ClientSession(connection.session_id)
        session.connection = connection
        # The SDK has no other hook for the end of a session.
        connection.exit_stack.callback(session.end)
    return session


def _get_connection(ctx: ServerRequestContext[Any]) -> Connection:
    """Return the SDK's connection of a request: it lasts as long as its client."""
    from mcp.server.connection import Connection  # noqa: PLC0415 - see `postponed_sdk`

    # Every request has a new session, and no public member of that leads to it.
    return next(each for each in vars(ctx.session).values() if isinstance(each, Connection))


def _coerce_id(request_id: RequestId) -> RequestId:
    """Return a request's id as the SDK compares it: "7" and 7 are the same."""
    if isinstance(request_id, str):
        try:
            return int(request_id)
        except ValueError:
            pass
    return request_id


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
        "clientInfo": {name: info[name][:MAX_NAME] for name in ("name", "version")},
    }
    params.clear()
    params.update(used)
