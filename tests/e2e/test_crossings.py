"""A client gives a kept call up at the moment of its end: its function runs once all the same.

Each test fixes the order: a bridge that is stopped finds the result and the client's word at once
when it goes on, and an answer that has come is one that its client has not looked at.
"""

import json
import select
import signal
import socket
import struct
import subprocess
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from clients import TOKEN, http_bridge
from forked_command import list_words
from live import TIMEOUT, kernel_env, kernel_with

KEPT = """%%mcp_tool --keep --run thread
import threading

go = threading.Event()
runs = []

def simulate(year: int) -> str:
    "Simulate until somebody says so."
    runs.append(year)
    go.wait()
    return f"simulated {year}"
"""
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LEGACY = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}
SDK = {"task_hint": 1}
"""A parameter that makes a request one for the SDK."""


kernel = kernel_with(KEPT)


@pytest.fixture(scope="module")
def bridge(kernel):
    with http_bridge(kernel.home) as served:
        yield served


WAYS = {"plain": {}, "sdk": SDK}
"""What requests have in addition, on either way."""


def pair(older, modern):
    """Return all pairs of an era and a way; each of the four runs in one that is not slow."""
    often = {("older", "plain"), ("modern", "sdk")}
    return [
        pytest.param((era, WAYS[way]), marks=marks, id=f"{name}-{way}")
        for name, era in (("older", older), ("modern", modern))
        for way in WAYS
        for marks in [() if (name, way) in often else pytest.mark.slow]
    ]


@pytest.fixture
def simulate(kernel):
    """The call; `runs` and the end of the runs are the notebook's."""
    kernel.ok("go.clear(); runs.clear()")
    yield {"name": "simulate", "arguments": {"year": 1999}}
    kernel.ok("go.set()")


def wait_for_run(kernel, *, number=1):
    while f"runs {number}" not in kernel.ok("print('runs', len(runs))").stdout:
        pass


def finish_runs(kernel):
    """Let the call end, and wait until the kernel has no call."""
    kernel.ok("go.set()")
    while "simulate(" in kernel.ok("%mcp status").text:
        pass


def assert_runs(kernel, number):
    kernel.ok(f"assert len(runs) == {number}, runs")


# -- stdio -----------------------------------------------------------------------------------------


class Pipe:
    """A client of a stdio bridge, by hand."""

    def __init__(self, process, era, way):
        self.process, self.way = process, way
        self.meta = {"_meta": MODERN} if era == "modern" else {}
        if era == "modern":  # the first request decides about the era
            self.send("tools/list", {}, 0)
            self.receive(0)
            return
        self.send("initialize", LEGACY, 0)
        self.receive(0)
        self.send("notifications/initialized", {})

    def send(self, method, params, request_id=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params | self.meta}
        if request_id is not None:
            message["id"] = request_id
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, params, request_id):
        self.send("tools/call", params | self.way, request_id)

    def cancel(self, request_id):
        self.send("notifications/cancelled", {"requestId": request_id, "reason": "time limit"})

    def receive(self, request_id):
        """Return the answer to a request; what else comes is not looked at."""
        while (message := json.loads(self.process.stdout.readline())).get("id") != request_id:
            pass
        return message


