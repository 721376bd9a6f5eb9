"""The bridge over HTTP: opens its address before anything else, and publishes a background bridge.

Runs on the bridge's event loop. The rest is that of `app`.
"""

import os
import secrets
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from mcp_notebook._version import __version__
from mcp_notebook.bridge.access.own_token_file import read_token
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.access.token_check import OwnToken, list_authenticators
from mcp_notebook.bridge.app import Bridge, split_folders, unwrap_errors
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import OnEnd
from mcp_notebook.bridge.telemetry.audit_log import AuditLog, write_audit_log
from mcp_notebook.bridge.transports.connections import Connections
from mcp_notebook.bridge.transports.encryption import check_encryption, describe_reach
from mcp_notebook.bridge.transports.endpoint import Endpoint
from mcp_notebook.bridge.transports.http import format_url, open_listener, serve_http
from mcp_notebook.bridge.transports.known_ports import (
    choose_token,
    read_last_port,
    write_last_port,
)
from mcp_notebook.discovery.records import BridgeRecord, Record, read_bridge, read_start_time
from mcp_notebook.settings.private_files import write_private_json
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings

if TYPE_CHECKING:
    from mcp_notebook.bridge.headless.early_kernel import EarlyKernel


@dataclass(frozen=True)
class OwnBridge:
    """A bridge within the process of a command."""

    link: Link
    """Leads to its kernel."""
    url: str
    """The address of its endpoint."""
    token: str


async def run_http(
    settings: Settings,
    notebooks: Sequence[Path] = (),
    early: "EarlyKernel | None" = None,
    *,
    background: bool = False,
) -> None:
    """Serve clients over Streamable HTTP until a signal arrives.

    Args:
        settings: All options.
        notebooks: Notebooks to run and serve; if empty, the user's live notebooks are served.
        early: The kernel of the first of them, if it has been started already.
        background: Be the user's one background bridge: publish a record, reuse the last port, and
            stop some time after the last notebook has gone.

    Raises:
        McpNotebookError: A notebook cannot be served, or the address or the token cannot be used.
        KeyboardInterrupt: SIGINT arrived, and everything has been shut down.
    """
    if background and read_bridge(settings.bridge_file) is not None:
        return
    check_encryption(settings)
    folders, _ = split_folders(notebooks)
    notices: list[str] = []
    token, listener = _open_address(settings, notices)
    with unwrap_errors(), listener, write_audit_log(settings) as audit:
        url = format_url(listener, is_encrypted=settings.certfile is not None)
        authenticators, publish = list_authenticators(settings, token, url)
        async with (
            Bridge(settings, audit, has_folders=bool(folders), is_shared=True).run() as bridge,
            anyio.create_task_group() as tasks,
        ):
            bridge.start(tasks, notebooks, early)
            if background:
                await bridge.ready.wait()
                tasks.start_soon(bridge.stop_when_idle)
            publication = _publish(settings, url, notices) if background else nullcontext()
            tasks.start_soon(_tell_address, bridge, url, notices)
            with publication:
                async with Endpoint(bridge.server, settings).run() as endpoint:
                    await serve_http(
                        endpoint,
                        listener,
                        settings=settings,
                        authenticators=authenticators,
                        stop=bridge.stop,
                        connections=Connections(RefusalLog(audit.note_request)),
                        publish=publish,
                        is_ready=bridge.ready.is_set,
                    )
            tasks.cancel_scope.cancel()
        bridge.check_end()


async def _tell_address(bridge: Bridge, url: str, notices: Sequence[str]) -> None:
    """Print the address once the first notebooks have run; clients may be there before."""
    await bridge.ready.wait()
    if not bridge.is_ending:
        bridge.print_address(url, notices)


@asynccontextmanager
async def open_own_bridge(
    settings: Settings, record: Record, on_end: OnEnd
) -> AsyncIterator[OwnBridge]:
    """Serve one kernel over HTTP on this machine for the block, with a token of its own.

    Args:
        settings: The limits of calls.
        record: The kernel's record.
        on_end: Called when the kernel is gone.

    Raises:
        LinkError: The kernel does not answer.
    """
    settings = replace(
        settings, host="127.0.0.1", port=0, certfile=None, keyfile=None, oauth_file=None
    )
    token = secrets.token_urlsafe()
    with unwrap_errors(), open_listener(settings) as listener:
        async with (
            Bridge(settings, AuditLog()).run() as bridge,
            bridge.links.open_link(record, on_end) as link,
            Endpoint(bridge.server, settings).run() as endpoint,
            anyio.create_task_group() as tasks,
        ):
            bridge.note_ready()
            serve = partial(
                serve_http,
                settings=settings,
                authenticators=[OwnToken(token)],
                stop=bridge.stop,
                connections=Connections(RefusalLog()),
            )
            tasks.start_soon(serve, endpoint, listener)
            try:
                yield OwnBridge(link, format_url(listener, is_encrypted=False), token)
            finally:
                bridge.stop.set()


def _open_address(settings: Settings, notices: list[str]) -> tuple[str, socket.socket]:
    """Return the token, which depends on whose the usual port is, and the listening socket."""
    token = read_token(settings, notices.append)
    last_port = read_last_port(settings) or DEFAULT_PORT
    listener = open_listener(settings, last_port)
    try:
        port = listener.getsockname()[1]
        usual = last_port if settings.port is None else port
        token = choose_token(settings, token, port, usual=usual, notices=notices)
    except BaseException:
        listener.close()
        raise
    notices += filter(None, [describe_reach(settings, port)])
    return token, listener


@contextmanager
def _publish(settings: Settings, url: str, notices: Sequence[str]) -> Iterator[None]:
    """Publish the background bridge's record for the block, and remember its port."""
    started = read_start_time(os.getpid())
    assert started is not None
    record = BridgeRecord(
        pid=os.getpid(), started=started, version=__version__, url=url, notices=tuple(notices)
    )
    write_last_port(settings, urlsplit(url).port or DEFAULT_PORT)
    write_private_json(settings.bridge_file, record)
    try:
        yield
    finally:
        if read_bridge(settings.bridge_file) == record:
            settings.bridge_file.unlink(missing_ok=True)
