"""Reads one HTTP connection, with bounds on what a client may send.

Runs on the bridge's event loop, between the socket and uvicorn. The head of a request has at most
`MAX_HEAD` bytes and `MAX_HEADERS` fields; there is one request at a time; each request must arrive,
and each answer be read, at the rate of a slow line at least. `connections` limits the number of
connections; bodies are bounded behind the gate (`request_bodies`).

A client that connects, sends and disconnects costs next to nothing: the first request of a
connection waits for a few turns of the event loop, in which a disconnect would be noticed, and the
request of an unauthenticated connection ends with the connection.

uvicorn's own protocol on httptools has none of these bounds: 22 MB of requests at once took 1.2 GB.
The one on h11 has some, but takes 1.1 times as long for a call, and accepts what httptools refuses:
a length together with chunks, and lines that end in a bare LF. So this is httptools with bounds.

Theory of operation
-------------------
httptools parses (RFC 9112, https://www.rfc-editor.org/rfc/rfc9112.html) and uvicorn answers. The
reader (`HttpConnection`) tracks where in a request the data is, by the table `TRANSITIONS`, and
decides when to stop. Every event is a callback of the parser, except `ParserEvent.REFUSE`:

1. A request begins (section 2.2; empty lines before it are skipped). The previous one must have
   been answered: pipelining is optional for servers (9.3.2), and is refused here.
2. Its head is read: the request line (3) and at most `MAX_HEADERS` fields (5), of `MAX_HEAD` bytes
   in all. More is refused with 414 or 431 (RFC 6585).
3. The head ends. The version must be 1.0 or 1.1 (2.3). A request to change the protocol (RFC 9110,
   7.8) must not have a body: the parser would read the body as the next request.
4. The body is read. Its length is either announced or in chunks, never both (6.3). Chunk extensions
   (7.1.1) and trailers (7.1.2) are ignored, and bounded like a head.
5. The request ends, and the next one may begin.

After a refusal nothing more is read (9.6). A complete request is still answered; the connection
closes when the answer is written, and is aborted after `ConnectionLimits.close_timeout`.
"""

import asyncio
import sys
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import cast

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mcp_notebook.bridge.asgi import ASGIApp, Receive, Scope, Send
from mcp_notebook.bridge.transports.connections import NUMBER_KEY, Connections

try:
    import fcntl
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

MAX_HEAD = 2**16
"""Bytes of a request's head, or of chunk extensions and trailers in a row."""
MAX_HEADERS = 256
"""Header fields of a request."""
_DISCONNECT_TURNS = 3
"""Turns of the event loop after which the disconnect of a client that closed its connection right
after its request is known: read the request, read the end, close the connection."""
_VERSIONS = ("1.0", "1.1")


class ReaderState(StrEnum):
    """Where in a request the reader is."""

    BETWEEN = "between"
    """Before the first request, or after the end of one."""
    HEAD = "head"
    BODY = "body"
    """After the head, even if the body is empty."""
    REFUSED = "refused"
    """Nothing more is read."""


class ParserEvent(StrEnum):
    """An event of the parser, or the refusal of a request."""

    BEGIN = "begin"
    HEAD_ENDS = "head ends"
    BODY_PART = "body part"
    END = "end"
    REFUSE = "refuse"


TRANSITIONS: Mapping[ReaderState, Mapping[ParserEvent, ReaderState]] = {
    ReaderState.BETWEEN: {
        ParserEvent.BEGIN: ReaderState.HEAD,
        ParserEvent.REFUSE: ReaderState.REFUSED,
    },
    ReaderState.HEAD: {
        ParserEvent.HEAD_ENDS: ReaderState.BODY,
        ParserEvent.REFUSE: ReaderState.REFUSED,
    },
    ReaderState.BODY: {
        ParserEvent.BODY_PART: ReaderState.BODY,
        ParserEvent.END: ReaderState.BETWEEN,
        ParserEvent.REFUSE: ReaderState.REFUSED,
    },
    ReaderState.REFUSED: {},
}
"""The next state, by state and event. An event that is missing here is a bug, in the parser or
here; it stops the parser, and the request is refused as invalid."""
_PROGRESS = frozenset({ParserEvent.HEAD_ENDS, ParserEvent.BODY_PART, ParserEvent.END})
"""Events that bring a request nearer to its end; the count towards `MAX_HEAD` starts over."""


