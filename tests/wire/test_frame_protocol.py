"""The frames of a connection are handed over whole, in order, and each as soon as it is there."""

import asyncio
import socket
import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_values import frame_header, join_frame, streams

from mcp_notebook.content import Image, Result
from mcp_notebook.errors import FrameError
from mcp_notebook.wire import content_blocks, messages
from mcp_notebook.wire.frames import FrameProtocol

LIMIT = 30
FIRST, SECOND = messages.Goodbye(reason="first"), messages.Goodbye(reason="second")


def receive(chunks, take=None, *, first=0):
    """Return what comes of a stream: the first frames by `read`, all others by `listen`."""
    arrivals, ends = [], []

    async def converse(protocol):
        try:
            while len(arrivals) < first:
                arrivals.append(await protocol.read())
            await protocol.listen(take or (lambda *frame: arrivals.append(frame)))
        except FrameError as error:
            ends.append(error)

    async def feed():
        protocol = FrameProtocol(converse)
        transport = asyncio.Transport()
        protocol.connection_made(transport)
        assert protocol.transport is transport
        for chunk in chunks:
            protocol.data_received(chunk)
            await asyncio.sleep(0)
        assert protocol.eof_received()
        protocol.connection_lost(None)
        async with asyncio.timeout(LIMIT):
            await protocol._task

    asyncio.run(feed())
    return arrivals, ends


@given(st.lists(streams, min_size=1, max_size=3), st.data())
def test_frames_arrive_as_they_were_sent_wherever_the_stream_is_cut(parts, data):
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) if a < b]
    whole, _ = receive(parts)
    assert receive(chunks) == (whole, [])
    assert len(whole) == len(parts)


def test_a_frame_is_handed_over_before_the_loop_goes_on():
    async def converse(protocol):
        await protocol.listen(lambda message, _: arrivals.append(message))

    async def feed():
        protocol = FrameProtocol(converse)
        protocol.connection_made(asyncio.Transport())
        await asyncio.sleep(0)
        protocol.data_received(join_frame(FIRST) + join_frame(SECOND)[:-1])
        assert arrivals == [FIRST]
        protocol.data_received(join_frame(SECOND)[-1:])
        assert arrivals == [FIRST, SECOND]
        protocol.connection_lost(None)
        await protocol._task

    arrivals = []
    asyncio.run(feed())


def test_a_stream_that_ends_within_a_frame_ends_as_any_other():
    stream = join_frame(FIRST) + join_frame(SECOND)[:-1]
    assert receive([stream]) == ([(FIRST, [])], [])
    assert receive([stream], first=3) == ([(FIRST, []), None, None], [])


@pytest.mark.parametrize("bad", [frame_header(b"{}"), frame_header(b""), b"\xff\xff\xff\xff"])
@pytest.mark.parametrize("first", [0, 2])
def test_an_invalid_frame_ends_the_stream_after_the_frames_before_it(bad, first):
    arrivals, ends = receive([join_frame(FIRST) + bad + join_frame(SECOND)], first=first)
    assert arrivals == [(FIRST, [])]
    assert [type(end) for end in ends] == [FrameError]


@pytest.mark.parametrize(
    ("error", "is_raised"), [(ConnectionResetError(), False), (TimeoutError(), True)]
)
def test_a_connection_that_fails_ends_as_any_unless_the_other_side_may_still_be_there(
    error, is_raised
):
    async def listen():
        async def converse(protocol):
            await protocol.listen(lambda *_: None)

        protocol = FrameProtocol(converse)
        protocol.connection_made(asyncio.Transport())
        await asyncio.sleep(0)
        protocol.connection_lost(error)
        await asyncio.wait([protocol._task])
        return protocol._task.exception()

    assert asyncio.run(listen()) is (error if is_raised else None)


def test_what_the_taker_raises_ends_the_stream():
    def take(message, _attachments):
        taken.append(message)
        raise FrameError("not that one")

    taken = []
    _, ends = receive([b"", join_frame(FIRST) + join_frame(SECOND)], take)
    assert taken == [FIRST]
    assert str(ends[0]) == "not that one"


def test_frames_arrive_on_the_loop_of_the_bridge():
    uvloop = pytest.importorskip("uvloop")
    ours, theirs = socket.socketpair()

    async def read():
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(FrameProtocol, sock=ours)
        protocol.transport.write(b"hello")
        theirs.sendall(join_frame(FIRST) + join_frame(SECOND))
        theirs.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(LIMIT):
            await protocol.listen(lambda message, _: arrivals.append(message))
        protocol.transport.close()

    arrivals = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(read())
    assert theirs.recv(100) == b"hello"
    theirs.close()
    assert arrivals == [FIRST, SECOND]


def test_a_large_attachment_takes_its_size_once():
    size = 30_000_000
    frame = join_frame(*content_blocks.pack_result(1, Result([Image(bytes(size))])))
    ours, theirs = socket.socketpair()
    sizes = []

    async def converse(protocol):
        _, attachments = await protocol.read()
        sizes.extend(map(len, attachments))
        protocol.transport.close()

    async def read():
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(lambda: FrameProtocol(converse), sock=ours)
        async with asyncio.timeout(LIMIT):
            await protocol._task

    sender = threading.Thread(target=theirs.sendall, args=[frame])
    sender.start()
    tracemalloc.start()
    asyncio.run(read())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sender.join()
    theirs.close()
    assert sizes == [size]
    assert peak < 1.5 * size
