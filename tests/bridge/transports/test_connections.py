"""What a client without the token can cost: memory, time, and the connections of others."""

import contextlib
import http.client
import json
import re
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import psutil
import pytest
from bridges import FEW_DESCRIPTORS, INITIALIZE, LIMIT, TOKEN, ask, bridge
from endpoints import served

from mcp_notebook.bridge.access.authenticator import OwnToken
from mcp_notebook.bridge.transports import connections
from mcp_notebook.bridge.transports.connections import MAX_HEAD, MAX_HEADERS

HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
WITH_TOKEN = (
    f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    "Accept: application/json, text/event-stream\r\nExpect: 100-continue\r\n\r\n"
).encode()
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BODY = 1000
"""Length of a body, with space at its end."""
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def running(module_home):
    """A bridge with few descriptors; its lines are refusals."""
    env = {"MCP_NOTEBOOK_TOKEN": TOKEN}
    with bridge(module_home, "serve", "--port", "0", env=env, command=FEW_DESCRIPTORS) as running:
        assert ask(running.url).status == 200
        yield running
        status, _ = running.end()
        assert status == 0, running.said[-6000:]
        lines = running.said.splitlines()[4:]
        assert all(
            re.search(r" refused a request from |^refused \d+ more ", line) for line in lines
        )


def _connect(url):
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=LIMIT)


def _read(client):
    """Return all that the bridge says until it closes the connection."""
    said = b""
    try:
        while data := client.recv(65536):
            said += data
    except ConnectionError:
        pass  # it did not read all that was sent
    return said


def _next_answer(client):
    """Return the next answer, read to its end."""
    answer = http.client.HTTPResponse(client)
    answer.begin()
    answer.body = answer.read()
    return answer


def _most_memory(process):
    """Return the most memory that a process has ever had, where that is known."""
    if sys.platform != "linux":
        return process.memory_info().rss
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024


# -- one connection --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "more", "megabytes"),
    [
        (b"", b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 22),
        (HEAD + b"X: ", b"y", 60),
        (HEAD, b"y", 60),
        (HEAD, b"a:b\r\n", 60),
        (b"GET /", b"y", 60),
        (CHUNKED + b"1;", b"y", 60),
        (CHUNKED + b"0\r\n", b"a:b\r\n", 60),
        (CHUNKED + b"0\r\nX: ", b"y", 60),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", b"y", 60),
        (b"", b"\r\n", 60),
    ],
    ids=[
        "requests",
        "a header",
        "a header's name",
        "headers",
        "an address",
        "a chunk's extension",
        "trailers",
        "a trailer",
        "a body",
        "blank lines",
    ],
)
def test_an_endless_request_without_the_token_takes_neither_memory_nor_the_time_of_others(
    running, start, more, megabytes
):
    process = psutil.Process(running.process.pid)
    before = _most_memory(process)
    piece = more * (2**16 // len(more))
    with _connect(running.url) as client:
        try:
            client.sendall(start)
            for _ in range(megabytes * MEGABYTE // len(piece)):
                client.sendall(piece)
        except ConnectionError:
            pass
        assert ask(running.url).status == 200
    assert _most_memory(process) - before < 10 * MEGABYTE


@pytest.mark.parametrize(("start", "status"), [(HEAD + b"X: ", 431), (b"GET /", 414)])
def test_a_head_that_is_too_long_is_told_so(running, start, status):
    with _connect(running.url) as client:
        # The last byte is the one too many: none is left unread, which would reset the answer.
        client.sendall(start + b"y" * (MAX_HEAD + 1 - len(start)))
        answer = _next_answer(client)
        assert (answer.status, answer.headers["Connection"]) == (status, "close")
        assert client.recv(1) == b""


def test_an_endless_chunk_is_refused_even_with_the_token(running):
    with _connect(running.url) as client:
        client.sendall(CHUNKED[:-2] + WITH_TOKEN)
        assert client.recv(1000) == CONTINUE
        client.sendall(b"1;" + b"y" * (MAX_HEAD - 1))
        assert _next_answer(client).status == 400
        assert client.recv(1) == b""


def test_a_request_has_a_bounded_number_of_headers(running):
    with _connect(running.url) as client:
        client.sendall(HEAD + b"a: b\r\n" * (MAX_HEADERS - 1) + b"\r\n")
        assert _next_answer(client).status == 401
        client.sendall(HEAD + b"a: b\r\n" * MAX_HEADERS + b"c")
        assert _next_answer(client).status == 431


@pytest.mark.parametrize(("token", "status"), [(TOKEN, 404), ("wrong", 401)])
def test_a_request_that_does_not_await_the_last_answer_ends_the_connection_after_it(
    running, token, status
):
    with _connect(running.url) as client:
        client.sendall(_request(token) * 3)
        assert _next_answer(client).status == status
        assert _read(client) == b""


@pytest.mark.parametrize(("token", "status"), [(TOKEN, 404), ("wrong", 401)])
def test_a_connection_serves_one_request_after_the_other(running, token, status):
    with _connect(running.url) as client:
        for _ in range(50):
            client.sendall(_request(token))
            assert _next_answer(client).status == status


def _request(token=TOKEN):
    return f"GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


# -- all of them together --------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="its test process has no limit to raise")
@pytest.mark.parametrize("strangers", [300, pytest.param(1300, marks=pytest.mark.slow)])
def test_whoever_has_the_token_connects_and_is_served_among_half_open_connections(
    running, strangers
):
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < strangers + 200:
        pytest.skip("too few descriptors for the clients")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, strangers + 200), hard))
    clients = []
    try:
        with _connect(running.url) as open_before:
            open_before.sendall(_request())
            assert _next_answer(open_before).status == 404
            for number in range(strangers):
                clients.append(_connect(running.url))
                if number % 2:
                    clients[-1].sendall(HEAD + b"X: ")
                if not number % 50:
                    open_before.sendall(_request())
                    assert _next_answer(open_before).status == 404
                    assert ask(running.url).status == 200
            assert psutil.Process(running.process.pid).num_fds() < 150
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.anyio
async def test_the_oldest_connection_without_the_token_makes_room(home, monkeypatch):
    monkeypatch.setattr(connections, "MAX_STRANGERS", 2)
    async with served(home) as here:
        _, stream = await here.open_stream()
        silent, begun, newer, newest = [_connect(here.url) for _ in range(4)]
        with stream, silent, begun, newer, newest:
            begun.sendall(HEAD)
            assert await anyio.to_thread.run_sync(_read, silent) == b""
            said = await anyio.to_thread.run_sync(_read, begun)
            assert said == b"" or said.startswith(b"HTTP/1.1 503 ")  # its head may have come later
            for client in (newer, newest):
                client.sendall(HEAD + b"\r\n")
                answer = await anyio.to_thread.run_sync(_next_answer, client)
                assert answer.status == 401
            assert _is_open(stream)


