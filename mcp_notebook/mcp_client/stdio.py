"""The way to a server over stdio: a command that is started, and ended with all that it started.

Runs on a command's event loop. The shutdown follows MCP: close stdin, wait, then end the process,
and at last all of its tree
(https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#shutdown).
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.abc
import psutil
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic_core import from_json, to_json

from mcp_notebook.protocol.errors import CONNECTION_CLOSED, METHOD_NOT_FOUND, ProtocolError
from mcp_notebook.protocol.methods import PING

_INHERITED = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "SYSTEMDRIVE"),
        *("SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
"""The variables that desktop clients pass on to a server."""
_MAX_LINE = 2**26
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_CLOSED = ProtocolError(CONNECTION_CLOSED, "Connection closed")
_GONE = (
    *(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError),
    *(anyio.BrokenResourceError, anyio.DelimiterNotFound, OSError),
)
"""Raised by reads and writes when the process is gone, or a line is too long."""


@asynccontextmanager
async def open_command(
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    errors: IO[Any],
    end_limit: float = 2.0,
) -> AsyncIterator["_StdioTransport"]:
    """Start a command, and yield the way to the server in it.

    Args:
        words: The command and its arguments.
        env: Its variables besides those that desktop clients pass on.
        folder: Its working directory.
        errors: File for its stderr.
        end_limit: Seconds to wait for it to exit, after closing stdin and after each signal.

    Raises:
        OSError: It cannot be started.
    """
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    process = await anyio.open_process(
        [*words],
        env=inherited | dict(env),
        cwd=folder,
        stderr=errors,
        start_new_session=sys.platform != "win32",
    )
    try:
        yield _StdioTransport(process)
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process, end_limit)


class _StdioTransport:
    def __init__(self, process: anyio.abc.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self._lines = BufferedByteReceiveStream(process.stdout)

    async def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request, and return its answer; refuse the server's own, but for pings."""
        await self.notify(message)
        while True:
            try:
                line = await self._lines.receive_until(b"\n", _MAX_LINE)
            except _GONE:
                raise _CLOSED from None
            try:
                said = from_json(line)
            except ValueError:
                continue  # not a message: the command prints
            if not isinstance(said, dict) or said.get("id") is None:
                continue
            if "method" in said:
                error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
                answer = {"result": {}} if said["method"] == PING else {"error": error}
                await self.notify({"jsonrpc": "2.0", "id": said["id"], **answer})
            elif said["id"] == message["id"]:
                return said

    async def notify(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        try:
            await self._stdin.send(to_json(message) + b"\n")
        except _GONE:
            raise _CLOSED from None


async def _end(process: anyio.abc.Process, limit: float) -> None:
    """End a process, and all that it has started."""
    tree = _list_tree(process.pid)
    with suppress(*_GONE):
        assert process.stdin is not None
        await process.stdin.aclose()
    for number in (None, signal.SIGTERM, _KILL):
        if number is not None:
            _send_signal(process.pid, tree, number)
        with anyio.move_on_after(limit):
            while process.returncode is None:  # noqa: ASYNC110 - `wait` waits for the pipes, too
                await anyio.sleep(0.01)
            break
    _send_signal(process.pid, tree, _KILL)  # what it started, and left behind
    with suppress(*_GONE):
        await process.aclose()


def _list_tree(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _send_signal(pid: int, tree: Sequence[psutil.Process], number: int) -> None:
    if sys.platform != "win32":
        with suppress(OSError):
            os.killpg(pid, number)  # also those whose parents have ended
    else:
        for process in (*tree, *_list_tree(pid)):
            with suppress(psutil.Error):
                process.kill()
        with suppress(OSError):
            os.kill(pid, number)
