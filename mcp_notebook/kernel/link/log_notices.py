"""Sends the log messages of one call to its client: so many a second, and a count of the others.

Runs on the endpoint's thread; only `LogNotices.take`, and `close` before anything was taken, may be
called from any thread. What is beyond the bound is left out there, so that it costs the endpoint's
thread, which serves all clients, nothing. Warnings and errors have a bound of their own: other
messages cannot crowd them out.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

from mcp_notebook.kernel.tools.context import LEVELS, LogMessage
from mcp_notebook.wire import messages

MAX_LOGS = 100
"""Messages of a call that are sent in one period, and as many warnings and errors."""
PERIOD = 1.0
"""Seconds."""
INTERVAL = 0.1
"""Seconds between two writes. What is logged meanwhile is written together: each write lets other
threads run, and those of a flood do not let go for a while."""
MAX_TEXT = 20_000
"""Characters of a message."""
_MAX_NAME = 200
"""Characters of a logger's name."""
_LOGGER = "mcp_notebook"
_LEVELS = {str(level): number for level, number in LEVELS.items()}


class LogNotices:
    """Sends the log messages of one call to its client.

    Args:
        call_id: Id of the call in its conversation.
        level: The least severe level that the client wants.
        loop: The endpoint's.
        send: Sends messages, and returns whether they were sent: not while the bridge does not
            read. Called on the endpoint's thread.
    """

    def __init__(
        self,
        call_id: int,
        level: str,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[Sequence[messages.Log]], bool],
    ) -> None:
        self._id = call_id
        self._least = _LEVELS.get(level, 0)
        self._note_level = level if self._least > LEVELS["warning"] else "warning"
        self._loop = loop
        self._send = send
        self._periods = (_Period(), _Period())
        self._waiting: deque[messages.Log] = deque()
        self._is_write_due = False
        self._last_write = -INTERVAL
        self._left_out = 0
        """Messages that were left out at the source; written by the threads of the call."""
        self._is_note_due = False
        self._not_sent = 0
        """Messages that the bridge did not take."""
        self._reported = 0
        """Of both together, those that the client knows of."""
        self._is_closed = False
        self.is_used = False
        """Whether a message was taken."""

    def take(self, entry: LogMessage) -> None:
        """Take a message from any thread."""
        # No lock: the code of the call may be stopped anywhere in here.
        number = LEVELS[entry.level]
        if number < self._least:
            return
        self.is_used = True
        if not self._periods[number >= LEVELS["warning"]].has_room(monotonic()):
            self._left_out += 1
            if not self._is_note_due:
                self._is_note_due = True
                self._hand_over(self._loop.call_later, PERIOD, self._write_note)
            return
        text = entry.text
        if len(text) > MAX_TEXT:
            text = f"{text[:MAX_TEXT]}[... {len(text) - MAX_TEXT:,} characters left out]"
        self._waiting.append(self._make_log(entry.level, entry.logger, text))
        if not self._is_write_due:
            self._is_write_due = True
            self._hand_over(self._schedule_write)

    def write(self) -> None:
        """Send what was logged until now."""
        self._is_write_due = False
        self._last_write = self._loop.time()
        logs = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if logs and not self._is_closed and not self._send(logs):
            self._not_sent += len(logs)

    def close(self) -> None:
        """Send what was logged and how much was left out, and nothing more."""
        if self.is_used:
            self.write()
            self._write_note()
        self._is_closed = True

    def _make_log(self, level: str, logger: str | None, text: str) -> messages.Log:
        return messages.Log(
            id=self._id, level=level, logger=logger and logger[:_MAX_NAME], text=text
        )

    def _hand_over(self, function: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
            self._loop.call_soon_threadsafe(function, *arguments)

    def _schedule_write(self) -> None:
        wait = self._last_write + INTERVAL - self._loop.time()
        self._loop.call_later(max(wait, 0), self.write)

    def _write_note(self) -> None:
        self._is_note_due = False
        number = self._left_out + self._not_sent - self._reported
        if not number or self._is_closed:
            return
        text = (
            f"{number:,} log message{'s' if number > 1 else ''} left out here: at most {MAX_LOGS} "
            "a second are sent for each call, and as many warnings and errors."
        )
        if self._send([self._make_log(self._note_level, _LOGGER, text)]):
            self._reported += number


class _Period:
    """How many messages were sent in the current period."""

    def __init__(self) -> None:
        self._end = 0.0
        self._number = 0

    def has_room(self, now: float) -> bool:
        """Return whether one more may be sent, and count it."""
        if now >= self._end:
            self._end = now + PERIOD
            self._number = 0
        self._number += 1
        return self._number <= MAX_LOGS
