"""Clients of a bridge for the benchmarks: bytes on a socket or a pipe, and nothing that reads them.

The official client takes longer to read a picture than the whole way before it. What these give
back is an answer's bytes, as soon as the last of them has come.
"""

import json
import os
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clients import COMMAND, TOKEN, http_bridge
from live import kernel_env

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = {"modern": MODERN, "legacy": LEGACY}
TRANSPORTS = ("stdio", "http")
_BUFFER = 2**20


class RawClient(ABC):
    """A client of one bridge; `pid` is the bridge's.

    Args:
        version: Version of MCP to speak.
        pid: Id of the bridge's process.
    """

    def __init__(self, version: str, pid: int) -> None:
        self.version = version
        self.pid = pid

    def shake_hands(self) -> None:
        """Begin, in the eras that have a beginning."""
        if self.version != MODERN:
            about = {"name": "benchmark", "version": "0"}
            self.request(
                "initialize",
                {"protocolVersion": self.version, "capabilities": {}, "clientInfo": about},
            )
            self._post({"method": "notifications/initialized"}, "")

    def call(self, tool: str, **arguments: Any) -> bytes:
        """Call a tool and return the answer's bytes."""
        return self.request("tools/call", {"name": tool, "arguments": arguments}, tool)

    def read(self, uri: str) -> bytes:
        """Read a resource and return the answer's bytes."""
        return self.request("resources/read", {"uri": uri}, uri)

    def text(self, tool: str) -> str:
        """Call a tool and return the text of the answer's first block."""
        answer = self.call(tool)
        message = json.loads(answer[answer.index(b"{") :])
        return str(message["result"]["content"][0]["text"])

    def request(self, method: str, params: dict[str, Any], name: str = "") -> bytes:
        """Send a request and return the answer's bytes."""
        if self.version == MODERN:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        return self._post({"id": 1, "method": method, "params": params}, name)

    @abstractmethod
    def _post(self, message: dict[str, Any], name: str) -> bytes:
        """Send a message and return the answer's bytes."""


class StdioClient(RawClient):
    """Starts a bridge of its own; close it."""

    def __init__(self, version: str, home: Path) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "stdio"],
            env=kernel_env(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=_BUFFER,
        )
        super().__init__(version, self._process.pid)
        self.shake_hands()

    def close(self) -> None:
        """End the bridge."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(10)

    def _post(self, message: dict[str, Any], name: str) -> bytes:  # noqa: ARG002 - HTTP's
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()
        if "id" not in message:
            return b""
        while b'"id":1' not in (line := self._process.stdout.readline())[:60]:
            if not line:
                raise EOFError("the bridge ended")
            if b'"id":1' in line[-60:]:
                break
        return line


class HttpClient(RawClient):
    """One connection that stays open, to a bridge that runs."""

    def __init__(self, version: str, url: str, pid: int) -> None:
        super().__init__(version, pid)
        self._where = urlsplit(url)
        self._socket = socket.create_connection((self._where.hostname, self._where.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb", buffering=_BUFFER)
        self._session: str | None = None
        self.shake_hands()

    def close(self) -> None:
        """Close the connection."""
        self._answers.close()
        self._socket.close()

    def _post(self, message: dict[str, Any], name: str) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message})
        head = {
            "Host": self._where.netloc,
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.version,
            "Content-Length": str(len(body)),
        }
        if self.version == MODERN:
            head |= {"Mcp-Method": message["method"], "Mcp-Name": name}
        elif self._session is not None:
            head["Mcp-Session-Id"] = self._session
        lines = [f"POST {self._where.path} HTTP/1.1", *(f"{k}: {v}" for k, v in head.items())]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        return self._answer()

    def _answer(self) -> bytes:
        status = self._answers.readline()
        head: dict[str, str] = {}
        while (line := self._answers.readline()) != b"\r\n":
            key, _, value = line.decode().partition(":")
            head[key.lower()] = value.strip()
        self._session = head.get("mcp-session-id", self._session)
        body = self._answers.read(int(head.get("content-length", 0)))
        chunks = [body]
        if head.get("transfer-encoding") == "chunked":
            while size := int(self._answers.readline(), 16):
                chunks.append(self._answers.read(size))
                self._answers.readline()
            self._answers.readline()
        assert b" 20" in status, (status, chunks)
        return b"".join(chunks)


@contextmanager
def raw_client(home: Path, era: str, transport: str) -> Iterator[RawClient]:
    """Start a bridge and connect to it."""
    version = ERAS[era]
    if transport == "stdio":
        stdio = StdioClient(version, home)
        try:
            yield stdio
        finally:
            stdio.close()
        return
    with http_bridge(home) as served:
        http = HttpClient(version, served.url, served.process.pid)
        try:
            yield http
        finally:
            http.close()


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process has now."""
    return _status(pid, "VmRSS")


def peak_of(pid: int) -> int:
    """Return the most bytes that a process has had since `forget_peak`."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Begin to look for a process's peak anew; a process of one's own user, on Linux."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def can_see_peaks() -> bool:
    """Tell whether this system tells peaks."""
    return sys.platform == "linux" and os.access("/proc/self/clear_refs", os.W_OK)


def _status(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in text.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
