"""The MCP endpoint as an ASGI app: its path, its sessions, and its shutdown.

Runs on the bridge's event loop, behind the gate. The SDK's session manager does the work. A client
of the handshake era has a session, which expires after some time without use: its id is then
unknown (404), and the client initializes again, as MCP prescribes. An open stream or a running call
uses a session, even if its client has disconnected.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.server.sessions.client_sessions import MAX_INITIALIZE, TOO_LONG
from mcp_notebook.bridge.server.sessions.protocol_error import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ProtocolError,
)
from mcp_notebook.bridge.transports.fast_path.plain_answers import is_short_way_open
from mcp_notebook.bridge.transports.fast_path.plain_http import PlainHttp
from mcp_notebook.bridge.transports.json_responses import prefer_json
from mcp_notebook.bridge.transports.request_bodies import read_body, replay
from mcp_notebook.bridge.transports.sessions import (
    Sessions,
    is_of_handshake_era,
    read_header,
)
from mcp_notebook.bridge.transports.stdio import ANSWER_GRACE
from mcp_notebook.settings.limits import Limits

PATH = "/mcp"
"""Path of the endpoint."""


class Endpoint:
    """The endpoint; an async context manager that owns the tasks of its sessions.

    Args:
        server: The server.
        limits: The limits of its requests and sessions.
        short_way: Whether plain requests are answered without the SDK.
        **sessions: The keywords of `Sessions`.
    """

    def __init__(
        self, server: NotebookServer, limits: Limits, *, short_way: bool = True, **sessions: Any
    ) -> None:
        self._server = server
        self._sessions = Sessions(server.mcp, limits, **sessions)
        self._app = prefer_json(self._sessions.handle_request)
        if short_way and is_short_way_open(self._sessions.missing):
            self._app = PlainHttp(
                self._app, server, self._sessions, max_bytes=limits.max_request_bytes
            )
        self._unanswered = 0
        """The number of complete requests that are not answered yet."""
        self._all_answered = anyio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Run the sessions during the block."""
        async with self._sessions.run():
            yield self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or refuse it if its caller exceeds a rate limit."""
        excess = self._server.request_rates.take(scope[SCOPE_KEY])
        if excess is not None:
            refusal = _make_refusal(excess.reason)
            refusal.headers["Retry-After"] = str(excess.seconds)
            await refusal(scope, receive, send)
            return
        if scope["path"] not in (PATH, f"{PATH}/"):
            await PlainTextResponse(f"The endpoint is {PATH}.", 404)(scope, receive, send)
            return
        if scope["method"] == "POST" and not is_of_handshake_era(scope):
            await self._answer(self._app, scope, receive, send)
            return
        with self._sessions.hold(scope):
            if scope["method"] == "POST":
                has_session = read_header(scope, MCP_SESSION_ID_HEADER) is not None
                handle = self._app if has_session else self._open_session
                await self._answer(handle, scope, receive, send, outlasts=True)
            elif scope["method"] == "GET":
                await self._open_stream(scope, receive, send)
            else:
                await self._sessions.handle_request(scope, receive, send)

    async def _answer(
        self,
        app: ASGIApp,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        outlasts: bool = False,
    ) -> None:
        """Answer a POST request; `end` waits for it once it is complete.

        Args:
            app: Handles the request.
            scope: The request's ASGI scope.
            receive: Its ASGI callable.
            send: Its ASGI callable.
            outlasts: Whether the request continues when its client disconnects.
        """
        body = _Body(receive, self._count_message, outlasts=outlasts)
        try:
            await app(scope, body.receive, send)
        finally:
            if body.is_complete:
                self._unanswered -= 1
            if not self._unanswered:
                self._all_answered.set()

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a handshake-era request without a session, which can only be `initialize`."""
        length = read_header(scope, "content-length")
        body = None
        if length is None or not length.isdecimal() or int(length) <= MAX_INITIALIZE:
            body = await read_body(receive, MAX_INITIALIZE)
        if body is None:
            reason = f"The request has no session, and {TOO_LONG}"
            await _make_refusal(reason, 413, INVALID_REQUEST)(scope, receive, send)
            return
        await self._app(scope, replay(body, receive), send)

    async def _open_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        streams, caller = self._server.open_streams.shares, scope[SCOPE_KEY]
        lack = streams.explain_lack(caller)
        if lack is not None:
            await _make_refusal(lack)(scope, receive, send)
            return
        with streams.hold(caller):
            await self._sessions.handle_request(scope, receive, send)

    async def end(self) -> None:
        """Answer the running calls, then end all streams and sessions."""
        self._server.close()
        self._all_answered = anyio.Event()
        if self._unanswered:
            with anyio.move_on_after(ANSWER_GRACE):  # a client may not read its answer
                await self._all_answered.wait()
        await self._sessions.end()

    async def end_sessions(self, caller: Caller) -> None:
        """End all sessions of a caller, and their running calls."""
        await self._sessions.end_those_of(caller)

    def _count_message(self) -> None:
        self._unanswered += 1


class _Body:
    """Receives the body of a request, and notes when it is complete.

    Args:
        receive: The request's ASGI callable.
        on_complete: Called when the whole body has arrived.
        outlasts: Whether the request continues when its client disconnects, as MCP prescribes up
            to 2025-11-25. The SDK would continue the call but count its session as unused.
    """

    def __init__(
        self, receive: Receive, on_complete: Callable[[], None], *, outlasts: bool
    ) -> None:
        self._receive = receive
        self._on_complete = on_complete
        self._outlasts = outlasts
        self.is_complete = False

    async def receive(self) -> Message:
        """Return the next message about the request."""
        if self.is_complete and self._outlasts:
            while (await self._receive())["type"] != "http.disconnect":
                pass
            await anyio.sleep_forever()
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.is_complete = True
            self._on_complete()
        return message


def _make_refusal(reason: str, status: int = 429, code: int = INTERNAL_ERROR) -> Response:
    """Return the answer to a request whose body, and therefore id, has not been read."""
    answer = ProtocolError(code, reason).write_answer(None)
    return Response(answer, status, media_type="application/json")
