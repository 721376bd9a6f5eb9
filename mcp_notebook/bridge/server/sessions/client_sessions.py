"""The sessions of clients of the handshake era, and the plain requests that they may cancel.

Runs on the bridge's event loop. A plain request (`plain_requests`) of the handshake era belongs to
a session of the SDK. In a session and over stdio, the client cancels it by a notification; over
HTTP, the SDK receives that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_core import to_json

from mcp_notebook.bridge.server.sessions.client_profile import (
    CAPABILITIES,
    MAX_NAME,
    VIEW_EXTENSION,
    ClientProfile,
    profile_from_sdk,
    shows_views,
)
from mcp_notebook.bridge.server.sessions.protocol_error import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
)
from mcp_notebook.bridge.views.pages import MIME_TYPE

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
"""The key under which the SDK's connection stores its `ClientSession`."""


class ClientSession:
    """A client of the handshake era, from its `initialize` until it leaves.

    All state of a client hangs on this object. Over stdio it may exist before the SDK is loaded;
    it gets the SDK's connection afterwards.
    """

    def __init__(self, session_id: str | None) -> None:
        self.id = session_id
        """The session's id over HTTP; None over stdio."""
        self.connection: Connection | None = None
        """The SDK's connection, once there is one."""
        self.open_connection: Callable[[], Awaitable[None]] | None = None
        """Has the SDK open its connection."""
        self.send_notification: Callable[[str, dict[str, Any] | None], Awaitable[None]] | None = (
            None
        )
        """Sends the client a notification; None: the SDK does."""
        self._params: InitializeRequestParams | None = None
        """The parameters that `_profile` was made from, if the SDK has read them."""
        self._profile: ClientProfile | None = None
        self._on_end = ExitStack()

    @property
    def profile(self) -> ClientProfile | None:
        """The client's description of itself: the same object until the client initializes again.

        None before it has, or if the SDK has rejected it.
        """
        params = None if self.connection is None else self.connection.client_params
        if self.connection is not None and params is not None and self._params is not params:
            self._params = params
            self._profile = profile_from_sdk(
                self.connection.protocol_version,
                params,
                self.connection.client_capabilities,
                self,
            )
        return self._profile

    @profile.setter
    def profile(self, profile: ClientProfile) -> None:
        self._profile = profile

    async def find_connection(self) -> Connection:
        """Return the SDK's connection, which is opened if necessary."""
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

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send the client a notification that belongs to no request."""
        if self.send_notification is not None:
            await self.send_notification(method, params)
        elif self.connection is not None:
            await self.connection.notify(method, params)


class ClientSessions:
    """The sessions of one bridge; middleware of the SDK's server.

    Over stdio, a session's id is None in both eras. Sessions last long, and there may be thousands,
    so unused parameters of `initialize` are removed before the SDK keeps them.
    """

    def __init__(self) -> None:
        self._sessions: dict[str | None, ClientSession] = {}
        self._running: dict[str | None, dict[RequestId, OnEnd]] = {}
        """By session and id of the request: the function that ends it."""

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Note a session that begins, and end a plain request that an HTTP client cancels.

        Raises:
            ProtocolError: The parameters of `initialize` are too large.
        """
        if ctx.method == "initialize":
            return await self._initialize(ctx, call_next)
        if ctx.method == "notifications/cancelled":
            session_id = _get_connection(ctx).session_id
            if session_id is not None:  # the stdio transport did it when the message arrived
                self.cancel(session_id, ctx.params)
        return await call_next(ctx)

    def find(self, session_id: str | None) -> ClientSession | None:
        """Return a session whose client has initialized, or None."""
        session = self._sessions.get(session_id)
        return session if session and session.profile is not None else None

    def open(self, session_id: str | None, profile: ClientProfile) -> ClientSession:
        """Open a session without the SDK; the caller has to end it."""
        session = self._sessions[session_id] = ClientSession(session_id)
        session.profile = replace(profile, connection=session)
        session.call_at_end(self._end, session)
        return session

    def run(
        self, session_id: str | None, request_id: RequestId, end: OnEnd
    ) -> AbstractContextManager[None]:
        """Return a context manager that has a plain request ended on cancellation.

        That is when its client cancels it, or its session ends.
        """
        return _Run(self._running, session_id, _coerce_id(request_id), end)

    def cancel(self, session_id: str | None, params: Mapping[str, Any] | None) -> None:
        """End the plain request that a ``notifications/cancelled`` names, if there is one."""
        named = (params or {}).get("requestId")
        if not isinstance(named, int | str) or isinstance(named, bool):
            return
        end = self._running.get(session_id, {}).get(_coerce_id(named))
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
            _forget_unused(ctx.params)  # before the SDK reads them again and keeps them
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
    """Return the SDK's connection of a request, which lasts until the client leaves."""
    from mcp.server.connection import Connection  # noqa: PLC0415 - see `postponed_sdk`

    # The SDK makes a new session for each request, without a public way to its connection.
    return next(each for each in vars(ctx.session).values() if isinstance(each, Connection))


def _coerce_id(request_id: RequestId) -> RequestId:
    """Return a request's id as the SDK compares it: "7" equals 7."""
    if isinstance(request_id, str):
        try:
            return int(request_id)
        except ValueError:
            pass
    return request_id


class _Run(AbstractContextManager[None]):
    """Lets a plain request be ended while a block runs."""

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
        if requests.get(self._request_id) is self._end:  # else the id has been reused
            del requests[self._request_id]
        if not requests and self._sessions.get(self._session_id) is requests:
            del self._sessions[self._session_id]


def _forget_unused(params: dict[str, Any]) -> None:
    """Remove valid parameters of `initialize` that the session does not use."""
    declared = params["capabilities"]
    capabilities: dict[str, Any] = {
        name: {} for name in CAPABILITIES if declared.get(name) is not None
    }
    if "elicitation" in capabilities:
        modes = ("form", "url")
        capabilities["elicitation"] = {
            mode: {} for mode in modes if declared["elicitation"].get(mode) is not None
        }
    if "extensions" in capabilities:
        capabilities["extensions"] = {name: {} for name in declared["extensions"]}
    if shows_views(declared.get("extensions")):
        capabilities["extensions"][VIEW_EXTENSION] = {"mimeTypes": [MIME_TYPE]}
    info = params["clientInfo"]
    used = {
        "protocolVersion": params["protocolVersion"],
        "capabilities": capabilities,
        "clientInfo": {name: info[name][:MAX_NAME] for name in ("name", "version")},
    }
    params.clear()
    params.update(used)
