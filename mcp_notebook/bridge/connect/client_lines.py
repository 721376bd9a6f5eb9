"""The client's lines: stdin and stdout of `mcp-notebook connect`.

A daemon thread reads stdin and another one writes stdout, on every system and whatever stdin is (a
pipe, a file, a terminal); all else is the event loop's. Neither thread keeps the process from
ending: nobody can wake one that waits for a client. What the lines mean, `messages` knows.
"""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Iterator
from typing import BinaryIO, Self

import anyio

from mcp_notebook.bridge.connect.messages import Message


class ClientLines:
    """Lines from and to the client; a context manager, on whose event loop all methods run.

    From then on, anything else that prints writes to stderr, and anything else that reads stdin
    finds it empty.

    Args:
        max_bytes: Of one line.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.is_terminal = os.isatty(0)
        """Whether a person sits there, and no client."""
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._outbox: queue.SimpleQueue[tuple[bytes, anyio.Event]] = queue.SimpleQueue()
        self._turns = threading.Semaphore()
        """Lets the reader be one line ahead."""

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
        """Return the next line, b"" in place of one that is too long, None at the end of stdin."""
        line = await self._inbox.get()
        self._turns.release()
        return line

    async def send(self, message: Message) -> None:
        """Write a message, and wait until the client's pipe has it, or the client is gone."""
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
        """Write to stdout what is sent, in a thread."""
        is_open = True
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while True:
                line, is_written = self._outbox.get()
                try:
                    while is_open and line:
                        line = line[os.write(descriptor, line) :]
                except OSError:
                    is_open = False  # the client is gone: stdin ends, too
                self._loop.call_soon_threadsafe(is_written.set)
