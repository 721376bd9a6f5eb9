"""Has a Jupyter server open a notebook, and run it if the user says so.

Runs on the event loop of `mcp-notebook connect`. The server does it (`mcp_notebook.jupyter`), once
for all clients that ask.
"""

import json
from collections.abc import Callable
from http import HTTPStatus

import httpx2

from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_status
from mcp_notebook.bridge.connect.remote import SILENCE_LIMIT, Remote
from mcp_notebook.errors import ConnectionLost, RemoteError

_ROUTE = "mcp-notebook/api/notebooks"


async def open_notebook(  # noqa: PLR0913 - what it uses
    http: httpx2.AsyncClient,
    server: str,
    path: str,
    credentials: Credentials,
    tell: Callable[[str], None],
    *,
    run: bool,
    silence_limit: float = SILENCE_LIMIT,
) -> None:
    """Open a notebook on a Jupyter server unless it is open, and run it unless it has run.

    Args:
        http: The HTTP client.
        server: The URL of the Jupyter server.
        path: The notebook, seen from the server's root folder.
        credentials: The server's token.
        tell: Called with a sentence about each step.
        run: Whether to run its cells.
        silence_limit: Seconds for which the server may send nothing.

    Raises:
        RemoteError: It does not exist, its kernel does not start, or a cell fails.
    """
    remote = Remote(http, f"{server}/{_ROUTE}", credentials)
    order = json.dumps({"path": path, "run": run}).encode()
    async with remote.post(order, {"Accept": "text/event-stream"}, silence_limit) as reply:
        if reply.status in (404, 405):
            raise RemoteError(
                "The mcp-notebook of the Jupyter server is too old to open it from here. Upgrade "
                "it there and restart the server, or run the notebook in the browser."
            )
        if reply.status != HTTPStatus.OK:
            raise explain_status(reply.status, server, credentials, reply.location)
        async for event in reply.read_events():
            if "error" in event:
                raise RemoteError(str(event["error"]))
            if "done" in event:
                return
            tell(str(event.get("step")))
    raise ConnectionLost(f"The connection to {server} ended while {path} was being opened.")
