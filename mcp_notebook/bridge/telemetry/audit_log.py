"""The audit log: one line for each call, including those that were refused or lost.

`AuditLog` receives the events of calls on the bridge's event loop and never waits. A thread of its
own turns them into records (`audit_records`) and writes them to the file, so that a slow, full or
missing disk stops no call. Lines that cannot be written are kept in memory and retried; the user
is told when this begins and ends. Calls that do not fit into memory are counted, and a line of the
log gives their number.

The thread writes the events of some milliseconds at once: writing them one by one would cost half
as much as the calls themselves.
"""

import logging
import math
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
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
    describe_view,
    encode,
)
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart, ViewRead
from mcp_notebook.settings.settings import ArgumentsInAudit, Settings

logger = logging.getLogger(__name__)

MAX_KEPT = 10_000
"""Items that are kept in memory while they cannot be written."""
MAX_KEPT_BYTES = 32 * 2**20
"""Approximate bytes of these items."""
JOURNAL_INTERVAL = 0.005
"""Seconds between two writes to the journal."""
END_DELAY = 0.05
"""Seconds until an ended call is written to the log."""
RETRY_INTERVAL = 1.0
"""Seconds between two attempts after a failed write."""
MAX_VIEWS = 1_000
"""Live views whose calls are remembered; a kernel keeps as many originals."""
CLOSE_LIMIT = 2.0
"""Seconds that a stopping bridge waits for the last lines."""
_ID = re.compile(rb'"id":"([^"]+)"')
_WEIGHT = 2_000
"""Approximate bytes of a record without its arguments."""
_LONG_BACKLOG = 200
"""Number of waiting items from which items are reduced to their records to save memory."""


