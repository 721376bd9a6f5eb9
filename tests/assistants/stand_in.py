"""A stand-in for a model on loopback: the test says which tool it asks for next.

It is also the proxy of whatever else the assistant would reach: it refuses, and remembers what.
"""

import contextlib
import json
import queue
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from model_apis import END, Call, ModelApi, Received

PATIENCE = 90
"""Seconds for an assistant to start, and for it to answer."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class StandIn:
    """A model whose next word is the test's.

    The assistant's requests wait until the test answers them; all others are answered
    at once.

    Args:
        api: What the assistant speaks.
    """

    def __init__(self, api: ModelApi) -> None:
        self._api = api
        self._turns: queue.Queue[dict[str, Any]] = queue.Queue()
        """Requests of the conversation: the bodies."""
        self._answers: queue.Queue[Call | str] = queue.Queue()
        self.requests: list[str] = []
        """The paths of all requests, for who looks why a test fails."""
        self.refused: list[str] = []
        """What the assistant asked the proxy for."""
        self.invalid_names: set[str] = set()
        """Names of tools for which OpenAI's and Anthropic's APIs refuse a whole request."""
        self.url = ""
        self._turn: dict[str, Any] | None = None
        self._calls = 0
        self._end: str | None = None
        self._process: subprocess.Popen[str] | None = None
        self._log: Path | None = None

    def watch(self, process: subprocess.Popen[str], log: Path) -> None:
        """Wait only while an assistant runs, and quote what it said if it fails."""
        self._process, self._log = process, log

    def wait_for_process(self) -> int:
        """Return the status with which the assistant ends."""
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def _read_log(self) -> str:
        said = "" if self._log is None else self._log.read_text("utf-8", "replace")
        return f"{self.requests[-5:]} {said[-2000:]}"

    @property
    def turn(self) -> dict[str, Any]:
        """The request that waits for an answer."""
        turn = self.find_turn()
        assert turn is not None, f"it has ended: {self._read_log()}"
        return turn

    def find_turn(self) -> dict[str, Any] | None:
        """Return the request that waits for an answer; None if the assistant has ended."""
        deadline = time.monotonic() + PATIENCE
        while self._turn is None:
            has_ended = self._process is not None and self._process.poll() is not None
            with contextlib.suppress(queue.Empty):
                self._turn = self._turns.get(timeout=1)
            if self._turn is None and has_ended:
                return None
            assert self._turn or time.monotonic() < deadline, f"it is silent: {self._read_log()}"
        return self._turn

    def list_tools(self) -> dict[str, dict[str, Any]]:
        """Return the tools that the request offers which waits for an answer."""
        return self._api.read_tools(self.turn)

    def call(self, name: str, /, **arguments: Any) -> Received:
        """Ask for a tool, and return what the model is told."""
        self.start_call(name, **arguments)
        return self.wait_for_result()

    def start_call(self, name: str, /, **arguments: Any) -> None:
        """Ask for a tool."""
        _ = self.turn
        self._turn = None
        self._calls += 1
        self._answers.put(Call(name, arguments, self._calls))

    def wait_for_result(self) -> Received:
        """Return what the model is told of the call that was started."""
        return self._api.read_result(self.turn)

    def begin_again(self) -> None:
        """Forget a conversation whose assistant was ended."""
        # Each request of a conversation has a thread that waits.
        for _ in range(self._turns.qsize() + (self._turn is not None)):
            self._answers.put(END)
        self._turns, self._answers, self._turn = queue.Queue(), queue.Queue(), None
        self._process = None

    def say_end(self, text: str = END) -> None:
        """Say this, and ask for nothing more, now and later."""
        self._end = text
        self._answers.put(text)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        """Answer a request, on a thread of its own."""
        said: Call | str = self._end or END
        names = self._api.read_tools(body) if body.get("tools") else ()
        parts = {part for name in names for part in name.split("/")}  # of a namespace, and in it
        self.invalid_names |= {part for part in parts if not _NAME.fullmatch(part)}
        if self._api.is_turn(path, body) and self._end is None:
            self._turns.put(body)
            said = self._answers.get()
        return self._api.write(body, said)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    model: StandIn

    def handle_error(self, *_: object) -> None:
        """Print nothing: the assistant may end before it is answered."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_CONNECT(self) -> None:
        self.server.model.refused.append(self.path)
        self._send(403, "text/plain", "the tests talk to loopback only")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.model.requests.append(f"{self.command} {self.path}")
        if self.path.startswith("/"):
            self._send(200, "application/json", '{"data": [], "models": []}')
        else:
            self.do_CONNECT()

    def do_POST(self) -> None:
        self.server.model.requests.append(f"{self.command} {self.path}")
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.path.startswith("/"):
            self.do_CONNECT()
        elif "countTokens" in self.path or "count_tokens" in self.path:
            self._send(200, "application/json", '{"totalTokens": 5, "input_tokens": 5}')
        else:
            self._send(200, *self.server.model.answer(self.path, json.loads(data or b"{}")))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def stand_in(api: ModelApi) -> Iterator[StandIn]:
    """Serve a stand-in, and end it."""
    model = StandIn(api)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.model = model
        model.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield model
        finally:
            model.say_end()
            server.shutdown()
