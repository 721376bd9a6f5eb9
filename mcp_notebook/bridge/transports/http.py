"""MCP over Streamable HTTP: opens the socket, accepts connections, and runs uvicorn.

Runs on the bridge's event loop.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, cast

import anyio
import uvicorn

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.gate import Authenticator, Gate
from mcp_notebook.bridge.asgi import ASGIApp, Receive, Scope, Send, make_text_response
from mcp_notebook.bridge.transports.connections import Connections
from mcp_notebook.bridge.transports.endpoint import PATH
from mcp_notebook.bridge.transports.http_connection import HttpConnection
from mcp_notebook.bridge.transports.port_owner import find_port_use
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings

HEALTH_PATH = "/healthz"
"""In front of the gate: anyone can learn that the bridge is up, and nothing else."""
_HEALTH_METHODS = ("GET", "HEAD")
SHUTDOWN_GRACE = 0.5
"""Seconds for incomplete requests when the bridge stops."""
PORTS_TRIED = 50
"""Ports to try after the default one if no port is set."""
_ACCEPT_PAUSE = 0.1
"""Seconds until the next attempt if a connection could not be accepted."""


def open_listener(settings: Settings, preferred: int | None = None) -> socket.socket:
    """Open the endpoint's socket; its port is then known before anything else starts.

    Args:
        settings: Host and port. A configured port must be free.
        preferred: Port to try first if none is configured.

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
            # The connections inherit it. Unlike uvloop, asyncio sets it only on sockets that were
            # created with IPPROTO_TCP.
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
    """Return who uses the configured port, as the end of a sentence."""
    use = "own" if settings.port is None else find_port_use(settings.host, settings.port)
    if use != "foreign":
        return "perhaps by another `mcp-notebook serve`."
    return (
        "but not by you: clients that are set up for this port send your token to that process. "
        "Replace the token if there are such clients."
    )


def format_url(listener: socket.socket, *, is_encrypted: bool = False) -> str:
    """Return the endpoint's URL for clients on this machine."""
    host, port = listener.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    scheme = "https" if is_encrypted else "http"
    return f"{scheme}://{f'[{local}]' if ':' in local else local}:{port}{PATH}"


class Servable(Protocol):
    """An application behind the gate."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    async def end(self) -> None:
        """Answer the running calls, then end all streams and sessions."""

    async def end_sessions(self, caller: Caller) -> None:
        """End the sessions and requests of a caller whose access has ended."""


async def serve_http(  # noqa: PLR0913 - each belongs to another part
    app: Servable,
    listener: socket.socket,
    *,
    settings: Settings,
    authenticators: Sequence[Authenticator],
    stop: anyio.Event,
    connections: Connections,
    publish: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    is_ready: Callable[[], bool] = lambda: True,
) -> None:
    """Serve an application behind the gate until `stop` is set.

    Args:
        app: The application; `end` is called before this returns.
        listener: From `open_listener`.
        settings: The address, the gate's hosts and origins, and the certificate.
        authenticators: Find the callers of bearer tokens.
        stop: When set, the endpoint closes.
        connections: Those of the endpoint, and its log of refused requests.
        publish: Adds public pages, which need no token.
        is_ready: Returns whether the first notebooks have run, for ``/healthz``.
    """
    gate = Gate(
        app,
        authenticators=authenticators,
        host=settings.host,
        allowed_hosts=settings.allowed_hosts,
        refusals=connections.refusals,
        on_admission=connections.admit,
    )
    config = _configure(_answer_health(publish(gate), is_ready), settings)
    http = _Uvicorn(config, app.end)

    async def end() -> None:
        await stop.wait()
        http.should_exit = True

    with listener:  # outlives `accept`, which takes it from the event loop
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            tasks.start_soon(gate.watch, app.end_sessions)
            tasks.start_soon(http.accept, connections, listener)
            await http.serve(sockets=[])
            tasks.cancel_scope.cancel()


def _configure(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        backlog=4_096,  # if a flood fills it, other clients wait for a second or more
        ws="none",
        ssl_certfile=settings.certfile,
        ssl_keyfile=settings.keyfile,
        proxy_headers=False,  # any client can send them
        server_header=False,
        timeout_graceful_shutdown=cast("Any", SHUTDOWN_GRACE),  # a float works too
        log_level="critical",
    )


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers; ends the application before it waits for open requests.

    It accepts connections with `HttpConnection`, not with uvicorn's own protocol.
    """

    def __init__(self, config: uvicorn.Config, before_close: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        config.load()
        self._before_close = before_close
        self._accepting = anyio.CancelScope()

    async def accept(self, connections: Connections, listener: socket.socket) -> None:
        """Accept connections until the server shuts down."""
        with self._accepting:
            make = partial(HttpConnection, connections, self.config, self.server_state)
            if self.config.ssl is None:
                await _accept(listener, make, self.config.backlog)
            else:
                await _accept_encrypted(listener, make, self.config.backlog, self.config.ssl)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: `bridge.app` handles signals and stops everything in order."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._before_close()
        self._accepting.cancel()
        await super().shutdown(sockets)


async def _accept(
    listener: socket.socket, make: Callable[[], HttpConnection], backlog: int
) -> None:
    """Accept connections without encryption until this is cancelled.

    The event loop's own server takes a third of the time of `_accept_encrypted`, which counts in a
    flood of connections.
    """
    loop = asyncio.get_running_loop()
    if listener.family == getattr(socket, "AF_UNIX", None):
        server = await loop.create_unix_server(make, sock=listener, backlog=backlog)
    else:
        server = await loop.create_server(make, sock=listener, backlog=backlog)
    try:
        await anyio.sleep_forever()
    finally:
        server.close()


async def _accept_encrypted(
    listener: socket.socket,
    make: Callable[[], HttpConnection],
    backlog: int,
    encryption: ssl.SSLContext,
) -> None:
    """Accept encrypted connections until this is cancelled.

    The event loop's own server does not limit the number of handshakes.
    """
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    listener.listen(backlog)
    async with anyio.create_task_group() as tasks:
        while True:
            try:
                client, address = await loop.sock_accept(listener)
            except OSError:  # the client has disconnected, or no file descriptors are left
                await anyio.sleep(_ACCEPT_PAUSE)
            else:
                tasks.start_soon(_shake_hands, client, address[:2], make(), encryption)


async def _shake_hands(
    client: socket.socket,
    address: tuple[str, int],
    connection: HttpConnection,
    encryption: ssl.SSLContext,
) -> None:
    """Do the TLS handshake of a connection, which counts as unauthenticated until then."""
    connections = connection.all_connections
    with anyio.CancelScope() as scope:
        connections.add(connection.number, lambda *_: scope.cancel())
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, client, ssl=encryption
            )
        except OSError:  # the client does not speak TLS, or has disconnected
            connections.forget(connection.number)
        except Exception as error:  # noqa: BLE001 - go on serving the others
            connections.forget(connection.number)
            connections.refusals.note(address, f"of an unexpected {type(error).__name__}")


def _answer_health(app: ASGIApp, is_ready: Callable[[], bool]) -> ASGIApp:
    """Wrap an application in middleware that answers ``/healthz``."""

    async def answered_app(scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and scope["path"] == HEALTH_PATH
            and scope["method"] in _HEALTH_METHODS  # the gate handles other methods
        ):
            headers = {"Cache-Control": "no-store"}
            text, status = ("ok", 200) if is_ready() else ("starting", 503)
            await make_text_response(text, status, headers)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answered_app
