"""Sends frames to one bridge, in order.

Any thread may send, and writes to the socket itself: waking the endpoint's loop would take longer
than everything else about an answer. If the bridge is slow to read, the rest waits, with all frames
sent meanwhile, and the loop writes it.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any

from mcp_notebook.kernel.safe.interrupter import InterruptSafeLock
from mcp_notebook.wire import frames


class FrameSender:
    """Sends frames to one bridge; made and closed on the endpoint's thread.

    Args:
        transport: The connection; only this object writes to it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        # With its own descriptor, which is never closed while another thread writes to it.
        self._socket = transport.get_extra_info("socket").dup()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, frames.SEND_BUFFER)
        if self._socket.family == socket.AF_INET:
            # asyncio sets it only on sockets whose `proto` is TCP; accepted sockets lack that.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lock = InterruptSafeLock()
        self._waiting: deque[memoryview] = deque()
        self.backlog = 0
        """Bytes that wait for the bridge."""
        self._is_closed = False

    @property
    def sockets(self) -> Sequence[Any]:
        """The connection's sockets, for reading and for writing."""
        return self._transport.get_extra_info("socket"), self._socket

    def send(self, frame: Sequence[bytes]) -> None:
        """Write the buffers of a frame, or queue them; does nothing after a disconnect."""
        with self._lock:
            if self._is_closed:
                return
            try:
                self._send(frame)
            except BaseException:
                # An interrupt: it is unknown how much was written, and the bridge would wait.
                self._give_up()
                raise

    def close(self) -> None:
        """Accept no more frames, and close the connection once all waiting ones are written."""
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
        """Write waiting buffers until the socket would block."""
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
        except OSError:  # the bridge has disconnected
            self._give_up()

    def _give_up(self) -> None:
        """Abort the connection."""
        self._is_closed = True
        self._waiting.clear()
        self.backlog = 0
        self._hand_over(self._transport.abort)

    def _await_reader(self) -> None:
        """Continue when the socket is writable; on the loop."""
        with self._lock:
            if self._waiting:
                self._loop.add_writer(self._socket.fileno(), self._write_waiting)

    def _write_waiting(self) -> None:
        """Write waiting buffers, now that the socket is writable; on the loop."""
        with self._lock:
            self._write()
            if not self._waiting:
                self._loop.remove_writer(self._socket.fileno())
                if self._is_closed:
                    self._socket.close()

    def _hand_over(self, function: Any, *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            self._loop.call_soon_threadsafe(function, *arguments)
