"""The thread that writes the audit log: a disk that is slow, full or gone stops no call.

`AuditWriter.put` is called on the bridge's event loop and never waits; everything else is done by
the thread. What cannot be written is kept in memory and tried again, and the user is told when that
begins and when it ends. What there is no room for is counted, and a line of the log says so.
"""

import logging
import re
import threading
import time
from collections import deque
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from mcp_notebook.bridge.telemetry.audit_file import AuditFile, explain_problem
from mcp_notebook.bridge.telemetry.audit_records import (
    Record,
    describe_gap,
    describe_loss,
    encode,
)
from mcp_notebook.bridge.telemetry.call_journal import CallJournal, find_journals

logger = logging.getLogger(__name__)

MAX_KEPT = 10_000
"""Starts and ends of calls that are kept in memory while they cannot be written."""
MAX_KEPT_BYTES = 32 * 2**20
"""Bytes of these, about."""
RETRY_INTERVAL = 1.0
"""Seconds between two attempts to write what could not be written."""
CLOSE_LIMIT = 2.0
"""Seconds that the end of a bridge waits for the last lines."""
_MAX_BATCH = 1_000
_ID = re.compile(rb'"id":"([^"]+)"')


@dataclass(frozen=True)
class AuditItem:
    """Something for the log."""

    record: Record
    weight: int
    """Its size in memory in bytes, about."""
    is_running: bool = False
    """It is a call that has not ended."""

    @property
    def call_id(self) -> str | None:
        """The id of the call; None if it has none."""
        return self.record.get("id")


class AuditWriter:
    """Writes the audit log.

    The loop's thread and the writing thread share the queue and `_forgotten`, which are safe, and
    counters that only one of them changes.

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
        self._items: SimpleQueue[AuditItem | None] = SimpleQueue()
        # Of the writing thread.
        self._received = self._received_bytes = 0
        self._done = self._done_bytes = 0
        self._lines: deque[bytes] = deque()
        """What is not in the log yet."""
        self._journal: CallJournal | None = None
        self._unended: dict[str, bytes] = {}
        """The calls whose end is not in the log: their lines by id."""
        self._started: dict[str, bytes] = {}
        """Those of them that the journal does not have yet."""
        self._ended: set[str] = set()
        """The ids of those whose ends are in `_lines`, and that the journal has."""
        self._told_missing = 0
        self._retry_at: float | None = None
        """When to try again, if the last attempt has failed."""

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
            self._items.put(item)
        elif not item.is_running:
            if item.call_id is not None:
                self._forgotten.append(item.call_id)
            self._missing += 1
            if self._missing == self._told_missing + 1:
                self._tell("is not written in time: from now on, calls are missing in it.")

    def close(self) -> None:
        """Write what is left, but wait no longer than `CLOSE_LIMIT`."""
        self._items.put(None)
        self._thread.join(CLOSE_LIMIT)
        missing = self._put - self._done + self._missing - self._told_missing
        if missing:
            self._tell(f"lacks the last lines, at most {missing:,}: they could not be written.")

    def _tell(self, text: str) -> None:
        logger.warning("The audit log %s %s", self._file.path, text)

    # -- the writing thread ------------------------------------------------------------------------

    def _run(self) -> None:
        self._try_to_write()  # whatever is wrong is told now, and not at the first call
        is_open = True
        while is_open:
            is_open = self._take()
            if not is_open or self._retry_at is None or time.monotonic() >= self._retry_at:
                self._try_to_write()
        if self._journal is not None and not self._lines:
            self._journal.close()

    def _take(self) -> bool:
        """Wait for something to write, take it, and return whether more may come."""
        is_behind = self._retry_at is not None or self._missing > self._told_missing
        try:
            item = self._items.get(timeout=RETRY_INTERVAL if is_behind else None)
        except Empty:
            return True
        for _ in range(_MAX_BATCH):
            if item is None:
                return False
            self._sort(item)
            if self._items.empty():
                break
            item = self._items.get()
        else:
            assert item is not None
            self._sort(item)
        return True

    def _sort(self, item: AuditItem) -> None:
        self._received += 1
        self._received_bytes += item.weight
        line, call_id = encode(item.record), item.call_id
        if item.is_running and call_id is not None:
            self._unended[call_id] = self._started[call_id] = line
            return
        self._lines.append(line)
        if call_id is not None:
            self._note_end(call_id)

    def _note_end(self, call_id: str) -> None:
        if self._started.pop(call_id, None) is not None:
            del self._unended[call_id]
        elif call_id in self._unended:
            self._ended.add(call_id)

    def _try_to_write(self) -> None:
        # What is missing is written when there is room again for everything.
        missing = self._missing if self._items.empty() else self._told_missing
        while self._forgotten:
            self._note_end(self._forgotten.popleft())
        try:
            self._write(missing - self._told_missing)
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
        self._retry_at = None
        self._told_missing = missing
        self._done, self._done_bytes = self._received, self._received_bytes

    def _write(self, missing: int) -> None:
        """Write all lines to the log, and all that has changed to the journal.

        Raises:
            OSError: That is not possible, or not all of it.
        """
        with self._file.lock():
            if self._journal is None:
                self._take_over()
                self._journal = CallJournal(self._file.path)
            self._journal.update(self._started, (), self._unended)
            self._started.clear()
            gap = [encode(describe_gap(time.time(), missing))] if missing else []
            self._file.append(self._lines)
            self._file.append(deque(gap))
            for call_id in self._ended:
                del self._unended[call_id]
            ended, self._ended = self._ended, set()
            self._journal.update({}, ended, self._unended)

    def _take_over(self) -> None:
        """Write to the log what bridges that were killed have left."""
        for journal in find_journals(self._file.path):
            if not journal.is_left_behind:
                continue
            # The bridge may have been killed between the log and the journal.
            matches = [_ID.search(line) for line in self._file.read().split(b"}\n")]
            ids = {match[1].decode() for match in matches if match}
            records = [record for record in journal.calls if record["id"] not in ids]
            self._file.append(deque(encode(describe_loss(record)) for record in records))
            journal.path.unlink(missing_ok=True)
