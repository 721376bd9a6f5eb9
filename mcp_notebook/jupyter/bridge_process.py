"""The server's own bridge: a process that is started on the first request, and again if it dies.

Runs on the event loop of Jupyter Server; threads read from and write to the bridge's pipes. They
are daemons, which the interpreter does not wait for: a bridge that hangs must not keep the server
from ending. The bridge ends when the pipe to its stdin is closed, which the operating system does
when the server ends for any reason.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TypeVar

import anyio
from tornado.ioloop import PeriodicCallback
from tornado.web import HTTPError

from mcp_notebook.jupyter.bridge_connections import BridgeConnections
from mcp_notebook.settings.settings import Settings

SETTINGS_KEY = "mcp_notebook_bridge"
"""The key of the `BridgeProcess` in the settings of the server's application."""
_LOOK_EVERY = 500
"""Milliseconds between two checks of the server's kernels."""
_T = TypeVar("_T")
_NOT_STARTED = (
    "mcp-notebook's bridge did not start. Its errors are in the log of this Jupyter Server."
)


class BridgeProcess:
    """The bridge of one server, and the connections to it.

    Args:
        list_kernels: Returns the ids of the server's kernels.
        settings: All settings.
        log: The server's log.
    """

    def __init__(
        self, list_kernels: Callable[[], Sequence[str]], settings: Settings, log: logging.Logger
    ) -> None:
        self._list_kernels = list_kernels
        self.settings = settings
        """All settings."""
        self._log = log
        self._lock = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connections: BridgeConnections | None = None
        self._reported: list[str] | None = None
        """The kernels that were reported to the bridge."""
        self._remove_folder: Callable[[], object] = lambda: None
        """Removes the folder of the bridge's socket; a bridge that was killed could not."""
        self._watch = PeriodicCallback(self._look, _LOOK_EVERY)

    async def connect(self) -> BridgeConnections:
        """Start the bridge unless it is running, and return the connections to it.

        Raises:
            HTTPError: The bridge does not start.
        """
        async with self._lock:
            if (
                self._connections is None
                or self._process is None
                or self._process.poll() is not None
            ):
                try:
                    await self._start()
                except BaseException:  # for example, the first client has disconnected
                    self._abandon_start()
                    raise
            await self._tell_kernels()
            assert self._connections is not None
            return self._connections

    async def _start(self) -> None:
        if self._process is not None:
            self._log.warning("mcp-notebook's bridge has ended and is being restarted.")
        if self._connections is not None:
            self._connections.close()
            self._connections = None
        self._remove_folder()
        folder = _make_folder()
        if folder is not None:
            self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        token = secrets.token_urlsafe(32)
        self._reported = None
        self._process = _spawn(token, folder)  # takes milliseconds; a cancelled wait would lose it
        address = await self._read_address(self._process)
        self._connections = BridgeConnections(address, token)
        self._watch.start()

    def _abandon_start(self) -> None:
        """Kill a bridge whose address is unknown."""
        process, self._process = self._process, None
        if process is not None and self._connections is None:
            process.kill()
            self._remove_folder()

    async def _read_address(self, process: subprocess.Popen[bytes]) -> str | int:
        """Wait until the bridge reports the path of its socket, or its port.

        Raises:
            HTTPError: The bridge has ended, or takes too long.
        """
        assert process.stdout is not None
        line = b""
        with anyio.move_on_after(self.settings.start_timeout):
            line = await _run_in_daemon_thread(process.stdout.readline)
        if not line:
            process.kill()
            raise HTTPError(HTTPStatus.SERVICE_UNAVAILABLE, _NOT_STARTED)
        address: dict[str, str | int] = json.loads(line)
        return address["socket"] if "socket" in address else address["port"]

    async def _look(self) -> None:
        """Report new kernels to the bridge; `poll` also reaps a bridge that has ended."""
        async with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._watch.stop()
                self._remove_folder()
            else:
                await self._tell_kernels()

    async def _tell_kernels(self) -> None:
        """Report the server's kernels to the bridge if they have changed, and wait until it knows.

        Otherwise, the next request could overtake the report, and be answered for a kernel that
        has just ended.
        """
        kernels = sorted(self._list_kernels())
        process = self._process
        if kernels == self._reported or process is None:
            return
        # Not cancelled with its request: its answer would be taken for that to the next report.
        with anyio.move_on_after(self.settings.start_timeout, shield=True):
            line = json.dumps(kernels).encode() + b"\n"
            if await _run_in_daemon_thread(lambda: _report(process, line)):
                self._reported = kernels
                return
        process.kill()  # the next request restarts it


def _report(process: subprocess.Popen[bytes], line: bytes) -> bool:
    """Send the bridge a line, and return whether it has confirmed it; in a thread."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(line)
    except OSError:  # it has ended
        return False
    return bool(process.stdout.readline())


async def _run_in_daemon_thread(function: Callable[[], _T]) -> _T:
    """Return the result of a function that may wait for the bridge forever; it must not raise."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_T] = loop.create_future()

    def note(result: _T) -> None:
        if not outcome.done():
            outcome.set_result(result)

    def run() -> None:
        result = function()
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(note, result)

    threading.Thread(target=run, name="mcp-notebook bridge", daemon=True).start()
    return await outcome


def _make_folder() -> str | None:
    """Make the folder of the bridge's socket; None where there are no Unix sockets."""
    return tempfile.mkdtemp(prefix="mcp-notebook-") if hasattr(socket, "AF_UNIX") else None


def _spawn(token: str, folder: str | None) -> subprocess.Popen[bytes]:
    """Start the bridge; its stderr goes to the server's log."""
    # -P: modules in the server's folder must not shadow those of the bridge.
    words = [sys.executable, "-P", "-m", "mcp_notebook.cli.jupyter_bridge", *filter(None, [folder])]
    return subprocess.Popen(  # noqa: S603 - our own module
        words,
        env=os.environ | {"MCP_NOTEBOOK_TOKEN": token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        # Ctrl-C in the server's terminal only asks whether to stop the server.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
