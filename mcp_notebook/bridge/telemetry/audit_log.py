"""The audit log: one line for each call, including those that were refused or lost.

`AuditLog` takes what happens to calls on the bridge's event loop and never waits. A thread of its
own turns that into records (`audit_records`) and writes them to the file: a disk that is slow,
full or gone stops no call. What cannot be written is kept in memory and tried again, and the user
is told when that begins and when it ends. Calls that find no room in memory are counted, and a line
of the log says how many.

While calls follow each other quickly, the thread takes what has come together in some milliseconds:
one by one, they would cost half as much as the calls themselves.
"""

import logging
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from mcp_notebook.bridge.telemetry.audit_file import (
    AuditFile,
    CallJournal,
    explain_problem,
    find_journals,
)
from mcp_notebook.bridge.telemetry.audit_records import (
    PlainSchemas,
    Record,
    complete,
    describe_end,
    describe_gap,
    describe_refusal,
    describe_request,
    describe_start,
    encode,
)
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart
from mcp_notebook.settings.settings import ArgumentsInAudit, Settings

logger = logging.getLogger(__name__)

MAX_KEPT = 10_000
"""Starts and ends of calls that are kept in memory while they cannot be written."""
MAX_KEPT_BYTES = 32 * 2**20
"""Bytes of these, about."""
JOURNAL_INTERVAL = 0.005
"""Seconds between two writes to the journal."""
END_DELAY = 0.05
"""Seconds until a call that has ended is in the log."""
RETRY_INTERVAL = 1.0
"""Seconds between two attempts to write what could not be written."""
CLOSE_LIMIT = 2.0
"""Seconds that the end of a bridge waits for the last lines."""
_ID = re.compile(rb'"id":"([^"]+)"')
_WEIGHT = 2_000
"""Bytes of a record without its arguments, about."""
_LONG_BACKLOG = 200
"""Items from which what is kept for a disk that is behind is made as small as it can be."""


class AuditItem:
    """Something for the log, which is described when it is written.

    Args:
        describe: Returns its record; on either thread.
        call_id: The id of the call; None if it has none.
        is_running: It is a call that has not ended.
        weight: Its size in memory in bytes, about.
    """

    def __init__(
        self,
        describe: Callable[[], Record],
        *,
        call_id: str | None = None,
        is_running: bool = False,
        weight: int = 0,
    ) -> None:
        self._describe: Callable[[], Record] | None = describe
        self._record: Record = {}
        self.call_id = call_id
        self.is_running = is_running
        self.weight = weight

    def describe(self) -> Record:
        """Return what is to be written."""
        describe = self._describe
        if describe is not None:
            self._record, self._describe = describe(), None  # what it refers to may be large
        return self._record


