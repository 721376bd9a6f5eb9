"""Reads the bodies of HTTP requests, and lets the next ASGI app read them again.

Runs on the bridge's event loop, between the endpoint and the SDK's transport.
"""

from starlette.types import Message, Receive

LARGE = 2**20
"""Bytes from which a request is parsed in a thread, also over stdio. The parser holds the
interpreter, so what bounds the time is `Limits.max_request_bytes`."""


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
