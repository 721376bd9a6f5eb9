"""What a client without the token can cost: memory, time, and the connections of others."""

import asyncio
import contextlib
import http.client
import json
import re
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import psutil
import pytest
from bridges import FEW_DESCRIPTORS, INITIALIZE, LIMIT, PING, TOKEN, ask, bridge
from endpoints import call, called, modern, served

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.access.gate import GUESTS_AT_ONCE, Gate
from mcp_notebook.bridge.access.token_check import NamedTokens, OwnToken
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.bridge.transports import connections, http_connection
from mcp_notebook.bridge.transports.connections import ConnectionLimits
from mcp_notebook.bridge.transports.http_connection import (
    MAX_HEAD,
    MAX_HEADERS,
    TRANSITIONS,
    ParserEvent,
    ReaderState,
)
from mcp_notebook.wire import messages

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


def test_the_table_names_every_state_and_whatever_is_read_may_be_refused():
    assert set(TRANSITIONS) == set(ReaderState)
    assert not TRANSITIONS[ReaderState.REFUSED]
    for state in set(ReaderState) - {ReaderState.REFUSED}:
        assert TRANSITIONS[state][ParserEvent.REFUSE] is ReaderState.REFUSED


@pytest.mark.slow
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
def test_a_client_with_the_token_is_served_among_half_open_connections(running, strangers):
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
async def test_the_oldest_connection_without_the_token_makes_room(home):
    async with served(home, connections=ConnectionLimits(max_unauthenticated=2)) as here:
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
        self.is_given_up = anyio.Event()

    def stop(self):
        """Do not answer from now on."""
        self.may_answer = anyio.Event()
        self.is_asked = anyio.Event()
        self.is_given_up = anyio.Event()

    async def authenticate(self, token):
        self.is_asked.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.is_given_up.set()
            raise
        return await super().authenticate(token)


@pytest.mark.anyio
async def test_a_connection_that_makes_room_while_its_token_is_looked_at_is_not_cut_off_later(home):
    slow, limits = _Slow(), ConnectionLimits(max_unauthenticated=1, close_timeout=0.2)
    async with served(home, authenticators=[slow], connections=limits) as here:
        session = await here.open_session()

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


# -- those of guests -------------------------------------------------------------------------------

