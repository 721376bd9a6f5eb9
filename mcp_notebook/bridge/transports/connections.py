"""The connections of HTTP clients: what one of them costs, and all that have not shown the token.

Runs on the bridge's event loop, between the socket and uvicorn. Anybody on the host can connect, so
until the gate lets a request of it through, a connection is a stranger and costs little: the head
of a request has at most `MAX_HEAD` bytes and `MAX_HEADERS` fields, there is one request at a time,
and after `PROOF_LIMIT` seconds it ends. There are at most `MAX_STRANGERS`: the oldest makes room
for a new one, so whoever has the token can always connect. What the token permits is the business
of the gate; bodies are bounded behind it (`large_requests`).

uvicorn's own protocol on httptools has none of these bounds: 22 MB of requests at once took 1.2 GB.
The one on h11 has some, but a call takes 1.1 of the time, and it reads what httptools refuses: a
length beside chunks, lines that end in a bare LF. So this is httptools with bounds, everywhere.
"""

import asyncio
import socket
from collections import OrderedDict
from functools import partial
from http import HTTPStatus
from itertools import count

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mcp_notebook.bridge.access.refusals import RefusalLog

try:
    import resource
except ImportError:  # Windows, whose sockets are no file descriptors
    resource = None  # type: ignore[assignment]

MAX_HEAD = 2**16
"""Bytes in a row that may be neither a whole head of a request nor part of a body."""
MAX_HEADERS = 256
"""Header fields of a request."""
PROOF_LIMIT = 10.0
"""Seconds after which a connection ends unless a request with the token has come."""
MAX_STRANGERS = 256
"""Connections without the token at a time, but no more than a quarter of the descriptors."""
_CLOSE_LIMIT = 1.0
"""Seconds that a client has to read why its connection ends."""
_ACCEPT_PAUSE = 0.1
"""Seconds until the next attempt if a connection could not be accepted."""
_VERSIONS = ("1.0", "1.1")
_STATE_KEY = "connection"


