"""The remote endpoint: sends requests over HTTP, and reads the replies.

Runs on the event loop of `mcp-notebook connect`. The door to httpx2 in this room, together with
`failures`, which explains errors. `relay` decides whether to retry.
"""

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin

import anyio
import httpx2

from mcp_notebook._version import __version__
from mcp_notebook.bridge.connect.addresses import find_hub
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_failure, explain_status
from mcp_notebook.bridge.connect.messages import (
    JsonObject,
    Message,
    as_object,
    read_body,
    replace_id,
)
from mcp_notebook.errors import (
    ConnectionLost,
    RemoteError,
    ServerStopped,
    SessionLost,
    Unreachable,
)
from mcp_notebook.http_headers import RUNS_HEADER
from mcp_notebook.outgoing_http import open_http_client
from mcp_notebook.protocol.headers import SESSION_HEADER
from mcp_notebook.text.terminal import print_note

Forward = Callable[[Message, "Reply"], Awaitable[None]]
"""Takes a message and the reply that contains it."""
STEADY = 30.0
"""Seconds after which a stream counts as stable: when it ends, the back-off starts over."""
_LONGEST_PAUSE = 10.0
_HUBS_PAGE = "/hub/user/"
"""Part of the URL of a JupyterHub's page for a stopped server."""
CONNECT_LIMIT = 10.0
"""Seconds to connect. A call may then take hours."""
ANSWER_LIMIT = 30.0
"""Seconds for an answer to a question of our own. A Jupyter server may have to start its bridge
first."""
SILENCE_LIMIT = 60.0
"""Seconds without a byte of a start's progress, of which servers send some every 15 to 25 seconds.
A proxy between keeps the connection open if the machine of the server has gone."""
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_STREAM = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
_MAX_WORDS = 1_000
_STOP_LIMIT = 3.0
"""Seconds for the answer whether a server has ended."""
_RUNS = (200, 400, 405, 406)
"""Statuses with which a server answers a request without a session."""
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""A lost network is noticed within a minute, however long a call takes."""


def open_http(*, runs: bool = False) -> httpx2.AsyncClient:
    """Return an HTTP client with the environment's certificates and proxies.

    Args:
        runs: Whether its user has the notebook of the address run.

    Raises:
        RemoteError: The environment names certificates that cannot be read.
    """
    return open_http_client(
        headers={"User-Agent": f"mcp-notebook/{__version__}"}
        | ({RUNS_HEADER: "1"} if runs else {}),
        max_connections=None,
    )


class Reply:
    """The remote server's response to one HTTP request.

    Args:
        response: The response; its body has not been read.
        url: The URL of the request.
    """

    def __init__(self, response: httpx2.Response, url: str) -> None:
        self._response = response
        self._url = url
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        """The media type of the body."""
        self.location = urljoin(url, self.headers.get("location", ""))
        """The URL that it redirects to, or else its own."""
        self.words = ""
        """The error text of a body that is not a message, as mcp-notebook's bridges send it."""

    async def read(self) -> AsyncIterator[Message]:
        """Yield its messages as they arrive.

        Raises:
            ConnectionLost: The connection ended before the body was complete.
        """
        with _translate_errors(self._url):
            if self.kind == "text/event-stream":
                async for event in httpx2.EventSource(self._response, max_event_size=None):
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

    async def read_events(self) -> AsyncIterator[JsonObject]:
        """Yield the object of each event of a stream that is not MCP; an empty one for other data.

        Raises:
            RemoteError: It is not an event stream, or the connection was lost.
        """
        with _translate_errors(self._url):
            async for event in httpx2.EventSource(self._response, max_event_size=None):
                yield _read_object(event.data)

    async def read_object(self) -> JsonObject:
        """Return the JSON object in its body, an empty one if it has none."""
        with _translate_errors(self._url):
            return _read_object(await self._response.aread())


class Remote:
    """An MCP endpoint.

    Args:
        http: Makes the requests; its owner closes it.
        url: The endpoint's URL.
        credentials: Sent with each request.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str, credentials: Credentials) -> None:
        self.http = http
        """Makes the requests."""
        self.url = url
        """The endpoint's URL."""
        self.credentials = credentials
        """Sent with each request."""

    @property
    def ends_when_idle(self) -> bool:
        """Whether a JupyterHub or Binder ends the server when nobody asks it anything."""
        return find_hub(self.url) is not None or self.credentials.is_from_binder

    def move(self, other: "Remote") -> None:
        """Use another endpoint from now on: a server on Binder is started at a new address."""
        self.url, self.credentials = other.url, other.credentials

    @asynccontextmanager
    async def post(
        self, body: bytes, headers: Mapping[str, str], silence: float | None = None
    ) -> AsyncIterator[Reply]:
        """Send a message, and keep its reply open for the block.

        Args:
            body: The message.
            headers: Its own headers.
            silence: Seconds for which the server may send nothing; None: without limit.

        Raises:
            RemoteError: It could not be sent, or the connection was lost before the reply began.
        """
        content = {"Content-Type": "application/json", **_ACCEPT}
        async with self._ask("POST", content | dict(headers), body, silence) as reply:
            yield reply

    @asynccontextmanager
    async def listen(
        self, headers: Mapping[str, str], silence: float | None = None
    ) -> AsyncIterator[Reply]:
        """Open the stream for messages of a session that belong to no request.

        Args:
            headers: Its own headers.
            silence: As for `post`.

        Raises:
            RemoteError: As for `post`.
        """
        async with self._ask("GET", _STREAM | dict(headers), silence=silence) as reply:
            yield reply

    async def delete(self, headers: Mapping[str, str]) -> None:
        """End a session, if the server supports it.

        Raises:
            RemoteError: As for `post`.
        """
        async with self._ask("DELETE", dict(headers)):
            pass

    @asynccontextmanager
    async def _ask(
        self,
        method: str,
        headers: dict[str, str],
        body: bytes | None = None,
        silence: float | None = None,
    ) -> AsyncIterator[Reply]:
        with _translate_errors(self.url):
            request = self.http.build_request(
                method,
                self.url,
                headers=headers | self.credentials.headers,
                content=body,
                timeout=httpx2.Timeout(None, connect=CONNECT_LIMIT, read=silence),
                extensions={"trace": _keep_alive},
            )
            response = await self.http.send(request, stream=True)
        try:
            yield Reply(response, self.url)
        finally:
            await response.aclose()


