"""The connections of HTTP clients: what one costs, and how many strangers and callers may have.

Runs on the bridge's event loop, between the socket and uvicorn. Anybody on the host can connect, so
until the gate lets a request of it through, a connection is a stranger and costs little: the head
of a request has at most `MAX_HEAD` bytes and `MAX_HEADERS` fields, there is one request at a time,
and after `PROOF_LIMIT` seconds it ends. There are at most `MAX_STRANGERS`: the oldest makes room
for a new one, so whoever has the token can always connect. What the token permits is the business
of the gate; bodies are bounded behind it (`large_requests`).

Whoever connects, sends and closes again costs next to nothing: the first request of a connection
waits until its client had the time to go, and a stranger's ends with its connection. Nothing tells
a flood's connections from others, as all of a machine have the same address.

A connection that has shown a token belongs to its caller, who may have so many; a guest has few,
and all guests leave some to the user. It stays the caller's until the last request over it has been
answered, even if the client has gone. Each request has to come, and each answer to be taken, at a
rate that the slowest line has: a connection on which nothing moves ends.

uvicorn's own protocol on httptools has none of these bounds: 22 MB of requests at once took 1.2 GB.
The one on h11 has some, but a call takes 1.1 of the time, and it reads what httptools refuses: a
length beside chunks, lines that end in a bare LF. So this is httptools with bounds, everywhere.

Theory of operation of the reader
---------------------------------
httptools parses (RFC 9112, https://www.rfc-editor.org/rfc/rfc9112.html) and uvicorn answers; the
reader (`_Connection`) only follows where in a request the data is, by the table `MOVES`, and says
when to stop. Every move is a callback of the parser, but for `Move.REFUSE`:

1. A request begins (section 2.2; empty lines before it belong to none). The last one must have been
   answered: pipelining is optional for servers (9.3.2), and is refused here.
2. Its head is read: the request line (3) and the fields (5), of which there are at most
   `MAX_HEADERS`, and `MAX_HEAD` bytes in all. The answer to more is 414 or 431 (RFC 6585).
3. The head ends. The version must be 1.0 or 1.1 (2.3). Who asks for another protocol (RFC 9110,
   7.8) must not send a body: the parser would take it for the next request.
4. The body is read, whose length is either announced or in chunks, never both (6.3). What surrounds
   it is bounded as a head is: extensions of chunks (7.1.1) and trailers (7.1.2), which are ignored.
5. The request ends, and the next one may begin.

A refusal ends the reading for good (9.6): what can still be answered is, the connection closes when
that has been written, and is cut off `_CLOSE_LIMIT` later.
"""

import asyncio
import socket
import ssl
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, cast

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.access.shares import Shares
from mcp_notebook.bridge.server.protocol.client_request import UNREAD_KEY, UnreadAnswers

try:
    import fcntl
    import resource
    import termios
except ImportError:  # Windows, whose sockets are no file descriptors
    resource = None  # type: ignore[assignment]
    termios = None  # type: ignore[assignment]

MAX_HEAD = 2**16
"""Bytes in a row that may be neither a whole head of a request nor part of a body."""
MAX_HEADERS = 256
"""Header fields of a request."""
PROOF_LIMIT = 10.0
"""Seconds after which a connection ends unless a request with the token has come."""
MAX_STRANGERS = 256
"""Connections without the token at a time, but no more than a quarter of the descriptors."""
MAX_CALLER_CONNECTIONS = 128
"""Connections of one guest at a time, but no more than an eighth of the descriptors."""
MOVE_LIMIT = 60.0
"""Seconds within which a request has to come whole, or so much more of it as `MOVE`; and within
which a client has to take something of an answer that waits."""
MOVE = 2**19
"""Bytes of a request that are enough for further `MOVE_LIMIT` seconds."""
_CLOSE_LIMIT = 1.0
"""Seconds that a client has to read why its connection ends."""
_TURNS_TO_GO = 3
"""Turns of the event loop after which it knows that a client has closed its connection when it had
sent its request: it reads the request, reads the end, and ends the connection."""
_ACCEPT_PAUSE = 0.1
"""Seconds until the next attempt if a connection could not be accepted."""
_HEAD_START = b"HTTP/1.1 "
_VERSIONS = ("1.0", "1.1")
_STATE_KEY = "connection"


class ReaderState(StrEnum):
    """Where in a request the reader of a connection is."""

    BETWEEN = "between"
    """Before the first request, or behind the end of one."""
    HEAD = "head"
    BODY = "body"
    """Behind the head: also where the body has no bytes."""
    REFUSED = "refused"
    """Nothing that comes is read any more."""


class Move(StrEnum):
    """What the parser has found, or that the reading ends."""

    BEGIN = "begin"
    HEAD_ENDS = "head ends"
    BODY_PART = "body part"
    END = "end"
    REFUSE = "refuse"


