"""The frames that come on one connection, each handed over as soon as its last byte is there.

Runs on the event loop that owns the connection. No task is woken up for a frame, as one that reads
a stream would be: that takes longer than to read it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

from mcp_notebook.wire import frames, messages
from mcp_notebook.wire.frames import Frame, FrameParser


class FrameProtocol(asyncio.Protocol):
    """Reads one connection.

    Args:
        converse: What is done with the connection, in a task of its own; None: who made the
            connection sees to it.
    """

    transport: asyncio.Transport

    def __init__(
        self, converse: Callable[["FrameProtocol"], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        self._converse = converse
        self._parser = FrameParser()
        self._frames: deque[Frame] = deque()
        """Those that came before anybody took them."""
        self._take: Callable[[messages.AnyMessage, list[bytes]], None] | None = None
        self.is_over = False
        """Whether the stream has ended."""
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def read(self) -> Frame | None:
        """Wait for one frame, before `listen`; None at the end of the stream.

        Raises:
            FrameError: The bytes are no frame; the connection cannot be used further.
            OSError: The connection failed, and not as the other side is gone.
        """
        while not self._frames and not self.is_over:
            self._changed.clear()
            await self._changed.wait()
        if self._frames:
            return self._frames.popleft()
        if self._error is not None:
            raise self._error
        return None

    async def listen(self, take: Callable[[messages.AnyMessage, list[bytes]], None]) -> None:
        """Hand over each frame that comes, until the stream ends.

        Args:
            take: Gets a message and its attachments, in a callback of the loop.

        Raises:
            FrameError: The bytes are no frame; the connection cannot be used further.
            OSError: The connection failed, and not as the other side is gone.
            Exception: Whatever `take` raised: no more frames are handed over.
        """
        while self._frames:
            take(*self._frames.popleft())
        self._take = take
        try:
            while not self.is_over:
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._take = None
        if self._error is not None:
            raise self._error

    def send(self, message: messages.AnyMessage, attachments: Sequence[bytes] = ()) -> None:
        """Send a message; does nothing if the other side is gone, as the reader will notice.

        Raises:
            FrameError: The message is too large for a frame, or cannot be said in JSON.
        """
        for buffer in frames.encode(message, attachments):
            # uvloop's transports raise a RuntimeError once they are closed.
            if self.is_over or self.transport.is_closing():
                return
            self.transport.write(buffer)

    # -- what the loop calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to converse."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not derived from it
        if self._converse is not None:
            self._task = asyncio.get_running_loop().create_task(self._converse(self))

    def data_received(self, data: bytes) -> None:
        """Take a piece of the stream."""
        view, size, start = memoryview(data), len(data), 0
        try:
            while start < size and not self.is_over:
                end = start + self._parser.missing
                frame = self._parser.feed(view[start:end])
                start = end
                if frame is None:
                    continue
                if self._take is not None:
                    self._take(*frame)
                else:
                    self._frames.append(frame)
                    self._changed.set()
        except Exception as error:  # noqa: BLE001 - raised by `listen` or `read`
            self._end(error)

    def eof_received(self) -> bool:
        """Hear that nothing more comes; what is to be written still goes out."""
        self._end(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Hear that the connection is gone: an end like any, if the other side is gone with it."""
        self._end(None if isinstance(exc, ConnectionError) else exc)

    def _end(self, error: Exception | None) -> None:
        if not self.is_over:
            self.is_over, self._error = True, error
            self._changed.set()
