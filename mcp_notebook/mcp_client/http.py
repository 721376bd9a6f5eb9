"""The way to a server over Streamable HTTP: one POST for each message.

Runs on a command's event loop. An answer is JSON, or the last event of a stream:
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

import httpx2
from pydantic_core import from_json

from mcp_notebook.protocol.errors import CONNECTION_CLOSED, INTERNAL_ERROR, ProtocolError
from mcp_notebook.protocol.headers import SESSION_HEADER, VERSION_HEADER, list_headers
from mcp_notebook.protocol.methods import INITIALIZE
from mcp_notebook.protocol.parameter_headers import ParameterHeaders

_ACCEPTED = {"accept": "application/json, text/event-stream"}
_EVENTS = "text/event-stream"


class HttpTransport:
    """The way to one endpoint; see `open`.

    Args:
        http: The HTTP client, with the headers of all requests.
        url: The endpoint.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self._session: dict[str, str] = {}
        """The headers of the session, once there is one."""
        self._parameters = ParameterHeaders()

    @classmethod
    @asynccontextmanager
    async def open(cls, http: httpx2.AsyncClient, url: str) -> AsyncIterator[Self]:
        """Yield a way to an endpoint; its session, if it has one, ends with the block."""
        transport = cls(http, url)
        try:
            yield transport
        finally:
            if transport._session:
                with suppress(httpx2.HTTPError):  # the server has gone
                    await http.delete(url, headers=transport._session)

    async def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request, and return the message that answers it."""
        async with self._post(message) as response:
            answer = await _read_answer(response, message["id"])
        self._learn(message["method"], answer, response)
        return answer

    async def notify(self, message: Mapping[str, Any]) -> None:
        """Send a notification."""
        async with self._post(message):
            pass

    @asynccontextmanager
    async def _post(self, message: Mapping[str, Any]) -> AsyncIterator[httpx2.Response]:
        params = message.get("params") or {}
        own = list_headers(message["method"], params)
        own |= self._parameters.list_headers(message["method"], params) if own else {}
        headers = _ACCEPTED | self._session | own
        try:
            async with self._http.stream(
                "POST", self._url, json=message, headers=headers
            ) as response:
                yield response
        except httpx2.HTTPError as error:
            problem = f"Connection closed: {error or type(error).__name__}"
            raise ProtocolError(CONNECTION_CLOSED, problem) from None

    def _learn(self, method: str, answer: Mapping[str, Any], response: httpx2.Response) -> None:
        """Learn what later requests repeat: the session, and arguments of tools in headers."""
        result = answer.get("result")
        if method == INITIALIZE and SESSION_HEADER in response.headers:
            version = result.get("protocolVersion") if isinstance(result, dict) else None
            self._session = {
                SESSION_HEADER: response.headers[SESSION_HEADER],
                VERSION_HEADER: str(version),
            }
        self._parameters.learn(result)


async def _read_answer(response: httpx2.Response, request_id: int) -> Mapping[str, Any]:
    """Return the message that answers a request.

    Raises:
        ProtocolError: The response has no answer to the request.
    """
    if not response.headers.get("content-type", "").startswith(_EVENTS):
        answer = _read_message(await response.aread())
        if answer is not None:
            return answer
        raise ProtocolError(
            INTERNAL_ERROR, f"HTTP {response.status_code}: the body is not a JSON-RPC message."
        )
    async for event in httpx2.EventSource(response, max_event_size=None):
        message = _read_message(event.data)
        if message is not None and message.get("id") == request_id and "method" not in message:
            return message
    raise ProtocolError(CONNECTION_CLOSED, "Connection closed")


def _read_message(text: bytes | str) -> Mapping[str, Any] | None:
    try:
        message = from_json(text)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
