"""ASGI middleware that sends JSON where the SDK would send a single server-sent event.

Runs on the bridge's event loop, between the endpoint and the SDK's transport. Up to 2025-11-25 the
SDK answers every request with an event stream, even if the answer is its only event. Clients accept
events only up to a limit (1 MiB for clients built with the SDK) and need twice the time for them.
The middleware therefore holds the start of a stream until its first event; if that event is the
answer, it is sent as JSON. From 2026-07-28 on, the SDK does this itself.
"""

import logging
import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

MAX_EVENT = 2**20
"""Bytes of a server-sent event that clients built with the SDK accept."""
_PREFIX, _SUFFIX = b"event: message\r\ndata: ", b"\r\n\r\n"
_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(?:-?\d+|"(?:[^"\\]|\\.)*"),"(?:result|error)":')
"""Matches the start of an answer up to the end of its id, and of no other message."""


def prefer_json(app: ASGIApp) -> ASGIApp:
    """Wrap an app so that it answers with JSON if nothing precedes the answer."""

    async def json_app(scope: Scope, receive: Receive, send: Send) -> None:
        # A GET opens a stream for messages that belong to no request.
        is_post = scope["method"] == "POST"
        await app(scope, receive, _Response(send).send if is_post else send)

    return json_app


class _Response:
    """The response to one request; holds the start of a stream until its first event.

    Pings and events come from different tasks, so each state change is made before an `await`.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._stream_start: Message | None = None
        self._is_stream = False
        self._has_answered = False

    async def send(self, message: Message) -> None:
        if self._has_answered:
            return
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            self._is_stream = headers.get("content-type", "").startswith("text/event-stream")
            if self._is_stream:
                self._stream_start = message
                return
        start, self._stream_start = self._stream_start, None
        body: bytes = message.get("body", b"")
        if start is not None:
            answer = _extract_answer(body)
            if answer is not None:
                self._has_answered = True
                await self._send(_make_json_start(start, len(answer)))
                await self._send({"type": "http.response.body", "body": answer})
                return
            await self._send(start)
        if self._is_stream and len(body) > MAX_EVENT:
            warn_of_event(len(body))
        await self._send(message)


def _extract_answer(event: bytes) -> bytes | None:
    """Return the answer in an event, or None if the event is something else."""
    if not (event.startswith(_PREFIX) and event.endswith(_SUFFIX)):
        return None
    return event[len(_PREFIX) : -len(_SUFFIX)] if _ANSWER.match(event, len(_PREFIX)) else None


def _make_json_start(start: Message, length: int) -> Message:
    headers = MutableHeaders(raw=list(start["headers"]))
    headers["content-type"] = "application/json"
    headers["content-length"] = str(length)
    return {**start, "headers": headers.raw}


def warn_of_event(size: int) -> None:
    """Warn that clients may fail on a large server-sent event."""
    logger.warning(
        "An answer of %s bytes was sent as a server-sent event, because progress, a log message or "
        "15 seconds preceded it. Clients built with MCP's Python SDK accept at most %s bytes and "
        "fail. Lower the limit max_result_chars of the "
        "notebook (MCP_NOTEBOOK_LIMITS).",
        f"{size:,}",
        f"{MAX_EVENT:,}",
    )
