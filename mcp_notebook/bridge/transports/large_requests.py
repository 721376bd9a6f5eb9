"""ASGI middleware that takes the arguments out of large calls before the SDK parses them.

Runs on the bridge's event loop, between the endpoint and the SDK's transport.
"""

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_notebook.bridge.server.protocol.detached_arguments import (
    LARGE,
    MessageTooLarge,
    detach_arguments,
)
from mcp_notebook.bridge.server.protocol.json_spans import NotJson
from mcp_notebook.bridge.server.protocol.protocol_error import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ProtocolError,
)


def detach_large_arguments(app: ASGIApp, *, max_bytes: int) -> ASGIApp:
    """Wrap an app so that large calls reach it with their arguments in the scope, not the body."""

    async def detaching_app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        if scope["method"] != "POST" or (length.isdecimal() and int(length) < LARGE):
            await app(scope, receive, send)
            return
        body = None
        if not length.isdecimal() or int(length) <= max_bytes:
            body = await read_body(receive, max_bytes)
        if body is None:
            await PlainTextResponse("Request body too large", 413)(scope, receive, send)
            return
        if len(body) >= LARGE:
            has_parameters = any(name.startswith("mcp-param-") for name in headers)
            try:
                body, additions = await detach_arguments(body, with_small=has_parameters)
            except NotJson:
                await _refuse(PARSE_ERROR, "This is not a JSON object.")(scope, receive, send)
                return
            except MessageTooLarge as error:
                refusal = _refuse(INVALID_REQUEST, str(error), error.request_id)
                await refusal(scope, receive, send)
                return
            scope = {**scope, **additions}
        await app(scope, replay(body, receive), send)

    return detaching_app


async def read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body of a request, or None if it is too large."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""  # the client has disconnected and gets no answer
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > max_bytes:
            return None
        if not message.get("more_body", False):
            return b"".join(chunks)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a callable that receives this body, then the messages that follow it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _refuse(code: int, reason: str, request_id: str | int | None = None) -> Response:
    answer = ProtocolError(code, reason).write_answer(request_id)
    return Response(answer, 400, media_type="application/json")