@pytest.fixture(params=pair("legacy", "modern"))
def pipe(request, kernel):
    era, way = request.param
    process = subprocess.Popen(
        list_words("stdio"),
        env=kernel_env(kernel.home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield Pipe(process, era, way)
        finally:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()


def test_stdio_a_cancel_that_meets_the_result_in_the_bridge_does_not_lose_it(
    kernel, pipe, simulate
):
    pipe.call(simulate, 1)
    wait_for_run(kernel)
    pipe.process.send_signal(signal.SIGSTOP)
    pipe.cancel(1)
    finish_runs(kernel)
    pipe.call(simulate, 2)
    pipe.process.send_signal(signal.SIGCONT)
    assert "simulated 1999" in json.dumps(pipe.receive(2))
    assert_runs(kernel, 1)


def test_stdio_a_cancel_of_a_call_that_is_answered_leaves_the_answer_for_the_same_call(
    kernel, pipe, simulate
):
    pipe.call(simulate, 1)
    wait_for_run(kernel)
    kernel.ok("go.set()")
    pipe.receive(1)  # which the client's user is not shown: its time limit was over
    pipe.cancel(1)
    pipe.call(simulate, 2)
    assert "simulated 1999" in json.dumps(pipe.receive(2))
    assert_runs(kernel, 1)
    pipe.call(simulate, 3)  # the last answer was taken
    assert "simulated 1999" in json.dumps(pipe.receive(3))
    assert_runs(kernel, 2)


def test_stdio_the_cancel_of_one_of_two_same_calls_leaves_both_answers(kernel, pipe, simulate):
    for number in (1, 2):
        pipe.call(simulate, number)
    while "as the task simulate-" not in kernel.ok("%mcp status").text:
        pass  # until the second one waits for the first
    pipe.process.send_signal(signal.SIGSTOP)
    for number in (1, 2):
        pipe.cancel(number)
    finish_runs(kernel)
    pipe.call(simulate, 3)
    pipe.process.send_signal(signal.SIGCONT)
    assert "simulated 1999" in json.dumps(pipe.receive(3))
    assert_runs(kernel, 1)


# -- HTTP ------------------------------------------------------------------------------------------


@contextmanager
def connection_to(bridge):
    address = urlsplit(bridge.url)
    with socket.create_connection((address.hostname, address.port), TIMEOUT) as connection:
        yield connection


def post(connection, message, **headers):
    """Send a request of 2026-07-28, or of a session if there is its id."""
    body = json.dumps({"jsonrpc": "2.0"} | message).encode()
    fields = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": len(body),
    }
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    connection.sendall(f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)


def read_response(connection):
    """Return one response whole."""
    data = b""
    while not _is_whole(data):
        piece = connection.recv(2**16)
        assert piece, data
        data += piece
    return data.decode()


def _is_whole(data):
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return body.endswith(b"0\r\n\r\n")


class Modern:
    """Requests of 2026-07-28, which is cancelled by hanging up."""

    def __init__(self, bridge, way):
        self.bridge, self.way = bridge, way

    def send(self, connection, params, request_id):
        message = {
            "id": request_id,
            "method": "tools/call",
            "params": params | self.way | {"_meta": MODERN},
        }
        headers = {
            "MCP_Protocol_Version": "2026-07-28",
            "Mcp_Method": "tools/call",
            "Mcp_Name": params["name"],
        }
        post(connection, message, **headers)


class Session:
    """Requests of a session of the handshake era."""

    def __init__(self, bridge, way):
        self.bridge, self.way = bridge, way
        with connection_to(bridge) as connection:
            post(connection, {"id": 0, "method": "initialize", "params": LEGACY})
            head = read_response(connection).lower()
        self.id = head.partition("mcp-session-id:")[2].split()[0]
        self.post_alone({"method": "notifications/initialized"})

    @property
    def headers(self):
        return {"MCP_Protocol_Version": "2025-11-25", "Mcp_Session_Id": self.id}

    def post_alone(self, message):
        with connection_to(self.bridge) as connection:
            post(connection, message, **self.headers)
            assert " 202 " in read_response(connection)

    def send(self, connection, params, request_id):
        message = {"id": request_id, "method": "tools/call", "params": params | self.way}
        post(connection, message, **self.headers)

    def cancel(self, request_id):
        self.post_alone({"method": "notifications/cancelled", "params": {"requestId": request_id}})


@pytest.fixture(params=pair(Session, Modern))
def client(request, bridge):
    make, way = request.param
    return make(bridge, way)


def wait_for_answer(connection):
    """Wait until an answer is there, and leave it."""
    assert select.select([connection], [], [], TIMEOUT)[0]


def ask(client, params, request_id):
    with connection_to(client.bridge) as connection:
        client.send(connection, params, request_id)
        return read_response(connection)


def test_http_an_answer_that_nobody_reads_waits_for_the_same_call(kernel, client, simulate):
    with connection_to(client.bridge) as connection:
        client.send(connection, simulate, 1)
        wait_for_run(kernel)
        kernel.ok("go.set()")
        wait_for_answer(connection)
    assert "simulated 1999" in ask(client, simulate, 2)
    assert_runs(kernel, 1)
    assert "simulated 1999" in ask(client, simulate, 3)  # the last answer was read
    assert_runs(kernel, 2)


def test_http_who_reads_the_answer_and_hangs_up_gets_a_new_one(kernel, client, simulate):
    kernel.ok("go.set()")
    for number in (1, 2, 3):
        assert "simulated 1999" in ask(client, simulate, number)
        assert_runs(kernel, number)


@pytest.mark.parametrize("is_reset", [False, True])
def test_http_a_hang_up_that_meets_the_result_in_the_bridge_does_not_lose_it(
    kernel, client, simulate, is_reset
):
    with connection_to(client.bridge) as connection:
        client.send(connection, simulate, 1)
        wait_for_run(kernel)
        client.bridge.process.send_signal(signal.SIGSTOP)
        try:
            if is_reset:
                now = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
            connection.close()
            finish_runs(kernel)
        finally:
            client.bridge.process.send_signal(signal.SIGCONT)
    assert "simulated 1999" in ask(client, simulate, 2)
    assert_runs(kernel, 1)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_http_a_cancel_of_a_call_that_is_answered_leaves_the_answer_for_the_same_call(
    kernel, bridge, way, simulate
):
    client = Session(bridge, way)
    kernel.ok("go.set()")
    ask(client, simulate, 1)
    client.cancel(1)
    assert "simulated 1999" in ask(client, simulate, 2)
    assert_runs(kernel, 1)
    assert "simulated 1999" in ask(client, simulate, 3)
    assert_runs(kernel, 2)
