"""Bridges as processes, for tests of what goes in and comes out; every wait is bounded."""

import http.client
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from forked_command import list_words
from live import kernel_env

COMMAND = [sys.executable, "-m", "mcp_notebook"]
FEW_DESCRIPTORS = (
    COMMAND if sys.platform == "win32" else ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *COMMAND]
)
"""The command in a process that may have 256 files and sockets, as on macOS."""
TOKEN = "token-of-the-tests-0123456789abcdef"
LIMIT = 60
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
PING = {"jsonrpc": "2.0", "id": "still there?", "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": "still there?", "result": {}}


def call_line(name: bytes = b"x", argument: bytes = b"1") -> bytes:
    """Return a request for a call, as a line of stdin."""
    return (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%b","arguments":{"a":%b}}}'
        % (name, argument)
    )


NEEDS_TWO_USERS = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can act for another user"
)
SQUATTER = """
import os, socket, sys
os.setuid(65534)
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()
"""


BOUND = """
import os, socket, sys
os.setuid(65534)
with socket.socket() as bound:
    bound.bind(("127.0.0.1", 0))
    print(bound.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@contextmanager
def hold_port_of_another_user(how: str = SQUATTER) -> Iterator[int]:
    """Let another user have a port for the length of the block, and yield the port.

    It listens there, unless it is to be only `BOUND`.
    """
    with subprocess.Popen(
        [sys.executable, "-c", how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as squatter:
        yield int(squatter.stdout.readline())


class Bridge:
    """A bridge that runs; threads read what it says, so that no wait for it can hang."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.said = ""
        self._began = time.monotonic()
        self._start_seconds: float | None = None
        self._news = threading.Condition()
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read_stdout),
            threading.Thread(target=self._read_stderr),
        ]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self) -> None:
        for line in self.process.stdout:
            self._note_start()
            self._lines.put(line)
        self._lines.put(b"")

    def _note_start(self) -> None:
        if self._start_seconds is None:
            self._start_seconds = time.monotonic() - self._began

    @property
    def soon(self) -> float:
        """Seconds for what it does at once, by what its start took: the machine may be busy."""
        assert self._start_seconds is not None
        return 2 + 10 * self._start_seconds

    def _read_stderr(self) -> None:
        for line in self.process.stderr:
            self._note_start()
            with self._news:
                self.said += line.decode()
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def wait_said(self, pattern: str) -> re.Match[str]:
        """Wait until stderr matches."""
        with self._news:
            found = self._news.wait_for(
                lambda: re.search(pattern, self.said) or not self._readers[1].is_alive(), LIMIT
            )
        assert isinstance(found, re.Match), f"{pattern!r} was not said, but: {self.said}"
        return found

    @property
    def url(self) -> str:
        """The address that it tells."""
        return self.wait_said(r"(?s)Serving at (\S+)\n.*Tools: .*\n")[1]

    def send(self, line: bytes) -> None:
        """Write a line to stdin."""
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        """Return the next line of stdout, nothing at its end."""
        return self._lines.get(timeout=LIMIT)

    def message(self) -> Any:
        """Return the next message of stdout."""
        return json.loads(self.line())

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal, and return the exit code and the seconds until the end."""
        asked = time.monotonic()
        self.process.send_signal(how)
        status = self.wait()
        return status, time.monotonic() - asked

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        status = self.process.wait(LIMIT)
        for reader in self._readers:
            reader.join(LIMIT)
        return status


@contextmanager
def bridge(
    home: Path, *arguments: str, env: dict[str, str] | None = None, **options: Any
) -> Iterator[Bridge]:
    """Run `mcp-notebook` with arguments, and end it.

    Its process is a forked one (`forked_command`) unless a `command` is given, as `COMMAND`.
    """
    command = options.pop("command", None) or list_words()
    with subprocess.Popen(
        [*command, *arguments],
        env=kernel_env(home) | (env or {}),
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    ) as process:
        running = Bridge(process)
        try:
            yield running
        finally:
            if process.poll() is None:
                process.kill()
            running.wait()


@contextmanager
def http_bridge(home: Path, *arguments: str, **options: Any) -> Iterator[Bridge]:
    """Run `mcp-notebook serve` on a free port with the tests' token."""
    env = {"MCP_NOTEBOOK_TOKEN": TOKEN}
    with bridge(home, "serve", "--port", "0", *arguments, env=env, **options) as running:
        _ = running.url
        yield running


class Answer:
    """The answer to an HTTP request."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error in it."""
        message = json.loads(self.body)
        assert message["jsonrpc"] == "2.0"
        return message["error"]


def ask(
    url: str,
    method: str = "POST",
    body: bytes | str | None = None,
    *,
    path: str | None = None,
    headers: dict[str, str | bytes | None] | None = None,
) -> Answer:
    """Send one request as a well-behaved client, but for what is given; None: no such header."""
    parts = urlsplit(url)
    all_headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    } | (headers or {})
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=LIMIT)
    try:
        connection.request(
            method,
            path or parts.path,
            json.dumps(INITIALIZE) if body is None and method == "POST" else body,
            {name: value for name, value in all_headers.items() if value is not None},
        )
        return Answer(connection.getresponse())
    finally:
        connection.close()