MOVES: Mapping[ReaderState, Mapping[Move, ReaderState]] = {
    ReaderState.BETWEEN: {Move.BEGIN: ReaderState.HEAD, Move.REFUSE: ReaderState.REFUSED},
    ReaderState.HEAD: {Move.HEAD_ENDS: ReaderState.BODY, Move.REFUSE: ReaderState.REFUSED},
    ReaderState.BODY: {
        Move.BODY_PART: ReaderState.BODY,
        Move.END: ReaderState.BETWEEN,
        Move.REFUSE: ReaderState.REFUSED,
    },
    ReaderState.REFUSED: {},
}
"""Each state's moves, and where they lead. A move that is not here is a bug of the parser or ours,
and makes the parser give up: the request is refused as invalid."""
_PROGRESS = frozenset({Move.HEAD_ENDS, Move.BODY_PART, Move.END})
"""Moves after which a request is nearer to its end: the bound of `MAX_HEAD` begins anew."""


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
        descriptors = _count_descriptors()
        self._max_strangers = min(MAX_STRANGERS, descriptors // 4)
        in_all = descriptors * 5 // 8  # the last eighth is for files, and for links to kernels
        self._shares = Shares(
            "connections",
            per_caller=min(MAX_CALLER_CONNECTIONS, descriptors // 8),
            in_all=in_all,
            for_user=in_all,
        )
        self._callers: dict[int, Caller] = {}
        """Whose those are that have shown a token."""

    def admit(self, scope: Scope, caller: Caller) -> str | None:
        """Give a connection to the caller whose request the gate lets in.

        Returns:
            Why the caller cannot have it; None if it can.
        """
        number = scope["state"][_STATE_KEY]
        last = self._callers.get(number)
        if last is not None and last.owns == caller.owns:
            return None
        if last is None and number not in self._strangers and number not in self._last_moments:
            return None  # it has ended meanwhile
        lack = self._shares.explain_lack(caller)
        if lack is not None:
            return lack
        self._release(number)
        self._shares.add(caller)
        self._callers[number] = caller
        self._forget_stranger(number)
        return None

    def is_known(self, number: int) -> bool:
        """Return whether a connection has shown a token."""
        return number in self._callers

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
            except OSError:  # it does not speak TLS, or the client has gone
                self.forget(connection.number)
            except Exception as error:  # noqa: BLE001 - the others are served, whatever it is
                self.forget(connection.number)
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

    def forget(self, number: int) -> None:
        """Note that a connection has ended."""
        self._release(number)
        self._forget_stranger(number)

    def _release(self, number: int) -> None:
        caller = self._callers.pop(number, None)
        if caller is not None:
            self._shares.remove(caller)

    def _forget_stranger(self, number: int) -> None:
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
        self._unread_answers = UnreadAnswers()
        super().__init__(config, state, {_STATE_KEY: self.number, UNREAD_KEY: self._unread_answers})
        self._next_app, self.app = self.app, self._serve
        self._task: asyncio.Task[object] | None = None
        """Serves the last request, while it does."""
        self._is_lost = False
        self._connections = connections
        self._reading = ReaderState.BETWEEN
        self._last_move: Move | None = None
        """The last move in the data at hand that was one of `_PROGRESS`; None: there was none."""
        self._unread = 0
        """Bytes since the last such move."""
        self._since: float | None = None
        """When a request began that is not whole, or enough of it had come; None: it is whole."""
        self._came = 0
        """Bytes of it after that."""
        self._request_limit: asyncio.TimerHandle | None = None
        """Looks whether it comes. Not cancelled when it has: most requests come in two pieces."""
        self._answer_limit: asyncio.TimerHandle | None = None
        """Ends it unless the answer is taken."""
        self._problem = (HTTPStatus.BAD_REQUEST, "it is not valid HTTP")
        """What to say if the parser cannot go on."""

    def end(self, status: HTTPStatus, reason: str) -> None:
        """Refuse what comes in, and close within a second."""
        self._connections.abort_soon(self.number, self.transport)
        self._refuse(status, reason)

    def _move(self, move: Move) -> None:
        self._reading = MOVES[self._reading][move]
        if move in _PROGRESS:
            self._last_move = move

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Read no more, answer what can be answered, and close."""
        if self._reading is ReaderState.REFUSED or self.transport.is_closing():
            return
        was_in_head = self._reading is ReaderState.HEAD
        self._move(Move.REFUSE)
        is_open = self.cycle is not None and not self.cycle.response_complete
        # 1. Who asked for something hears why it gets nothing; an idle connection just ends.
        if was_in_head or is_open:
            self._connections.refusals.note(self.client, reason)
        # 2. A request that has come whole gets its answer, which closes the connection.
        if is_open and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        # 3. Any other gets the refusal, unless its answer has begun.
        if was_in_head or (is_open and not self.cycle.response_started):
            self.transport.write(_format_refusal(status, reason))
        self.transport.close()

    def _expect_rest(self) -> None:
        """Give a request that is not whole its time."""
        self._came = 0
        self._since = self.loop.time()
        if self._request_limit is None:
            self._request_limit = self.loop.call_later(MOVE_LIMIT, self._check_request)

    def _check_request(self) -> None:
        self._request_limit = None
        is_answered = self.cycle is not None and not self.cycle.response_complete
        if is_answered and not self.cycle.more_body:
            self._since = None  # what came after it began no request; uvicorn ends idle ones
        if self._since is None:
            return
        left = self._since + MOVE_LIMIT - self.loop.time()
        if left > 0:
            self._request_limit = self.loop.call_later(left, self._check_request)
        elif self._came >= MOVE or self.flow.read_paused:
            self._expect_rest()
        else:
            self.end(HTTPStatus.REQUEST_TIMEOUT, "it comes too slowly")

    def _expect_reading(self, before: int) -> None:
        """Give a client its time to take some of what waits for it."""
        self._answer_limit = self.loop.call_later(MOVE_LIMIT, self._check_answer, before)

    def _count_waiting(self) -> int:
        """Return how many bytes wait for the client, here and in the system's buffer.

        The system takes more from here only when a third of its megabytes has left, which may take
        a slow client minutes.
        """
        return self.transport.get_write_buffer_size() + _count_unsent(self.transport)

    def _check_answer(self, before: int) -> None:
        now = self._count_waiting()
        if now < before:
            self._expect_reading(now)
        else:
            self._connections.refusals.note(self.client, "it does not take the answer")
            self.transport.abort()

    # -- called by the event loop and the parser ---------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        together = _HeldHeads(cast("asyncio.Transport", transport))
        super().connection_made(cast("asyncio.Transport", together))
        self._connections.add(self.number, self.end)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self.app = cast("ASGIApp", None)  # else each would wait for the garbage collector
        if self._task is None:
            self._connections.forget(self.number)
        elif not self._connections.is_known(self.number):
            self._task.cancel()
        for limit in (self._request_limit, self._answer_limit):
            if limit is not None:
                limit.cancel()
        # Who closes with something unread resets the connection.
        if exc is not None or (self.cycle is not None and not self.cycle.response_complete):
            self._unread_answers.lose()
        super().connection_lost(exc)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is the first one and its client has gone."""
        if not self._connections.is_known(self.number):
            for _ in range(_TURNS_TO_GO):
                await asyncio.sleep(0)
            if self._is_lost:
                return
        task = self._task = asyncio.current_task()
        try:
            await self._next_app(scope, receive, send)
        finally:
            if self._task is task:  # the next request may begin as soon as this one is answered
                self._task = None
                if self._is_lost:
                    self._connections.forget(self.number)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading(self._count_waiting())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._answer_limit is not None:
            self._answer_limit.cancel()
            self._answer_limit = None

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size() and self._answer_limit is None:
            self._expect_reading(self._count_waiting())  # only then is the connection closed

    def data_received(self, data: bytes) -> None:
        if self._reading is ReaderState.REFUSED:
            return
        # 1. Parse it: the callbacks below move.
        self._last_move = None
        super().data_received(data)
        # 2. Time: a request that is not whole has `MOVE_LIMIT` for each `MOVE` of its bytes.
        if self._last_move is Move.END:
            self._since = None
        elif self._since is None:
            self._expect_rest()
        else:
            self._came += len(data)
        # 3. Space: only bodies may be long without a move.
        self._unread = 0 if self._last_move is not None else self._unread + len(data)
        if self._unread > MAX_HEAD:
            self._refuse(*self._describe_excess())

    def _describe_excess(self) -> tuple[HTTPStatus, str]:
        if self._reading is not ReaderState.HEAD:
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
        self._unread_answers.note_read()
        self._move(Move.BEGIN)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is not ReaderState.HEAD:
            return  # a trailer is no header
        if len(self.headers) >= MAX_HEADERS:
            self._stop_parsing(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "its head has too many fields"
            )
        # As uvicorn does, but without the whitespace around a value (RFC 9112, section 5.1).
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
        self._move(Move.HEAD_ENDS)

    def on_body(self, body: bytes) -> None:
        self._move(Move.BODY_PART)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._move(Move.END)
        super().on_message_complete()

    def _stop_parsing(self, status: HTTPStatus, reason: str) -> None:
        """Make the parser give up, whatever more there is in the data at hand."""
        self._problem = status, reason
        raise ValueError(reason)


class _HeldHeads:
    """A connection's transport that writes the head of a response together with what follows it.

    uvicorn writes a head and a body one after the other, and each write is a system call that may
    wake the client.

    Args:
        transport: The transport.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data; a head waits for the next write, or for the loop's next turn."""
        if not data:
            return  # asyncio's transport, from Python 3.12 on, would never be done with it
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines([head, data])
        elif data.startswith(_HEAD_START):
            self._head = data
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection when everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)


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


def _count_unsent(transport: asyncio.Transport) -> int:
    """Return how many bytes in the system's buffer the client's system has not taken, or 0."""
    if termios is None:
        return 0
    try:
        answer = fcntl.ioctl(transport.get_extra_info("socket"), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):  # it does not say, or the socket is closed
        return 0
    return int.from_bytes(answer, sys.byteorder)


def _count_descriptors() -> int:
    """Return how many files and sockets this process may have."""
    if resource is None:
        return 4 * MAX_STRANGERS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4 * MAX_STRANGERS if limit == resource.RLIM_INFINITY else limit
