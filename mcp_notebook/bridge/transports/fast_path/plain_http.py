"""ASGI middleware that answers plain requests itself, and hands all others on to the SDK.

Runs on the bridge's event loop, between the endpoint and its other middleware. A request that is
not recognised completely, headers included, goes on to the SDK unchanged, and so do clients'
answers to questions, which the SDK waits for.

The steps follow MCP's Streamable HTTP transport, "Sending Messages" and "Request Metadata":
https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
and for clients with a session, that of 2025-11-25:
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import anyio.to_thread
from mcp.server.streamable_http import (
    MCP_SESSION_ID_HEADER,
    REQUEST_CANCELLED,
    StreamableHTTPServerTransport,
    check_accept_headers,
)
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    decode_header_value,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_notebook.bridge.access.caller import OWNER, SCOPE_KEY
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.protocol_error import ProtocolError
from mcp_notebook.bridge.transports.fast_path.http_exchange import HttpExchange
from mcp_notebook.bridge.transports.fast_path.plain_answers import (
    Answer,
    PlainAnswers,
    PlainChannel,
    write_error,
)
from mcp_notebook.bridge.transports.fast_path.plain_requests import (
    CALL,
    PlainRequest,
    read_envelope,
    read_plain_request,
)
from mcp_notebook.bridge.transports.request_bodies import LARGE, read_body, replay
from mcp_notebook.bridge.transports.sessions import Sessions

_VERSION = "mcp-protocol-version"
_PARAM_PREFIX = "mcp-param-"
_MAX_ACCEPT = 1_024
"""Characters of an Accept header; a longer one is unusual."""
_CANCELLED = ProtocolError(REQUEST_CANCELLED, "Request cancelled")


@dataclass(frozen=True)
class _Head:
    """The head of a request."""

    scope: Scope
    headers: Mapping[str, str]
    session: StreamableHTTPServerTransport | None
    """The SDK's; None at 2026-07-28."""