WHOLE = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HELD = {
    "a head": (b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: "),
    "a blank line": (b"", b"\r\n"),
    "a body": (b"Content-Length: 50\r\n", WHOLE),
    "a body in chunks": (b"Transfer-Encoding: chunked\r\n", b"9\r\n{"),
    "a stream": (b"Mcp-Session-Id: %b\r\n", b""),
    "nothing": (b"", b""),
}
"""What a guest sends after its first request, to keep its connection: headers of a second one, and
what comes after its head."""


class Guest:
    """Somebody with a token of its own."""

    def __init__(self, url, token):
        self.url = url
        self.token = token

    def hold(self, way):
        """Return a connection that this guest keeps, or the status with which it is refused it."""
        headers, rest = HELD[way]
        client = _connect(self.url)
        client.sendall(_request(self.token))
        answer = _next_answer(client)
        if answer.status != 404:
            assert answer.headers["Connection"] == "close"
            assert b"Too many connections" in answer.body
            assert _read(client) == b""
            client.close()
            return answer.status
        if way == "a stream":
            answer = ask(self.url, headers={"Authorization": f"Bearer {self.token}"})
            if answer.status != 200:
                client.close()
                return answer.status
            headers %= answer.headers["Mcp-Session-Id"].encode()
        if headers:
            method = b"GET" if way == "a stream" else b"POST"
            head = _request(self.token).replace(b"GET /x", method + b" /mcp")
            kinds = b"Accept: text/event-stream, application/json\r\n"
            kinds += b"Content-Type: application/json\r\n"
            client.sendall(head[:-2] + kinds + headers + b"\r\n")
        client.sendall(rest)
        return client


@pytest.mark.slow
@pytest.mark.parametrize("way", HELD)
def test_the_user_is_served_however_many_connections_guests_try_to_keep(running, module_home, way):
    store = TokenStore(module_home / ".mcp-notebook" / "tokens.json")
    names = [f"{way.replace(' ', '-')}-{number}" for number in range(5)]
    guests = [Guest(running.url, store.add(name, Permissions(tools=("none",)))) for name in names]
    held, refused = [], 0
    try:
        for guest in guests * 40:
            client = guest.hold(way)
            if isinstance(client, int):
                assert client == 429
                refused += 1
            else:
                held.append(client)
        assert len(held) >= 100 or way == "nothing"
        assert refused or way == "nothing"
        assert ask(running.url).status == 200
        ours = [_connect(running.url) for _ in range(20)]
        held += ours
        for client in ours:
            client.sendall(_request())
            assert _next_answer(client).status == 404
    finally:
        for client in held:
            client.close()
        for name in names:
            store.remove(name)


@pytest.mark.anyio
async def test_a_guest_with_as_many_connections_as_it_may_have_is_refused_and_no_other(
    home, monkeypatch
):
    monkeypatch.setattr(connections, "_count_descriptors", lambda: 32)  # four for each guest
    store = TokenStore(home / "tokens.json")
    authenticators = (OwnToken(TOKEN), NamedTokens(store))
    async with served(home, authenticators=authenticators) as here:
        guests = [Guest(here.url, store.add(f"guest-{n}", EVERYTHING)) for n in range(5)]

        def hold(guest):
            return anyio.to_thread.run_sync(guest.hold, "a head")

        first = [await hold(guests[0]) for _ in range(6)]
        assert first[4:] == [429, 429]
        others = [await hold(guest) for guest in guests[1:] for _ in range(4)]
        # Of 20 connections, 15 are for guests.
        assert [item for item in others if isinstance(item, int)] == [429] * 5
        user = [await hold(Guest(here.url, TOKEN)) for _ in range(6)]
        assert [item for item in user if isinstance(item, int)] == [429]
        first[0].close()
        while isinstance(again := await hold(guests[0]), int):
            pass  # the end of the other one is noticed soon
        for client in (*first, *others, *user, again):
            if not isinstance(client, int):
                client.close()


@pytest.mark.anyio
async def test_a_connection_belongs_to_whose_request_came_last_over_it(home, monkeypatch):
    monkeypatch.setattr(connections, "_count_descriptors", lambda: 16)  # two for each guest
    store = TokenStore(home / "tokens.json")
    async with served(home, authenticators=(OwnToken(TOKEN), NamedTokens(store))) as here:
        tokens = [store.add(f"guest-{n}", EVERYTHING) for n in range(2)]

        def ask_over(client, token):
            client.sendall(_request(token))
            return _next_answer(client).status

        def ask_all():
            clients = [_connect(here.url) for _ in range(3)]
            said = [ask_over(client, tokens[0]) for client in clients[:2]]
            said.append(ask_over(clients[0], tokens[1]))
            said.append(ask_over(clients[2], tokens[0]))
            said.append(ask_over(clients[0], tokens[0]))
            for client in clients:
                client.close()
            return said

        assert await anyio.to_thread.run_sync(ask_all) == [404, 404, 404, 404, 429]


# -- what a flood costs ----------------------------------------------------------------------------


def _post(token, message, *headers):
    body = json.dumps(message).encode()
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.anyio
@pytest.mark.parametrize("token", [TOKEN, "wrong"])
async def test_nothing_is_done_for_a_client_that_has_gone_before_its_turn(home, caplog, token):
    async with served(home) as here:
        for _ in range(50):  # before the endpoint, in the same thread, can look at any
            with _connect(here.url) as client:
                client.sendall(_post(token, INITIALIZE))
        assert (await here.ask(INITIALIZE)).status == 200
        assert (len(here.endpoint._sessions), here.refusals) == (1, [])
    assert not caplog.messages


@pytest.mark.anyio
async def test_a_strangers_request_ends_with_its_connection(home):
    slow = _Slow()
    async with served(home, authenticators=[slow]) as here:
        for _ in range(20):
            slow.stop()
            with _connect(here.url) as client:
                client.sendall(_post("wrong", INITIALIZE))
                await slow.is_asked.wait()
            await slow.is_given_up.wait()


@pytest.mark.anyio
async def test_a_guest_has_its_share_of_requests_also_if_it_does_not_wait_for_answers(
    home, monkeypatch
):
    """The kernel answers no call, and up to 2025-11-25 a call runs on without its client."""
    monkeypatch.setattr(connections, "_count_descriptors", lambda: 16)  # two for each guest
    store = TokenStore(home / "tokens.json")
    token = store.add("guest", EVERYTHING)
    async with served(home, authenticators=(OwnToken(TOKEN), NamedTokens(store))) as here:

        def ask_whole(message, *headers):
            with _connect(here.url) as client:
                client.sendall(_post(token, message, *headers))
                return _next_answer(client)

        opened = await anyio.to_thread.run_sync(ask_whole, INITIALIZE)
        session = f"Mcp-Session-Id: {opened.headers['Mcp-Session-Id']}"
        for number in range(2):
            with _connect(here.url) as client:
                client.sendall(_post(token, call(number), session))
                await called(here.kernel, number + 1)
        answer = await anyio.to_thread.run_sync(ask_whole, PING, session)
        assert (answer.status, answer.headers["Connection"]) == (429, "close")
        for running in await called(here.kernel, 2):
            here.kernel.say(messages.Returned(id=running.id, content=[]))
        while (await anyio.to_thread.run_sync(ask_whole, PING, session)).status == 429:
            pass


@pytest.mark.anyio
async def test_a_request_that_ends_late_does_not_end_the_next_one_over_its_connection(
    home, made, monkeypatch
):
    """The connection stays its guest's until the kernel has answered the call."""
    monkeypatch.setattr(connections, "_count_descriptors", lambda: 8)  # one for each guest
    store = TokenStore(home / "tokens.json")
    token, let_in = store.add("guest", EVERYTHING), Gate._let_in
    ends, has_ended = asyncio.Event(), asyncio.Event()

    async def end_late(self, caller, scope, *arguments):
        await let_in(self, caller, scope, *arguments)
        if scope["method"] == "GET":
            await ends.wait()
            asyncio.get_running_loop().call_soon(has_ended.set)

    monkeypatch.setattr(Gate, "_let_in", end_late)
    async with served(home, authenticators=(OwnToken(TOKEN), NamedTokens(store))) as here:

        def ask_over(client, request):
            client.sendall(request)
            return _next_answer(client)

        client = _connect(here.url)
        opened = await anyio.to_thread.run_sync(ask_over, client, _post(token, INITIALIZE))
        session = f"Mcp-Session-Id: {opened.headers['Mcp-Session-Id']}"
        answer = await anyio.to_thread.run_sync(ask_over, client, _request(token))
        assert answer.status == 404
        client.sendall(_post(token, call(1), session))
        (running,) = await called(here.kernel, 1)
        ends.set()
        await has_ended.wait()
        client.close()
        while not made[0]._is_lost:
            await anyio.lowlevel.checkpoint()
        with _connect(here.url) as other:
            answer = await anyio.to_thread.run_sync(ask_over, other, _post(token, PING, session))
            assert answer.status == 429
        here.kernel.say(messages.Returned(id=running.id, content=[]))


@pytest.mark.anyio
async def test_few_requests_of_guests_begin_in_one_turn_of_the_loop(home, monkeypatch):
    store = TokenStore(home / "tokens.json")
    token, turns, begun, let_in = store.add("guest", EVERYTHING), [0], [], Gate._let_in

    async def note(self, caller, *arguments):
        begun.append((caller.is_user, turns[0]))
        await let_in(self, caller, *arguments)

    def count_turns():
        turns[0] += 1
        loop.call_soon(count_turns)

    monkeypatch.setattr(Gate, "_let_in", note)
    authenticators = (OwnToken(TOKEN), NamedTokens(store))
    async with served(home, authenticators=authenticators) as here:
        loop = asyncio.get_running_loop()
        loop.call_soon(count_turns)
        with contextlib.ExitStack() as clients:
            for _ in range(60):
                client = clients.enter_context(_connect(here.url))
                client.sendall(_post(token, PING))
            while len(begun) < 60:
                await anyio.lowlevel.checkpoint()
    guests = Counter(turn for is_user, turn in begun if not is_user)
    assert max(guests.values()) <= GUESTS_AT_ONCE


# -- time ------------------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch):
    """The connections of endpoints of this process."""
    connections_made, make = [], http_connection.HttpConnection.__init__

    def note(self, *arguments):
        make(self, *arguments)
        connections_made.append(self)

    monkeypatch.setattr(http_connection.HttpConnection, "__init__", note)
    return connections_made


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["a head", "a blank line", "a body", "a body in chunks"])
async def test_a_request_that_does_not_come_whole_ends_its_connection(home, way):
    async with served(home, connections=ConnectionLimits(progress_timeout=0.1)) as here:
        with await anyio.to_thread.run_sync(Guest(here.url, TOKEN).hold, way) as client:
            said = await anyio.to_thread.run_sync(_read, client)
    assert said.startswith(b"" if way == "a blank line" else b"HTTP/1.1 408 ")