class HttpConnection(HttpToolsProtocol):
    """Reads one connection; uvicorn turns what it reads into ASGI requests.

    A request's scope holds the connection's number instead of a reference: a reference cycle would
    keep the memory of a flood until the garbage collector runs.

    Args:
        connections: All connections of the endpoint.
        config: uvicorn's configuration.
        state: uvicorn's state.
    """

    def __init__(self, connections: Connections, config: Config, state: ServerState) -> None:
        self.number = connections.take_number()
        super().__init__(config, state, {NUMBER_KEY: self.number})
        self._next_app, self.app = self.app, self._serve
        self._task: asyncio.Task[object] | None = None
        """The task that serves the current request."""
        self._is_lost = False
        self.all_connections = connections
        """Those of the endpoint; uvicorn has another `connections`."""
        self._limits = connections.limits
        self._state = ReaderState.BETWEEN
        self._last_progress: ParserEvent | None = None
        """The last event of `_PROGRESS` in the current data; None: there was none."""
        self._unread = 0
        """Bytes since the last such event."""
        self._since: float | None = None
        """When an incomplete request began or last progressed; None: no request is incomplete."""
        self._received = 0
        """Bytes of the request since then."""
        self._request_timer: asyncio.TimerHandle | None = None
        """Checks the progress of a request. It keeps running when the request is complete:
        restarting it would cost more, as most requests arrive in two pieces."""
        self._answer_timer: asyncio.TimerHandle | None = None
        """Aborts the connection unless the client reads."""
        self._problem = (HTTPStatus.BAD_REQUEST, "it is not valid HTTP")
        """Status and reason of the refusal if the parser fails."""

    def end(self, status: HTTPStatus, reason: str) -> None:
        """Refuse what is being received, and close within `close_timeout`."""
        self.all_connections.abort_soon(self.number, self.transport)
        self._refuse(status, reason)

    def _advance(self, event: ParserEvent) -> None:
        self._state = TRANSITIONS[self._state][event]
        if event in _PROGRESS:
            self._last_progress = event

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Stop reading, answer what can be answered, and close."""
        if self._state is ReaderState.REFUSED or self.transport.is_closing():
            return
        was_in_head = self._state is ReaderState.HEAD
        self._advance(ParserEvent.REFUSE)
        is_open = self.cycle is not None and not self.cycle.response_complete
        # 1. Log a refused request; an idle connection just ends.
        if was_in_head or is_open:
            self.all_connections.refusals.note(self.client, reason)
        # 2. A complete request still gets its answer, which closes the connection.
        if is_open and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        # 3. An incomplete one gets the refusal, unless its answer has begun.
        if was_in_head or (is_open and not self.cycle.response_started):
            self.transport.write(_format_refusal(status, reason))
        self.transport.close()

    def _start_request_timer(self) -> None:
        """Give an incomplete request another `progress_timeout`."""
        self._received = 0
        self._since = self.loop.time()
        if self._request_timer is None:
            seconds = self._limits.progress_timeout
            self._request_timer = self.loop.call_later(seconds, self._check_request)

    def _check_request(self) -> None:
        self._request_timer = None
        is_answered = self.cycle is not None and not self.cycle.response_complete
        if is_answered and not self.cycle.more_body:
            self._since = None  # no request began after it; uvicorn closes idle connections
        if self._since is None:
            return
        left = self._since + self._limits.progress_timeout - self.loop.time()
        if left > 0:
            self._request_timer = self.loop.call_later(left, self._check_request)
        elif self._received >= self._limits.min_progress or self.flow.read_paused:
            self._start_request_timer()
        else:
            self.end(HTTPStatus.REQUEST_TIMEOUT, "it arrives too slowly")

    def _start_answer_timer(self, before: int) -> None:
        """Give a client `progress_timeout` to read some of the waiting bytes."""
        seconds = self._limits.progress_timeout
        self._answer_timer = self.loop.call_later(seconds, self._check_answer, before)

    def _count_waiting(self) -> int:
        """Return the number of bytes that wait for the client, here and in the system's buffer.

        The system accepts more only when a third of its buffer of megabytes is free, which can take
        minutes with a slow client.
        """
        return self.transport.get_write_buffer_size() + _count_unsent(self.transport)

    def _check_answer(self, before: int) -> None:
        now = self._count_waiting()
        if now < before:
            self._start_answer_timer(now)
        else:
            self.all_connections.refusals.note(self.client, "its client does not read the answer")
            self.transport.abort()

    # -- called by the event loop and the parser ---------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the connection as an unauthenticated one."""
        super().connection_made(cast("asyncio.Transport", transport))
        self.all_connections.add(self.number, self.end)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and end the request of an unauthenticated connection."""
        self._is_lost = True
        self.app = cast("ASGIApp", None)  # breaks a reference cycle
        if self._task is None:
            self.all_connections.forget(self.number)
        elif not self.all_connections.is_authenticated(self.number):
            self._task.cancel()
        for timer in (self._request_timer, self._answer_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is the first one and its client has disconnected."""
        if not self.all_connections.is_authenticated(self.number):
            for _ in range(_DISCONNECT_TURNS):
                await asyncio.sleep(0)
            if self._is_lost:
                return
        task = self._task = asyncio.current_task()
        try:
            await self._next_app(scope, receive, send)
        finally:
            if self._task is task:  # the next request may have begun already
                self._task = None
                if self._is_lost:
                    self.all_connections.forget(self.number)

    def pause_writing(self) -> None:
        """Give the client its time to read."""
        super().pause_writing()
        self._start_answer_timer(self._count_waiting())

    def resume_writing(self) -> None:
        """Stop the timer: the client reads."""
        super().resume_writing()
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def timeout_keep_alive_handler(self) -> None:
        """Close the idle connection, within bounds if its client does not read."""
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size() and self._answer_timer is None:
            self._start_answer_timer(
                self._count_waiting()
            )  # it closes only after the buffer is empty

    def data_received(self, data: bytes) -> None:
        """Parse data, and refuse a request that exceeds a bound."""
        if self._state is ReaderState.REFUSED:
            return
        # 1. Parse; the callbacks below advance the state.
        self._last_progress = None
        super().data_received(data)
        # 2. Time: an incomplete request has `progress_timeout` for each `min_progress` bytes.
        if self._last_progress is ParserEvent.END:
            self._since = None
        elif self._since is None:
            self._start_request_timer()
        else:
            self._received += len(data)
        # 3. Space: only bodies may be long without progress.
        self._unread = 0 if self._last_progress is not None else self._unread + len(data)
        if self._unread > MAX_HEAD:
            self._refuse(*self._describe_excess())

    def _describe_excess(self) -> tuple[HTTPStatus, str]:
        if self._state is not ReaderState.HEAD:
            return HTTPStatus.BAD_REQUEST, "its chunk extensions or trailers are too long"
        if not self.headers and len(self.url) > MAX_HEAD // 2:
            return HTTPStatus.REQUEST_URI_TOO_LONG, "its URL is too long"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "its headers are too long"

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - `_problem` says more
        """Refuse a request that the parser cannot read."""
        self._refuse(*self._problem)

    def on_message_begin(self) -> None:
        """Begin a request (step 1)."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_parsing(
                HTTPStatus.BAD_REQUEST, "it was sent before the previous request was answered"
            )
        super().on_message_begin()
        self._advance(ParserEvent.BEGIN)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Process a header field (step 2), or ignore a trailer."""
        if self._state is not ReaderState.HEAD:
            return  # ignore trailers
        if len(self.headers) >= MAX_HEADERS:
            self._stop_parsing(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "it has too many headers"
            )
        # As uvicorn does, but strip the whitespace around a value (RFC 9112, section 5.1).
        name, value = name.lower(), value.strip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the version and the framing (step 3)."""
        if self.parser.get_http_version() not in _VERSIONS:
            self._stop_parsing(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "it is not HTTP/1.1")
        if self.parser.should_upgrade() and any(map(_announces_body, self.headers)):
            # The parser would read the body as the next request.
            self._stop_parsing(
                HTTPStatus.BAD_REQUEST, "it asks for another protocol and has a body"
            )
        super().on_headers_complete()
        self._advance(ParserEvent.HEAD_ENDS)

    def on_body(self, body: bytes) -> None:
        """Process a part of the body (step 4)."""
        self._advance(ParserEvent.BODY_PART)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request (step 5)."""
        self._advance(ParserEvent.END)
        super().on_message_complete()

    def _stop_parsing(self, status: HTTPStatus, reason: str) -> None:
        """Make the parser stop, whatever else is in the current data."""
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


def _count_unsent(transport: asyncio.Transport) -> int:
    """Return the bytes in the socket's send buffer that are not acknowledged; 0 if unknown."""
    if termios is None:
        return 0
    try:
        answer = fcntl.ioctl(transport.get_extra_info("socket"), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):  # not supported, or the socket is closed
        return 0
    return int.from_bytes(answer, sys.byteorder)