class AuditItem:
    """An item for the log, which is turned into a record when it is written.

    Args:
        describe: Returns its record; called on either thread.
        call_id: The id of the call; None if it has none.
        is_running: Whether it is a call that has not ended.
        weight: Its approximate size in memory, in bytes.
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
        """Return the record."""
        describe = self._describe
        if describe is not None:
            self._record, self._describe = describe(), None  # the closure may hold large objects
        return self._record


class AuditWriter:
    """Writes the audit log.

    The loop's thread and the writing thread share the deques `_items` and `_forgotten` and the
    event, which are thread-safe, and counters that only one of them changes.

    Args:
        file: The log.
    """

    def __init__(self, file: AuditFile) -> None:
        self._file = file
        self._thread = threading.Thread(target=self._run, name="audit log", daemon=True)
        # Owned by the loop's thread:
        self._put = 0
        self._put_bytes = 0
        self._missing = 0
        """The number of calls that did not fit into memory."""
        self._forgotten: deque[str] = deque()
        """Their ids."""
        self._items: deque[AuditItem] = deque()
        self._has_news = threading.Event()
        self._is_closed = False
        # Owned by the writing thread:
        self._received = self._received_bytes = 0
        self._done = self._done_bytes = 0
        self._lines: deque[bytes] = deque()
        """Lines that are not in the log yet."""
        self._journal: CallJournal | None = None
        self._news: dict[str, bytes] = {}
        """Lines of calls that are not in the journal yet, by id."""
        self._unwritten: dict[str, bytes] = {}
        """Lines that are in the journal but not in the log, by id."""
        self._ended: set[str] = set()
        """The ids of ended calls in these two, which are written to the log next."""
        self._write_at: float | None = None
        """When to write `_lines`, if there are any."""
        self._told_missing = 0
        self._retry_at: float | None = None
        """When to try again after a failed attempt."""

    @property
    def backlog(self) -> int:
        """The number of items that have not been written."""
        return self._put - self._done

    def start(self) -> None:
        """Start writing; the user is soon told if that fails."""
        self._thread.start()

    def put(self, item: AuditItem) -> None:
        """Queue an item for the log."""
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
                self._tell("is not written in time: from now on, it lacks calls.")

    def close(self) -> None:
        """Write the remaining lines, for `CLOSE_LIMIT` at most."""
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
        self._try_to_write()  # report problems now, not at the first call
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
                continue  # its end contains everything
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
        # Missing calls are reported once the queue is empty.
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
                    f"cannot be written: {explain_problem(error)}. Calls continue, and their lines "
                    f"are kept in memory, up to {MAX_KEPT:,}."
                )
            self._retry_at = time.monotonic() + RETRY_INTERVAL
            return
        if missing > self._told_missing:
            self._tell(f"is written again; it lacks {missing - self._told_missing:,} calls.")
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
        """Write the new lines of calls to the journal.

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
        """Write all lines to the log, and note that in the journal.

        Raises:
            OSError: Some lines cannot be written.
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
        """Write the calls of killed bridges to the log."""
        for journal in find_journals(self._file.path):
            if not journal.is_left_behind:
                continue
            # The bridge may have been killed between writing the log and the journal.
            matches = [_ID.search(line) for line in self._file.read().split(b"}\n")]
            ids = {match[1].decode() for match in matches if match}
            records = [record for record in journal.calls if record["id"] not in ids]
            self._file.append(deque(encode(complete(record)) for record in records))
            journal.path.unlink(missing_ok=True)


class AuditLog:
    """Queues the events of calls for the log; a `CallObserver`.

    Args:
        writer: Writes the log.
        arguments: How arguments are recorded.
    """

    def __init__(self, writer: AuditWriter, arguments: ArgumentsInAudit) -> None:
        self._writer = writer
        self._arguments = arguments
        self._schemas = PlainSchemas()
        self._running: dict[str, AuditItem] = {}
        """The starts of running calls, by id."""
        self._views: OrderedDict[str, CallStart] = OrderedDict()
        """The calls whose results have live views, by the URIs that these read."""

    def note_start(self, start: CallStart) -> None:
        """Queue the start of a call."""
        item = AuditItem(
            partial(describe_start, start, self._arguments, self._schemas),
            call_id=start.id,
            is_running=True,
        )
        self._running[start.id] = item
        self._put(item, _measure(start.arguments))

    def note_end(self, end: CallEnd) -> None:
        """Queue the end of a call that was started."""
        start = self._running.pop(end.start.id)
        self._put(AuditItem(lambda: describe_end(start.describe(), end), call_id=end.start.id))
        if end.view is not None:
            self._views[end.view] = replace(end.start, arguments={})
            if len(self._views) > MAX_VIEWS:
                self._views.popitem(last=False)

    def note_refusal(self, refusal: CallRefusal) -> None:
        """Queue a call that was refused."""
        item = AuditItem(partial(describe_refusal, refusal, self._arguments))
        self._put(item, _measure(refusal.arguments))

    def note_view(self, read: ViewRead) -> None:
        """Queue a query of a live view."""
        call = self._views.get(read.uri)
        self._put(AuditItem(partial(describe_view, read, call, self._arguments)))

    def note_request(self, address: str, reason: str, count: int) -> None:
        """Queue requests that were refused before their content was read.

        Args:
            address: Where they came from.
            reason: Why they were refused.
            count: How many.
        """
        self._put(AuditItem(partial(describe_request, time.time(), address, reason, count)))

    def _put(self, item: AuditItem, size: int = 0) -> None:
        if self._writer.backlog > _LONG_BACKLOG:
            record = item.describe()  # drops the arguments, whose size is only known now
            if "arguments" in record:
                size = record["arguments_size"]
        item.weight = _WEIGHT + size
        self._writer.put(item)


@contextmanager
def write_audit_log(settings: Settings) -> Iterator[tuple[AuditLog, ...]]:
    """Write the audit log during the block; yields an empty tuple if it is turned off."""
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
    """Return the size of large arguments, which are kept until they are hashed."""
    return len(arguments) if isinstance(arguments, bytes) else 0
