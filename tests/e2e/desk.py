"""Where code in a kernel waits until a test lets it go on, and the test sees it begin and end.

`Desk` is the test's end; the three functions are called in kernels, which find this file in their
working folder. Each wait has a ticket of its own and is one connection: it is made when the code
begins to wait, and its end, however the code was ended, is the end of the wait.
"""

import contextlib
import socket
import socketserver
import threading
from collections import defaultdict
from pathlib import Path

LIMIT = 20
"""Seconds that anything may take before it counts as broken."""
_SOCKET = "desk.sock"
_LOOK = 0.02
"""Seconds between two moments at which a thread can be stopped."""


def wait(ticket: str) -> None:
    """Wait in a sync function: interruptible, on whichever thread it runs."""
    with socket.socket(socket.AF_UNIX) as desk:
        desk.connect(str(Path(__file__).with_name(_SOCKET)))
        desk.sendall(f"{ticket}\n".encode())
        if threading.current_thread() is not threading.main_thread():
            desk.settimeout(_LOOK)
        while True:
            try:
                _check(desk.recv(1))
            except TimeoutError:
                continue
            return


def _check(received: bytes) -> None:
    if not received:
        raise ConnectionError("the test has gone")


class _Ticket:
    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        self.ended = threading.Event()
        self.connection: socket.socket | None = None


class Desk:
    """The test's end: a server in the kernels' working folder, with threads of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "desk.py").write_bytes(Path(__file__).read_bytes())
        self._tickets: defaultdict[str, _Ticket] = defaultdict(_Ticket)
        self._lock = threading.Lock()
        tickets, lock = self._tickets, self._lock

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                name = self.rfile.readline().decode().strip()
                with lock:
                    ticket = tickets[name]
                    ticket.connection = self.connection
                    if ticket.go.is_set():
                        self.connection.sendall(b"g")
                    ticket.began.set()
                with contextlib.suppress(OSError):
                    self.rfile.read()  # until the code has closed its end
                ticket.ended.set()

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: object) -> None:
                """Say nothing: code that is stopped while it connects is no error."""

        self._server = Server(str(folder / _SOCKET), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def release(self, ticket: str) -> None:
        """Let the code that has this ticket go on, or never wait at all."""
        with self._lock:
            entry = self._tickets[ticket]
            entry.go.set()
            if entry.connection is not None and not entry.ended.is_set():
                with contextlib.suppress(OSError):  # it has just ended
                    entry.connection.sendall(b"g")

    def wait_began(self, ticket: str) -> None:
        """Wait until code waits with this ticket."""
        assert self._tickets[ticket].began.wait(LIMIT), f"{ticket} has not begun to wait"

    def wait_ended(self, ticket: str) -> None:
        """Wait until the code that waited with this ticket has stopped waiting."""
        assert self._tickets[ticket].ended.wait(LIMIT), f"the code of {ticket} still waits"

    def waits(self, ticket: str) -> bool:
        """Tell whether code waits with this ticket now."""
        entry = self._tickets[ticket]
        return entry.began.is_set() and not entry.ended.is_set()
