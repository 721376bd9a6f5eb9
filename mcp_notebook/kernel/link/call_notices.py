"""Sends a running call's progress, log messages and questions to its client.

Runs on the endpoint's thread, whose loop schedules the messages. On any thread, the call reports
progress (`ProgressNotices.report`), logs (`LogNotices.take`) and asks (`make_asker`).

Of several quick reports of progress, the first and the last are sent. The number of log messages
per second is limited, and the client gets a count of the dropped ones. They are dropped on the
call's thread, so that they cost the endpoint's thread, which serves all clients, nothing. Warnings
and errors have a separate limit, so that other messages cannot crowd them out.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence

from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.tools.context import LEVELS, LogMessage, Update
from mcp_notebook.kernel.tools.open_questions import Elicitation, Withdrawal
from mcp_notebook.wire import messages

PROGRESS_INTERVAL = 0.1
"""Seconds between two notices of reported progress; of the reports in between, the last is sent."""
NOTICE_AFTER = 1.0
"""Seconds until the client is first told what its call waits for."""
NOTICE_EVERY = 5.0
"""Seconds between two such notices."""
HEARTBEAT = 10.0
"""Seconds of silence after which the client is told that its call still runs."""
MAX_LOGS = 100
"""Log messages of a call that are sent in one period; the same number of warnings and errors."""
LOG_PERIOD = 1.0
"""Seconds."""
LOG_INTERVAL = 0.1
"""Seconds between two writes. Messages in between are written together: each write releases the
GIL, and the threads of a flood of messages do not give it back for a while."""
MAX_TEXT = 20_000
"""Characters of a log message."""
_MAX_NAME = 200
"""Characters of a logger's name."""
_LOGGER = "mcp_notebook"
_LEVELS = {str(level): number for level, number in LEVELS.items()}


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
        self._call: ActiveCall | None = None
        self.is_used = False
        """Whether the tool has reported anything."""
        self.last: messages.Progress | None = None
        """The last message that was sent."""

    @property
    def reported(self) -> Update | None:
        """The progress that the tool has reported so far, if any."""
        return self._newest if self.is_used else None

    def start(self, call: ActiveCall, describe: Callable[[ActiveCall], str]) -> None:
        """Start sending the call's state whenever its tool reports nothing."""
        self._call = call
        self._loop.call_later(NOTICE_AFTER, self._send_state, describe)

    def close(self) -> None:
        """Send nothing more."""
        # The timer, which only the loop's thread could cancel, ends by itself.
        self._closed = True
        self._call = None

    def report(self, update: Update) -> None:
        """Update the progress, from any thread; a field that is None keeps its value."""
        self.is_used = True
        self._newest = _join(self._newest, update)
        if not self._is_scheduled:
            self._is_scheduled = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._take_first, self._newest)

    def flush(self) -> None:
        """Send the last report, before the result."""
        self._send_update(self._newest)

    def _take_first(self, update: Update) -> None:
        """Take the first report since the last notice; more may have arrived since."""
        wait = self._sent_at + PROGRESS_INTERVAL - self._loop.time()
        if wait <= 0:
            self._send_update(update)
            wait = PROGRESS_INTERVAL
        self._loop.call_later(wait, self._send_newest)

    def _send_newest(self) -> None:
        self._is_scheduled = False
        self._send_update(self._newest)

    def _send_update(self, update: Update) -> None:
        if update != self._last_sent:  # a tool may report the same repeatedly
            self._last_sent = update
            self._send_progress(update.done, update.total, update.message)

    def _send_state(self, describe: Callable[[ActiveCall], str]) -> None:
        """Send the call's state if it waits, or has been silent for a long time."""
        call = self._call
        if call is None:
            return
        silence = self._loop.time() - self._sent_at
        is_running = call.state is CallState.RUNNING and not call.is_stopping
        if not is_running or silence >= HEARTBEAT:
            newest = self._newest
            self._last_sent = Update()  # the next report replaces this message
            state: messages.CallActivity = "running" if is_running else "waiting"
            self._send_progress(newest.done, newest.total, describe(call), state)
            silence = 0.0
        wait = min(HEARTBEAT - silence, NOTICE_EVERY)
        self._loop.call_later(wait, self._send_state, describe)

    def _send_progress(
        self,
        done: float | None,
        total: float | None,
        message: str | None,
        state: messages.CallActivity | None = None,
    ) -> None:
        if not self._closed:
            self._sent_at = self._loop.time()
            self.last = messages.Progress(
                id=self._id, progress=done, total=total, message=message, state=state
            )
            self._send(self.last)