class AuditWriter:
    """Writes the audit log.

    The loop's thread and the writing thread share the deques `_items` and `_forgotten` and the
    event, which are safe, and counters that only one of them changes.

    Args:
        file: The log.
    """

    def __init__(self, file: AuditFile) -> None:
        self._file = file
        self._thread = threading.Thread(target=self._run, name="audit log", daemon=True)
        # Of the loop's thread, until the next comment.
        self._put = 0
        self._put_bytes = 0
        self._missing = 0
        """Calls that there was no room for."""
        self._forgotten: deque[str] = deque()
        """The ids of these."""
        self._items: deque[AuditItem] = deque()
        self._has_news = threading.Event()
        self._is_closed = False
        # Of the writing thread.
        self._received = self._received_bytes = 0
        self._done = self._done_bytes = 0
        self._lines: deque[bytes] = deque()
        """What is not in the log yet."""
        self._journal: CallJournal | None = None
        self._news: dict[str, bytes] = {}
        """What the journal does not have yet: the lines of calls by id."""
        self._unwritten: dict[str, bytes] = {}
        """What it has, and the log has not."""
        self._ended: set[str] = set()
        """The ids of the calls in these two that have ended: the log gets them next."""
        self._write_at: float | None = None
        """When to write `_lines`, if there are any."""
        self._told_missing = 0
        self._retry_at: float | None = None
        """When to try again, if the last attempt has failed."""

    @property
    def backlog(self) -> int:
        """What has not been written."""
        return self._put - self._done

    def start(self) -> None:
        """Start to write; if that is not possible, the user is told soon."""
        self._thread.start()

    def put(self, item: AuditItem) -> None:
        """Take something for the log."""
        if (
            self._put - self._done < MAX_KEPT
            and self._put_bytes - self._done_bytes + item.weight <= MAX_KEPT_BYTES
        ):
            self._put += 1
            self._put_bytes += item.weight
            self._items.append(item)
            if not self._has_news.is_set():
                self._has_news.set()
        elif not item.is_running:
            if item.call_id is not None:
                self._forgotten.append(item.call_id)
            self._missing += 1
            if self._missing == self._told_missing + 1:
                self._tell("is not written in time: from now on, calls are missing in it.")

    def close(self) -> None:
        """Write what is left, but wait no longer than `CLOSE_LIMIT`."""
        self._is_closed = True
        self._has_news.set()
        self._thread.join(CLOSE_LIMIT)
        missing = self._put - self._done + self._missing - self._told_missing
        if missing:
            self._tell(f"lacks the last lines, at most {missing:,}: they could not be written.")

    def _tell(self, text: str) -> None:
        logger.warning("The audit log %s %s", self._file.path, text)

    # -- the writing thread ------------------------------------------------------------------------

    def _run(self) -> None:
        self._try_to_write()  # whatever is wrong is told now, and not at the first call
        is_closed = False
        while not is_closed:
            self._wait()
            is_closed = self._is_closed
            self._take()
            if is_closed or self._retry_at is None or time.monotonic() >= self._retry_at:
                self._try_to_write()
            if not is_closed:
                time.sleep(JOURNAL_INTERVAL)
        if self._journal is not None and not self._lines:
            self._journal.close()

    def _wait(self) -> None:
        """Wait until there is something to do."""
        timeout = None
        if self._retry_at is not None or self._missing > self._told_missing:
            timeout = RETRY_INTERVAL
        elif self._write_at is not None:
            timeout = self._write_at - time.monotonic()
        self._has_news.wait(timeout)
        self._has_news.clear()

    def _take(self) -> None:
        items = [self._items.popleft() for _ in range(len(self._items))]
        self._received += len(items)
        ended = {item.call_id for item in items if not item.is_running}
        for item in items:
            self._received_bytes += item.weight
            call_id = item.call_id
            if item.is_running and call_id in ended:
                continue  # what its end says is enough
            line = encode(item.describe())
            if call_id is not None:
                self._news[call_id] = line
            if item.is_running:
                continue
            self._lines.append(line)
            delay = 0.0
            if call_id is not None:
                self._ended.add(call_id)
                delay = END_DELAY
            self._write_at = min(self._write_at or math.inf, time.monotonic() + delay)

    def _try_to_write(self) -> None:
        # What is missing is written when there is room again for everything.
        missing = self._told_missing if self._items else self._missing
        while self._forgotten:
            self._ended.add(self._forgotten.popleft())
        try:
            self._write_journal()
            if not self._is_due(missing):
                return
            self._write_log(missing - self._told_missing)
        except OSError as error:
            if self._retry_at is None:
                self._tell(
                    f"cannot be written: {explain_problem(error)}. Calls go on, and what is to be "
                    f"written about them is kept in memory, up to {MAX_KEPT:,} lines."
                )
            self._retry_at = time.monotonic() + RETRY_INTERVAL
            return
        if missing > self._told_missing:
            self._tell(f"is written again; missing in it: {missing - self._told_missing:,} calls.")
        elif self._retry_at is not None:
            self._tell("is written again; no call is missing.")
        self._retry_at = self._write_at = None
        self._told_missing = missing
        self._done, self._done_bytes = self._received, self._received_bytes

    def _is_due(self, missing: int) -> bool:
        """Return whether to write to the log now."""
        return (
            self._is_closed
            or self._retry_at is not None
            or missing > self._told_missing
            or (self._write_at is not None and time.monotonic() >= self._write_at)
        )

    def _write_journal(self) -> None:
        """Write to the journal what the log does not get at once.

        Raises:
            OSError: That is not possible.
        """
        if self._journal is None:
            with self._file.lock():
                self._file.append(deque())
                self._take_over()
                self._journal = CallJournal(self._file.path)
        news, self._news = self._news, {}
        self._unwritten |= news
        self._journal.update(news, (), self._unwritten)

    def _write_log(self, missing: int) -> None:
        """Write all lines to the log, and that they are there to the journal.

        Raises:
            OSError: That is not possible, or not for all of them.
        """
        assert self._journal is not None
        with self._file.lock():
            self._file.append(self._lines)
            if missing:
                self._file.append(deque([encode(describe_gap(time.time(), missing))]))
        ended, self._ended = self._ended, set()
        for call_id in ended:
            self._unwritten.pop(call_id, None)
        self._journal.update({}, ended, self._unwritten)

    def _take_over(self) -> None:
        """Write to the log what bridges that were killed have left."""
        for journal in find_journals(self._file.path):
            if not journal.is_left_behind:
                continue
            # The bridge may have been killed between the log and the journal.
            matches = [_ID.search(line) for line in self._file.read().split(b"}\n")]
            ids = {match[1].decode() for match in matches if match}
            records = [record for record in journal.calls if record["id"] not in ids]
            self._file.append(deque(encode(complete(record)) for record in records))
            journal.path.unlink(missing_ok=True)


