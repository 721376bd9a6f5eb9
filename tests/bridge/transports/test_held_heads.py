"""The head of a response leaves together with its body, and alone if nothing follows at once."""

import asyncio
import socket

import anyio
import pytest
from bridges import LIMIT

from mcp_notebook.bridge.transports.held_heads import HeldHeads

pytestmark = pytest.mark.anyio
HEAD, BODY = b"HTTP/1.1 200 OK\r\n\r\n", b"body"


class Transport:
    """Notes what a connection does."""

    def __init__(self):
        self.done = []

    def write(self, data):
        self.done.append(data)

    def writelines(self, lines):
        self.done.append(b"".join(lines))

    def close(self):
        self.done.append("closed")

    def is_closing(self):
        return "closed" in self.done


class Protocol(asyncio.Protocol):
    """Says when its connection is closed."""

    def __init__(self):
        self.lost = asyncio.Event()

    def connection_lost(self, exc):  # noqa: ARG002
        self.lost.set()


@pytest.fixture
def transport():
    return Transport()


async def test_a_head_and_a_body_leave_together(transport):
    held = HeldHeads(transport)
    held.write(HEAD)
    held.write(BODY)
    held.write(BODY)
    assert transport.done == [HEAD + BODY, BODY]
    await anyio.lowlevel.checkpoint()
    assert transport.done == [HEAD + BODY, BODY]


async def test_a_head_of_a_silent_stream_leaves_alone(transport):
    HeldHeads(transport).write(HEAD)
    await anyio.wait_all_tasks_blocked()
    assert transport.done == [HEAD]


async def test_a_head_leaves_before_the_connection_closes(transport):
    held = HeldHeads(transport)
    held.write(HEAD)
    held.close()
    await anyio.wait_all_tasks_blocked()
    assert transport.done == [HEAD, "closed"]
    assert held.is_closing()


async def test_a_response_without_a_body_leaves_nothing_that_waits():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(Protocol, sock=ours)
        held = HeldHeads(transport)
        held.write(HEAD)
        held.write(b"")
        held.close()
        with anyio.fail_after(LIMIT):
            await protocol.lost.wait()
            assert await loop.sock_recv(theirs, 100) == HEAD
            assert await loop.sock_recv(theirs, 100) == b""
