"""A loopback proxy to a bridge: every message that real clients get over HTTP is one of MCP's.

All bytes pass as they come, in both directions, and a copy of them is judged when a connection has
ended: `judge` says how. Uses a thread for each connection and direction.
"""

import socket
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import httptools
from judge import Judge
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError

from mcp_notebook.protocol.headers import VERSION_HEADER


class _Messages:
    """Collects the head and the body of each HTTP message, for a parser of httptools."""

    def __init__(self) -> None:
        self.found: list[tuple[dict[str, str], bytearray]] = []

    def on_message_begin(self) -> None:
        self.found.append(({}, bytearray()))

    def on_header(self, name: bytes, value: bytes) -> None:
        self.found[-1][0][name.decode().lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self.found[-1][1].extend(body)


def _read(parser: type[Any], data: bytes) -> list[tuple[dict[str, str], bytearray]]:
    """Return the HTTP messages in some bytes, the last one as far as it came."""
    messages = _Messages()
    parser(messages).feed_data(data)
    return messages.found


def _judge(sent: bytes, received: bytes) -> Iterator[Exception]:
    """Yield what is wrong with the messages that a client received on a connection."""
    requests = _read(httptools.HttpRequestParser, sent)
    responses = _read(httptools.HttpResponseParser, received)
    for (head, body), (answer_head, answer) in zip(requests, responses, strict=False):
        judge = Judge()
        judge.version = head.get(VERSION_HEADER, judge.version)
        with suppress(ValidationError):  # what the client sends is not judged
            judge.note(jsonrpc_message_adapter.validate_json(bytes(body), by_name=False))
        for text in _list_texts(answer_head.get("content-type", ""), bytes(answer)):
            try:
                judge.check(jsonrpc_message_adapter.validate_json(text, by_name=False))
            except Exception as error:  # noqa: BLE001 - told at the end, whatever it is
                error.add_note(f"received: {text[:2_000]!r}")
                yield error


def _list_texts(kind: str, body: bytes) -> list[bytes]:
    """Return the messages in the body of a response."""
    if kind.startswith("text/event-stream"):
        lines = body.splitlines(keepends=True)
        return [line[5:] for line in lines if line.startswith(b"data:") and line.endswith(b"\n")]
    return [body] if kind.startswith("application/json") and body else []


class _Handler(socketserver.BaseRequestHandler):
    """One connection of a client."""

    server: "_Proxy"

    def handle(self) -> None:
        sent, received = bytearray(), bytearray()
        with socket.create_connection(self.server.behind) as behind:
            self.server.connections.add(behind)
            answering = Thread(target=_pass, args=(behind, self.request, received))
            answering.start()
            _pass(self.request, behind, sent)
            answering.join()
            self.server.connections.discard(behind)
        self.server.failures += _judge(bytes(sent), bytes(received))


def _pass(source: socket.socket, target: socket.socket, copy: bytearray) -> None:
    """Pass on what comes at once, until one side has gone; then the other side goes, too."""
    with suppress(OSError):
        while data := source.recv(65_536):
            copy += data
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


class _Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = False  # all connections are judged before the server closes

    def __init__(self, behind: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self.connections: set[socket.socket] = set()
        self.failures: list[Exception] = []


@contextmanager
def judging(url: str) -> Iterator[str]:
    """Return an address that is `url`; the block fails if clients got what is not one of MCP's.

    Its end closes all connections.
    """
    parts = urlsplit(url)
    with _Proxy((str(parts.hostname), int(parts.port or 80))) as proxy:
        thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}{parts.path}"
        finally:
            proxy.shutdown()
            thread.join()
            for connection in [*proxy.connections]:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
    if proxy.failures:
        raise ExceptionGroup("not messages of MCP", proxy.failures)
