"""Finds the MCP endpoint among the candidate URLs of an address, before any message is forwarded.

Runs on the event loop of `mcp-notebook connect`. It sends ``server/discover`` to each candidate:
servers of 2026-07-28 answer it, and older ones answer with an MCP error.
"""

from http import HTTPStatus

import anyio
import httpx2

from mcp_notebook._version import __version__
from mcp_notebook.bridge.connect.addresses import Address
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_status, explain_token
from mcp_notebook.bridge.connect.headers import list_headers
from mcp_notebook.bridge.connect.messages import make_message
from mcp_notebook.bridge.connect.remote import ANSWER_LIMIT, Remote, Reply, explain_reply
from mcp_notebook.errors import RemoteError, Unreachable
from mcp_notebook.protocol.versions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LATEST_MODERN,
    PROTOCOL_VERSION_KEY,
)

_ABSENT = (404, 405)
_QUESTION = make_message(
    {
        "id": "mcp-notebook connect",
        "method": "server/discover",
        "params": {
            "_meta": {
                PROTOCOL_VERSION_KEY: LATEST_MODERN,
                CLIENT_CAPABILITIES_KEY: {},
                CLIENT_INFO_KEY: {"name": "mcp-notebook connect", "version": __version__},
            }
        },
    }
)


async def find_endpoint(
    http: httpx2.AsyncClient, address: Address, credentials: Credentials
) -> Remote:
    """Return the endpoint of an address.

    Args:
        http: The HTTP client.
        address: The address that the user gave.
        credentials: Sent with each request.

    Raises:
        RemoteError: There is no endpoint, it cannot be reached, or it does not accept the token.
    """
    refusals = []
    for url in address.endpoints:
        remote = Remote(http, url, credentials)
        reply = await _ask(remote)
        if reply is None:
            return remote
        if reply.location == f"{url}/":  # only a slash is added
            return Remote(http, reply.location, credentials)
        refusals.append((url, reply))
    url, reply = min(refusals, key=lambda refusal: refusal[1].status in _ABSENT)
    if reply.status in _ABSENT and not reply.words:
        raise await _explain_absence(http, address, credentials)
    raise await explain_reply(Remote(http, url, credentials), reply)


async def _ask(remote: Remote) -> Reply | None:
    """Return the reply of a URL that is not an endpoint; None if it is one."""
    with anyio.move_on_after(ANSWER_LIMIT):
        async with remote.post(_QUESTION.body, list_headers(_QUESTION)) as reply:
            if reply.status not in (401, 403):
                async for _ in reply.read():
                    return None
            return reply
    raise Unreachable(
        f"{remote.url} did not answer within {ANSWER_LIMIT:g} seconds. Check that the server is "
        "running: open it in the browser."
    )


async def _explain_absence(
    http: httpx2.AsyncClient, address: Address, credentials: Credentials
) -> RemoteError:
    """Return why an address has no endpoint."""
    server, url = address.server, address.endpoints[0]
    api = Remote(http, f"{server}/api", credentials)
    async with api.listen({"Accept": "*/*"}, ANSWER_LIMIT) as reply:
        if reply.status != HTTPStatus.OK and credentials.is_from_binder:
            return explain_status(reply.status, url, credentials, reply.location)
        if reply.status in (401, 403):
            return RemoteError(explain_token(server, credentials))
        about = await reply.read_json() if reply.status == 200 else None  # noqa: PLR2004
    if isinstance(about, dict) and "version" in about:
        return RemoteError(
            f"The Jupyter server {server}/ has no {url.removeprefix(server)}: mcp-notebook is not "
            "installed in its environment, or is too old. Run `pip install -U mcp-notebook` there, "
            "and restart the server."
        )
    return RemoteError(
        f"{url} is not an MCP endpoint. Check the address: `mcp-notebook serve` and `%mcp serve` "
        "print theirs; for a Jupyter server, copy it from the browser. A server on Binder ends "
        "after some minutes without use, and its address with it: start it again."
    )
