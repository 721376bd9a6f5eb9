"""Finds the MCP endpoint among the candidate URLs of an address, before any message is forwarded.

Runs on the event loop of `mcp-notebook connect`. It sends ``server/discover`` to each candidate:
mcp-notebook's answer names it. Another program may have the address: other extensions of Jupyter
serve MCP, too.
"""

from http import HTTPStatus

import anyio
import httpx2

from mcp_notebook._version import __version__
from mcp_notebook.bridge.connect.addresses import OWN_PATH, Address
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.failures import explain_status, explain_token
from mcp_notebook.bridge.connect.messages import Message, as_object, make_message
from mcp_notebook.bridge.connect.remote import ANSWER_LIMIT, Remote, Reply, explain_reply
from mcp_notebook.errors import RemoteError, Unreachable
from mcp_notebook.protocol.versions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LATEST_MODERN,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    SERVER_NAME,
)

_ABSENT = (404, 405)
_OWN_ADDRESS = (
    "On a Jupyter server, the address of mcp-notebook ends in /mcp-notebook, if it is installed "
    "there."
)
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
        RemoteError: There is no endpoint of mcp-notebook, it cannot be reached, or it does not
            accept the token.
    """
    refusals, others = [], []
    for url in address.endpoints:
        remote = Remote(http, url, credentials)
        reply = await _ask(remote)
        if isinstance(reply, Reply) and reply.location == f"{url}/":  # only a slash is added
            remote = Remote(http, reply.location, credentials)
            reply = await _ask(remote)
        if isinstance(reply, Message):
            name = _read_server_name(reply)
            if name == SERVER_NAME:
                return remote
            others.append(
                f"{remote.url} belongs to {name or 'another MCP server'}, not to mcp-notebook."
            )
            continue
        refusals.append((remote, reply))
        if url.startswith(f"{address.server}/{OWN_PATH}") and reply.status not in _ABSENT:
            break  # our path: its refusal counts, and no other server needs the token
    else:
        if others:
            raise RemoteError(f"{others[0]} {_OWN_ADDRESS}")
    remote, reply = min(refusals, key=lambda refusal: refusal[1].status in _ABSENT)
    if reply.status in _ABSENT and not reply.words:
        raise await _explain_absence(http, address, credentials)
    raise await explain_reply(remote, reply)


async def _ask(remote: Remote) -> Message | Reply:
    """Return the message of a URL that is an endpoint, or else the reply."""
    with anyio.move_on_after(ANSWER_LIMIT):
        async with remote.post(_QUESTION.body, _QUESTION.headers) as reply:
            if reply.status not in (401, 403):
                async for message in reply.read():
                    return message
            return reply
    raise Unreachable(
        f"{remote.url} did not answer within {ANSWER_LIMIT:g} seconds. Check that the server is "
        "running: open it in the browser."
    )


def _read_server_name(answer: Message) -> str | None:
    """Return the name of the server that answered; None if it does not say it."""
    meta = as_object(answer.result.get("_meta"))
    name = as_object(meta.get(SERVER_INFO_KEY)).get("name")
    return name if isinstance(name, str) and name.isprintable() else None


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
        about = await reply.read_object()
    if reply.status == HTTPStatus.OK and "version" in about:
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
