"""A loopback proxy that adds a header to every request, for programs that cannot send it."""

import socket
import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from urllib.parse import urlsplit


class _Handler(socketserver.StreamRequestHandler):
    """One request on one connection; all of its bytes but the one header pass as they came."""

    server: "_Proxy"

    def handle(self) -> None:
        head = [self.rfile.readline()]
        for line in iter(self.rfile.readline, b"\r\n"):
            if not line:
                return
            # One request a connection: a second head in it would pass without the header.
            if not line.lower().startswith(b"connection:"):
                head.append(line)
        head += [self.server.header, b"Connection: close\r\n", b"\r\n"]
        with socket.create_connection(self.server.behind) as behind:
            behind.sendall(b"".join(head))
            answering = Thread(target=self._answer, args=(behind,))
            answering.start()
            _pass(self.rfile.read1, behind.sendall)
            with suppress(OSError):
                behind.shutdown(socket.SHUT_RDWR)
            answering.join()

    def _answer(self, behind: socket.socket) -> None:
        _pass(behind.recv, self.connection.sendall)
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _pass(receive: Callable[[int], bytes], send: Callable[[bytes], object]) -> None:
    """Pass on what comes at once, until one side has gone."""
    with suppress(OSError):
        while data := receive(65536):
            send(data)


class _Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, behind: tuple[str, int], header: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self.header = f"{header}\r\n".encode()


@contextmanager
def adding(header: str, url: str) -> Iterator[str]:
    """Return an address that is `url` with a header added to each request."""
    parts = urlsplit(url)
    with _Proxy((parts.hostname, parts.port), header) as proxy:
        thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}{parts.path}"
        finally:
            proxy.shutdown()
            thread.join()
