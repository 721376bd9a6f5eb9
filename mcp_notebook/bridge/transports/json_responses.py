"""Answers over HTTP as plain JSON, where the SDK would make a server-sent event of each.

Runs in the bridge, on its event loop. ASGI middleware behind the gate, before the SDK's transport.
Up to 2025-11-25 the SDK answers each request as a stream of events, even if the answer is all that
it holds. Clients take events of a limited size only (the SDK's own 1 MiB), and need twice the time
for them. So the beginning of a stream is held back until its first event: if that is the answer,
it goes out as JSON. At 2026-07-28 the SDK does the same itself.
"""

import logging
import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

MAX_EVENT = 2**20
"""Bytes of a server-sent event that clients made with the SDK take."""
_BEFORE, _BEHIND = b"event: message\r\ndata: ", b"\r\n\r\n"
_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(?:-?\d+|"(?:[^"\\]|\\.)*"),"(?:result|error)":')
"""The beginning of an answer, and of no other message; an id in full, whatever its length."""


def plain_where_alone(behind: ASGIApp) -> ASGIApp:
    """Answer requests in JSON where nothing comes before the answer."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # A stream that a client opens by GET is for what comes without a request.
        to = _Response(send).send if scope["method"] == "POST" else send
        await behind(scope, receive, to)

    return app


class _Response:
    """The response to one request; holds back where a stream begins.

    Pings come from another task than events: what is noted of the state is so before each `await`.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: Message | None = None
        self._streams = False
        self._answered = False

    async def send(self, message: Message) -> None:
        if self._answered:
            return
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            self._streams = headers.get("content-type", "").startswith("text/event-stream")
            if self._streams:
                self._held = message
                return
        held, self._held = self._held, None
        body: bytes = message.get("body", b"")
        if held is not None:
            answer = _answer_in(body)
            if answer is not None:
                self._answered = True
                await self._send(_as_json(held, len(answer)))
                await self._send({"type": "http.response.body", "body": answer})
                return
            await self._send(held)
        if self._streams and len(body) > MAX_EVENT:
            _tell_of(len(body))
        await self._send(message)


def _answer_in(event: bytes) -> bytes | None:
    """Return the answer that an event holds, if it is one and nothing else."""
    if not (event.startswith(_BEFORE) and event.endswith(_BEHIND)):
        return None
    return event[len(_BEFORE) : -len(_BEHIND)] if _ANSWER.match(event, len(_BEFORE)) else None


def _as_json(start: Message, length: int) -> Message:
    headers = MutableHeaders(raw=list(start["headers"]))
    headers["content-type"] = "application/json"
    headers["content-length"] = str(length)
    return {**start, "headers": headers.raw}


def _tell_of(size: int) -> None:
    logger.warning(
        "An answer of %s bytes goes to a client as a server-sent event, since progress, a log "
        "message or 15 seconds came before it. Clients made with MCP's Python SDK take no more "
        "than %s bytes, and fail: give the notebook a lower MCP_NOTEBOOK_MAX_RESULT_BYTES, "
        "MCP_NOTEBOOK_MAX_STRUCTURED_CHARS or MCP_NOTEBOOK_MAX_RESULT_CHARS.",
        f"{size:,}",
        f"{MAX_EVENT:,}",
    )