class PlainHttp:
    """The middleware.

    Args:
        app: Handles all other requests.
        server: Answers plain requests.
        sessions: The sessions of clients of the handshake era.
        max_bytes: The largest plain request.
    """

    def __init__(
        self, app: ASGIApp, server: NotebookServer, sessions: Sessions, *, max_bytes: int
    ) -> None:
        self._app = app
        self._server = server
        self._sessions = sessions
        self._max_bytes = max_bytes
        self._answers = PlainAnswers(server)
        self._entries: Sequence[CatalogEntry] = ()
        """The list of tools that `_without_headers` is for."""
        self._without_headers: set[str] = set()
        """Tools none of whose parameters are repeated in headers, by name."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        # 1. The head says whether it may be a plain request, and in whose session.
        head = self._read_head(scope)
        if head is None:
            await self._app(scope, receive, send)
            return
        # 2. The body is one JSON-RPC request, and the headers agree with it.
        body = await read_body(receive, self._max_bytes)
        session_id = None if head.session is None else head.headers[MCP_SESSION_ID_HEADER]
        exchange = HttpExchange(receive, send, session_id)
        plain = None if body is None else await _parse(body)
        request = None if plain is None else self._recognise(plain, head, exchange)
        if plain is None or request is None:
            await self._app(scope, replay(body or b"", receive), send)
            return
        # 3. The server finds the answer, unless the exchange cancels that.
        answer = None
        with exchange:
            answer = await self._find_answer(head.session, plain, request, exchange)
        if answer is None and exchange.end_reason == "cancelled":
            answer = write_error(plain.id, _CANCELLED)
        # 4. The answer ends the response. A client that has disconnected gets none.
        if answer is not None:
            code = answer.error_code if head.session is None else None
            await exchange.answer(answer.pieces, ERROR_CODE_HTTP_STATUS.get(code or 0, 200))
        elif exchange.end_reason == "session ended":
            await exchange.end_stream()

    async def _find_answer(
        self,
        session: StreamableHTTPServerTransport | None,
        plain: PlainRequest,
        request: ClientRequest,
        exchange: HttpExchange,
    ) -> Answer:
        """Return the answer; meanwhile the session cannot expire, and its end ends the request."""
        if session is None:
            return await self._answers.find(plain, request)
        with (
            self._sessions.keep(session),
            self._server.sessions.run(session.mcp_session_id, plain.id, exchange.end),
        ):
            if not request.channel.can_ask:
                return await self._answers.find(plain, request)
            async with self._sessions.route(session, plain.id, exchange.send):
                return await self._answers.find(plain, request)

    def _read_head(self, scope: Scope) -> _Head | None:
        """Return the head of a request, or None if anything about it is unusual."""
        headers = {str(name, "latin-1"): str(value, "latin-1") for name, value in scope["headers"]}
        length = headers.get("content-length", "")
        # 1. It announces a short JSON body, and accepts both JSON and a stream of events.
        if (
            len(headers) != len(scope["headers"])  # a header is repeated
            or not length.isdecimal()
            or int(length) > self._max_bytes
            or headers.get("content-type", "").partition(";")[0] != "application/json"
            or len(accept := headers.get("accept", "")) > _MAX_ACCEPT
            or not _accepts_both(accept)
        ):
            return None
        # 2. Since 2026-07-28, each request stands alone.
        version = headers.get(_VERSION, "")
        if version in MODERN_PROTOCOL_VERSIONS:
            return _Head(scope, headers, None)
        # 3. Before, it belongs to a session of its caller.
        if _VERSION in headers and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return None
        session_id = headers.get(MCP_SESSION_ID_HEADER, "")
        session = self._sessions.find_own(session_id, scope[SCOPE_KEY])
        return None if session is None else _Head(scope, headers, session)

    def _recognise(
        self, plain: PlainRequest, head: _Head, exchange: HttpExchange
    ) -> ClientRequest | None:
        """Return a plain request if its client and headers are plain as well, or None."""
        token = plain.meta.get("progressToken")
        profile: ClientProfile | None
        if head.session is None:
            profile = self._read_profile(plain, head)
            if profile is None:
                return None
            channel = PlainChannel(exchange.send, token)
        else:
            session = self._server.sessions.find(head.session.mcp_session_id)
            if session is None:
                return None
            profile = session.profile
            assert profile is not None
            asked = session if profile.can_elicit else None
            channel = PlainChannel(exchange.send, token, asked, plain.id)
        return ClientRequest(
            profile=profile,
            id=plain.id,
            caller=head.scope[SCOPE_KEY],
            meta=plain.meta,
            headers=head.headers,
            channel=channel,
        )

    def _read_profile(self, plain: PlainRequest, head: _Head) -> ClientProfile | None:
        """Return the profile of a client of 2026-07-28 if its headers match the body.

        These are the rules of "Server Validation": headers repeat the version, the method, and for
        a call the tool and the arguments that its schema wants in headers.
        """
        profile = read_envelope(plain.meta)
        if (
            profile is None
            or head.headers[_VERSION] != profile.protocol_version
            or head.headers.get("mcp-method") != plain.method
            or (plain.method == CALL and not self._repeats_parameters(head, plain.params))
        ):
            return None
        return profile

    def _repeats_parameters(self, head: _Head, params: Mapping[str, Any]) -> bool:
        """Return whether the headers that repeat a call's parameters are right."""
        name, arguments = params["name"], params.get("arguments", {})
        if decode_header_value(head.headers.get("mcp-name", "")) != name:
            return False
        if not arguments and not any(header.startswith(_PARAM_PREFIX) for header in head.headers):
            return True
        entries = self._server.tools.list_entries(OWNER)
        if entries is not self._entries:  # a tool has changed
            self._entries, self._without_headers = entries, set()
        if name in self._without_headers:
            return True
        schema = self._server.find_input_schema(name)
        if schema is None:  # a call of it is refused
            return True
        if not x_mcp_header_map(schema):
            self._without_headers.add(name)
            return True
        return validate_mcp_param_headers(schema, arguments, Headers(scope=head.scope)) is None


async def _parse(body: bytes) -> PlainRequest | None:
    """Return the plain request in a body, or None if it is anything else."""
    if len(body) < LARGE:
        return read_plain_request(body)
    return await anyio.to_thread.run_sync(read_plain_request, body)


@lru_cache(maxsize=256)
def _accepts_both(accept: str) -> bool:
    """Return whether a client accepts both JSON and a stream of events."""
    request = Request({"type": "http", "headers": [(b"accept", accept.encode("latin-1"))]})
    return all(check_accept_headers(request))
