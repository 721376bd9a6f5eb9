"""HTTP connections to the server's own bridge, kept from one request to the next.

Runs on the event loop of Jupyter Server. Bodies pass as bytes in both directions, as they arrive;
`mcp_handler` decides which requests and headers are relayed.

Every call passes through here, on the loop that also serves the user's pages. A general HTTP client
(httpx2) took two thirds of the time that the server spent on a call.

Theory of operation
-------------------
httptools parses (RFC 9112, https://www.rfc-editor.org/rfc/rfc9112.html). A connection carries one
exchange at a time, by the table `TRANSITIONS`:

1. An exchange takes the connection that became free last, or opens one. A connection that has been
   free for `KEEP_LIMIT` is not taken, because the bridge may be closing it (section 9.5): a request
   that is lost then cannot be repeated, as its tool may have run (9.3.1).
2. The request is written. Its length is announced (6.2).
3. The head of the answer is read: the status line (4) and the fields (5). As `Expect` is not sent,
   there are no interim responses before it (RFC 9110, 15.2).
4. The body is read. Either its length is announced, or it comes in chunks (6.3), of which only the
   content is passed on. While `MAX_WAITING` bytes have not been taken, nothing more is read, so
   that the bridge waits for a client that reads slowly.
5. The answer ends. The connection is free again, unless the bridge closes it (9.6).

An exchange that is left before the end of its answer aborts its connection. For the bridge, the
client has then disconnected, and it cancels the call.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum

from httptools import HttpParserError, HttpResponseParser

KEEP_LIMIT = 3.0
"""Seconds that a free connection is kept; the bridge closes it after uvicorn's 5."""
MAX_WAITING = 2**18
"""Bytes of an answer that wait to be taken."""

Field = tuple[bytes, bytes]
"""The name and the value of a header field."""


class BridgeLost(Exception):
    """The bridge cannot be reached, or the connection ended before the answer did."""


class State(StrEnum):
    """Where in an exchange a connection is."""

    FREE = "free"
    """Before the first exchange, or after the answer of one."""
    HEAD = "head"
    """The request is sent; the head of the answer has not arrived."""
    BODY = "body"
    """The head has arrived, but not the end."""
    CLOSED = "closed"


class Event(StrEnum):
    """What happens to a connection."""

    SEND = "send"
    HEAD_ENDS = "head ends"
    BODY_PART = "body part"
    END = "end"
    """The answer is complete."""
    CLOSE = "close"
    """Either side closes the connection."""


TRANSITIONS: Mapping[State, Mapping[Event, State]] = {
    State.FREE: {Event.SEND: State.HEAD, Event.CLOSE: State.CLOSED},
    State.HEAD: {Event.HEAD_ENDS: State.BODY, Event.CLOSE: State.CLOSED},
    State.BODY: {
        Event.BODY_PART: State.BODY,
        Event.END: State.FREE,
        Event.CLOSE: State.CLOSED,
    },
    State.CLOSED: {Event.CLOSE: State.CLOSED},
}
"""The next state, by state and event. An event of the parser that is missing here, such as an
answer that nobody asked for, stops the parser, and the connection is closed."""


