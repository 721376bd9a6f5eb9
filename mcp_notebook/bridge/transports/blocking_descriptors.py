"""Transports for descriptors that an event loop cannot wait for: terminals, files, Windows' pipes.

Each has a thread that reads or writes. It is a daemon, so a read that nobody ends does not keep the
process from ending. The protocols run on the event loop, as with the loop's own transports.
"""

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

_CHUNK = 65_536
"""Bytes that are read at a time."""


class ReadingThread(asyncio.ReadTransport):
    """Reads a descriptor to its end, one chunk at a time.

    Args:
        descriptor: Never closed here, because the thread may wait for it until the process ends.
        protocol: Receives the data.
    """

    def __init__(self, descriptor: int, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._is_closing = False
        self._is_paused = False
        self._may_read = threading.Event()
        """Set by the event loop; cleared by the thread when it has read a chunk."""
        protocol.connection_made(self)
        self._may_read.set()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def pause_reading(self) -> None:
        """Deliver no more than the chunk that is being read."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Go on reading."""
        self._is_paused = False
        self._may_read.set()

    def is_closing(self) -> bool:
        """Return whether it delivers nothing more."""
        return self._is_closing

    def close(self) -> None:
        """Deliver nothing more."""
        self._is_closing = True

    def _read(self) -> None:
        data = None
        while data != b"" and self._may_read.wait():
            self._may_read.clear()
            try:
                data = os.read(self._descriptor, _CHUNK)
            except OSError:  # a terminal that was closed
                data = b""
            _call_soon(self._loop, self._deliver, data)

    def _deliver(self, data: bytes) -> None:
        if self._is_closing:
            return
        if not data:
            self._is_closing = True
            self._protocol.connection_lost(None)
            return
        self._protocol.data_received(data)
        if not self._is_paused:
            self._may_read.set()


class WritingThread(asyncio.WriteTransport):
    """Writes to a descriptor.

    Args:
        descriptor: Never closed here, because the thread may wait for it until the process ends.
        protocol: Paused until all has been written.
    """

    def __init__(self, descriptor: int, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        """What is to be written; None: the transport is closed."""
        protocol.connection_made(self)
        threading.Thread(target=self._write, name="stdout", daemon=True).start()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the protocol is paused by each write."""

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Write pieces of bytes."""
        self._protocol.pause_writing()
        self._waiting.put(b"".join(list_of_data))

    def close(self) -> None:
        """End the thread when all has been written."""
        self._waiting.put(None)

    def _write(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._descriptor, view) :]
                if self._waiting.empty():
                    _call_soon(self._loop, self._protocol.resume_writing)
        except OSError as error:
            _call_soon(self._loop, self._protocol.connection_lost, error)


def _call_soon(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object
) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(function, *args)
