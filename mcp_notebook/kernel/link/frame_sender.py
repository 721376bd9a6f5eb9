"""Sends frames to one bridge, in the order in which they are given.

Any thread may send: it writes to the socket itself. To wake the endpoint's loop for that would take
longer than all else that is done with an answer. What the bridge does not take at once, as it is
slow to read, waits, together with all that is sent meanwhile; the loop writes it.
"""

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from mcp_notebook.wire import frames


class FrameSender:
    """Sends frames to one bridge; made and closed on the endpoint's thread.

    Args:
        transport: The connection; nobody else writes to it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        # With a descriptor of its own, which nobody closes while another thread writes to it.
        self._socket = transport.get_extra_info("socket").dup()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, frames.SEND_BUFFER)
        if self._socket.family == socket.AF_INET:
            # asyncio does so only where the socket knows that it is TCP's: no accepted one does.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lock = threading.Lock()
        self._waiting: deque[memoryview] = deque()
        self.backlog = 0
        """Bytes that wait for the bridge."""
        self._is_closed = False

    @property
    def sockets(self) -> Sequence[Any]:
        """The connection's socket, and the one that is written to."""
        return self._transport.get_extra_info("socket"), self._socket

    def send(self, frame: Sequence[bytes]) -> None:
        """Write the buffers of a frame, or let them wait; does nothing when the bridge is gone."""
        with self._lock:
            if self._is_closed:
                return
            try:
                self._send(frame)
            except BaseException:
                # An interrupt: nobody knows what has been written, and the bridge would wait.
                self._give_up()
                raise

    def close(self) -> None:
        """Take nothing more and close the connection, once what waits is written."""
        with self._lock:
            self._is_closed = True
            if not self._waiting:
                self._socket.close()
        self._transport.close()

    def _send(self, frame: Sequence[bytes]) -> None:
        is_first = not self._waiting
        for buffer in frame:
            self._waiting.append(memoryview(buffer))
            self.backlog += len(buffer)
        if is_first:
            self._write()
            if self._waiting:
                self._hand_over(self._await_reader)

    def _write(self) -> None:
        """Write what waits as far as the bridge takes it."""
        try:
            while self._waiting:
                buffer = self._waiting[0]
                size = self._socket.send(buffer)
                self.backlog -= size
                if size == len(buffer):
                    self._waiting.popleft()
                else:
                    self._waiting[0] = buffer[size:]
        except BlockingIOError:
            return
        except OSError:  # the bridge is gone
            self._give_up()

    def _give_up(self) -> None:
        """End the connection, and send nothing more."""
        self._is_closed = True
        self._waiting.clear()
        self.backlog = 0
        self._hand_over(self._transport.abort)

    def _await_reader(self) -> None:
        """Go on as soon as the bridge takes something, unless it was given up; on the loop."""
        with self._lock:
            if self._waiting:
                self._loop.add_writer(self._socket.fileno(), self._write_waiting)

    def _write_waiting(self) -> None:
        """Go on with what waits, now that the bridge takes something; on the loop."""
        with self._lock:
            self._write()
            if not self._waiting:
                self._loop.remove_writer(self._socket.fileno())
                if self._is_closed:
                    self._socket.close()

    def _hand_over(self, function: Any, *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            self._loop.call_soon_threadsafe(function, *arguments)
