"""The progress notifications of one call: what its tool reports, and that it waits or still runs.

Runs on the endpoint's thread, whose loop keeps the time; only `ProgressNotices.report` and `close`
may be called from any thread. Of several reports that come quickly the first and the last are sent.
"""

import asyncio
import contextlib
from collections.abc import Callable

from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.tools.context import Update
from mcp_notebook.wire import messages

PROGRESS_INTERVAL = 0.1
"""Seconds between two notices of reported progress; of the reports between, the newest is sent."""
NOTICE_AFTER = 1.0
"""Seconds until the client is first told what its call waits for."""
NOTICE_EVERY = 5.0
"""Seconds between two such notices."""
HEARTBEAT = 10.0
"""Seconds for which a running call may be silent before its client is told that it still runs."""


class ProgressNotices:
    """Sends the progress of one call to its client.

    Args:
        call_id: Id of the call in its conversation.
        loop: The endpoint's.
        send: Sends a message; called on the endpoint's thread.
    """

    def __init__(
        self,
        call_id: int,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[messages.Progress], object],
    ) -> None:
        self._id = call_id
        self._loop = loop
        self._send = send
        self._newest = self._last_sent = Update()
        self._is_scheduled = False
        self._closed = False
        self._sent_at = -HEARTBEAT
        self._call: Call | None = None
        self.is_used = False
        """Whether the tool has reported anything."""
        self.last: messages.Progress | None = None
        """What was sent last."""

    def start(self, call: Call, describe: Callable[[Call], str]) -> None:
        """Begin to send what the call does whenever its tool reports nothing."""
        self._call = call
        self._loop.call_later(NOTICE_AFTER, self._send_state, describe)

    def close(self) -> None:
        """Send nothing more."""
        # The timer, which only the loop's thread could cancel, ends by itself, and keeps no call.
        self._closed = True
        self._call = None

    def report(self, update: Update) -> None:
        """Take progress from any thread; what is None keeps its last value."""
        self.is_used = True
        newest = self._newest
        self._newest = Update(
            newest.done if update.done is None else update.done,
            newest.total if update.done is None else update.total,
            newest.message if update.message is None else update.message,
        )
        if not self._is_scheduled:
            self._is_scheduled = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                self._loop.call_soon_threadsafe(self._take_first, self._newest)

    def flush(self) -> None:
        """Send what was reported last, before the result."""
        self._send_update(self._newest)

    def _take_first(self, update: Update) -> None:
        """Take the first report since the last notice; more may have come in the meantime."""
        wait = self._sent_at + PROGRESS_INTERVAL - self._loop.time()
        if wait <= 0:
            self._send_update(update)
            wait = PROGRESS_INTERVAL
        self._loop.call_later(wait, self._send_newest)

    def _send_newest(self) -> None:
        self._is_scheduled = False
        self._send_update(self._newest)

    def _send_update(self, update: Update) -> None:
        if update != self._last_sent:  # a tool may report the same over and over
            self._last_sent = update
            self._send_progress(update.done, update.total, update.message)

    def _send_state(self, describe: Callable[[Call], str]) -> None:
        """Send what the call does if it does not run, or has been silent for long."""
        call = self._call
        if call is None:
            return
        silence = self._loop.time() - self._sent_at
        is_running = call.state is CallState.RUNNING and not call.is_stopping
        if not is_running or silence >= HEARTBEAT:
            newest = self._newest
            self._last_sent = Update()  # whatever is reported next replaces this
            self._send_progress(newest.done, newest.total, describe(call))
            silence = 0.0
        wait = min(HEARTBEAT - silence, NOTICE_EVERY)
        self._loop.call_later(wait, self._send_state, describe)

    def _send_progress(self, done: float | None, total: float | None, message: str | None) -> None:
        if not self._closed:
            self._sent_at = self._loop.time()
            self.last = messages.Progress(id=self._id, progress=done, total=total, message=message)
            self._send(self.last)
