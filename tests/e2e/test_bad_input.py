"""Whatever clients send: each gets the right error, and nobody else notices.

A real kernel and a real bridge take thousands of messages and bytes with faults, over stdio and
over HTTP. After each batch they still answer, and the tools have been called
only with arguments that their schemas allow. ``pytest -m slow`` sends 1,000 of each kind, ``pytest
-m exhaustive`` 10,000.
"""

import http.client
import json
import operator
import os
import re
import selectors
import socket
import subprocess
from contextlib import ExitStack, closing, contextmanager, suppress
from queue import Empty
from random import Random
from urllib.parse import urlsplit

import psutil
import pytest
from bad_input import (
    ANY_ID,
    FAILED,
    MODERN,
    RAN,
    TOOLS,
    expect_answers,
    make_message,
    make_noise,
    spoil_bytes,
)
from bridges import (
    COMMAND,
    INITIALIZE,
    INVALID_REQUEST,
    LIMIT,
    PARSE_ERROR,
    PING,
    PONG,
    TOKEN,
    bridge,
    http_bridge,
)
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from live import tools_of

pytestmark = [
    pytest.mark.hypothesis,  # .ci/before-release takes other seeds each time
    pytest.mark.skipif(os.name == "nt", reason="Unix sockets and descriptors"),
]

BATCH = 50
COUNTS = [
    2,
    pytest.param(20, marks=pytest.mark.slow),
    pytest.param(200, marks=[pytest.mark.exhaustive, pytest.mark.timeout(600)]),
]
"""Batches."""
MOST_GROWTH = (100 * 2**20, 50, 50)
"""Bytes of memory, descriptors and threads that a process may hold more after so many cases."""
FORMATS = FormatChecker(["date"])
CALL = {
    "jsonrpc": "2.0",
    "id": "last",
    "method": "tools/call",
    "params": {"name": "plain", "arguments": {"count": 1}, "_meta": MODERN},
}


class Watch:
    """The kernel with its tools, and a look at what arrives there."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.schemas = {
            name: Draft202012Validator(tool.input_schema, format_checker=FORMATS)
            for name, tool in tools_of(kernel).items()
        }
        self._file = kernel.home / "arrived.jsonl"
        self._file.touch()
        self._seen = 0

    def check_arrivals(self):
        """See that the schemas allow the arguments of all calls since the last look."""
        lines = self._file.read_text().splitlines()
        for line in lines[self._seen :]:
            tool, arguments = json.loads(line)
            self.schemas[tool].validate(arguments)
        self._seen = len(lines)
        said = "".join(self._drain())
        assert "Traceback" not in said, said

    def _drain(self):
        """Yield what the kernel has printed; too much of it unread would be dropped."""
        with suppress(Empty):
            while True:
                message = self.kernel.client.get_iopub_msg(timeout=0)
                yield message["content"].get("text", "")

    @contextmanager
    def process(self, pid):
        """See that a process and the kernel do not hold more and more during the block."""
        processes = [psutil.Process(pid), psutil.Process(self.kernel.pid)]
        before = [look(process) for process in processes]
        yield
        for process, then in zip(processes, before, strict=True):
            growth = [new - old for new, old in zip(look(process), then, strict=True)]
            assert all(map(operator.lt, growth, MOST_GROWTH)), growth


def look(process):
    """Return the memory, descriptors and threads that a process holds."""
    return process.memory_info().rss, process.num_fds(), process.num_threads()


@pytest.fixture(scope="module")
def watch(shared_kernel):
    """A kernel with tools that note their arguments."""
    shared_kernel.ok(TOOLS)
    return Watch(shared_kernel)


def run(check, batches):
    """Check batches of cases, each from a seed of its own."""
    # A seed has no simpler one.
    chosen = settings(max_examples=batches, phases=[Phase.generate])
    chosen(given(st.integers(0, 2**32))(check))()


def make_messages(random):
    """Return lines, most of them no messages as they should be."""
    lines = [make_message(random, f"{number}-{random.random()}") for number in range(BATCH)]
    return [line.replace(b"\n", b" ") for line in lines]


def outcome(answer):
    """Return how a request ended: the code of an error, `FAILED` or `RAN`."""
    if "error" in answer:
        return answer["error"]["code"]
    return FAILED if answer["result"].get("isError") else RAN


# -- over stdio ------------------------------------------------------------------------------------


@contextmanager
def stdio_client(watch, era):
    """Run a stdio bridge, and begin as a client of this era does."""
    with bridge(watch.kernel.home, "stdio", stdin=subprocess.PIPE, command=COMMAND) as running:
        first = INITIALIZE if era == "handshake" else CALL
        running.send(json.dumps(first).encode())
        assert running.message()["id"] == first["id"]
        if era == "handshake":
            running.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield running
        running.process.stdin.close()
        assert running.wait() == 0
        assert all(line.startswith("dropped 'notifi") for line in running.said.splitlines())


def take_answers(client, count):
    """Return the next answers."""
    answers = []
    while len(answers) < count:
        message = client.message()
        if "method" not in message:
            answers.append(message)
    return answers


@pytest.mark.parametrize("era", ["modern", pytest.param("handshake", marks=pytest.mark.slow)])
@pytest.mark.parametrize("batches", COUNTS)
def test_each_line_gets_its_answers_and_no_tool_what_its_schema_refuses(watch, batches, era):
    def check(seed):
        lines = [*make_messages(Random(seed)), json.dumps(PING).encode()]
        for line in lines:
            client.send(line)
        expected = [
            (line, *answer) for line in lines for answer in expect_answers(line, watch.schemas, era)
        ]
        left = take_answers(client, len(expected))
        for line, request_id, allowed in expected:
            fitting = [
                answer
                for answer in left
                if request_id in (ANY_ID, answer["id"]) and outcome(answer) in allowed
            ]
            assert fitting, (line, request_id, allowed, left)
            left.remove(fitting[0])
        watch.check_arrivals()

    with stdio_client(watch, era) as client, watch.process(client.process.pid):
        run(check, batches)


# -- over HTTP -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(watch):
    """An HTTP bridge."""
    with http_bridge(watch.kernel.home, command=COMMAND) as running:
        yield running
        assert running.end()[0] == 0
        assert "Traceback" not in running.said


class Session:
    """A client over HTTP, on one connection."""

    def __init__(self, url):
        self._address = urlsplit(url)
        self._connection = http.client.HTTPConnection(self._address.netloc, timeout=LIMIT)
        self.headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        status, _ = self.post(json.dumps(INITIALIZE).encode())
        assert status == 200

    def post(self, body, **headers):
        """Send a body; return the status, and the answer if there is one."""
        headers = self.headers | {name.replace("_", "-"): text for name, text in headers.items()}
        self._connection.request("POST", self._address.path, body, headers)
        response = self._connection.getresponse()
        content = response.read()
        if response.headers["Mcp-Session-Id"]:
            self.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        if (response.headers["Content-Type"] or "").startswith("text/event-stream"):
            *_, content = [line[6:] for line in content.splitlines() if line[:6] == b"data: "]
        return response.status, json.loads(content) if content else None

    def close(self):
        self._connection.close()


@pytest.fixture(scope="module")
def session(served):
    """A client over HTTP that lives as long as the bridge."""
    session = Session(served.url)
    yield session
    session.close()


@pytest.mark.parametrize("batches", COUNTS)
def test_each_body_gets_its_status_and_answer(watch, served, session, batches):
    def check(seed):
        for body in make_messages(Random(seed)):
            status, answer = session.post(body)
            expected = list(expect_answers(body, watch.schemas, "handshake"))
            assert is_fitting(status, answer, body, expected), (body, status, answer, expected)
        watch.check_arrivals()

    with watch.process(served.process.pid):
        run(check, batches)


def is_fitting(status, answer, body, expected):
    """Return whether the answer over HTTP is what the same line over stdio is answered."""
    if not expected and body.strip():
        return (status, answer) == (202, None)
    if not expected or expected[0][0] is ANY_ID:
        return (status, outcome(answer)) == (400, PARSE_ERROR)
    request_id, allowed = expected[0]
    if allowed == {INVALID_REQUEST}:
        # One answer for the body, whatever is in it.
        return (status, outcome(answer)) == (400, INVALID_REQUEST)
    return (status, answer["id"]) == (200, request_id) and outcome(answer) in allowed


# -- bytes that are no HTTP ------------------------------------------------------------------------

RIGHT_STATUS = re.compile(rb"HTTP/1\.1 ([1-4]\d\d|501|505) ")
"""Not implemented, and a version of HTTP that is not supported, are the client's faults, too."""
SOON_ANSWERED = 0.1
"""Seconds after which a client that is not answered ends its request: the bridge may wait for the
rest of it. Nothing depends on whether a slow bridge is cut off by that."""