class Connections:
    """The connections of one endpoint; belongs to the event loop.

    Args:
        refusals: Gets a line about what is refused.
    """

    def __init__(self, refusals: RefusalLog) -> None:
        self.refusals = refusals
        self._numbers = count()
        self._strangers: OrderedDict[int, _Stranger] = OrderedDict()
        """Those that have not shown the token, oldest first."""
        self._ending: dict[int, _Stranger] = {}
        """Those that had to make room, for the second that they still have."""
        self._max_strangers = min(MAX_STRANGERS, _count_descriptors() // 4)

    def admit(self, app: ASGIApp) -> ASGIApp:
        """Wrap the app behind the gate: a connection whose request gets there is no stranger."""

        async def admitting_app(scope: Scope, receive: Receive, send: Send) -> None:
            self.settle(scope["state"][_STATE_KEY])
            await app(scope, receive, send)

        return admitting_app

    async def accept(self, listener: socket.socket, config: Config, state: ServerState) -> None:
        """Serve whoever connects, until this is cancelled.

        uvicorn leaves this to the event loop, which shows it no connection before the end of the
        TLS handshake.

        Args:
            listener: The socket that clients connect to.
            config: uvicorn's, loaded.
            state: uvicorn's.
        """
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        listener.listen(config.backlog)
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    client, address = await loop.sock_accept(listener)
                except OSError:  # the client has gone, or there are no descriptors left
                    await anyio.sleep(_ACCEPT_PAUSE)
                else:
                    tasks.start_soon(self._attend, client, address[:2], config, state)

    async def _attend(
        self, client: socket.socket, address: tuple[str, int], config: Config, state: ServerState
    ) -> None:
        try:
            await self._await_token(client, config, state)
        except Exception as error:  # noqa: BLE001 - the others are served, whatever it is
            self.refusals.note(address, f"of an unexpected {type(error).__name__}")

    async def _await_token(self, client: socket.socket, config: Config, state: ServerState) -> None:
        """Give a connection its time to show the token, and end it if it does not."""
        number = next(self._numbers)
        connection = None
        with anyio.move_on_after(PROOF_LIMIT) as limit:
            stranger = self._add(number, limit)
            try:
                _, connection = await asyncio.get_running_loop().connect_accepted_socket(
                    partial(_Connection, self, number, config, state), client, ssl=config.ssl
                )
                await stranger.is_settled.wait()
            except OSError:  # no TLS, or the client has gone
                pass
        if limit.cancelled_caught and connection is not None:
            if stranger.is_surplus:
                connection.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections")
            else:
                reason = f"it has not come within {PROOF_LIMIT:g} s"
                connection.refuse(HTTPStatus.REQUEST_TIMEOUT, reason)
            with anyio.move_on_after(_CLOSE_LIMIT) as close_limit:
                await stranger.is_settled.wait()  # the gate may still let its request through
            if close_limit.cancelled_caught:
                connection.transport.abort()
        self.settle(number)

    def _add(self, number: int, limit: anyio.CancelScope) -> "_Stranger":
        """Add a new connection, in the place of the oldest if there are too many."""
        stranger = self._strangers[number] = _Stranger(limit)
        if len(self._strangers) > self._max_strangers:
            oldest_number, oldest = self._strangers.popitem(last=False)
            self._ending[oldest_number] = oldest
            oldest.is_surplus = True
            oldest.limit.cancel()
        return stranger

    def settle(self, number: int) -> None:
        """Note that a connection has shown the token, or has ended."""
        stranger = self._strangers.pop(number, None) or self._ending.pop(number, None)
        if stranger is not None:
            stranger.is_settled.set()


class _Stranger:
    """A connection that has not shown the token; `limit` ends the wait for that."""

    def __init__(self, limit: anyio.CancelScope) -> None:
        self.limit = limit
        self.is_settled = anyio.Event()
        self.is_surplus = False
        """Whether it has to make room for a newer one."""


class _Connection(HttpToolsProtocol):
    """One connection, of which uvicorn makes requests; their scopes have its number.

    A number, since a reference would be a circle, and the memory of a flood would wait for the
    garbage collector.
    """

    def __init__(
        self, connections: Connections, number: int, config: Config, state: ServerState
    ) -> None:
        super().__init__(config, state, {_STATE_KEY: number})
        self._connections = connections
        self._number = number
        self._is_in_head = False
        self._is_ending = False
        """Whether what comes in is not read any more."""
        self._has_progress = False
        """Whether the data at hand has ended a head or a request, or was part of a body."""
        self._unread = 0
        """Bytes since such data."""
        self._problem = (HTTPStatus.BAD_REQUEST, "it is not valid HTTP")
        """What to say if the parser cannot go on."""

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Read no more, answer what can be answered, and close."""
        if self._is_ending or self.transport.is_closing():
            return
        self._is_ending = True
        is_open = self.cycle is not None and not self.cycle.response_complete
        if self._is_in_head or is_open:
            self._connections.refusals.note(self.client, reason)
        if is_open and not self.cycle.more_body:
            self.cycle.keep_alive = False  # it gets its answer, and that closes the connection
            return
        if self._is_in_head or (is_open and not self.cycle.response_started):
            self.transport.write(_format_refusal(status, reason))
        self.transport.close()

    # -- called by the event loop and the parser ---------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.settle(self._number)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        self._has_progress = False
        super().data_received(data)
        self._unread = 0 if self._has_progress else self._unread + len(data)
        if self._unread > MAX_HEAD:
            self.refuse(*self._describe_excess())

    def _describe_excess(self) -> tuple[HTTPStatus, str]:
        if not self._is_in_head:
            return HTTPStatus.BAD_REQUEST, "what surrounds its body is too long"
        if not self.headers and len(self.url) > MAX_HEAD // 2:
            return HTTPStatus.REQUEST_URI_TOO_LONG, "its address is too long"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "its head is too long"

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - says less
        self.refuse(*self._problem)

    def on_message_begin(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_parsing(HTTPStatus.BAD_REQUEST, "it came before the answer to the last one")
        super().on_message_begin()
        self._is_in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return  # a trailer is no header
        if len(self.headers) >= MAX_HEADERS:
            self._stop_parsing(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "its head has too many fields"
            )
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.get_http_version() not in _VERSIONS:
            self._stop_parsing(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "it is not HTTP/1.1")
        if self.parser.should_upgrade() and any(map(_announces_body, self.headers)):
            # The parser would take the body for the next request.
            self._stop_parsing(
                HTTPStatus.BAD_REQUEST, "it has a body, but asks for another protocol"
            )
        super().on_headers_complete()
        self._is_in_head = False
        self._has_progress = True

    def on_body(self, body: bytes) -> None:
        self._has_progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_progress = True
        super().on_message_complete()

    def _stop_parsing(self, status: HTTPStatus, reason: str) -> None:
        """Make the parser give up, whatever more there is in the data at hand."""
        self._problem = status, reason
        raise ValueError(reason)


def _announces_body(header: tuple[bytes, bytes]) -> bool:
    name, value = header
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")


def _format_refusal(status: HTTPStatus, reason: str) -> bytes:
    body = f"The request is refused: {reason}."
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "content-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
        f"{body}"
    ).encode()


def _count_descriptors() -> int:
    """Return how many files and sockets this process may have."""
    if resource is None:
        return 4 * MAX_STRANGERS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4 * MAX_STRANGERS if limit == resource.RLIM_INFINITY else limit
