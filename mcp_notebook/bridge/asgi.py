"""ASGI types, header lookups, and short responses.

Runs on the bridge's event loop; pure. uvicorn calls the outermost application
(https://asgi.readthedocs.io/en/latest/specs/www.html).
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from mcp_notebook.lean_json import to_json

Scope: TypeAlias = MutableMapping[str, Any]
"""A request without its body."""
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
_NO_CONTENT = 204


class Response:
    """A response whose body is short; an application that answers any request with it.

    Args:
        body: The body.
        status: The HTTP status.
        headers: Its headers, besides the length.
    """

    def __init__(
        self, body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self._body = body
        self._status = status
        self.headers = dict(headers or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        """Send the response."""
        # RFC 9110, 8.6: with 204, there is no length.
        length = {} if self._status == _NO_CONTENT else {"content-length": str(len(self._body))}
        headers = {**length, **self.headers}
        fields = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        await send({"type": "http.response.start", "status": self._status, "headers": fields})
        body = b"" if scope["method"] == "HEAD" else self._body
        await send({"type": "http.response.body", "body": body})


def make_json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with a JSON value."""
    return Response(
        to_json(content), status, {"content-type": "application/json", **(headers or {})}
    )


def make_text_response(
    text: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with a text."""
    return Response(
        text.encode(), status, {"content-type": "text/plain; charset=utf-8", **(headers or {})}
    )


def read_header(head: Scope | Message, name: str) -> str | None:
    """Return the first value of a header of a request or an answer; None if there is none."""
    key = name.encode()
    for header, value in head["headers"]:
        if header == key:
            return str(value, "latin-1")
    return None


def read_headers(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by their names in lower case; of each, the last value."""
    return {str(name, "latin-1"): str(value, "latin-1") for name, value in scope["headers"]}