def make_http(random, session):
    """Return the bytes of a request, most likely with a fault."""
    if random.random() < 0.1:
        return make_noise(random)
    body = json.dumps(CALL).encode() if random.random() < 0.7 else b""
    method = "POST" if body else random.choice(("GET", "DELETE", "OPTIONS", "HEAD", "CONNECT"))
    head = f"{method} /mcp HTTP/1.1\r\nHost: localhost\r\n"
    for name, value in session.headers.items():
        head += f"{name}: {value}\r\n"
    length = random.choice((len(body), len(body), 0, 10**6, "-1", "1e3", "x"))
    head += random.choice(
        (
            f"Content-Length: {length}\r\n",
            f"Content-Length: {length}\r\nContent-Length: 1\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Expect: 100-continue\r\n",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n",
            "",
        )
    )
    request = head.encode() + b"\r\n" + body
    return spoil_bytes(random, request) if random.random() < 0.8 else request


def exchange(address, requests):
    """Send each request on a connection of its own, and return what comes back until the end."""
    with selectors.DefaultSelector() as waiting, ExitStack() as stack:
        answers = {}
        for request in requests:
            client = stack.enter_context(socket.create_connection(address, LIMIT))
            answers[client] = b""
            waiting.register(client, selectors.EVENT_READ)
            with suppress(ConnectionError):  # refused before it was all sent
                client.sendall(request)
        limit = SOON_ANSWERED
        while waiting.get_map():
            ready = [key.fileobj for key, _ in waiting.select(limit)]
            if not ready:
                assert limit == SOON_ANSWERED, "a connection was not ended"
                limit = LIMIT
                for key in list(waiting.get_map().values()):
                    with suppress(OSError):
                        key.fileobj.shutdown(socket.SHUT_WR)
            for client in ready:
                with suppress(ConnectionError):
                    if chunk := client.recv(65_536):
                        answers[client] += chunk
                        continue
                waiting.unregister(client)
        return list(answers.values())


@pytest.mark.parametrize("batches", COUNTS)
def test_no_bytes_make_the_bridge_fail_or_hang(watch, served, session, batches):
    address = urlsplit(served.url)

    def check(seed):
        random = Random(seed)
        requests = [make_http(random, spare) for _ in range(BATCH)]
        answers = exchange((address.hostname, address.port), requests)
        for request, answer in zip(requests, answers, strict=True):
            assert not answer or RIGHT_STATUS.match(answer), (request, answer)
        status, answer = session.post(json.dumps(PING).encode())
        assert (status, answer) == (200, PONG)
        watch.check_arrivals()

    with closing(Session(served.url)) as spare, watch.process(served.process.pid):
        run(check, batches)
