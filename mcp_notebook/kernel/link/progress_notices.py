"""What a client is told while its call waits or runs: seldom enough, and often enough.

Runs in the user's kernel, on the endpoint's thread, whose loop keeps the time. What is said
is a `messages.Progress`; what a call does is its invoker's to say, and the endpoint sends it.
"""

import asyncio
import contextlib
from collections.abc import Callable

from mcp_notebook.kernel.calls.call import Call as KernelCall
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.tools.context import Update
from mcp_notebook.wire import messages

PROGRESS_INTERVAL = 0.1
"""Seconds between two notices of a call's progress; the newest is sent, what it replaced is not."""
NOTICE_AFTER = 1.0
"""Seconds until a client that wants progress is told for the first time what its call waits for."""
NOTICE_EVERY = 5.0
"""Seconds between two such notices."""
HEARTBEAT = 10.0
"""Seconds that a running call may say nothing before its client is told that it still runs."""


class ProgressNotices:
    """The notices of one call.

    `report` may be called from any thread; all else is on the endpoint's.

    Args:
        call_id: Id of the call in its conversation.
        loop: The endpoint's.
        send: Sends a message.
    """

    def __init__(
        self,
        call_id: int,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[messages.AnyMessage], None],
    ) -> None:
        self._id = call_id
        self._loop = loop
        self._send = send
        self._newest = Update()
        self._due = False
        self._closed = False
        self._sent_at = -HEARTBEAT
        self._timer: asyncio.TimerHandle | None = None

    def start(self, call: KernelCall, describe: Callable[[KernelCall], str]) -> None:
        """Begin to say what the call does when nothing else is said of it."""
        self._timer = self._loop.call_later(NOTICE_AFTER, self._look, call, describe)

    def close(self) -> None:
        """Say nothing more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def report(self, update: Update) -> None:
        """Take progress; what is None stays as it was."""
        newest = self._newest
        self._newest = Update(
            newest.done if update.done is None else update.done,
            newest.total if update.done is None else update.total,
            newest.message if update.message is None else update.message,
        )
        if not self._due:
            self._due = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                self._loop.call_soon_threadsafe(self._schedule)

    def _schedule(self) -> None:
        wait = self._sent_at + PROGRESS_INTERVAL - self._loop.time()
        self._loop.call_later(max(wait, 0), self._flush)

    def _flush(self) -> None:
        self._due = False
        newest = self._newest
        self._tell(newest.done, newest.total, newest.message)

    def _look(self, call: KernelCall, describe: Callable[[KernelCall], str]) -> None:
        """Say what the call does, if it waits, or has said nothing for long."""
        silent = self._loop.time() - self._sent_at
        running = call.state is CallState.RUNNING and not call.stopping
        if not running or silent >= HEARTBEAT:
            newest = self._newest
            self._tell(newest.done, newest.total, describe(call))
            silent = 0.0
        wait = min(HEARTBEAT - silent, NOTICE_EVERY)
        self._timer = self._loop.call_later(wait, self._look, call, describe)

    def _tell(self, done: float | None, total: float | None, message: str | None) -> None:
        if not self._closed:
            self._sent_at = self._loop.time()
            self._send(messages.Progress(id=self._id, progress=done, total=total, message=message))
