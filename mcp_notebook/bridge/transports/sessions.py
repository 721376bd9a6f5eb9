"""The sessions of handshake-era HTTP clients: limited in number; new ones replace idle ones.

Runs on the bridge's event loop. The SDK's session manager does the work, but refuses new clients
once there are too many sessions. Most sessions belong to clients that have left without closing
them, so the session that has been idle for longest is dropped instead: its id is then unknown
(404), and a client that does return initializes again. A new client is refused only if all sessions
are in use. A caller at its limit replaces one of its own sessions; the user has no such limit, and
a quarter of all sessions is reserved for the user. The memory of an idle session does not depend on
what its client has sent.

A session belongs to the caller who opened it, and is unknown to all others. Owners are recorded
here, from the SDK's answers, independently of the SDK's private state. If a release of the SDK
lacks any of the private members used here, `missing` names them: sessions then behave as in the
SDK, without the short way and without replacement.
"""

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from typing import Any

import anyio
import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import (
    MCP_SESSION_ID_HEADER,
    REQUEST_STREAM_BUFFER_SIZE,
    EventMessage,
    StreamableHTTPServerTransport,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from mcp_notebook.bridge.access.caller import OWNER, SCOPE_KEY, Caller
from mcp_notebook.bridge.access.caller_limits import limit_guests
from mcp_notebook.bridge.server.sessions.protocol_error import INVALID_REQUEST, ProtocolError
from mcp_notebook.settings.limits import Limits

logger = logging.getLogger(__name__)
_END_LIMIT = 30.0
"""Seconds for all sessions to end; three thousand need two."""
_LAST_MESSAGES_LIMIT = 5.0
"""Seconds that a client has to read the last messages about a cancelled request."""
_FORGET_LIMIT = 1.0
"""Seconds to wait for a session to take a message; it does when it has begun the previous one."""


class _Nothing(Exception):
    """A placeholder for a message, which the SDK ignores."""


_NOTHING = _Nothing()


class Sessions(StreamableHTTPSessionManager):
    """The sessions of one endpoint; belongs to the event loop.

    Args:
        server: The server.
        limits: The sessions of one caller, and the size of a request.
        most: The sessions of all callers together; each takes about 40 KB of memory.
        idle_seconds: When a session expires that has no requests, no open stream and no running
            call.
    """

    def __init__(
        self,
        server: Server[object],
        limits: Limits,
        *,
        most: int = 10_000,
        idle_seconds: float = 3_600.0,
    ) -> None:
        self._idle_seconds = idle_seconds
        super().__init__(
            server,
            session_idle_timeout=self._idle_seconds,
            max_request_body_size=limits.max_request_bytes,
            max_sessions=most,
        )
        self._most = most
        self._most_of_guest = limits.max_caller_calls
        self.missing = _list_missing(self)
        """The private members that this release of the SDK lacks."""
        if "_server_instances" in self.missing:
            self._server_instances = {}  # its sessions are unknown
        self._owners: dict[str, str] = {}
        """Owners (`Caller.owns`) by session id; ended sessions are removed when there are many."""
        self._uses: dict[str, int] = {}
        """The number of requests of each session in use, including open streams."""
        self._idle: OrderedDict[str, None] = OrderedDict()
        """The other sessions, longest idle first; expired ones are removed when they come first."""

    def __len__(self) -> int:
        return len(self._server_instances)

    async def end(self) -> None:
        """End all sessions; waits `_END_LIMIT` at most for their tasks."""
        sessions = self._server_instances
        # One by one: cancelling all tasks at once takes the SDK seconds for a thousand sessions,
        # and four times as long for two thousand.
        for session in tuple(sessions.values()):
            await session.terminate()
        with anyio.move_on_after(_END_LIMIT):
            while sessions:  # noqa: ASYNC110 - the SDK has no event for their end
                await anyio.sleep(0.01)

    async def end_those_of(self, caller: Caller) -> None:
        """End all sessions of a caller."""
        for session_id in [key for key, owner in self._owners.items() if owner == caller.owns]:
            del self._owners[session_id]
            session = self._server_instances.get(session_id)
            if session is not None:
                await session.terminate()

    def find_own(self, session_id: str, caller: Caller) -> StreamableHTTPServerTransport | None:
        """Return a session if it belongs to the caller and has not ended, or None."""
        session = self._server_instances.get(session_id)
        if self._owners.get(session_id) != caller.owns or session is None:
            return None
        if session.is_terminated or session.idle_scope is None or session.idle_scope.cancel_called:
            return None
        return session

    @contextmanager
    def keep(self, session: StreamableHTTPServerTransport) -> Iterator[None]:
        """Keep a session from expiring during the block, like the SDK during a request."""
        assert session.idle_scope is not None
        session._requests_in_flight += 1  # noqa: SLF001 - the SDK has no public API for it
        session.idle_scope.deadline = math.inf
        try:
            yield
        finally:
            session._requests_in_flight -= 1  # noqa: SLF001
            if not session._requests_in_flight:  # noqa: SLF001
                session.idle_scope.deadline = anyio.current_time() + self._idle_seconds

    @asynccontextmanager
    async def route(
        self,
        session: StreamableHTTPServerTransport,
        request_id: RequestId,
        send: Callable[[bytes], Awaitable[None]],
    ) -> AsyncIterator[None]:
        """During the block, send the SDK's messages about a request in our response."""
        streams: dict[RequestId, Any] = session._request_streams  # noqa: SLF001 - as above
        stream = _RequestStream(send)
        ours = streams[str(request_id)] = stream, stream
        try:
            yield
            await stream.flush()  # before the answer
        except BaseException:
            with anyio.move_on_after(_LAST_MESSAGES_LIMIT):  # the client may not read
                await stream.flush()
            raise
        finally:
            if streams.get(str(request_id)) is ours:  # otherwise its id has been reused
                del streams[str(request_id)]
            stream.close()

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK handle a request, unless its session belongs to another caller."""
        session_id, owner = read_header(scope, MCP_SESSION_ID_HEADER), scope[SCOPE_KEY].owns
        if session_id is None:
            await super().handle_request(scope, receive, self._note_session(owner, send))
        elif not is_of_handshake_era(scope):
            await super().handle_request(scope, receive, send)
        elif self._owners.get(session_id) != owner:
            await _make_refusal()(scope, receive, send)
        else:
            await super().handle_request(scope, receive, send)
            if scope["method"] == "POST" and session_id in self._server_instances:
                await _forget_last_message(self._server_instances[session_id])

    def _note_session(self, owner: str, send: Send) -> Send:
        """Return a `send` that records the caller as the owner of the session in the answer."""

        async def noting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                session_id = read_header(message, MCP_SESSION_ID_HEADER)
                if session_id is not None:
                    self._note_owner(session_id, owner)
            await send(message)

        return noting_send

    def _note_owner(self, session_id: str, owner: str) -> None:
        self._owners[session_id] = owner
        if len(self._owners) > self._most:
            ended = [key for key in self._owners if key not in self._server_instances]
            for key in ended if self._server_instances else [next(iter(self._owners))]:
                del self._owners[key]

    def hold(self, scope: Scope) -> AbstractContextManager[None]:
        """Mark the session of a request as in use during a block, if the caller owns it."""
        session_id = read_header(scope, MCP_SESSION_ID_HEADER)
        if session_id is None or self._owners.get(session_id) != scope[SCOPE_KEY].owns:
            return nullcontext()
        return self._use(session_id)

    @contextmanager
    def _use(self, session_id: str) -> Iterator[None]:
        self._idle.pop(session_id, None)
        self._uses[session_id] = self._uses.get(session_id, 0) + 1
        try:
            yield
        finally:
            self._uses[session_id] -= 1
            if not self._uses[session_id]:
                del self._uses[session_id]
                if session_id in self._server_instances:
                    self._idle[session_id] = None
            self._forget_expired()

    def _forget_expired(self) -> None:
        while self._idle and next(iter(self._idle)) not in self._server_instances:
            self._idle.popitem(last=False)

    # -- private hooks of the SDK ------------------------------------------------------------------

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        if self.missing:
            return super()._admit_session(requestor)
        self._forget_expired()
        caller = "" if requestor is None else requestor["client_id"]
        is_rival = self._find_rivals(caller)
        if is_rival is not None:
            rivals = (key for key in self._idle if is_rival(self._owners.get(key)))
            oldest = next(rivals, None)
            if oldest is None:
                return None
            self._drop(oldest)
        session = super()._admit_session(requestor)
        if session is not None and session.mcp_session_id is not None:
            self._note_owner(session.mcp_session_id, caller)  # at once: it counts already
        return session

    def _find_rivals(self, caller: str) -> Callable[[str | None], bool] | None:
        """Return whose sessions a caller's new session may replace; None if there is room."""
        owners = [self._owners.get(session_id) for session_id in self._server_instances]
        if caller != OWNER.owns:
            if owners.count(caller) >= self._most_of_guest:
                return lambda owner: owner == caller
            if len(owners) - owners.count(OWNER.owns) >= limit_guests(self._most):
                return lambda owner: owner != OWNER.owns
        return None if len(self) < self._most else lambda _: True

    def _drop(self, session_id: str) -> None:
        """Forget a session; a task terminates it."""
        del self._idle[session_id]
        self._owners.pop(session_id, None)
        session = self._server_instances.pop(session_id, None)
        assert self._task_group is not None
        if session is not None:  # otherwise it has expired
            self._task_group.start_soon(session.terminate)

    async def _serve_opening_request(
        self,
        http_transport: StreamableHTTPServerTransport,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        assert http_transport.mcp_session_id is not None
        with self._use(http_transport.mcp_session_id):
            await super()._serve_opening_request(http_transport, scope, receive, send)
            await _forget_last_message(http_transport)


class _RequestStream:
    """Passes the SDK's messages to the client of a request.

    The SDK hands over all messages of a session in turn, so this must not block on a client that
    does not read. The first message starts a task that writes them.

    Args:
        send: Sends a message.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._messages: asyncio.Queue[EventMessage] = asyncio.Queue(REQUEST_STREAM_BUFFER_SIZE)
        self._writer: asyncio.Task[None] | None = None

    async def send(self, event: EventMessage) -> None:
        """Queue a message; waits only if the queue, as long as the SDK's, is full."""
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())
        await self._messages.put(event)

    async def aclose(self) -> None:
        """Do nothing: the request ends on its own."""

    async def flush(self) -> None:
        """Wait until all messages are sent."""
        if self._writer is not None:
            await self._messages.join()

    def close(self) -> None:
        """Stop sending, and release senders that wait for the queue."""
        if self._writer is not None:
            self._writer.cancel()
            while not self._messages.empty():
                self._messages.get_nowait()

    async def _write(self) -> None:
        while True:
            event = await self._messages.get()
            try:
                await self._send(
                    types.jsonrpc_message_adapter.dump_json(
                        event.message, by_alias=True, exclude_unset=True
                    )
                )
            except Exception:  # must not end the request's session
                logger.exception("a message about a request could not be sent to its client")
            finally:
                self._messages.task_done()


def _list_missing(manager: StreamableHTTPSessionManager) -> tuple[str, ...]:
    """Return the private members used here that this release of the SDK lacks."""
    session = StreamableHTTPServerTransport(mcp_session_id=None)
    places = (
        (manager, ("_server_instances", "_task_group")),
        (StreamableHTTPSessionManager, ("_admit_session", "_serve_opening_request")),
        (session, ("_requests_in_flight", "_request_streams", "_read_stream_writer")),
    )
    return tuple(name for place, names in places for name in names if not hasattr(place, name))


def _make_refusal() -> Response:
    """Return the answer for an unknown session, like the SDK's."""
    answer = ProtocolError(INVALID_REQUEST, "Session not found").write_answer(None)
    return Response(answer, 404, media_type="application/json")


async def _forget_last_message(session: StreamableHTTPServerTransport) -> None:
    """Make the SDK drop a session's last message, which it keeps until the next one arrives."""
    stream = getattr(session, "_read_stream_writer", None)  # the SDK has no public API for it
    if stream is not None:
        with anyio.move_on_after(_FORGET_LIMIT), suppress(anyio.ClosedResourceError):
            await stream.send(_NOTHING)


def is_of_handshake_era(scope: Scope) -> bool:
    """Return whether a request's protocol version has sessions."""
    version = read_header(scope, MCP_PROTOCOL_VERSION_HEADER)
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def read_header(head: Scope | Message, name: str) -> str | None:
    """Return the first value of a header of a request or an answer; None if there is none."""
    key = name.encode()
    for header, value in head["headers"]:
        if header == key:
            return str(value, "latin-1")
    return None