class _Slow(OwnToken):
    """Tells whose a token is when it is allowed to, as one that asks another server."""

    def __init__(self):
        super().__init__(TOKEN)
        self.may_answer = anyio.Event()
        self.may_answer.set()
        self.is_asked = anyio.Event()

    def stop(self):
        """Do not answer from now on."""
        self.may_answer = anyio.Event()
        self.is_asked = anyio.Event()

    async def authenticate(self, token):
        self.is_asked.set()
        await self.may_answer.wait()
        return await super().authenticate(token)


@pytest.mark.anyio
async def test_a_connection_that_makes_room_while_its_token_is_looked_at_is_not_cut_off_later(
    home, monkeypatch
):
    monkeypatch.setattr(connections, "MAX_STRANGERS", 1)
    slow = _Slow()
    async with served(home, authenticators=[slow]) as here:
        session = await here.open_session()
        monkeypatch.setattr(connections, "_CLOSE_LIMIT", 0.2)

        async def begin_stream():
            slow.stop()
            client = here.connect(f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session}")
            await slow.is_asked.wait()
            return client

        while True:
            stream = await begin_stream()
            with _connect(here.url) as newer:
                newer.sendall(HEAD + b"\r\n")
                assert (await anyio.to_thread.run_sync(_next_answer, newer)).status == 401
                slow.may_answer.set()
                if b" 200 " in await anyio.to_thread.run_sync(_receive, stream):
                    break
            stream.close()  # a slow machine: it was too late
        with stream, await begin_stream() as later, _connect(here.url):
            assert await anyio.to_thread.run_sync(_read, later) == b""  # its time is over
            assert _is_open(stream)


def _is_open(client):
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


# -- time ------------------------------------------------------------------------------------------


@pytest.fixture
def hurried(monkeypatch):
    """Let strangers have a tenth of a second."""
    monkeypatch.setattr(connections, "PROOF_LIMIT", 0.1)


def _drip(url):
    """Send a head byte by byte until there is an answer, and return that."""
    while True:
        with _connect(url) as client:
            client.settimeout(0.01)
            try:
                client.sendall(HEAD + b"X:")
                while True:
                    client.sendall(b"y")
                    with contextlib.suppress(TimeoutError):
                        if answer := client.recv(1000):
                            return answer
                        break  # a slow machine: nothing had come in time
            except ConnectionError:
                pass  # the same


@pytest.mark.anyio
async def test_a_head_that_comes_slowly_is_refused_in_time(home, hurried, caplog):
    async with served(home) as here:
        said = await anyio.to_thread.run_sync(_drip, here.url, abandon_on_cancel=True)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert caplog.messages[-1].endswith("it has not come within 0.1 s")


@pytest.mark.anyio
async def test_a_connection_that_never_says_a_word_ends_without_one(home, hurried, caplog):
    async with served(home) as here:
        with _connect(here.url) as silent:
            assert await anyio.to_thread.run_sync(_read, silent) == b""
    assert not caplog.messages


@pytest.mark.anyio
@pytest.mark.parametrize("request_", [HEAD + b"\r\n", HEAD + b"Content-Length: 9\r\n\r\n"])
async def test_a_refused_request_does_not_keep_its_connection(home, hurried, request_):
    async with served(home) as here:
        with _connect(here.url) as refused:
            refused.sendall(request_)
            said = await anyio.to_thread.run_sync(_read, refused)
    assert not said or said.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 408 "))


@pytest.mark.anyio
async def test_a_client_that_has_shown_the_token_may_take_its_time(home, monkeypatch):
    """An open stream and a body that comes slowly outlast a stranger who came after them."""
    async with served(home) as here:
        _, stream = await here.open_stream()
        monkeypatch.setattr(connections, "PROOF_LIMIT", 0.1)
        with stream:
            client = await _begin_body(here)
            with client, _connect(here.url) as stranger:
                assert await anyio.to_thread.run_sync(_read, stranger) == b""
                client.sendall(json.dumps(INITIALIZE).ljust(BODY).encode())
                answer = await anyio.to_thread.run_sync(_next_answer, client)
                assert answer.status == 200
            assert _is_open(stream)


async def _begin_body(here):
    """Return a connection whose request with the token awaits its body."""
    while True:
        client = _connect(here.url)
        client.sendall(HEAD + f"Content-Length: {BODY}\r\n".encode() + WITH_TOKEN)
        if await anyio.to_thread.run_sync(_receive, client) == CONTINUE:
            return client
        client.close()  # a slow machine: the head has come too late


def _receive(client):
    try:
        return client.recv(1000)
    except ConnectionError:
        return b""
