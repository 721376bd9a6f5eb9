"""How MCP's messages reach the server: stdio and Streamable HTTP.

Runs in the bridge, on its event loop. Both end when their client, or the person at the terminal,
says so; the order in which the rest is then shut down is `bridge.app`'s business.
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.abc
import mcp_types as types
import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.transports.access import Gate
from mcp_notebook.bridge.transports.json_responses import plain_where_alone
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings import DEFAULT_PORT, Settings

logger = logging.getLogger(__name__)

PATH = "/mcp"
"""Path of the endpoint."""
SHUTDOWN_GRACE = 0.5
"""Seconds that requests have to end when the bridge stops; open streams never end by themselves."""
MAX_MESSAGE = 64 * 2**20
"""Bytes of one message; a picture among a tool's arguments must fit."""
PORTS_TRIED = 50
"""Ports tried after the usual one, when none was asked for."""


async def serve_stdio(server: NotebookServer) -> None:
    """Serve one client over stdin and stdout, until it closes stdin.

    Only protocol goes to stdout: while this runs, whatever else is printed goes to stderr, and
    whatever else reads stdin finds it empty.
    """
    # For a terminal or a file the SDK moves the descriptors itself, and needs a thread for each
    # line, which is three times the cost of a whole call.
    opened = _pipes() if _are_pipes() else stdio_server()
    async with opened as (incoming, outgoing):
        await server.mcp.run(incoming, outgoing, server.mcp.create_initialization_options())


def _are_pipes() -> bool:
    """Tell whether stdin and stdout can be waited for without a thread."""
    if sys.platform == "win32":
        return False
    modes = [os.fstat(descriptor).st_mode for descriptor in (0, 1)]
    return all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)


@asynccontextmanager
async def _pipes() -> AsyncIterator[tuple["_Incoming", "_Outgoing"]]:
    """Take stdin and stdout away from everybody else, and give them back."""
    loop = asyncio.get_running_loop()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    lines, outgoing = asyncio.StreamReader(limit=MAX_MESSAGE), _Outgoing()
    # Descriptors of their own: uvloop's transports close them when the client has gone, whatever
    # `closefd` says (True would close them twice).
    pipe_in = os.fdopen(os.dup(wire_in), "rb", 0, closefd=False)
    pipe_out = os.fdopen(os.dup(wire_out), "wb", 0, closefd=False)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), pipe_in)
    writing, _ = await loop.connect_write_pipe(lambda: outgoing, pipe_out)
    try:
        yield _Incoming(lines, outgoing), outgoing
    finally:
        reading.close()
        writing.close()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)


class _Outgoing(asyncio.Protocol, anyio.abc.ObjectSendStream[SessionMessage]):
    """Messages to stdout, one a line; waits while the client does not read."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._free.set()

    def pause_writing(self) -> None:
        self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    async def send(self, item: SessionMessage) -> None:
        """Write a message; nothing happens when the client is gone, since stdin ends then too."""
        if self._transport is not None:
            # As bytes: a large picture's text would be copied twice on its way to them.
            line = types.jsonrpc_message_adapter.dump_json(
                item.message, by_alias=True, exclude_unset=True
            )
            self._transport.write(line)
            self._transport.write(b"\n")
            await self._free.wait()

    async def aclose(self) -> None:
        """Do nothing: what was written is on its way."""


class _Incoming(anyio.abc.ObjectReceiveStream[SessionMessage | Exception]):
    """Messages from stdin, one a line.

    Answers a line that is no message, where the SDK would drop it and its sender wait for ever.
    """

    def __init__(self, lines: asyncio.StreamReader, outgoing: _Outgoing) -> None:
        self._lines = lines
        self._outgoing = outgoing

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            EndOfStream: The client closed stdin.
        """
        while True:
            line = await self._next_line()
            if line is None:
                reason = f"A message may have at most {MAX_MESSAGE} bytes."
                await self._outgoing.send(_refusal(types.INVALID_REQUEST, reason))
            elif line.strip():
                try:
                    return SessionMessage(
                        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    )
                except ValidationError as error:
                    for refusal in _refusals(line, error):
                        await self._outgoing.send(refusal)

    async def aclose(self) -> None:
        """Do nothing: stdin is closed by who opened it."""

    async def _next_line(self) -> bytes | None:
        """Return the next line, None for one that is too long."""
        too_long = False
        while True:
            try:
                line = await self._lines.readuntil(b"\n")
            except asyncio.LimitOverrunError as overrun:
                await self._lines.readexactly(overrun.consumed)
                too_long = True
                continue
            except asyncio.IncompleteReadError as end:
                if not end.partial:
                    raise anyio.EndOfStream from None
                line = end.partial
            return None if too_long else line


