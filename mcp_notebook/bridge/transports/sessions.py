"""The sessions of HTTP clients of the handshake era: a bounded number, of which old ones make room.

Runs on the bridge's event loop. The SDK's session manager does the work, and refuses a new client
once there are too many sessions. Most of those belong to clients that have left without a word, so
the session that has been idle for longest makes room instead: its id is then unknown (404), and a
client that does return initializes anew. Only if all sessions are in use is a new client refused.
A caller with as many sessions as it may have makes room among its own.
"""

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
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
from mcp_types import RequestId
from starlette.types import Receive, Scope, Send

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.limits import Limits

logger = logging.getLogger(__name__)
_END_LIMIT = 30.0
"""Seconds for all sessions to end; three thousand need two."""
_LAST_MESSAGES_LIMIT = 5.0
"""Seconds that a client has to take the last messages about a request that has been cancelled."""


class Sessions(StreamableHTTPSessionManager):
    """The sessions of one endpoint; belongs to the event loop.

    Args:
        server: The server.
        limits: How many sessions there may be, and for how long without use.
    """

    def __init__(self, server: Server[object], limits: Limits) -> None:
        self._idle_seconds = limits.session_idle_minutes * 60
        super().__init__(
            server,
            session_idle_timeout=self._idle_seconds,
            max_request_body_size=limits.max_request_bytes,
            max_sessions=limits.max_sessions,
        )
        self._limits = limits
        self._uses: dict[str, int] = {}
        """How many requests each session in use serves, open streams included."""
        self._idle: OrderedDict[str, None] = OrderedDict()
        """The other sessions, the one that has been idle for longest first; those that have expired
        are forgotten when they come first."""

    def __len__(self) -> int:
        return len(self._server_instances)

    async def end(self) -> None:
        """End all sessions; waits at most `_END_LIMIT` for what is left of them."""
        sessions = self._server_instances
        # One after the other: cancelling all of their tasks at once takes the SDK seconds for a
        # thousand sessions, and four times as long for two thousand.
        for session in tuple(sessions.values()):
            await session.terminate()
        with anyio.move_on_after(_END_LIMIT):
            while sessions:  # noqa: ASYNC110 - the SDK has no event for their end
                await anyio.sleep(0.01)

    async def end_those_of(self, caller: Caller) -> None:
        """End all sessions of a caller."""
        for session_id, owner in tuple(self._session_owners.items()):
            session = self._server_instances.get(session_id)
            if owner["client_id"] == caller.owns and session is not None:
                await self._discard_session(session_id, session)

    def find_own(self, session_id: str, caller: Caller) -> StreamableHTTPServerTransport | None:
        """Return a session if it is the caller's and has not ended, or None."""
        owner = self._session_owners.get(session_id)
        session = self._server_instances.get(session_id)
        if owner is None or owner["client_id"] != caller.owns or session is None:
            return None
        if session.is_terminated or session.idle_scope is None or session.idle_scope.cancel_called:
            return None
        return session

    @contextmanager
    def keep(self, session: StreamableHTTPServerTransport) -> Iterator[None]:
        """Keep a session from expiring for the block, as the SDK does for a request."""
        assert session.idle_scope is not None
        session._requests_in_flight += 1  # noqa: SLF001 - the SDK has no face for it
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
        """For the block, send the SDK's messages about a request within our response to it."""
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
            if streams.get(str(request_id)) is ours:  # else its id has been used again
                del streams[str(request_id)]
            stream.close()

    def hold(self, scope: Scope) -> AbstractContextManager[None]:
        """Keep the session of a request in use for a block, if it is the caller's own."""
        session_id = read_header(scope, MCP_SESSION_ID_HEADER)
        owner = None if session_id is None else self._session_owners.get(session_id)
        if session_id is None or owner is None or owner["client_id"] != scope[SCOPE_KEY].owns:
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

    # -- the SDK's hooks, none of which is public --------------------------------------------------

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        self._forget_expired()
        if self._has_share(requestor):
            idle = (key for key in self._idle if self._session_owners.get(key) == requestor)
            oldest = next(idle, None)
            if oldest is None:
                return None
            self._drop(oldest)
        elif len(self) >= self._limits.max_sessions and self._idle:
            self._drop(next(iter(self._idle)))
        return super()._admit_session(requestor)

    def _has_share(self, requestor: AuthorizationContext | None) -> bool:
        """Return whether a caller has as many sessions as it may."""
        share = self._limits.max_caller_sessions
        if len(self) < share:
            return False
        return sum(owner == requestor for owner in self._session_owners.values()) >= share

    def _drop(self, session_id: str) -> None:
        """Make a session unknown; what is left of it ends in a task of its own."""
        del self._idle[session_id]
        self._session_owners.pop(session_id, None)
        session = self._server_instances.pop(session_id, None)
        assert self._task_group is not None
        if session is not None:  # else it has expired
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


class _RequestStream:
    """Takes the SDK's messages on their way to the client of a request.

    The SDK hands over all messages of a session one after the other, so whoever takes them must
    not wait for one client that does not read. A task does, which the first message starts.

    Args:
        send: Sends one.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._messages: asyncio.Queue[EventMessage] = asyncio.Queue(REQUEST_STREAM_BUFFER_SIZE)
        self._writer: asyncio.Task[None] | None = None

    async def send(self, event: EventMessage) -> None:
        """Take a message; waits only if as many as the SDK would keep wait to be sent."""
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())
        await self._messages.put(event)

    async def aclose(self) -> None:
        """Do nothing: the request ends by itself."""

    async def flush(self) -> None:
        """Wait until all messages are sent."""
        if self._writer is not None:
            await self._messages.join()

    def close(self) -> None:
        """Send nothing any more; nobody waits to hand over a message after this."""
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
            except Exception:  # it must not end the session of the request
                logger.exception("a message about a request could not be sent to its client")
            finally:
                self._messages.task_done()


def read_header(scope: Scope, name: str) -> str | None:
    """Return the first value of a request's header; None if there is none."""
    key = name.encode()
    for header, value in scope["headers"]:
        if header == key:
            return str(value, "latin-1")
    return None