class AuditLog:
    """Takes what happens to calls, for the log.

    Args:
        writer: Writes it.
        arguments: What is written of the arguments.
    """

    def __init__(self, writer: AuditWriter, arguments: ArgumentsInAudit) -> None:
        self._writer = writer
        self._arguments = arguments
        self._schemas = PlainSchemas()
        self._running: dict[str, AuditItem] = {}
        """The starts of the calls that run, by id."""

    def note_start(self, start: CallStart) -> None:
        """Take the start of a call."""
        item = AuditItem(
            partial(describe_start, start, self._arguments, self._schemas),
            call_id=start.id,
            is_running=True,
        )
        self._running[start.id] = item
        self._put(item, _measure(start.arguments))

    def note_end(self, end: CallEnd) -> None:
        """Take the end of a call that was started."""
        start = self._running.pop(end.start.id)
        self._put(AuditItem(lambda: describe_end(start.describe(), end), call_id=end.start.id))

    def note_refusal(self, refusal: CallRefusal) -> None:
        """Take a call that was refused."""
        item = AuditItem(partial(describe_refusal, refusal, self._arguments))
        self._put(item, _measure(refusal.arguments))

    def note_request(self, address: str, reason: str, count: int) -> None:
        """Take requests that were refused before anybody knew what they asked for.

        Args:
            address: Where they came from.
            reason: Why they were refused.
            count: How many.
        """
        self._put(AuditItem(partial(describe_request, time.time(), address, reason, count)))

    def _put(self, item: AuditItem, size: int = 0) -> None:
        if self._writer.backlog > _LONG_BACKLOG:
            record = item.describe()  # and forget the arguments, whose size is not known before
            if "arguments" in record:
                size = record["arguments_size"]
        item.weight = _WEIGHT + size
        self._writer.put(item)


@contextmanager
def write_audit_log(settings: Settings) -> Iterator[tuple[AuditLog, ...]]:
    """Write the audit log for the length of the block; yields none if it is turned off."""
    if not settings.audit:
        yield ()
        return
    file = AuditFile(
        settings.audit_path,
        max_bytes=settings.audit_max_bytes,
        old_files=settings.audit_old_files,
    )
    writer = AuditWriter(file)
    writer.start()
    try:
        yield (AuditLog(writer, settings.audit_arguments),)
    finally:
        writer.close()


def _measure(arguments: object) -> int:
    """Return the bytes of large arguments, which wait for their hash."""
    return len(arguments) if isinstance(arguments, bytes) else 0
