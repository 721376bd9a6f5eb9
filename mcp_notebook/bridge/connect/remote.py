"""The remote endpoint: requests over HTTP, and what comes back.

Runs on the event loop of `mcp-notebook connect`. The door to httpx2 in this room, with `failures`,
which says what went wrong. Whether to try again is the business of `relay`.
"""

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import httpx2

from mcp_notebook._version import __version__
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_failure
from mcp_notebook.bridge.connect.messages import Message, read_body
from mcp_notebook.outgoing_http import open_http_client

CONNECT_LIMIT = 10.0
"""Seconds until a connection stands. A call may take hours then."""
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_STREAM = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
_LONGEST_RETRY = 30.0
_MAX_WORDS = 1_000
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""A lost network is noticed after a minute, however long a call may take."""


def open_http() -> httpx2.AsyncClient:
    """Return what makes requests, with the environment's certificates and proxies.

    Raises:
        RemoteError: The environment names certificates that cannot be read.
    """
    return open_http_client(
        headers={"User-Agent": f"mcp-notebook/{__version__}"},
        timeout=httpx2.Timeout(None, connect=CONNECT_LIMIT),
        max_connections=None,
    )


class Reply:
    """What the remote server answers to one request over HTTP.

    Args:
        response: With its body still to come.
        url: What was asked.
    """

    def __init__(self, response: httpx2.Response, url: str) -> None:
        self._response = response
        self._url = url
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        """The media type of the body."""
        self.location = urljoin(url, self.headers.get("location", ""))
        """The address that it redirects to, or else its own."""
        self.words = ""
        """What a body that is no message says, as mcp-notebook's bridges do."""
        self.retry = 1.0
        """Seconds after which the server wants to be asked again."""
        self.last_id = ""
        """Of the last event, "" if the stream cannot be resumed."""

    async def read(self) -> AsyncIterator[Message]:
        """Yield the messages in it as they come.

        Raises:
            ConnectionLost: The connection ended before all of it had come.
        """
        with _translate_errors(self._url):
            if self.kind == "text/event-stream":
                async for event in httpx2.EventSource(self._response, max_event_size=None):
                    self.last_id = event.id or self.last_id
                    if event.retry is not None:
                        self.retry = min(event.retry / 1_000, _LONGEST_RETRY)
                    message = read_body(event.data.encode("utf-8", "surrogatepass"))
                    if message is not None:
                        yield message
            elif self.kind == "application/json":
                body = await self._response.aread()
                message = read_body(body)
                if message is not None:
                    yield message
                else:
                    self.words = _read_words(body)

    async def read_data(self) -> AsyncIterator[str]:
        """Yield the data of a stream of events that are no messages.

        Raises:
            RemoteError: It is not such a stream, or the connection was lost.
        """
        with _translate_errors(self._url):
            async for event in httpx2.EventSource(self._response, max_event_size=None):
                yield event.data

    async def read_json(self) -> Any:
        """Return the JSON in it, None if it is something else."""
        with _translate_errors(self._url):
            await self._response.aread()
        try:
            return self._response.json()
        except ValueError:
            return None


class Remote:
    """An endpoint of MCP.

    Args:
        http: Makes the requests; its owner closes it.
        url: The address of the endpoint.
        credentials: Are sent with each request.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str, credentials: Credentials) -> None:
        self._http = http
        self.url = url
        self.credentials = credentials

    @asynccontextmanager
    async def post(self, body: bytes, headers: Mapping[str, str]) -> AsyncIterator[Reply]:
        """Send a message, for the block's time.

        Raises:
            RemoteError: It did not arrive, or the connection was lost before the reply began.
        """
        content = {"Content-Type": "application/json", **_ACCEPT}
        async with self._ask("POST", content | dict(headers), body) as reply:
            yield reply

    @asynccontextmanager
    async def listen(self, headers: Mapping[str, str]) -> AsyncIterator[Reply]:
        """Open the stream on which a session gets what belongs to no request.

        Raises:
            RemoteError: As for `post`.
        """
        async with self._ask("GET", _STREAM | dict(headers)) as reply:
            yield reply

    async def delete(self, headers: Mapping[str, str]) -> None:
        """End a session, if the server lets its clients do so.

        Raises:
            RemoteError: As for `post`.
        """
        async with self._ask("DELETE", dict(headers)):
            pass

    @asynccontextmanager
    async def _ask(
        self, method: str, headers: dict[str, str], body: bytes | None = None
    ) -> AsyncIterator[Reply]:
        with _translate_errors(self.url):
            request = self._http.build_request(
                method,
                self.url,
                headers=headers | self.credentials.headers,
                content=body,
                extensions={"trace": _keep_alive},
            )
            response = await self._http.send(request, stream=True)
        try:
            yield Reply(response, self.url)
        finally:
            await response.aclose()


def _read_words(body: bytes) -> str:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    words = content.get("error") if isinstance(content, dict) else None
    return words[:_MAX_WORDS] if isinstance(words, str) else ""


@contextlib.contextmanager
def _translate_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as error:
        raise explain_failure(error, url) from error


async def _keep_alive(event: str, details: Mapping[str, Any]) -> None:
    """Let the system notice a lost network on each new connection; httpx2 calls it."""
    if event.endswith("connect_tcp.complete"):
        connection = details["return_value"].get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            option = getattr(socket, name, None)  # not everywhere
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
