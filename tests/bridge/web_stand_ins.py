"""Web servers of somebody else, as far as a test needs one: on loopback, in a thread."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Response = tuple[int | None, Mapping[str, str], str]
"""Status, headers and body; without a status, the connection is closed."""


def discovered(name: str) -> Response:
    """Return what the MCP server of this name answers who asks it who it is."""
    result = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": name, "version": "1"}}}
    answer = {"jsonrpc": "2.0", "id": "mcp-notebook connect", "result": result}
    return 200, {"Content-Type": "application/json"}, json.dumps(answer)


@dataclass(frozen=True)
class Request:
    """What a web server was asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def web_server(answer: Callable[[Request], Response], *, port: int = 0) -> Iterator[str]:
    """Serve what `answer` returns, and yield the server's address.

    Args:
        answer: Called in a thread for each request.
        port: Where to listen; 0: where nobody does.
    """

    class Handler(BaseHTTPRequestHandler):
        def handle_request(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, text = answer(Request(self.command, self.path, self.headers, body))
            self.close_connection = True
            if status is None:
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_DELETE = do_CONNECT = handle_request  # noqa: N815 - http.server calls them

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}"
        finally:
            listening.shutdown()
            thread.join()