class ShownProgress:
    """The progress of a call whose client wants none: for side panels, also for later ones.

    Args:
        note_change: Schedules an update of the side panels, if there are any; on any thread.
    """

    def __init__(self, note_change: Callable[[], None]) -> None:
        self.reported: Update | None = None
        """The progress that the tool has reported so far, if any."""
        self._note_change = note_change

    def report(self, update: Update) -> None:
        """Update the progress, from any thread; a field that is None keeps its value."""
        self.reported = _join(self.reported or Update(), update)
        self._note_change()


def _join(before: Update, update: Update) -> Update:
    return Update(
        before.done if update.done is None else update.done,
        before.total if update.done is None else update.total,
        before.message if update.message is None else update.message,
    )


class LogNotices:
    """Sends the log messages of one call to its client.

    Args:
        call_id: Id of the call in its conversation.
        level: The least severe level that the client wants.
        loop: The endpoint's.
        send: Sends messages; returns False if the bridge does not read. Called on the endpoint's
            thread.
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
        self._last_write = -LOG_INTERVAL
        self._left_out = 0
        """Messages dropped on the threads of the call."""
        self._is_note_due = False
        self._not_sent = 0
        """Messages dropped because the bridge did not read."""
        self._reported = 0
        """Dropped messages that the client was told about."""
        self._is_closed = False
        self.is_used = False
        """Whether a message was taken."""

    def take(self, entry: LogMessage) -> None:
        """Add a message; from any thread."""
        # No lock: the code of the call may be interrupted anywhere in here.
        number = LEVELS[entry.level]
        if number < self._least:
            return
        self.is_used = True
        if not self._periods[number >= LEVELS["warning"]].has_room(self._loop.time()):
            self._left_out += 1
            if not self._is_note_due:
                self._is_note_due = True
                self._hand_over(self._loop.call_later, LOG_PERIOD, self._write_note)
            return
        text = entry.text
        if len(text) > MAX_TEXT:
            text = f"{text[:MAX_TEXT]}[... {len(text) - MAX_TEXT:,} characters left out]"
        self._waiting.append(self._make_log(entry.level, entry.logger, text))
        if not self._is_write_due:
            self._is_write_due = True
            self._hand_over(self._schedule_write)

    def write(self) -> None:
        """Send all waiting messages."""
        self._is_write_due = False
        self._last_write = self._loop.time()
        logs = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if logs and not self._is_closed and not self._send(logs):
            self._not_sent += len(logs)

    def close(self) -> None:
        """Send all waiting messages and the count of dropped ones, and nothing more."""
        if self.is_used:
            self.write()
            self._write_note()
        self._is_closed = True

    def _make_log(self, level: str, logger: str | None, text: str) -> messages.Log:
        return messages.Log(
            id=self._id, level=level, logger=logger and logger[:_MAX_NAME], text=text
        )

    def _hand_over(self, function: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def _schedule_write(self) -> None:
        wait = self._last_write + LOG_INTERVAL - self._loop.time()
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
    """Counts the messages of the current period."""

    def __init__(self) -> None:
        self._end = 0.0
        self._number = 0

    def has_room(self, now: float) -> bool:
        """Count one more message; return whether it may be sent."""
        if now >= self._end:
            self._end = now + LOG_PERIOD
            self._number = 0
        self._number += 1
        return self._number <= MAX_LOGS


def make_asker(
    call_id: int,
    loop: asyncio.AbstractEventLoop,
    send: Callable[[messages.Ask | messages.Withdraw], None],
) -> Callable[[Elicitation | Withdrawal], None]:
    """Return a function that sends and withdraws a call's questions, from any thread.

    Args:
        call_id: The call's id in its conversation.
        loop: The endpoint's.
        send: Sends a message; called on the endpoint's thread.
    """

    def ask(question: Elicitation | Withdrawal) -> None:
        message: messages.Ask | messages.Withdraw
        if isinstance(question, Withdrawal):
            message = messages.Withdraw(id=call_id, question=question.number)
        else:
            message = make_ask(call_id, question)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
            loop.call_soon_threadsafe(send, message)

    return ask


def make_ask(call_id: int, question: Elicitation) -> messages.Ask:
    """Return the message with a call's question."""
    return messages.Ask(
        id=call_id,
        question=question.number,
        key=question.key,
        message=question.message,
        form=question.schema,
    )
