"""One plain request over HTTP and its answer: JSON, or a stream if something precedes the answer.

Runs on the bridge's event loop. A stream begins with the first message before the answer, or after
`PING_INTERVAL`, so that no proxy takes a silent connection for dead.
"""

import asyncio
from collections.abc import Sequence

import anyio
from starlette.types import Receive, Send

from mcp_notebook.bridge.protocol.base64_text import Piece, expand
from mcp_notebook.bridge.protocol.client_sessions import EndReason
from mcp_notebook.bridge.transports.json_responses import MAX_EVENT, warn_of_event

PING_INTERVAL = 15.0
"""Seconds without a message after which a client gets a sign of life; the SDK's are as many."""
WATCH_DELAY = 0.02
"""Seconds after which a client is watched: to notice at once that one has gone who waits for a few
milliseconds would cost more than what its call still does."""
_STREAM_HEADERS = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]
_PING = b": ping\r\n\r\n"
_LARGE = 2**16
"""Bytes of an answer from which its pieces are sent one by one, because to join them costs more."""


class HttpExchange:
    """The exchange; a context manager around the work for its answer.

    Args:
        receive: Tells when the client has gone.
        send: Sends the response.
        session_id: The id of the client's session; None if it has none, as at 2026-07-28.
    """

    def __init__(self, receive: Receive, send: Send, session_id: str | None = None) -> None:
        self._receive = receive
        self._send = send
        self._session_id = session_id
        self.end_reason: EndReason | None = None
        """Why the block was cancelled, if the client is there."""
        self._turn = asyncio.Lock()
        self._is_stream = False
        self._is_over = False
        """Whether the response has ended, or is about to."""
        self._task: asyncio.Task[object] | None = None
        """That of the block."""
        self._cancels_before = 0
        self._is_cancelled = False
        self._timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        """Cancel the block if the client goes, and tell it now and then that the call runs."""
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancels_before = self._task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(WATCH_DELAY, self._start_watcher)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        """Go on behind the block if it was cancelled here."""
        assert self._task is not None
        assert self._timer is not None
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if not self._is_cancelled:
            return False
        is_cancelled_elsewhere = self._task.uncancel() > self._cancels_before
        return kind is asyncio.CancelledError and not is_cancelled_elsewhere

    def end(self, reason: EndReason) -> None:
        """Cancel the block."""
        self.end_reason = reason
        self._cancel()

    def _cancel(self) -> None:
        if self._task is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    async def send(self, message: bytes) -> None:
        """Send a JSON-RPC message before the answer."""
        await self._send_event(_format_event(message))

    async def _send_event(self, event: bytes) -> None:
        """Send an event of the stream, which begins if it has not."""
        async with self._turn:
            if self._is_over:
                return
            if not self._is_stream:
                await self._start_stream()
            await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def answer(self, message: Sequence[Piece], status: int) -> None:
        """Send the answer, and end the response.

        Args:
            message: The JSON-RPC message, in pieces.
            status: HTTP's, if nothing has preceded the answer.
        """
        async with self._turn:
            self._is_over = True
            if self._is_stream:
                event = _format_event(b"".join(expand(message)))
                if len(event) > MAX_EVENT:
                    warn_of_event(len(event))
                message = [event]
            else:
                size = sum(map(len, message))
                if size < _LARGE:
                    message = [b"".join(expand(message))]
                length = str(size).encode()
                headers = [(b"content-length", length), (b"content-type", b"application/json")]
                if self._session_id is not None:
                    headers += _STREAM_HEADERS  # the SDK begins a stream in any case
                await self._start(status, headers)
            *before, last = message
            for piece in expand(before):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            await self._send({"type": "http.response.body", "body": b"".join(expand([last]))})

    async def end_stream(self) -> None:
        """End the response without an answer."""
        async with self._turn:
            self._is_over = True
            if not self._is_stream:
                await self._start_stream()
            await self._send({"type": "http.response.body", "body": b""})

    async def _start_stream(self) -> None:
        await self._start(200, [(b"content-type", b"text/event-stream"), *_STREAM_HEADERS])
        self._is_stream = True  # after: a call may end while its client does not read

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        if self._session_id is not None:
            headers.append((b"mcp-session-id", self._session_id.encode("latin-1")))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def _start_watcher(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            with anyio.move_on_after(PING_INTERVAL):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
                self._cancel()
                return
            await self._send_event(_PING)


def _format_event(message: bytes) -> bytes:
    return b"event: message\r\ndata: %b\r\n\r\n" % message
