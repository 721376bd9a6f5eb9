"""The MCP endpoint as an ASGI application: Streamable HTTP of both eras, and its shutdown.

Runs on the bridge's event loop, behind the gate. The header ``MCP-Protocol-Version`` says of which
era a request is; without one, it is of the handshake era. The steps are those of the specification:

- since 2026-07-28, "Sending Messages" and "Request Metadata":
  https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
- before, with sessions and streams for messages of ours:
  https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http

``Last-Event-ID`` is ignored: no event is stored.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Self

import anyio
import anyio.to_thread

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.asgi import (
    Receive,
    Response,
    Scope,
    Send,
    make_text_response,
    read_header,
    read_headers,
)
from mcp_notebook.bridge.server.requests import Answer, write_error
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.server.sessions.client_profile import (
    ClientProfile,
    has_envelope,
    read_envelope,
    refuse_version,
)
from mcp_notebook.bridge.server.sessions.client_request import make_request
from mcp_notebook.bridge.server.sessions.client_sessions import MAX_INITIALIZE, TOO_LONG
from mcp_notebook.bridge.transports.http_exchange import HttpExchange
from mcp_notebook.bridge.transports.sessions import HttpSession, Sessions
from mcp_notebook.bridge.transports.stdio import ANSWER_GRACE, LARGE
from mcp_notebook.protocol import messages
from mcp_notebook.protocol.errors import (
    HTTP_STATUSES,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    ProtocolError,
)
from mcp_notebook.protocol.headers import SESSION_HEADER, VERSION_HEADER, check_headers
from mcp_notebook.protocol.methods import CALL, CANCELLED, INITIALIZE, INITIALIZED
from mcp_notebook.protocol.parameter_headers import (
    PREFIX,
    check_parameter_headers,
    list_parameter_headers,
)
from mcp_notebook.protocol.versions import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from mcp_notebook.settings.limits import Limits

PATH = "/mcp"
"""Path of the endpoint."""
_JSON, _EVENTS = "application/json", "text/event-stream"
_UNKNOWN_SESSION = "Session not found"
_CANCELLED = ProtocolError(REQUEST_CANCELLED, "Request cancelled")


class Endpoint:
    """The endpoint; an async context manager that owns the task of its sessions.

    Args:
        server: The server.
        limits: The limits of its requests and sessions.
        **sessions: Passed to `Sessions`.
    """

    def __init__(self, server: NotebookServer, limits: Limits, **sessions: Any) -> None:
        self._server = server
        self._max_bytes = limits.max_request_bytes
        self._sessions = Sessions(limits, **sessions)
        self._unanswered = _Unanswered()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Run the sessions during the block."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sessions.run)
            try:
                yield self
            finally:
                tasks.cancel_scope.cancel()
                self._sessions.end_all()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or refuse it if its caller exceeds a rate limit."""
        excess = self._server.request_rates.take(scope[SCOPE_KEY])
        if excess is not None:
            error = ProtocolError(INTERNAL_ERROR, excess.reason)
            headers = {"retry-after": str(excess.seconds)}
            await _refuse(429, error, headers=headers).response(scope, receive, send)
        elif scope["path"] not in (PATH, f"{PATH}/"):
            await make_text_response(f"The endpoint is {PATH}.", 404)(scope, receive, send)
        else:
            try:
                await self._handle(scope, receive, send)
            except _Refused as refused:
                await refused.response(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request.

        Raises:
            _Refused: It is not answered.
        """
        version = read_header(scope, VERSION_HEADER)
        is_handshake = version is None or version in HANDSHAKE_VERSIONS
        if scope["method"] == "POST":
            _check_head(scope)
            take = self._take_handshake if is_handshake else self._take_modern
            await take(scope, receive, send)
        elif is_handshake and scope["method"] in ("GET", "DELETE"):
            await self._use_session(scope, receive, send)
        else:
            allowed = "GET, POST, DELETE" if is_handshake else "POST"
            raise _refuse(405, "Method Not Allowed", headers={"allow": allowed})

    # -- since 2026-07-28 --------------------------------------------------------------------------

    async def _take_modern(self, scope: Scope, receive: Receive, send: Send) -> None:
        # 1. The body is one message.
        body = await _read_body(scope, receive, self._max_bytes)
        with self._unanswered:
            message = await _parse(body)
            del body  # a stream may stay open for days
            # 2. A notification is taken and has no effect: to cancel, a client disconnects.
            if isinstance(message, messages.Notification):
                version = read_header(scope, VERSION_HEADER) or ""
                if version not in MODERN_VERSIONS:
                    raise _refuse(400, refuse_version(version))
                await Response(status=202)(scope, receive, send)
                return
            if isinstance(message, messages.Answer):
                raise _refuse(400, "Since 2026-07-28, clients must not send responses.")
            # 3. It describes its client, and its headers repeat parts of it.
            try:
                profile = self._check(message, scope)
            except ProtocolError as error:
                status = HTTP_STATUSES.get(error.code, 200)
                raise _refuse(status, error, message.id) from None
            # 4. It is answered. A client that disconnects cancels it.
            exchange = HttpExchange(receive, send)
            request = make_request(message, profile, scope[SCOPE_KEY], exchange.send)
            answer = None
            with exchange:
                answer = await self._server.requests.answer(message, request)
            if answer is not None:
                status = HTTP_STATUSES.get(answer.error_code or 0, 200)
                await exchange.answer(answer.pieces, status)

    def _check(self, message: messages.Request, scope: Scope) -> ClientProfile:
        """Return the profile of a request's client.

        Raises:
            ProtocolError: The request does not describe its client, or its headers differ from it.
        """
        fields, params = scope["headers"], message.params or {}
        headers = read_headers(scope)
        if has_envelope(params):  # else `read_envelope` says what is missing
            check_headers(fields, headers, message.method, params)
        profile = read_envelope(params)
        arguments = params.get("arguments") or {}
        if (
            message.method == CALL
            and isinstance(arguments, Mapping)
            and (arguments or any(name.startswith(PREFIX) for name in headers))
        ):
            schema = self._server.find_input_schema(str(params.get("name")), scope[SCOPE_KEY])
            check_parameter_headers(list_parameter_headers(schema), arguments, fields)
        return profile

    # -- up to 2025-11-25 --------------------------------------------------------------------------

    async def _take_handshake(self, scope: Scope, receive: Receive, send: Send) -> None:
        # 1. It belongs to a session of its caller, or opens one with a short `initialize`.
        if read_header(scope, SESSION_HEADER) is None:
            await self._open_session(scope, receive, send)
            return
        session = self._find_session(scope)
        with self._sessions.use(session):
            # 2. The body is one message.
            body = await _read_body(scope, receive, self._max_bytes)
            with self._unanswered:
                message = await _parse(body)
                # 3. Meanwhile, the client may have ended the session.
                if session.client.has_ended:
                    raise _refuse(404, _UNKNOWN_SESSION)
                await self._take_message(session, message, scope, receive, send)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request without a session, which can only be ``initialize``."""
        problem = f"The request has no session, and {TOO_LONG}"
        body = await _read_body(scope, receive, MAX_INITIALIZE, problem)
        with self._unanswered:
            message = await _parse(body)
            if not isinstance(message, messages.Request) or message.method != INITIALIZE:
                raise _refuse(400, "Bad Request: Missing session ID")
            session = self._sessions.open(scope[SCOPE_KEY])
            if session is None:
                raise _refuse(503, ProtocolError(INTERNAL_ERROR, "Too many open sessions"))
            try:
                with self._sessions.use(session):
                    await self._answer(session, message, scope, receive, send)
            finally:
                if session.client.profile is None:  # refused
                    self._sessions.end(session)

    def _find_session(self, scope: Scope) -> HttpSession:
        """Return the session of a request.

        Raises:
            _Refused: The request has none, or the caller has no such session.
        """
        session_id = read_header(scope, SESSION_HEADER)
        if session_id is None:
            raise _refuse(400, "Bad Request: Missing session ID")
        session = self._sessions.find(session_id, scope[SCOPE_KEY])
        if session is None:
            raise _refuse(404, _UNKNOWN_SESSION)
        return session

    async def _take_message(
        self,
        session: HttpSession,
        message: messages.Message,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Take a message of a session."""
        if isinstance(message, messages.Request):
            await self._answer(session, message, scope, receive, send)
            return
        if isinstance(message, messages.Answer):
            session.client.take_answer(message)
        elif message.method == CANCELLED:
            session.client.cancel(message.params)
        elif message.method == INITIALIZED and session.client.profile is not None:
            self._server.clients.add_session(session.client.profile)
            self._server.changes.add_session(session.client.profile, scope[SCOPE_KEY])
        accepted = Response(status=202, headers={SESSION_HEADER: session.id})
        await accepted(scope, receive, send)

    async def _answer(
        self,
        session: HttpSession,
        message: messages.Request,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a request of a session, even if its client disconnects."""
        client = session.client
        exchange = HttpExchange(receive, send, session.id, outlasts=True)
        answer: Answer | None = None
        with exchange, client.run(message.id, exchange.end):
            try:
                client.check(message)
                profile = client.find_profile(message)
                request = make_request(message, profile, scope[SCOPE_KEY], exchange.send)
                answer = await self._server.requests.answer(message, request)
                if message.method == INITIALIZE and answer.error_code is None:
                    client.open(profile)
            except ProtocolError as error:
                answer = write_error(message.id, error)
        if answer is None and exchange.end_reason == "cancelled":
            answer = write_error(message.id, _CANCELLED)  # only an answer ends the response
        if answer is not None:
            await exchange.answer(answer.pieces, 200)
        else:
            await exchange.end_stream()

    async def _use_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a GET, which opens a stream for our messages, or a DELETE of a session."""
        caller = scope[SCOPE_KEY]
        if scope["method"] == "GET" and not _accepts(scope)[1]:
            raise _refuse(406, f"Not Acceptable: Client must accept {_EVENTS}")
        session = self._find_session(scope)
        if scope["method"] == "DELETE":
            self._sessions.end(session)
            await Response(headers={SESSION_HEADER: session.id})(scope, receive, send)
            return
        if session.stream is not None:
            raise _refuse(409, "Conflict: Only one SSE stream is allowed per session")
        streams = self._server.open_streams.shares
        if (lack := streams.explain_lack(caller)) is not None:
            raise _refuse(429, ProtocolError(INTERNAL_ERROR, lack))
        session.stream = HttpExchange(receive, send, session.id)
        with streams.hold(caller), self._sessions.use(session):
            try:
                with session.stream:
                    await session.stream.begin()
                    await session.send_missed()
                    await anyio.sleep_forever()
                await session.stream.end_stream()
            finally:
                session.stream = None

    # -- the end -----------------------------------------------------------------------------------

    async def end(self) -> None:
        """Answer the running calls, then end all streams and sessions."""
        self._server.close()
        if self._unanswered.count:
            self._unanswered.none_left = anyio.Event()
            with anyio.move_on_after(ANSWER_GRACE):  # a client may not read its answer
                await self._unanswered.none_left.wait()
        self._sessions.end_all()

    async def end_sessions(self, caller: Caller) -> None:
        """End all sessions of a caller, and their running calls."""
        self._sessions.end_all(caller)


class _Unanswered(AbstractContextManager[None]):
    """Counts the complete requests that are not answered yet: one more for each block."""

    def __init__(self) -> None:
        self.count = 0
        self.none_left: anyio.Event | None = None
        """Set at zero; None: nobody waits for that."""

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *error: object) -> None:
        self.count -= 1
        if not self.count and self.none_left is not None:
            self.none_left.set()


class _Refused(Exception):
    """A request is refused.

    Args:
        response: The response.
    """

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def _check_head(scope: Scope) -> None:
    """Refuse a POST whose headers say that it cannot be answered."""
    if not all(_accepts(scope)):
        raise _refuse(406, f"Not Acceptable: Client must accept both {_JSON} and {_EVENTS}")
    kind = (read_header(scope, "content-type") or "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise _refuse(415, f"Unsupported Media Type: Content-Type must be {_JSON}")


def _accepts(scope: Scope) -> tuple[bool, bool]:
    """Return whether a client accepts JSON, and a stream of events (RFC 9110, 12.5.1)."""
    accept = read_header(scope, "accept") or ""
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not kinds.isdisjoint((_JSON, "application/*", "*/*")), not kinds.isdisjoint(
        (_EVENTS, "text/*", "*/*")
    )


async def _read_body(
    scope: Scope, receive: Receive, most: int, problem: str | None = None
) -> bytes:
    """Return the body of a request.

    Raises:
        _Refused: It is too large; at once, if the head says so.
    """
    length = read_header(scope, "content-length") or ""
    declared = int(length) if length.isdecimal() else 0
    chunks: list[bytes] = []
    size = 0
    while max(declared, size) <= most:
        message = await receive()
        if message["type"] != "http.request":
            return b""  # the client has disconnected and gets no answer
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size <= most and not message.get("more_body", False):
            return b"".join(chunks)
    raise _refuse(413, problem or f"A request can have at most {most:,} bytes.")


async def _parse(body: bytes) -> messages.Message:
    """Return the message in a body.

    Raises:
        _Refused: The body is not a valid message.
    """
    try:
        if len(body) < LARGE:
            return messages.read_message(body)
        return await anyio.to_thread.run_sync(messages.read_message, body)
    except messages.InvalidMessage as error:
        raise _refuse(400, error) from None


def _refuse(
    status: int,
    error: ProtocolError | str,
    request_id: messages.RequestId | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> _Refused:
    """Return the refusal of a request."""
    problem = ProtocolError(INVALID_REQUEST, error) if isinstance(error, str) else error
    fields = {"content-type": _JSON, **(headers or {})}
    return _Refused(Response(problem.write_answer(request_id), status, fields))
