"""The client's lines: stdin and stdout of `mcp-notebook connect`.

One daemon thread reads stdin and another one writes stdout, on every system and for every kind of
stdin (a pipe, a file, a terminal); all else runs on the event loop. They are daemon threads because
a thread that is blocked on a client cannot be woken up. `messages` parses the lines.
"""

import asyncio
import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, Self

import anyio

from mcp_notebook.bridge.connect.messages import Message


class ClientLines:
    """Lines from and to the client; an async context manager.

    Once entered, other code that prints writes to stderr, and other code that reads stdin finds it
    empty. All methods run on the event loop that entered it.

    Args:
        max_bytes: Size limit of a line.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.is_terminal = os.isatty(0)
        """Whether stdin is a terminal: a person started the command."""
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._held: deque[bytes] = deque()
        """Lines that were read ahead."""
        self._outbox: queue.SimpleQueue[tuple[bytes, anyio.Event]] = queue.SimpleQueue()
        self._turns = threading.Semaphore()
        """Lets the reader read one line ahead."""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        wire_in, wire_out = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        for target, descriptor in ((self._read_all, wire_in), (self._write_all, wire_out)):
            threading.Thread(target=target, args=(descriptor,), daemon=True).start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Do nothing: the threads end with the process."""

    async def receive(self) -> bytes | None:
        """Return the next line, b"" for one that is too long, None at the end of stdin."""
        if self._held:
            return self._held.popleft()
        line = await self._inbox.get()
        self._turns.release()
        return line

    async def read_ahead(self) -> bytes | None:
        """Return the next line that was not read ahead; `receive` returns it again."""
        line = await self._inbox.get()
        if line is None:
            self._inbox.put_nowait(None)
        else:
            self._turns.release()
            self._held.append(line)
        return line

    def send_soon(self, message: Message) -> None:
        """Write a message, without waiting for the client."""
        self._outbox.put((message.body + b"\n", anyio.Event()))

    async def send(self, message: Message) -> None:
        """Write a message, and wait until it is written or the client has disconnected."""
        is_written = anyio.Event()
        self._outbox.put((message.body + b"\n", is_written))
        await is_written.wait()

    def _read_all(self, descriptor: int) -> None:
        """Read stdin to its end, in a thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            with contextlib.suppress(OSError), os.fdopen(descriptor, "rb") as file:
                for line in self._list_lines(file):
                    self._turns.acquire()
                    self._loop.call_soon_threadsafe(self._inbox.put_nowait, line)
            self._loop.call_soon_threadsafe(self._inbox.put_nowait, None)

    def _list_lines(self, file: BinaryIO) -> Iterator[bytes]:
        while line := file.readline(self._max_bytes + 1):
            if len(line) > self._max_bytes:
                while line and not line.endswith(b"\n"):
                    line = file.readline(self._max_bytes)
                yield b""
            elif line.strip():
                yield line.rstrip(b"\r\n")

    def _write_all(self, descriptor: int) -> None:
        """Write messages to stdout, in a thread."""
        is_open = True
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while True:
                line, is_written = self._outbox.get()
                try:
                    while is_open and line:
                        line = line[os.write(descriptor, line) :]
                except OSError:
                    is_open = False  # the client has disconnected; stdin ends as well
                self._loop.call_soon_threadsafe(is_written.set)