def _refusals(line: bytes, error: ValidationError) -> list[SessionMessage]:
    """Return the answers to a line that is no message: one for each request that can be found."""
    try:
        # Takes more than what refused the line did, for example a lone surrogate.
        found = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        found = None
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        code, reason = types.PARSE_ERROR, f"{first['msg']}."
    elif isinstance(found, list):
        code, reason = types.INVALID_REQUEST, "Batches are not taken: send one message a line."
    else:
        code, reason = types.INVALID_REQUEST, "This is no message of JSON-RPC 2.0."
    requests = [
        item
        for item in (found if isinstance(found, list) else [found])
        if isinstance(item, dict) and "method" in item
    ]
    return [_refusal(code, reason, _id_of(request)) for request in requests or [{}]]


def _refusal(code: int, reason: str, request: types.RequestId | None = None) -> SessionMessage:
    error = types.ErrorData(code=code, message=reason)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request, error=error))


def _id_of(request: dict[str, Any]) -> types.RequestId | None:
    """Return a request's id if it can be sent back."""
    found = request.get("id")
    if isinstance(found, str):
        return found if found.isprintable() else None  # not with a lone surrogate
    return found if type(found) is int else None


def listen(settings: Settings, preferred: int | None = None) -> socket.socket:
    """Open the endpoint's socket, so that its port is known before anything else starts.

    Args:
        settings: Host and port; a port that was asked for is the one or an error.
        preferred: Port to try first when none was asked for.

    Raises:
        SettingsError: The address cannot be listened on.
    """
    ports = (
        [settings.port]
        if settings.port is not None
        else [preferred or DEFAULT_PORT, *range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)]
    )
    error: OSError | None = None
    for port in ports:
        try:
            family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
            return socket.create_server((settings.host.strip("[]"), port), family=family)
        except OSError as failure:
            error = failure
            if failure.errno != errno.EADDRINUSE:
                break
    assert error is not None
    if error.errno == errno.EADDRINUSE:
        raise SettingsError(
            f"Port {ports[0]} on {settings.host} is in use. Leave --port out to take a free one, "
            "or end what uses it (another `mcp-notebook serve`?)."
        )
    raise SettingsError(
        f"{settings.host}:{ports[0]} cannot be listened on: {error.strerror or error}. "
        "Check --host and --port."
    )


def url_of(listener: socket.socket) -> str:
    """Return the endpoint's address as clients of this machine use it."""
    host, port = listener.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    return f"http://{f'[{local}]' if ':' in local else local}:{port}{PATH}"


async def serve_http(
    server: NotebookServer, listener: socket.socket, *, token: str, host: str, stop: anyio.Event
) -> None:
    """Serve clients over Streamable HTTP until told to stop.

    Args:
        server: The server.
        listener: From `listen`.
        token: The bearer token.
        host: The host of the settings, for the gate.
        stop: Set when the endpoint shall close.
    """
    manager = StreamableHTTPSessionManager(
        server.mcp, session_idle_timeout=None, max_request_body_size=MAX_MESSAGE
    )
    config = uvicorn.Config(
        _trimmed(Gate(plain_where_alone(_only_endpoint(manager)), token=token, host=host)),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=cast("Any", SHUTDOWN_GRACE),  # a float does as well
        log_level="critical",
    )
    http = _Uvicorn(config, server.close)

    async def end() -> None:
        await stop.wait()
        http.should_exit = True

    logging.getLogger("mcp.server.streamable_http").addFilter(_is_news)
    async with manager.run(), anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        await http.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


def _is_news(record: logging.LogRecord) -> bool:
    """Tell that a record is not the SDK's traceback for a client that left while it was sending."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


class _Uvicorn(uvicorn.Server):
    """uvicorn, leaving signals to the app and ending subscriptions before it waits for requests."""

    def __init__(self, config: uvicorn.Config, before_close: Callable[[], None]) -> None:
        super().__init__(config)
        self._before_close = before_close

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: the app stops everything in its order."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_close()
        await super().shutdown(sockets)


def _trimmed(behind: ASGIApp) -> ASGIApp:
    """Take away the space around headers' values, which HTTP does not count as part of them."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # httptools leaves what comes after a value.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await behind({**scope, "headers": headers}, receive, send)

    return app


def _only_endpoint(manager: StreamableHTTPSessionManager) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in (PATH, f"{PATH}/"):
            await manager.handle_request(scope, receive, send)
        else:
            await PlainTextResponse(f"The endpoint is {PATH}.", 404)(scope, receive, send)

    return app