@pytest.mark.anyio
async def test_a_body_may_take_long_while_enough_of_it_comes(home, made):
    limits = ConnectionLimits(min_progress=10)
    async with served(home, connections=limits) as here:
        with here.connect("POST /mcp HTTP/1.1", WHOLE[:-1], length=len(WHOLE) + 30) as client:
            while not made or made[0]._since is None:
                await anyio.lowlevel.checkpoint()
            for _ in range(3):
                client.sendall(b" " * 10)
                while made[0]._received < 10:
                    await anyio.lowlevel.checkpoint()
                made[0]._since -= limits.progress_timeout  # as if its time were over
                made[0]._check_request()
                assert not made[0].transport.is_closing()
            made[0]._since -= limits.progress_timeout
            made[0]._check_request()
            said = await anyio.to_thread.run_sync(_read, client)
    assert said.startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(home, made):
    size, limits = 2**25, ConnectionLimits(progress_timeout=0.2)
    schema = {"type": "object", "description": "x" * size}
    async with served(home, schema=schema, connections=limits) as here:
        request, headers = modern({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        body = json.dumps(request).encode()
        with here.connect(f"POST /mcp HTTP/1.1\r\n{head}".rstrip(), body) as client:
            while not made or not made[0].transport or not made[0].transport.is_closing():
                await anyio.lowlevel.checkpoint()
            said = await anyio.to_thread.run_sync(_read, client)
    assert 0 < len(said) < size


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="its sockets do not say what they hold")
async def test_a_client_that_takes_its_answer_slowly_gets_the_whole(home):
    """Also while what it takes is less than the systems' buffers, which empty by megabytes."""
    size, limits = 2**24, ConnectionLimits(progress_timeout=0.25)
    schema = {"type": "object", "description": "x" * size}
    async with served(home, schema=schema, connections=limits) as here:
        request, headers = modern({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

        def read_slowly(client):
            taken = 0
            while data := client.recv(2**16):
                taken += len(data)
                time.sleep(0.015)  # as a slow line has it, not to wait for anything
            return taken

        body = json.dumps(request).encode()
        with here.connect(f"POST /mcp HTTP/1.1\r\n{head}".rstrip(), body) as client:
            assert await anyio.to_thread.run_sync(read_slowly, client) > size


HURRIED = ConnectionLimits(auth_timeout=0.1)
"""For strangers."""


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
async def test_a_head_that_comes_slowly_is_refused_in_time(home, caplog):
    async with served(home, connections=HURRIED) as here:
        said = await anyio.to_thread.run_sync(_drip, here.url, abandon_on_cancel=True)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert caplog.messages[-1].endswith("no request with a valid token came within 0.1 s")


@pytest.mark.anyio
async def test_a_connection_that_never_says_a_word_ends_without_one(home, caplog):
    async with served(home, connections=HURRIED) as here:
        with _connect(here.url) as silent:
            assert await anyio.to_thread.run_sync(_read, silent) == b""
    assert not caplog.messages


@pytest.mark.anyio
@pytest.mark.parametrize("request_", [HEAD + b"\r\n", HEAD + b"Content-Length: 9\r\n\r\n"])
async def test_a_refused_request_does_not_keep_its_connection(home, request_):
    async with served(home, connections=HURRIED) as here:
        with _connect(here.url) as refused:
            refused.sendall(request_)
            said = await anyio.to_thread.run_sync(_read, refused)
    assert not said or said.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 408 "))


@pytest.mark.anyio
async def test_a_client_that_has_shown_the_token_may_take_its_time(home):
    """An open stream and a body that comes slowly outlast a stranger who came after them."""
    async with served(home, connections=ConnectionLimits(auth_timeout=0.5)) as here:
        _, stream = await here.open_stream()
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
