"""One request over HTTP and its answer: JSON, or a stream if something precedes the answer.

Runs on the bridge's event loop. Follows MCP's Streamable HTTP transport:
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http

Theory of operation
-------------------
An exchange has two state machines, each with a table of its transitions at the top of this file:

1. *The response* (`RESPONSE_MOVES`). A server answers a request either with one JSON object or with
   a stream of events that ends with the answer ("Sending Messages", step 6). Which one it will be
   is unknown when the request arrives, so the response begins silent. A message before the answer
   begins a stream ("Receiving Messages"), and so does a ping, which is sent after `PING_INTERVAL`
   without a message so that proxies do not close the connection.
2. *The work* (`WORK_MOVES`): the block of the exchange as a context manager. A client that
   disconnects cancels its request ("Cancellation"; not before 2026-07-28). So do a notification of
   the client, and the end of its session. Each cancels the task of the block, but only once, and
   the end of the block swallows that cancellation.
   `HttpExchange.end_reason` is the reason to report to a client that is still connected.

The machines share only the watcher, which runs while the work does and sends the pings. An action
without a transition in the table is ignored: an event after the answer, a second cancellation.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum

import anyio

from mcp_notebook.bridge.asgi import Receive, Send
from mcp_notebook.bridge.server.requests import Piece, expand
from mcp_notebook.bridge.server.sessions.client_sessions import EndReason


class ResponseState(StrEnum):
    """How much of the response has been sent."""

    SILENT = "silent"
    """Nothing."""
    STREAM = "stream"
    """The head of a stream, and perhaps some events."""
    OVER = "over"
    """The answer, perhaps not all of it: nothing may follow."""


class ResponseMove(StrEnum):
    """A part of the response to send."""

    EVENT = "event"
    """A message before the answer, or a ping."""
    ANSWER = "answer"
    """The answer: an event if the stream has begun, else JSON."""
    END = "end"
    """The end of a stream without an answer."""


RESPONSE_MOVES: Mapping[ResponseState, Mapping[ResponseMove, ResponseState]] = {
    ResponseState.SILENT: {
        ResponseMove.EVENT: ResponseState.STREAM,  # once its head is sent: see `_begin_stream`
        ResponseMove.ANSWER: ResponseState.OVER,
        ResponseMove.END: ResponseState.OVER,
    },
    ResponseState.STREAM: {
        ResponseMove.EVENT: ResponseState.STREAM,
        ResponseMove.ANSWER: ResponseState.OVER,
        ResponseMove.END: ResponseState.OVER,
    },
    ResponseState.OVER: {},
}


class WorkState(StrEnum):
    """The state of the work for the answer."""

    UNBEGUN = "unbegun"
    RUNNING = "running"
    """It has begun; watching for a disconnect would cost more than finishing it."""
    WATCHED = "watched"
    """It takes longer than `WATCH_DELAY`; a task watches for a disconnect, and sends pings."""
    CANCELLED = "cancelled"
    """The exchange has cancelled its task, which has not ended."""
    ENDED = "ended"


class WorkMove(StrEnum):
    """An event of the work."""

    BEGIN = "begin"
    WATCH = "watch"
    CANCEL = "cancel"
    """The client disconnects or cancels the request, or its session ends."""
    END = "end"


WORK_MOVES: Mapping[WorkState, Mapping[WorkMove, WorkState]] = {
    WorkState.UNBEGUN: {WorkMove.BEGIN: WorkState.RUNNING},
    WorkState.RUNNING: {
        WorkMove.WATCH: WorkState.WATCHED,
        WorkMove.CANCEL: WorkState.CANCELLED,
        WorkMove.END: WorkState.ENDED,
    },
    WorkState.WATCHED: {WorkMove.CANCEL: WorkState.CANCELLED, WorkMove.END: WorkState.ENDED},
    WorkState.CANCELLED: {
        WorkMove.WATCH: WorkState.CANCELLED,  # it may stop slowly: keep pinging
        WorkMove.END: WorkState.ENDED,
    },
    WorkState.ENDED: {},
}

logger = logging.getLogger(__name__)

PING_INTERVAL = 15.0
"""Seconds without a message after which a ping is sent, so that no proxy closes the connection."""
MAX_EVENT = 2**20
"""Bytes of a server-sent event that clients built with the Python SDK accept."""
WATCH_DELAY = 0.02
"""Seconds after which the watcher starts: for shorter calls it costs more than finishing them."""
_STREAM_HEADERS = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]
_PING = b": ping\r\n\r\n"
_LARGE = 2**16
"""Bytes from which the pieces of an answer are sent one by one, because joining them costs more."""


class HttpExchange:
    """The exchange; a context manager around the work for its answer.

    Args:
        receive: Receives the client's disconnect.
        send: Sends the response.
        session_id: The id of the client's session; None if it has none, as at 2026-07-28.
        outlasts: Whether the work goes on when the client disconnects.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        session_id: str | None = None,
        *,
        outlasts: bool = False,
    ) -> None:
        self._outlasts = outlasts
        self._receive = receive
        self._send = send
        self._session_id = session_id
        self.end_reason: EndReason | None = None
        """Why the block was cancelled, if the client is still connected."""
        self._response = ResponseState.SILENT
        self._turn = asyncio.Lock()
        """Held while a part of the response is sent: several tasks send pings and messages."""
        self._work = WorkState.UNBEGUN
        self._task: asyncio.Task[object] | None = None
        """The task of the block."""
        self._cancels_before = 0
        self._timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None

    # -- the work ----------------------------------------------------------------------------------

    def __enter__(self) -> None:
        """From now on, cancel the block if the client disconnects, and send pings."""
        self._work = WORK_MOVES[self._work][WorkMove.BEGIN]
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancels_before = self._task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(WATCH_DELAY, self._watch_client)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        """Swallow the cancellation if only the exchange requested it."""
        assert self._task is not None
        assert self._timer is not None
        # 1. Stop watching.
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        # 2. From now on, the exchange does not cancel the task.
        was_cancelled = self._work is WorkState.CANCELLED
        self._work = WORK_MOVES[self._work][WorkMove.END]
        if not was_cancelled:
            return False
        # 3. Undo our own cancellation. If another one is left, it is not ours to swallow.
        is_cancelled_elsewhere = self._task.uncancel() > self._cancels_before
        return kind is asyncio.CancelledError and not is_cancelled_elsewhere

    def end(self, reason: EndReason) -> None:
        """Cancel the block."""
        self.end_reason = reason
        self._cancel()

    def _cancel(self) -> None:
        after = WORK_MOVES[self._work].get(WorkMove.CANCEL)
        if after is not None:
            assert self._task is not None
            self._work = after
            self._task.cancel()

    def _watch_client(self) -> None:
        after = WORK_MOVES[self._work].get(WorkMove.WATCH)
        if after is not None:
            self._work = after
            self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            with anyio.move_on_after(PING_INTERVAL):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
                if not self._outlasts:
                    self._cancel()
                return
            await self._send_event(_PING)

    # -- the response ------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Begin the stream at once: no answer will come."""
        async with self._turn:
            await self._begin_stream()
            self._response = RESPONSE_MOVES[self._response][ResponseMove.EVENT]

    async def send(self, message: bytes) -> None:
        """Send a JSON-RPC message before the answer."""
        await self._send_event(_format_event(message))

    async def _send_event(self, event: bytes) -> None:
        """Send an event, and begin the stream if necessary."""
        async with self._turn:
            if ResponseMove.EVENT not in RESPONSE_MOVES[self._response]:
                return
            if self._response is ResponseState.SILENT:
                await self._begin_stream()
                self._response = RESPONSE_MOVES[self._response][ResponseMove.EVENT]
            await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def answer(self, message: Sequence[Piece], status: int) -> None:
        """Send the answer, and end the response.

        Args:
            message: The JSON-RPC message, in pieces.
            status: The HTTP status, if the answer is not part of a stream.
        """
        async with self._turn:
            # 1. Nothing may follow the answer, even while it is being sent.
            before, self._response = (
                self._response,
                RESPONSE_MOVES[self._response][ResponseMove.ANSWER],
            )
            if before is ResponseState.STREAM:
                # 2a. The answer is the last event of the stream.
                event = _format_event(b"".join(expand(message)))
                if len(event) > MAX_EVENT:
                    _warn_of_event(len(event))
                message = [event]
            else:
                # 2b. The answer is the whole response, whose length is known.
                size = sum(map(len, message))
                if size < _LARGE:
                    message = [b"".join(expand(message))]
                length = str(size).encode()
                headers = [(b"content-length", length), (b"content-type", b"application/json")]
                await self._start(status, headers)
            # 3. Pictures are encoded as base64 piece by piece, while the client reads.
            *first, last = message
            for piece in expand(first):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            await self._send({"type": "http.response.body", "body": b"".join(expand([last]))})

    async def end_stream(self) -> None:
        """End the response without an answer."""
        async with self._turn:
            before, self._response = (
                self._response,
                RESPONSE_MOVES[self._response][ResponseMove.END],
            )
            if before is ResponseState.SILENT:
                await self._begin_stream()
            await self._send({"type": "http.response.body", "body": b""})

    async def _begin_stream(self) -> None:
        """Send the head of a stream.

        The response is a stream only after the head was sent: if the call is cancelled before that,
        because its client does not read, it is answered in JSON.
        """
        await self._start(200, [(b"content-type", b"text/event-stream"), *_STREAM_HEADERS])

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        if self._session_id is not None:
            headers.append((b"mcp-session-id", self._session_id.encode("latin-1")))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


def _format_event(message: bytes) -> bytes:
    return b"event: message\r\ndata: %b\r\n\r\n" % message


def _warn_of_event(size: int) -> None:
    """Warn that clients may fail on a large server-sent event."""
    logger.warning(
        "An answer of %s bytes was sent as a server-sent event, because progress, a log message or "
        "15 seconds preceded it. Clients built with MCP's Python SDK accept at most %s bytes and "
        "fail. Lower the limit max_result_chars of the "
        "notebook (MCP_NOTEBOOK_LIMITS).",
        f"{size:,}",
        f"{MAX_EVENT:,}",
    )