class Connection(asyncio.Protocol):
    """One connection, and the answer of its current exchange.

    The event loop and the parser write; the task of the exchange reads.
    """

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._state = State.FREE
        self._waiter: asyncio.Future[None] | None = None
        """Set while the task of the exchange waits for the next event."""
        self._begin_answer()

    def _begin_answer(self) -> None:
        self.status = 0
        """The status of the answer."""
        self.fields: list[Field] = []
        """The header fields of the answer."""
        self._parts: list[bytes] = []
        """The part of the body that has arrived and was not taken."""
        self._is_complete = False

    @property
    def is_free(self) -> bool:
        """Whether another exchange can begin."""
        return self._state is State.FREE

    @property
    def has_part(self) -> bool:
        """Whether a part of the body has arrived and was not taken."""
        return bool(self._parts)

    async def send(self, request: Iterable[bytes]) -> None:
        """Send a request, and wait for the head of its answer.

        Args:
            request: The bytes of the request, in pieces.

        Raises:
            BridgeLost: There is no answer.
        """
        self._advance(Event.SEND)
        self._begin_answer()
        self._transport.resume_reading()
        self._transport.writelines(request)
        while self._state is State.HEAD:
            await self._wait()
        if not self.status:
            raise BridgeLost

    async def take(self) -> bytes:
        """Wait for more of the body, and return what has arrived; b"" at the end.

        Raises:
            BridgeLost: The connection ended before the answer.
        """
        while not self._parts and self._state is State.BODY:
            await self._wait()
        if not self._parts and not self._is_complete:
            raise BridgeLost
        taken = b"".join(self._parts)
        self._parts.clear()
        self._transport.resume_reading()
        return taken

    def close(self) -> None:
        """Close the connection at once, whatever is under way."""
        self._advance(Event.CLOSE)
        self._transport.abort()

    def _advance(self, event: Event) -> None:
        self._state = TRANSITIONS[self._state][event]

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- called by the event loop and the parser ---------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin free."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse data; the callbacks below advance the state."""
        try:
            self._parser.feed_data(data)
        except HttpParserError:
            self.close()
        if sum(map(len, self._parts)) >= MAX_WAITING:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the bridge's log has it
        """End the exchange."""
        self._advance(Event.CLOSE)
        self._wake()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a field (step 3)."""
        self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        """End the head (step 3)."""
        self._advance(Event.HEAD_ENDS)
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Note a part of the body (step 4)."""
        self._advance(Event.BODY_PART)
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """End the answer (step 5)."""
        self._advance(Event.END)
        self._is_complete = True
        if not self._parser.should_keep_alive():
            self.close()


class BridgeConnections:
    """The connections to one bridge; belongs to the event loop.

    Args:
        address: The path of its Unix socket, or its port on loopback.
        token: The bearer token that it asks for.
        keep_limit: Seconds that a free connection is kept.
    """

    def __init__(self, address: str | int, token: str, *, keep_limit: float = KEEP_LIMIT) -> None:
        self._address, self._keep_limit = address, keep_limit
        self._own_fields = b"Host: localhost\r\nAuthorization: Bearer %b\r\n" % token.encode()
        self._free: list[tuple[float, Connection]] = []
        """When a connection became free, and the connection; the last one is at the end."""

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, fields: Iterable[Field], body: bytes
    ) -> AsyncIterator[Connection]:
        """Send a request; the block gets the head of the answer, and takes the body.

        Args:
            method: The method.
            path: The path, with everything escaped.
            fields: The header fields, besides those of the connection. They are without line
                breaks, as tornado reads them.
            body: The body; empty for none.

        Raises:
            BridgeLost: The bridge cannot be reached, or the connection ended before the answer.
        """
        lines = [b"%b: %b\r\n" % field for field in fields]
        if body or method == "POST":
            lines.append(b"Content-Length: %d\r\n" % len(body))
        start = f"{method} {path} HTTP/1.1\r\n".encode()
        connection = self._take_free() or await self._open()
        try:
            await connection.send([start, self._own_fields, *lines, b"\r\n", body])
            yield connection
        finally:
            if connection.is_free:
                self._free.append((asyncio.get_running_loop().time(), connection))
            else:
                connection.close()

    def close(self) -> None:
        """Close the free connections; the others end with their exchanges."""
        while self._free:
            self._free.pop()[1].close()

    def _take_free(self) -> Connection | None:
        """Return the connection that became free last, if it can be used (step 1)."""
        now = asyncio.get_running_loop().time()
        while self._free:
            since, connection = self._free.pop()
            if now - since > self._keep_limit:  # the others have been free for even longer
                connection.close()
                self.close()
            elif connection.is_free:
                return connection
        return None

    async def _open(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            if isinstance(self._address, str):
                _, connection = await loop.create_unix_connection(Connection, self._address)
            else:
                _, connection = await loop.create_connection(Connection, "127.0.0.1", self._address)
        except OSError as error:
            raise BridgeLost from error
        return connection
