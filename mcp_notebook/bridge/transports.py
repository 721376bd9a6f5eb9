"""How MCP's messages reach the server: stdio and Streamable HTTP.

Runs in the bridge, on its event loop. Both end when their client, or the person at the terminal,
says so; the order in which the rest is then shut down is `bridge.app`'s business.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_notebook.bridge.security import Gate
from mcp_notebook.bridge.server import NotebookServer
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings import DEFAULT_PORT, Settings

logger = logging.getLogger(__name__)

PATH = "/mcp"
"""Path of the endpoint."""
SHUTDOWN_GRACE = 0.5
"""Seconds that requests have to end when the bridge stops; open streams never end by themselves."""
MAX_LINE = 64 * 2**20
"""Bytes of one message over stdio."""
PORTS_TRIED = 50
"""Ports tried after the usual one, when none was asked for."""


async def serve_stdio(server: NotebookServer) -> None:
    """Serve one client over stdin and stdout, until it closes stdin.

    Only protocol goes to stdout: while this runs, whatever else is printed goes to stderr, and
    whatever else reads stdin finds it empty.
    """
    async with contextlib.AsyncExitStack() as stack:
        if _are_pipes():
            lines, output = await stack.enter_async_context(_pipes())
            # Any file-like pair will do for the SDK; its types know only anyio's, which needs a
            # thread for each line (three times the cost of a whole call).
            streams = stdio_server(cast("Any", lines), cast("Any", output))
        else:
            streams = stdio_server()  # a terminal, a file: the SDK moves the descriptors itself
        read_stream, write_stream = await stack.enter_async_context(streams)
        options = server.mcp.create_initialization_options()
        await server.mcp.run(read_stream, write_stream, options)


def _are_pipes() -> bool:
    """Tell whether stdin and stdout can be waited for without a thread."""
    if sys.platform == "win32":
        return False
    modes = [os.fstat(descriptor).st_mode for descriptor in (0, 1)]
    return all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)


@asynccontextmanager
async def _pipes() -> AsyncIterator[tuple["_Lines", "_Output"]]:
    """Take stdin and stdout away from everybody else, and give them back."""
    loop = asyncio.get_running_loop()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    lines, output = _Lines(limit=MAX_LINE), _Output()
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(wire_in, "rb", 0, closefd=False)
    )
    writing, _ = await loop.connect_write_pipe(
        lambda: output, os.fdopen(wire_out, "wb", 0, closefd=False)
    )
    try:
        yield lines, output
    finally:
        reading.close()
        writing.close()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)


class _Lines(asyncio.StreamReader):
    """stdin, line by line: iterating is all that the SDK does with it."""


class _Output(asyncio.Protocol):
    """stdout, with the two methods that the SDK uses; waits while the client does not read."""

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

    async def write(self, text: str) -> None:
        """Write a line; nothing happens when the client is gone, since stdin ends then too."""
        if self._transport is not None:
            self._transport.write(text.encode())
            await self._free.wait()

    async def flush(self) -> None:
        """Do nothing: what was written is on its way."""


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
    manager = StreamableHTTPSessionManager(server.mcp, session_idle_timeout=None)
    config = uvicorn.Config(
        Gate(_only_endpoint(manager), token=token, host=host),
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

    async with manager.run(), anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        await http.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


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


def _only_endpoint(manager: StreamableHTTPSessionManager) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in (PATH, f"{PATH}/"):
            await manager.handle_request(scope, receive, send)
        else:
            await PlainTextResponse(f"The endpoint is {PATH}.", 404)(scope, receive, send)

    return app
