"""Frames come whole and in their order, whoever sends them and however slowly the bridge reads."""

import asyncio
import contextlib
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_notebook.kernel.link import frame_sender
from mcp_notebook.kernel.link.frame_sender import FrameSender

LIMIT = 30
NO_DELAY = socket.IPPROTO_TCP, socket.TCP_NODELAY
LARGE = 8 * 2**20
"""Bytes: more than a socket takes before anything is read."""


class Connection:
    """A sender on a loop in a thread, and the socket of the bridge at the other end."""

    def __init__(self):
        self._ours, self.bridge = socket.socketpair()
        self.bridge.settimeout(LIMIT)
        self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self.loop = self._runner.get_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.reader, self.writer = self.run(self._connect())
        self.sender = self.on_loop(FrameSender, self.writer.transport)

    async def _connect(self):
        return await asyncio.open_connection(sock=self._ours)

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(LIMIT)

    def on_loop(self, function, *arguments):
        async def call():
            return function(*arguments)

        return self.run(call())

    async def close_when_ended(self):
        await self.reader.read()
        self.sender.close()

    def close(self):
        self.on_loop(self.sender.close)
        self.bridge.close()
        self.run(asyncio.sleep(0))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(LIMIT)
        self._runner.close()


@pytest.fixture
def connection():
    connection = Connection()
    yield connection
    connection.close()


def receive(connection, size):
    """Return so many bytes that the bridge was sent."""
    received = bytearray()
    while len(received) < size:
        received += connection.bridge.recv(2**16)
    return bytes(received)


def test_over_tcp_a_frame_does_not_wait_until_the_one_before_has_come():
    """By Nagle's algorithm it would, and that is told after 40 milliseconds or more."""

    async def connect():
        accepted = asyncio.Queue()
        listener = socket.create_server(("127.0.0.1", 0))  # as the endpoint makes it
        server = await asyncio.start_server(lambda _, writer: accepted.put(writer), sock=listener)
        async with server:
            with socket.create_connection(listener.getsockname()):
                writer = await accepted.get()
                sender = FrameSender(writer.transport)
                delays = [not each.getsockopt(*NO_DELAY) for each in sender.sockets]
                sender.close()
                writer.close()
                await writer.wait_closed()
        return delays

    assert asyncio.run(connect()) == [False, False]


def test_a_thread_sends_while_the_loop_is_busy(connection):
    may_go_on = threading.Event()
    connection.loop.call_soon_threadsafe(may_go_on.wait, LIMIT)
    connection.sender.send([b"head", b"attachment"])
    assert receive(connection, 14) == b"headattachment"
    may_go_on.set()


def test_what_the_bridge_does_not_take_at_once_comes_before_what_is_sent_later(connection):
    connection.sender.send([b"a" * LARGE])
    assert 0 < connection.sender.backlog < LARGE
    connection.on_loop(connection.sender.send, [b"b" * 10])
    connection.sender.send([b"c" * LARGE, b"d"])
    received = receive(connection, 2 * LARGE + 11)
    assert received == b"a" * LARGE + b"b" * 10 + b"c" * LARGE + b"d"
    connection.on_loop(lambda: None)
    assert connection.sender.backlog == 0
    connection.sender.send([b"e"])
    assert receive(connection, 1) == b"e"


def test_frames_of_many_threads_are_not_mixed(connection):
    frames = [[bytes([number]) * 100, bytes([number]) * 30_000] for number in range(1, 9)]

    def send(frame):
        for _ in range(20):
            connection.sender.send(frame)

    with ThreadPoolExecutor(len(frames)) as threads:
        sending = [threads.submit(send, frame) for frame in frames]
        received = receive(connection, len(frames) * 20 * 30_100)
        for future in sending:
            future.result(LIMIT)
    parts = [received[start : start + 30_100] for start in range(0, len(received), 30_100)]
    assert all(part == part[:1] * 30_100 for part in parts)
    assert sorted(part[0] for part in parts) == sorted(20 * list(range(1, 9)))


def test_what_waits_is_still_sent_when_the_connection_is_closed_and_nothing_more(connection):
    connection.sender.send([b"a" * LARGE])
    connection.on_loop(connection.sender.close)
    connection.sender.send([b"b"])
    assert receive(connection, LARGE) == b"a" * LARGE
    assert connection.bridge.recv(1) == b""


def test_a_bridge_that_has_gone_ends_the_connection(connection):
    connection.bridge.close()
    connection.sender.send([b"a"])
    connection.sender.send([b"a"])
    assert connection.run(connection.reader.read()) == b""
    assert connection.sender.backlog == 0


def test_nothing_waits_for_a_bridge_that_goes_without_reading(connection):
    connection.sender.send([b"a" * LARGE])
    connection.bridge.close()
    with contextlib.suppress(ConnectionError):
        connection.run(connection.reader.read())
    connection.on_loop(lambda: None)
    connection.sender.send([b"a"])
    assert connection.sender.backlog == 0


def test_a_connection_that_is_closed_before_the_loop_looks_at_it_is_left_alone(connection):
    """Its number may be somebody else's by then."""

    def give_up_and_close():
        connection.sender.send([b"a" * LARGE])
        connection.sender._give_up()  # as if it had been interrupted
        number = connection.sender.sockets[1].fileno()
        connection.sender.close()
        pair = socket.socketpair()
        assert number in {end.fileno() for end in pair}
        return number, pair

    number, pair = connection.on_loop(give_up_and_close)
    try:
        assert connection.on_loop(connection.loop.remove_writer, number) is False
    finally:
        for end in pair:
            end.close()


@contextlib.contextmanager
def interrupt_after(count):
    """Interrupt the sender in the block when it has called so many functions, as a signal does."""

    def profile(frame, event, _function):
        nonlocal count
        if event == "c_return" and frame.f_code.co_filename == frame_sender.__file__:
            count -= 1
            if count == 0:
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("size", [10, LARGE])
def test_an_interrupt_while_a_frame_is_sent_never_silences_the_link(size):
    for count in range(1, 100):
        connection = Connection()
        asyncio.run_coroutine_threadsafe(connection.close_when_ended(), connection.loop)
        try:
            with interrupt_after(count):
                connection.sender.send([b"a" * size, b"b"])
        except KeyboardInterrupt:
            connection.sender.send([b"c"])
            while connection.bridge.recv(2**20)[-1:] not in {b"c", b""}:
                pass
        else:
            return
        finally:
            connection.close()
    pytest.fail("the sender calls more functions than are interrupted here")
