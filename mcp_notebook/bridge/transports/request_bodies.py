"""Reads the bodies of HTTP requests.

Runs on the bridge's event loop.
"""

from mcp_notebook.bridge.asgi import Receive, Scope, read_header

LARGE = 2**20
"""Bytes from which a request is parsed in a thread, also over stdio. The parser holds the
interpreter, so what bounds the time is `Limits.max_request_bytes`."""


async def read_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body of a request, or None if it is too large: at once, if the head says so."""
    length = read_header(scope, "content-length") or ""
    if length.isdecimal() and int(length) > max_bytes:
        return None
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
