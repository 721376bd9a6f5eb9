"""MCP over Streamable HTTP: the listening socket, and uvicorn, which serves the endpoint.

Runs on the bridge's event loop.
"""

import contextlib
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Protocol, cast

import anyio
import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.gate import Authenticator, Gate
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.telemetry.metrics import Metrics, Reading
from mcp_notebook.bridge.transports.connections import Connections
from mcp_notebook.bridge.transports.endpoint import PATH
from mcp_notebook.bridge.transports.health_and_metrics import answer_health, answer_metrics
from mcp_notebook.bridge.transports.port_owner import find_port_use
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings

SHUTDOWN_GRACE = 0.5
"""Seconds for what is left when the bridge stops: requests that have not come in completely."""
PORTS_TRIED = 50
"""Ports to try after the default one if no port is set."""


def open_listener(settings: Settings, preferred: int | None = None) -> socket.socket:
    """Open the endpoint's socket; its port is then known before anything else starts.

    Args:
        settings: Host and port. A port that is set is used, or it is an error.
        preferred: Port to try first if none is set.

    Raises:
        SettingsError: The address cannot be used.
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
            listener = socket.create_server((settings.host.strip("[]"), port), family=family)
        except OSError as failure:
            error = failure
            if failure.errno != errno.EADDRINUSE:
                break
        else:
            # Its connections inherit it. asyncio, unlike uvloop, does this only for sockets that
            # were made with TCP's number.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listener
    assert error is not None
    if error.errno == errno.EADDRINUSE:
        raise SettingsError(
            f"Port {ports[0]} on {settings.host} is already in use, {_describe_user(settings)} "
            "Stop that process, or omit --port to use a free port."
        )
    # `create_server` adds "(while attempting to bind on address ...)".
    reason = str(error.strerror or error).partition(" (while ")[0]
    raise SettingsError(
        f"Cannot listen on {settings.host}:{ports[0]}: {reason}. Check --host and --port."
    )


def _describe_user(settings: Settings) -> str:
    """Return who uses the port that is set, as the end of a sentence."""
    use = "own" if settings.port is None else find_port_use(settings.host, settings.port)
    if use == "connection":
        return "as the local end of a process's connection to somewhere else."
    if use != "foreign":
        return "perhaps by another `mcp-notebook serve`."
    return (
        "but not by you: clients that were set up for it send your token to whoever that is. "
        "Replace the token if there are such clients."
    )


def format_url(listener: socket.socket, *, is_encrypted: bool = False) -> str:
    """Return the endpoint's URL for clients on this machine."""
    host, port = listener.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    scheme = "https" if is_encrypted else "http"
    return f"{scheme}://{f'[{local}]' if ':' in local else local}:{port}{PATH}"


class Servable(Protocol):
    """An application that answers requests which the gate has let in."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    async def end(self) -> None:
        """Answer the running calls, then end all streams and sessions."""

    async def end_sessions(self, caller: Caller) -> None:
        """End what a caller has open who has lost its right."""


async def serve_http(  # noqa: PLR0913 - each is of another part
    app: Servable,
    listener: socket.socket,
    *,
    settings: Settings,
    authenticators: Sequence[Authenticator],
    stop: anyio.Event,
    metrics: Metrics,
    refusals: RefusalLog,
    publish: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> None:
    """Serve an application behind the gate until `stop` is set.

    Args:
        app: The application; it is ended before this returns.
        listener: From `open_listener`.
        settings: The address that it listens on, for the gate, and the certificate.
        authenticators: Tell whose a bearer token is.
        stop: Closes the endpoint when it is set.
        metrics: The numbers that ``/metrics`` shows.
        refusals: Gets a line about each refused request.
        publish: Adds pages for everybody, without a token.
    """
    connections = Connections(refusals)
    gate = _build_gate(app, connections, authenticators, settings, metrics)
    config = _configure(answer_health(publish(gate)), settings)
    http = _Uvicorn(config, app.end)

    async def end() -> None:
        await stop.wait()
        http.should_exit = True

    logging.getLogger("mcp.server.streamable_http").addFilter(_is_worth_logging)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        tasks.start_soon(gate.watch, app.end_sessions)
        tasks.start_soon(http.accept, connections, listener)
        with listener:
            await http.serve(sockets=[])
            tasks.cancel_scope.cancel()


def _configure(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        backlog=4_096,  # a flood must not fill it: who finds it full waits for a second or more
        ws="none",
        ssl_certfile=settings.certfile,
        ssl_keyfile=settings.keyfile,
        proxy_headers=False,  # anybody can write them
        server_header=False,
        timeout_graceful_shutdown=cast("Any", SHUTDOWN_GRACE),  # a float does as well
        log_level="critical",
    )


def _build_gate(
    app: ASGIApp,
    connections: Connections,
    authenticators: Sequence[Authenticator],
    settings: Settings,
    metrics: Metrics,
) -> Gate:
    """Return the application with the gate before it, and add its numbers to the metrics."""
    refusals = connections.refusals
    metrics.readings.append(
        Reading(
            "refused_requests",
            "HTTP requests that were not let in.",
            lambda: refusals.total,
            only_grows=True,
        )
    )
    return Gate(
        answer_metrics(app, metrics, refusals),
        authenticators=authenticators,
        host=settings.host,
        allowed_hosts=settings.allowed_hosts,
        allowed_origins=settings.allowed_origins,
        refusals=refusals,
        on_admission=connections.admit,
    )


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Return False for the SDK's traceback about a client that left in the middle of a request."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


class _Uvicorn(uvicorn.Server):
    """uvicorn, but it leaves signals alone and lets the endpoint end before it awaits requests.

    It does not accept connections itself, either: `Connections` does.
    """

    def __init__(self, config: uvicorn.Config, before_close: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        config.load()
        self._before_close = before_close
        self._accepting = anyio.CancelScope()

    async def accept(self, connections: Connections, listener: socket.socket) -> None:
        """Accept connections until the server shuts down."""
        with self._accepting:
            await connections.accept(listener, self.config, self.server_state)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: `bridge.app` handles signals and stops everything in order."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._before_close()
        self._accepting.cancel()
        await super().shutdown(sockets)
