"""One request to the remote server, and all that comes back until its answer.

Runs on the event loop of `mcp-notebook connect`. A stream that ends before the answer is resumed
where the server can do that, as MCP says up to 2025-11-25. What else to do about a failure is the
business of `relay`.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from http import HTTPStatus

import anyio

from mcp_notebook.bridge.connect.addresses import find_hub
from mcp_notebook.bridge.connect.failures import explain_status
from mcp_notebook.bridge.connect.messages import Message, replace_id
from mcp_notebook.bridge.connect.remote import Remote, Reply
from mcp_notebook.errors import ConnectionLost, RemoteError, SessionLost

SESSION_HEADER = "Mcp-Session-Id"
Forward = Callable[[Message, Reply], Awaitable[None]]
"""Takes a message, and the reply that it is from."""
STEADY = 30.0
"""Seconds after which a stream that ends is no reason to wait longer than usual."""
_LONGEST_PAUSE = 10.0
_HUBS_PAGE = "/hub/user/"
"""In the address of the page that a Hub has in place of a server that does not run."""
_ENDED = "The connection to {} ended before the answer came."


def list_pauses() -> Iterator[float]:
    """Yield the seconds to wait between attempts."""
    pause = 0.1
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


async def exchange(
    remote: Remote, request: Message, headers: Mapping[str, str], forward: Forward
) -> None:
    """Send a request, and forward what comes back until its answer.

    Args:
        remote: The server.
        request: The request.
        headers: Those of MCP.
        forward: Gets the messages; the answer has the id of the request.

    Raises:
        RemoteError: There is no answer.
    """
    async with remote.post(request.body, headers) as reply:
        check_session(reply, headers, remote)
        if await _forward_all(reply, request, forward):
            return
        if reply.status != HTTPStatus.OK:
            raise await explain_reply(remote, reply)
    while reply.last_id:
        await anyio.sleep(reply.retry)
        resumption = {**headers, "Last-Event-ID": reply.last_id}
        async with remote.listen(resumption) as reply:
            if reply.status != HTTPStatus.OK:
                break
            if await _forward_all(reply, request, forward):
                return
    raise ConnectionLost(_ENDED.format(remote.url))


async def ask(
    remote: Remote, request: Message, headers: Mapping[str, str]
) -> tuple[Message, Reply]:
    """Send a request that the client knows nothing of, and return its answer.

    Raises:
        RemoteError: There is no answer.
    """
    answers: list[tuple[Message, Reply]] = []

    async def keep(message: Message, reply: Reply) -> None:
        if message.is_answer:
            answers.append((message, reply))

    await exchange(remote, request, headers, keep)
    return answers[-1]


async def explain_reply(remote: Remote, reply: Reply) -> RemoteError:
    """Return what a reply without a message of MCP means.

    A Hub that answers in place of a server that does not run refuses all that is posted, whatever
    the token, and leads what is read to a page of its own.
    """
    status, location = reply.status, reply.location
    if status == HTTPStatus.FORBIDDEN and find_hub(remote.url) is not None:
        async with remote.listen({"Accept": "*/*"}) as page:
            location = page.location
    if _HUBS_PAGE in location:
        status = HTTPStatus.FAILED_DEPENDENCY
    return explain_status(status, remote.url, remote.credentials, reply.location, reply.words)


def check_session(reply: Reply, headers: Mapping[str, str], remote: Remote) -> None:
    """Check that the server knows the session, and the token.

    Raises:
        SessionLost: It does not know the session.
        RemoteError: It does not know the token.
    """
    if reply.status == HTTPStatus.NOT_FOUND and SESSION_HEADER in headers:
        raise SessionLost(f"The server at {remote.url} does not know this session any more.")
    if reply.status == HTTPStatus.UNAUTHORIZED:
        raise explain_status(reply.status, remote.url, remote.credentials)


async def _forward_all(reply: Reply, request: Message, forward: Forward) -> bool:
    """Forward messages, and return whether the answer was among them."""
    try:
        async for message in reply.read():
            if not message.is_answer:
                await forward(message, reply)
            elif message.is_answer_to(request):
                await forward(replace_id(message, request.id), reply)
                return True
    except ConnectionLost:
        if not reply.last_id:
            raise
    return False
