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
import ssl
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import cast

import anyio
from starlette.types import Scope
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.transports.held_heads import HeldHeads

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
        self._last_moments: dict[int, asyncio.TimerHandle] = {}
        """When those are cut off that are being ended."""
        self._max_strangers = min(MAX_STRANGERS, _count_descriptors() // 4)

    def admit(self, scope: Scope) -> None:
        """Note that the gate lets a request in: its connection is no stranger."""
        self.settle(scope["state"][_STATE_KEY])

    def take_number(self) -> int:
        """Return the number of a new connection."""
        return next(self._numbers)

    async def accept(self, listener: socket.socket, config: Config, state: ServerState) -> None:
        """Serve whoever connects, until this is cancelled.

        Args:
            listener: The socket that clients connect to.
            config: uvicorn's, loaded.
            state: uvicorn's.
        """
        make = partial(_Connection, self, config, state)
        if config.ssl is not None:
            await self._accept_encrypted(listener, config.ssl, make, config.backlog)
            return
        # A third of the time of what encryption needs, which counts in a flood of connections.
        loop = asyncio.get_running_loop()
        if listener.family == getattr(socket, "AF_UNIX", None):
            server = await loop.create_unix_server(make, sock=listener, backlog=config.backlog)
        else:
            server = await loop.create_server(make, sock=listener, backlog=config.backlog)
        try:
            await anyio.sleep_forever()
        finally:
            server.close()

    async def _accept_encrypted(
        self,
        listener: socket.socket,
        encryption: ssl.SSLContext,
        make: Callable[[], "_Connection"],
        backlog: int,
    ) -> None:
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        listener.listen(backlog)
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    client, address = await loop.sock_accept(listener)
                except OSError:  # the client has gone, or there are no descriptors left
                    await anyio.sleep(_ACCEPT_PAUSE)
                else:
                    tasks.start_soon(self._shake_hands, client, address[:2], make(), encryption)

    async def _shake_hands(
        self,
        client: socket.socket,
        address: tuple[str, int],
        connection: "_Connection",
        encryption: ssl.SSLContext,
    ) -> None:
        """Encrypt a connection; the event loop's own server has no bounds on handshakes."""
        with anyio.CancelScope() as scope:
            self.add(connection.number, lambda *_: scope.cancel())
            try:
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: connection, client, ssl=encryption
                )
            except OSError:  # it is no TLS, or the client has gone
                self.settle(connection.number)
            except Exception as error:  # noqa: BLE001 - the others are served, whatever it is
                self.settle(connection.number)
                self.refusals.note(address, f"of an unexpected {type(error).__name__}")

    def add(self, number: int, end: Callable[[HTTPStatus, str], object]) -> None:
        """Note a new connection, in the place of the oldest if there are too many.

        Args:
            number: Of the connection. If it is there already, its handshake has ended.
            end: Ends the connection, for a reason.
        """
        if number in self._strangers:
            self._strangers[number].end = end
            return
        deadline = asyncio.get_running_loop().call_later(PROOF_LIMIT, self._expire, number)
        self._strangers[number] = _Stranger(end, deadline)
        if len(self._strangers) > self._max_strangers:
            _, stranger = self._strangers.popitem(last=False)
            stranger.deadline.cancel()
            stranger.end(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections")

    def _expire(self, number: int) -> None:
        stranger = self._strangers.pop(number)
        stranger.end(HTTPStatus.REQUEST_TIMEOUT, f"it has not come within {PROOF_LIMIT:g} s")

    def settle(self, number: int) -> None:
        """Note that a connection has shown the token, or has ended."""
        stranger = self._strangers.pop(number, None)
        if stranger is not None:
            stranger.deadline.cancel()
        last_moment = self._last_moments.pop(number, None)
        if last_moment is not None:
            last_moment.cancel()

    def abort_soon(self, number: int, transport: asyncio.Transport) -> None:
        """Cut a connection off in a second, unless the gate lets its request through till then."""
        loop = asyncio.get_running_loop()
        self._last_moments[number] = loop.call_later(_CLOSE_LIMIT, transport.abort)


@dataclass
class _Stranger:
    """A connection that has not shown the token."""

    end: Callable[[HTTPStatus, str], object]
    deadline: asyncio.TimerHandle


class _Connection(HttpToolsProtocol):
    """One connection, of which uvicorn makes requests; their scopes have its number.

    A number, since a reference would be a circle, and the memory of a flood would wait for the
    garbage collector.
    """

    def __init__(self, connections: Connections, config: Config, state: ServerState) -> None:
        self.number = connections.take_number()
        super().__init__(config, state, {_STATE_KEY: self.number})
        self._connections = connections
        self._is_in_head = False
        self._is_ending = False
        """Whether what comes in is not read any more."""
        self._has_progress = False
        """Whether the data at hand has ended a head or a request, or was part of a body."""
        self._unread = 0
        """Bytes since such data."""
        self._problem = (HTTPStatus.BAD_REQUEST, "it is not valid HTTP")
        """What to say if the parser cannot go on."""

    def end(self, status: HTTPStatus, reason: str) -> None:
        """Refuse what comes in, and close within a second."""
        self._connections.abort_soon(self.number, self.transport)
        self._refuse(status, reason)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        together = HeldHeads(cast("asyncio.Transport", transport))
        super().connection_made(cast("asyncio.Transport", together))
        self._connections.add(self.number, self.end)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.settle(self.number)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        self._has_progress = False
        super().data_received(data)
        self._unread = 0 if self._has_progress else self._unread + len(data)
        if self._unread > MAX_HEAD:
            self._refuse(*self._describe_excess())

    def _describe_excess(self) -> tuple[HTTPStatus, str]:
        if not self._is_in_head:
            return HTTPStatus.BAD_REQUEST, "what surrounds its body is too long"
        if not self.headers and len(self.url) > MAX_HEAD // 2:
            return HTTPStatus.REQUEST_URI_TOO_LONG, "its address is too long"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "its head is too long"

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - says less
        self._refuse(*self._problem)

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
        # As uvicorn does, but for the whitespace around a value, which HTTP says is no part of it.
        name, value = name.lower(), value.strip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

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
