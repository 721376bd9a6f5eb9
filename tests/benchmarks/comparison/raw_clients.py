"""Clients for the benchmarks: bytes on a socket or a pipe, every answer checked, and no SDK.

One thread. What a client does between two requests is time that all servers are charged alike, so
it does next to nothing: the requests are built before.
"""

import os
import select
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from urllib.parse import urlsplit

from comparison.requests import ERAS, INITIALIZE, INITIALIZED, Request

BUFFER = 2**18
Answer = bytes | bytearray | memoryview
PATIENCE_S = 60
"""Seconds after which a server that says nothing has hung."""


class Hung(Exception):
    """A server ended, or said nothing for a minute."""


class Line(ABC):
    """A connection to a server.

    Args:
        era: "modern" or "legacy".
    """

    def __init__(self, era: str) -> None:
        self.era = era
        self._view = memoryview(bytearray(BUFFER))

    @abstractmethod
    def prepare(self, request: Request) -> None:
        """Build the bytes that `send` sends from now on."""

    @abstractmethod
    def send(self) -> None:
        """Send the request."""

    @abstractmethod
    def answers(self) -> Iterator[Answer]:
        """Read once, and give the answers that are complete by then."""

    @abstractmethod
    def fileno(self) -> int:
        """What to wait for."""

    @abstractmethod
    def close(self) -> None:
        """End it."""

    def ask(self, request: Request) -> Answer:
        """Send one request, and return its answer, which is right."""
        self.prepare(request)
        answer = self.exchange()
        request.check(answer)
        return answer

    def exchange(self) -> Answer:
        """Send the prepared request, and wait for its answer."""
        self.send()
        while True:
            for answer in self.answers():
                return answer