def _read_object(text: str | bytes) -> JsonObject:
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _read_words(body: bytes) -> str:
    words = _read_object(body).get("error")
    return words[:_MAX_WORDS] if isinstance(words, str) else ""


@contextlib.contextmanager
def _translate_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as error:
        raise explain_failure(error, url) from error


async def _keep_alive(event: str, details: Mapping[str, Any]) -> None:
    """Enable TCP keep-alive on each new connection; called by httpx2."""
    if event.endswith("connect_tcp.complete"):
        connection = details["return_value"].get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            option = getattr(socket, name, None)  # depends on the system
            if option is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)


# -- exchanges -------------------------------------------------------------------------------------


def list_pauses() -> Iterator[float]:
    """Yield the seconds to wait between attempts, with exponential back-off."""
    pause = 0.1
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


async def exchange(
    remote: Remote, request: Message, headers: Mapping[str, str], forward: Forward
) -> None:
    """Send a request, and forward all messages up to its answer.

    Args:
        remote: The server.
        request: The request.
        headers: MCP's headers.
        forward: Takes the messages; the answer has the id of the request.

    Raises:
        RemoteError: There is no answer.
    """
    async with remote.post(request.body, headers) as reply:
        check_session(reply, headers, remote)
        async for message in reply.read():
            if not message.is_answer:
                await forward(message, reply)
            elif message.is_answer_to(request):
                await forward(replace_id(message, request.id), reply)
                return
        if reply.status != HTTPStatus.OK:
            raise await explain_reply(remote, reply)
    raise ConnectionLost(f"The connection to {remote.url} ended before the answer came.")


async def ask(
    remote: Remote, request: Message, headers: Mapping[str, str]
) -> tuple[Message, Reply]:
    """Send a request of our own, and return its answer.

    Raises:
        RemoteError: There is no answer.
    """
    answers: list[tuple[Message, Reply]] = []

    async def keep(message: Message, reply: Reply) -> None:
        if message.is_answer:
            answers.append((message, reply))

    await exchange(remote, request, headers, keep)
    return answers[-1]


async def explain_reply(remote: Remote, reply: Reply) -> RemoteError:
    """Return the error for a reply without an MCP message.

    A JupyterHub that answers for a stopped server refuses every POST, whatever the token, and
    redirects every GET to a page of its own.
    """
    status, location = reply.status, reply.location
    if status == HTTPStatus.FORBIDDEN and find_hub(remote.url) is not None:
        async with remote.listen({"Accept": "*/*"}, ANSWER_LIMIT) as page:
            location = page.location
            if page.status in _RUNS:  # it has just started
                return Unreachable(f"The server at {remote.url} was not running. Try again.")
    if _HUBS_PAGE in location:
        status = HTTPStatus.FAILED_DEPENDENCY
    return explain_status(status, remote.url, remote.credentials, reply.location, reply.words)


async def find_stop(remote: Remote) -> ServerStopped | None:
    """Return why a server does not answer any more, if its JupyterHub or Binder has ended it."""
    with anyio.move_on_after(_STOP_LIMIT), contextlib.suppress(RemoteError):
        async with remote.listen({"Accept": "*/*"}) as page:
            if page.status not in _RUNS:
                async for _ in page.read():  # its words
                    pass
                error = await explain_reply(remote, page)
                return error if isinstance(error, ServerStopped) else None
    return None


class StopNotes:
    """Tells the user once that the server has ended, while streams are reopened again and again."""

    def __init__(self) -> None:
        self._is_told = False

    def note(self, error: RemoteError) -> None:
        """Print the error, if it says that the server has ended and was not printed before."""
        if isinstance(error, ServerStopped) and not self._is_told:
            self._is_told = True
            print_note(str(error))

    def forget(self) -> None:
        """The server is back."""
        self._is_told = False


def check_session(reply: Reply, headers: Mapping[str, str], remote: Remote) -> None:
    """Check that the server accepts the session and the token.

    Raises:
        SessionLost: It does not know the session.
        RemoteError: It does not accept the token.
    """
    if reply.status == HTTPStatus.NOT_FOUND and SESSION_HEADER in headers:
        raise SessionLost(f"The server at {remote.url} no longer knows this session.")
    if reply.status == HTTPStatus.UNAUTHORIZED:
        raise explain_status(reply.status, remote.url, remote.credentials)
