"""What a connection to the bridge does, seen by a server that speaks HTTP byte by byte."""

import asyncio
import contextlib
import os
from contextlib import asynccontextmanager
from itertools import product

import anyio
import pytest
from live import TIMEOUT

from mcp_notebook.jupyter.bridge_connections import (
    KEEP_LIMIT,
    MAX_WAITING,
    TRANSITIONS,
    BridgeConnections,
    BridgeLost,
    Event,
    State,
)

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Bridge:
    """A server on loopback; a test writes its answers itself."""

    def __init__(self):
        self.accepted = asyncio.Queue()
        self.writers = []

    @property
    def count(self):
        """How many connections there were."""
        return len(self.writers)

    async def take(self, reader, writer):
        self.writers.append(writer)
        await self.accepted.put((reader, writer))

    async def answer(self, *pieces):
        """Read the next request of a new connection, answer it, and return its bytes."""
        reader, writer = await self.accepted.get()
        return await answer(reader, writer, *pieces), reader, writer


async def answer(reader, writer, *pieces):
    """Read a request, and write the pieces of an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    body = await reader.readexactly(int(length or 0))
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    return head + body


@pytest.fixture(params=["socket", "port"])
async def bridge(request, tmp_path):
    bridge = Bridge()
    if request.param == "port":
        server = await asyncio.start_server(bridge.take, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[1]
    elif os.name == "nt":
        pytest.skip("there are no Unix sockets")
    else:
        address = str(tmp_path / "bridge.sock")
        server = await asyncio.start_unix_server(bridge.take, address)
    bridge.connections = BridgeConnections(address, "the-token")
    bridge.address = address
    with anyio.fail_after(TIMEOUT):
        yield bridge
    bridge.connections.close()
    server.close()
    for writer in bridge.writers:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def asked(bridge, *pieces, conversation=None):
    """Send a request, and yield its answer and the other end of its connection."""

    async def serve():
        nonlocal conversation
        if conversation is None:
            conversation = await bridge.accepted.get()
        await answer(*conversation, *pieces)

    serving = asyncio.ensure_future(serve())
    fields = [(b"Accept", b"text/event-stream")]
    async with bridge.connections.exchange("POST", "/mcp", fields, b'{"id":1}') as reply:
        await serving
        yield reply, conversation


async def read(reply):
    parts = []
    while part := await reply.take():
        parts.append(part)
    return b"".join(parts)


async def test_the_request_is_sent_unchanged_behind_the_bridges_own_token(bridge):
    serving = asyncio.ensure_future(bridge.answer(OK))
    fields = [(b"Mcp-Name", b"caf\xe9"), (b"X", b"")]
    async with bridge.connections.exchange("POST", "/mcp/a%20b", fields, b"\x00\xff") as reply:
        assert (reply.status, await read(reply)) == (200, b"{}")
        assert (b"content-type", b"application/json") in reply.fields
    request, *_ = await serving
    assert request == (
        b"POST /mcp/a%20b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer the-token\r\n"
        b"Mcp-Name: caf\xe9\r\nX: \r\nContent-Length: 2\r\n\r\n\x00\xff"
    )


async def test_a_request_without_a_body_announces_none(bridge):
    serving = asyncio.ensure_future(bridge.answer(OK))
    async with bridge.connections.exchange("GET", "/mcp", [], b"") as reply:
        await read(reply)
    request, *_ = await serving
    assert b"content-length" not in request.lower()


async def test_requests_one_after_the_other_share_a_connection(bridge):
    conversation = None
    for pieces in ([OK], [CHUNKED, b"2\r\n{}\r\n0\r\n\r\n"], [OK]):
        async with asked(bridge, *pieces, conversation=conversation) as (reply, conversation):
            assert await read(reply) == b"{}"
    assert bridge.count == 1


async def test_a_stream_passes_on_each_event_when_it_comes(bridge):
    async with asked(bridge, CHUNKED) as (reply, (_, writer)):
        assert not reply.has_part
        for event in (b"event: one\n\n", b"event: two\n\n"):
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            assert await reply.take() == event
        writer.write(b"0\r\n\r\n")
        assert await reply.take() == b""


async def test_leaving_an_exchange_before_its_end_closes_the_connection_at_once(bridge):
    async with asked(bridge, CHUNKED, b"2\r\n{}\r\n") as (reply, (reader, _)):
        assert await reply.take() == b"{}"
    assert await reader.read() == b""


async def test_a_task_that_is_cancelled_while_it_waits_closes_the_connection_at_once(bridge):
    async def ask():
        async with bridge.connections.exchange("POST", "/mcp", [], b"{}"):
            pass

    asking = asyncio.ensure_future(ask())
    _, reader, _ = await bridge.answer()
    asking.cancel()
    assert await reader.read() == b""
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_while_nobody_takes_the_body_the_bridge_cannot_write_more(bridge):
    size = 64 * MAX_WAITING
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size
    async with asked(bridge, head) as (reply, (_, writer)):
        writer.write(bytes(size))
        writing = asyncio.ensure_future(writer.drain())
        first = await reply.take()
        await asyncio.wait([writing], timeout=0.2)  # nothing tells that it goes on waiting
        assert not writing.done()
        assert len(first) + len(await read(reply)) == size
        await writing


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"HTTP/1.1 200 OK\r\ncontent-le"],
        [OK[:-1]],
        [CHUNKED, b"5\r\n{}"],
        [CHUNKED, b"2\r\n{}\r\n"],
        [b"HTTP/1.1 200 OK\r\n\r\n{}"],
    ],
)
async def test_an_answer_that_is_cut_off_is_an_error(bridge, pieces):
    async def ask():
        async with bridge.connections.exchange("POST", "/mcp", [], b"{}") as reply:
            await read(reply)

    asking = asyncio.ensure_future(ask())
    _, _, writer = await bridge.answer(*pieces)
    writer.close()
    with pytest.raises(BridgeLost):
        await asking


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\n",
        CHUNKED + b"two\r\n",
    ],
)
async def test_an_answer_that_is_not_http_is_an_error(bridge, answer):
    async def ask():
        async with bridge.connections.exchange("POST", "/mcp", [], b"{}") as reply:
            await read(reply)

    asking = asyncio.ensure_future(ask())
    await bridge.answer(answer)
    with pytest.raises(BridgeLost):
        await asking


async def test_a_bridge_that_does_not_listen_is_an_error(tmp_path):
    for address in [str(tmp_path / "none.sock")] if os.name != "nt" else []:
        with pytest.raises(BridgeLost):
            async with BridgeConnections(address, "").exchange("GET", "/mcp", [], b""):
                pass


# -- which connections are kept --------------------------------------------------------------------


@pytest.mark.parametrize(
    "after",
    [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"garbage", None],
    ids=["an answer that nobody asked for", "garbage", "its end"],
)
async def test_a_connection_on_which_something_came_between_is_not_used_again(bridge, after):
    async with asked(bridge, OK) as (reply, (reader, writer)):
        await read(reply)
    if after is None:
        writer.close()
    else:
        writer.write(after)
        assert await reader.read() == b"", "it was closed"
    while reply.is_free:  # noqa: ASYNC110 - the event loop has no event for it
        await asyncio.sleep(0)
    async with asked(bridge, OK) as (reply, _):
        assert await read(reply) == b"{}"
    assert bridge.count == 2


async def test_a_connection_that_the_bridge_wants_to_close_is_not_used_again(bridge):
    closing = OK.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
    async with asked(bridge, closing) as (reply, (reader, _)):
        assert await read(reply) == b"{}"
    assert await reader.read() == b""
    async with asked(bridge, OK) as (reply, _):
        assert await read(reply) == b"{}"


async def test_a_connection_that_was_free_for_long_is_not_used_again(bridge):
    assert KEEP_LIMIT < 5, "uvicorn closes it then"
    bridge.connections = BridgeConnections(bridge.address, "the-token", keep_limit=0.0)
    async with asked(bridge, OK) as (reply, (reader, _)):
        await read(reply)
    async with asked(bridge, OK) as (reply, _):
        assert await read(reply) == b"{}"
    assert await reader.read() == b""
    assert bridge.count == 2


def test_only_the_events_of_the_table_lead_anywhere():
    allowed = {(state, event) for state, events in TRANSITIONS.items() for event in events}
    assert {state for state, event in allowed if event is Event.CLOSE} == {*State}
    for state, event in product(State, {*Event} - {Event.CLOSE}):
        expected = {
            Event.SEND: {State.FREE},
            Event.HEAD_ENDS: {State.HEAD},
            Event.BODY_PART: {State.BODY},
            Event.END: {State.BODY},
        }[event]
        assert ((state, event) in allowed) is (state in expected)