class HttpLine(Line):
    """One connection over HTTP that stays open, with a session in the legacy era."""

    def __init__(self, era: str, url: str, headers: Sequence[str] = ()) -> None:
        super().__init__(era)
        self._where = urlsplit(url)
        self._headers = list(headers)
        self._socket = socket.create_connection(
            (self._where.hostname, self._where.port), timeout=PATIENCE_S
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._room = bytearray()  # kept for the next answer: new memory is slow
        self._body: memoryview | None = None
        self._filled = 0
        self._session: list[str] = []
        self._bytes = b""
        if era == "legacy":
            self.ask(INITIALIZE)
            self._bytes = self._post(INITIALIZED, [])
            self.exchange()

    def fileno(self) -> int:
        """What to wait for."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def prepare(self, request: Request) -> None:
        """Build the bytes that `send` sends from now on."""
        names = [f"Mcp-Method: {request.method}"]
        names += [f"Mcp-Name: {request.name}"] if request.name else []
        self._bytes = self._post(request.body(self.era), names if self.era == "modern" else [])

    def send(self) -> None:
        """Send the request."""
        self._socket.sendall(self._bytes)

    def answers(self) -> Iterator[Answer]:
        """Read once; give the answer if it is complete."""
        if self._body is not None:  # its length is known: straight to where it belongs
            size = self._socket.recv_into(self._body[self._filled :])
            self._filled += size
        else:
            size = self._socket.recv_into(self._view)
            self._received += self._view[:size]
        if not size:
            raise Hung(f"{self._where.netloc} closed the connection after {self._received[:300]!r}")
        answer = self._complete()
        if answer is not None:
            self._received, self._body = bytearray(), None
            yield answer

    def _complete(self) -> Answer | None:
        """Return the answer's body if all of it is there."""
        if self._body is not None:
            return self._body if self._filled == len(self._body) else None
        received = self._received
        end = received.find(b"\r\n\r\n") + 4
        if end < 4:
            return None
        head = received[:end].lower()
        if (at := head.find(b"content-length:")) >= 0:
            length = int(head[at + 15 : head.index(b"\r", at)])
            answer = received[end:]
            if len(answer) < length:
                self._note(head, received)
                self._filled = len(answer)
                if len(self._room) < length:
                    self._room = bytearray(length)
                self._body = memoryview(self._room)[:length]
                self._body[: len(answer)] = answer
                return None
        elif b"transfer-encoding: chunked" in head:
            if not received.endswith(b"\r\n0\r\n\r\n"):
                return None
            answer = join_chunks(received, end)
        else:
            answer = bytearray()
        self._note(head, received)
        return answer

    def _note(self, head: bytearray, received: bytearray) -> None:
        """Look at the status, and keep the session's id."""
        if b" 20" not in received[:15]:
            raise Hung(f"{self._where.netloc} answered {bytes(received[:1_000])!r}")
        if not self._session and (at := head.find(b"mcp-session-id:")) >= 0:
            session = received[at + 15 : head.index(b"\r", at)].decode().strip()
            self._session = [f"Mcp-Session-Id: {session}"]

    def _post(self, body: bytes, names: list[str]) -> bytes:
        head = [
            f"POST {self._where.path} HTTP/1.1",
            f"Host: {self._where.netloc}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {ERAS[self.era]}",
            f"Content-Length: {len(body)}",
            *self._headers,
            *self._session,
            *names,
        ]
        return ("\r\n".join(head) + "\r\n\r\n").encode() + body


def join_chunks(received: bytearray, at: int) -> bytearray:
    """Return the body that was sent in chunks, from this place on."""
    body = bytearray()
    while True:
        end = received.index(b"\r\n", at)
        size = int(received[at:end], 16)
        if not size:
            return body
        body += received[end + 2 : end + 2 + size]
        at = end + size + 4


class StdioLine(Line):
    """A server that is started for it, over its stdin and stdout."""

    def __init__(self, era: str, command: Sequence[str], env: dict[str, str]) -> None:
        super().__init__(era)
        self.process = Popen(command, env=env, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, bufsize=0)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._room, self._filled = bytearray(BUFFER), 0  # kept: new memory is slow
        self._number, self._before, self._after = 0, b"", b""
        try:
            if era == "legacy":
                self.ask(INITIALIZE)
                self._write(INITIALIZED + b"\n")
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """What to wait for."""
        return self._stdout.fileno()

    def close(self) -> None:
        """End the server."""
        self._stdin.close()
        self._stdout.close()
        try:
            self.process.wait(10)
        except TimeoutExpired:
            self.process.kill()

    def prepare(self, request: Request) -> None:
        """Build the bytes that `send` sends from now on, up to and after the id."""
        self._before, self._after = request.body(self.era, b"#").split(b"#", 1)
        self._after += b"\n"

    def send(self) -> None:
        """Send the request, with an id of its own."""
        self._number += 1
        self._write(b"%b%d%b" % (self._before, self._number, self._after))

    def answers(self) -> Iterator[Answer]:
        """Read once; give the answers that are complete, and skip what nobody asked for."""
        if self._filled == len(self._room):
            self._room = self._room + bytearray(len(self._room))
        before = self._filled
        size = self._stdout.readinto(memoryview(self._room)[before:])
        if not size:
            raise Hung(f"{self.process.args!r} ended")
        self._filled += size
        last = self._room.rfind(b"\n", before, self._filled)
        if last >= 0:
            for line in self._lines_until(last, before):
                if b'"method"' not in bytes(line[:60]):
                    yield line

    def _lines_until(self, last: int, before: int) -> Sequence[Answer]:
        """Return the lines up to this one's end; a single one where it is, as it may be large."""
        if last + 1 == self._filled and self._room.find(b"\n", before, last) < 0:
            self._filled = 0
            return [memoryview(self._room)[:last]]
        lines = self._room[:last].split(b"\n")
        rest = self._room[last + 1 : self._filled]
        self._room[: len(rest)] = rest
        self._filled = len(rest)
        return lines

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._stdin.fileno(), rest) :]


def one_caller(line: Line, request: Request, seconds: float) -> list[float]:
    """Return the seconds that each request takes, one after the other."""
    line.prepare(request)
    times = []
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until or not times:
        answer = line.exchange()
        times.append(time.perf_counter() - began)
        request.check(answer)
    return times


def many_callers(lines: Sequence[Line], request: Request, seconds: float, each: int = 1) -> float:
    """Return the answers a second that callers get who ask again as soon as they are answered.

    Args:
        lines: The connections.
        request: What each of them asks.
        seconds: How long.
        each: How many callers share a connection.
    """
    waiting = select.poll()
    by_number = {line.fileno(): line for line in lines}
    began = time.perf_counter()
    for number, line in by_number.items():
        waiting.register(number, select.POLLIN)
        line.prepare(request)
        for _ in range(each):
            line.send()
    open_requests, answered = len(lines) * each, 0
    until = began + seconds
    while open_requests:
        ready = waiting.poll(PATIENCE_S * 1_000)
        if not ready:
            raise Hung(f"{open_requests} requests were not answered")
        for number, _ in ready:
            line = by_number[number]
            for answer in line.answers():
                request.check(answer)
                answered += 1
                if time.perf_counter() < until:
                    line.send()
                else:
                    open_requests -= 1
                    if each == 1:  # an idle connection may be closed
                        waiting.unregister(number)
    return answered / (time.perf_counter() - began)
