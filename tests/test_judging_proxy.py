"""The proxy between real clients and a bridge notices what is not a message of MCP."""

import http.client
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import pytest
from judging_proxy import judging

RIGHT = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
WRONG = {"tools": [{"name": "add"}]}


@contextmanager
def server_that_answers(kind, *chunks):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for chunk in (*chunks, b""):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

        def log_message(self, *_arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def message(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def ask(url, times=1):
    """Ask for the tools on one connection, and return the last answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    for _ in range(times):
        body = message(id=1, method="tools/list", params={})
        connection.request("POST", parts.path, body, {"mcp-protocol-version": "2025-11-25"})
        answer = connection.getresponse().read()
    connection.close()
    return answer


RIGHT_EVENTS = [
    b": ping\n\n",
    b"data: " + message(id=1, result=RIGHT)[:20],
    message(id=1, result=RIGHT)[20:] + b"\n\n",
]


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("text/event-stream", RIGHT_EVENTS),
        ("application/json", [message(id=1, result=RIGHT)]),
        ("application/json", [message(id=1, error={"code": -32601, "message": "No"})]),
    ],
    ids=["events", "result", "error"],
)
def test_what_is_of_mcp_passes_as_it_came(kind, parts):
    with server_that_answers(kind, *parts) as behind, judging(behind) as url:
        answer = ask(url, times=2)
    assert answer == b"".join(parts)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("application/json", message(id=1, result=WRONG)),
        ("application/json", b'{"id": 1}'),
        ("text/event-stream", b"data: " + message(id=1, result=WRONG) + b"\n\n"),
        ("text/event-stream", b"data: " + message(id=7, result=RIGHT) + b"\n\n"),
        ("text/event-stream", b"data: " + message(method="notifications/odd") + b"\n\n"),
        (
            "text/event-stream",
            b"data: " + message(method="notifications/progress", params={}) + b"\n\n",
        ),
    ],
    ids=["result", "no message", "event", "nobody asked", "method", "params"],
)
def test_what_is_not_of_mcp_fails_the_block(kind, text):
    with (
        server_that_answers(kind, text) as behind,
        pytest.raises(ExceptionGroup, match="not messages of MCP"),
        judging(behind) as url,
    ):
        assert ask(url) == text
