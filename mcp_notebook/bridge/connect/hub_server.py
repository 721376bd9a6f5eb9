"""Starts a user's server on a JupyterHub, if the token may.

Runs on the event loop of `mcp-notebook connect`. JupyterHub's REST API: ``POST
/users/NAME/server`` starts a server, ``GET /users/NAME/server/progress`` streams events until it
is ready (https://jupyterhub.readthedocs.io/en/stable/reference/rest-api.html). JupyterHub itself
starts a server once, however many ask for it, and decides by the token's scopes who may.
"""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote

import anyio
import httpx2

from mcp_notebook.bridge.connect.addresses import HubServer
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_token
from mcp_notebook.bridge.connect.remote import Remote
from mcp_notebook.errors import RemoteError
from mcp_notebook.text.terminal import print_note

START_LIMIT = 600.0
"""Seconds that a server may take to start; JupyterHub gives up earlier by default."""
_LOOK_INTERVAL = 1.0
"""Seconds between two requests whether a server has started, if its progress cannot be read."""
_RUNS = "already running"
"""Part of JupyterHub's refusal to start a server that runs."""


async def start_server(  # noqa: PLR0913 - what it uses
    http: httpx2.AsyncClient,
    server: HubServer,
    credentials: Credentials,
    tell: Callable[[str], None],
    *,
    start_limit: float = START_LIMIT,
    look_interval: float = _LOOK_INTERVAL,
) -> None:
    """Start a server unless it runs, and wait until it is ready.

    Args:
        http: The HTTP client.
        server: The server.
        credentials: The token of a user of the JupyterHub.
        tell: Called with a sentence about each step.
        start_limit: Seconds that it may take to start.
        look_interval: Seconds between two requests whether it runs, without its progress.

    Raises:
        RemoteError: The token may not start it, or it does not start.
    """
    path = f"servers/{server.name}" if server.name else "server"
    url = f"{server.hub}/hub/api/users/{server.user}/{path}"
    tell(f"Starting the Jupyter server of {unquote(server.user)} on {server.hub} ...")
    with anyio.move_on_after(start_limit):
        remote = Remote(http, url, credentials)
        while not await _ask_for_start(remote, server):
            if await _follow_progress(remote, server, tell):
                return
            await anyio.sleep(look_interval)
        return
    raise RemoteError(
        f"The server did not start within {start_limit:g} seconds. Look at it in the browser, at "
        f"{server.hub}/hub/home."
    )


async def _ask_for_start(remote: Remote, server: HubServer) -> bool:
    """Ask the JupyterHub to start a server, and return whether it runs.

    Raises:
        RemoteError: The JupyterHub refuses.
    """
    async with remote.post(b"", {"Accept": "application/json"}) as reply:
        message = str((await reply.read_object()).get("message") or "")
    if reply.status == HTTPStatus.CREATED or _RUNS in message:
        return True
    if reply.status == HTTPStatus.ACCEPTED:
        return False
    if reply.status == HTTPStatus.BAD_REQUEST and "pending" in message:  # it is just stopping
        return False
    if reply.status in (401, 403, 404):
        raise await _explain_refusal(remote, server)
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:  # the start may have failed at once
        await _follow_progress(remote, server, print_note)
    raise RemoteError(
        f"The JupyterHub answers with status {reply.status}: {message or 'it gives no reason'}."
    )


async def _follow_progress(remote: Remote, server: HubServer, tell: Callable[[str], None]) -> bool:
    """Tell the progress of a start, and return whether the server is ready.

    Raises:
        RemoteError: The start has failed.
    """
    before = ""
    progress = Remote(remote.http, f"{remote.url}/progress", remote.credentials)
    async with progress.listen({}) as reply:
        if reply.status != HTTPStatus.OK:  # the token may start servers, but not see them
            return False
        async for event in reply.read_events():
            message = str(event.get("message") or "").strip()
            if event.get("failed"):
                raise RemoteError(
                    f"Its start failed: {message or 'the JupyterHub gives no reason'}. Look at it "
                    f"in the browser, at {server.hub}/hub/home."
                )
            if event.get("ready"):
                return True
            if message and message != before:
                tell(message)
            before = message
    return False


async def _explain_refusal(remote: Remote, server: HubServer) -> RemoteError:
    """Return why the token may not start a server."""
    hub, user, credentials = server.hub, unquote(server.user), remote.credentials
    asked = Remote(remote.http, f"{hub}/hub/api/user", credentials)
    async with asked.listen({"Accept": "application/json"}) as reply:
        about = await reply.read_object() if reply.status == HTTPStatus.OK else None
    if not about:
        return RemoteError(explain_token(f"{hub}/user/{server.user}", credentials))
    owner = about.get("name")
    if owner is not None and owner != user:
        return RemoteError(
            f"It is the server of {user!r}, and the token from {credentials.place} is that of "
            f"{owner!r}. Copy the address of your own server, at {hub}/hub/home."
        )
    return RemoteError(
        f"The token from {credentials.place} may not start servers. Create one at {hub}/hub/token "
        f"with the scopes `servers!user={user}` and `access:servers!user={user}`."
    )
