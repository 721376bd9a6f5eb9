"""The audit log: a line when a call begins and one when it has ended, been refused or been lost.

`AuditLog` receives the events of calls on the bridge's event loop and never waits. A thread of its
own turns them into lines (`audit_records`) and appends these to the file, so that a slow, full or
missing disk stops no call. Lines that cannot be written are kept in memory and retried; the user
is told when this begins and ends. Lines that do not fit into memory are counted, and a line of the
log gives their number.

The thread writes the events of some milliseconds at once: waking up for each of them would cost
half as much as the calls themselves.
"""

import logging
import os
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial

from msgspec import Struct, structs

from mcp_notebook.bridge.telemetry.audit_file import AuditFile, explain_problem
from mcp_notebook.bridge.telemetry.audit_records import (
    Record,
    describe_end,
    describe_gap,
    describe_refusal,
    describe_request,
    describe_start,
    describe_view,
    encode,
)
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart, ViewRead
from mcp_notebook.discovery.records import read_start_time
from mcp_notebook.settings.settings import Audit, Settings

logger = logging.getLogger(__name__)

WRITE_INTERVAL = 0.02
"""Seconds in which events are collected before they are written."""
_AT_ONCE = 20
"""Lines of one write: while they are made, the event loop waits for Python's lock."""
MAX_VIEWS = 1_000
"""Live views whose calls are remembered; a kernel keeps as many originals."""
_LONG_BACKLOG = 200
"""Number of waiting events from which they become lines at once, to save memory."""


class AuditWriter:
    """Writes the audit log.

    The loop's thread appends to the queue and counts what does not fit; the writing thread takes
    from it what has been written.

    Args:
        file: The log.
        max_kept: Lines that are kept in memory while they cannot be written.
        retry_interval: Seconds between two attempts after a failed write.
        close_limit: Seconds that a stopping bridge waits for the last lines.
    """

    def __init__(
        self,
        file: AuditFile,
        *,
        max_kept: int = 10_000,
        retry_interval: float = 1.0,
        close_limit: float = 2.0,
    ) -> None:
        self._file = file
        self._max_kept = max_kept
        self._retry_interval = retry_interval
        self._close_limit = close_limit
        self._thread = threading.Thread(target=self._run, name="audit log", daemon=True)
        self._queue: deque[Callable[[], bytes]] = deque()
        """The lines that are not in the log yet."""
        self._missing = 0
        """The number of lines that did not fit into memory; owned by the loop's thread."""
        self._has_news = threading.Event()
        self._is_closing = threading.Event()
        # Owned by the writing thread:
        self._told_missing = 0
        self._has_failed = False
        """Whether the last attempt failed."""

    def start(self) -> None:
        """Start writing; the user is soon told if that fails."""
        self._thread.start()

    def put(self, describe: Callable[[], Record]) -> None:
        """Queue a line for the log.

        Args:
            describe: Returns its record; usually called on the writing thread.
        """
        if len(self._queue) >= self._max_kept:
            self._missing += 1
            if self._missing == self._told_missing + 1:
                self._tell("is not written in time: from now on, it lacks lines.")
            return
        line = partial(self._encode, describe)
        if len(self._queue) >= _LONG_BACKLOG:
            text = line()  # without the arguments, which may be large
            line = partial(bytes, text)
        self._queue.append(line)
        if not self._has_news.is_set():
            self._has_news.set()

    def close(self) -> None:
        """Write the remaining lines, for `close_limit` at most."""
        self._is_closing.set()
        self._has_news.set()
        self._thread.join(self._close_limit)
        missing = len(self._queue) + self._missing - self._told_missing
        if missing:
            self._tell(f"lacks the last lines, at most {missing:,}: they could not be written.")

    @cached_property
    def _bridge(self) -> Record:
        """The process that writes, as each line has it."""
        pid = os.getpid()
        return {"host": socket.gethostname(), "pid": pid, "started": read_start_time(pid)}

    def _encode(self, describe: Callable[[], Record]) -> bytes:
        return encode(describe() | {"bridge": self._bridge})

    def _tell(self, text: str) -> None:
        logger.warning("The audit log %s %s", self._file.path, text)

    # -- the writing thread ------------------------------------------------------------------------

    def _run(self) -> None:
        self._try_to_write()  # report problems now, not at the first call
        while not self._is_closing.is_set():
            if not self._has_failed:
                self._has_news.wait()
            self._is_closing.wait(self._retry_interval if self._has_failed else WRITE_INTERVAL)
            self._has_news.clear()
            self._try_to_write()

    def _try_to_write(self) -> None:
        missing = 0
        try:
            self._write_queue()
            missing = self._missing - self._told_missing
            if missing:
                self._told_missing += missing
                gap = partial(describe_gap, time.time(), missing)
                self._queue.append(partial(self._encode, gap))
                self._write_queue()
        except OSError as error:
            if not self._has_failed:
                self._tell(
                    f"cannot be written: {explain_problem(error)}. Calls continue, and their lines "
                    f"are kept in memory, up to {self._max_kept:,}."
                )
            self._has_failed = True
            return
        if missing:
            self._tell(f"is written again; it lacks {missing:,} lines.")
        elif self._has_failed:
            self._tell("is written again; no line is missing.")
        self._has_failed = False

    def _write_queue(self) -> None:
        """Write all lines.

        Raises:
            OSError: A line could not be written; it is still the first one of the queue.
        """
        while True:
            with self._file.open() as append:
                while self._queue:
                    count = min(len(self._queue), _AT_ONCE)
                    written = append([self._queue[index]() for index in range(count)])
                    for _ in range(written):
                        self._queue.popleft()
                    if written < count:
                        break
            if not self._queue:
                return


class _StartRecord(Struct):
    """Makes the record of a call's start, once for its two lines."""

    start: CallStart
    arguments: Audit
    record: Record | None = None

    def __call__(self) -> Record:
        if self.record is None:
            self.record = describe_start(self.start, self.arguments)
        return self.record


class AuditLog:
    """Queues the events of calls for the log.

    Args:
        writer: Writes the log; None: nobody does.
        arguments: How arguments are recorded.
    """

    def __init__(self, writer: AuditWriter | None = None, arguments: Audit = "off") -> None:
        self._writer = writer
        self._arguments = arguments
        self._running: dict[str, Callable[[], Record]] = {}
        """What describes the starts of running calls, by id."""
        self._views: OrderedDict[str, CallStart] = OrderedDict()
        """The calls whose results have live views, by the URIs that these read."""

    def _put(self, describe: Callable[[], Record]) -> None:
        if self._writer is not None:
            self._writer.put(describe)

    def note_start(self, start: CallStart) -> None:
        """Queue the start of a call."""
        describe = _StartRecord(start, self._arguments)
        self._running[start.id] = describe
        self._put(describe)

    def note_end(self, end: CallEnd) -> None:
        """Queue the end of a call that was started, with all that its start says."""
        describe = self._running.pop(end.start.id)
        self._put(lambda: describe_end(describe(), end))
        if end.view is not None:
            self._views[end.view] = structs.replace(end.start, arguments={})
            if len(self._views) > MAX_VIEWS:
                self._views.popitem(last=False)

    def note_refusal(self, refusal: CallRefusal) -> None:
        """Queue a call that was refused."""
        self._put(partial(describe_refusal, refusal, self._arguments))

    def note_view(self, read: ViewRead) -> None:
        """Queue a query of a live view."""
        call = self._views.get(read.uri)
        self._put(partial(describe_view, read, call, self._arguments))

    def note_request(self, address: str, reason: str, count: int) -> None:
        """Queue requests that were refused before their content was read.

        Args:
            address: Where they came from.
            reason: Why they were refused.
            count: How many.
        """
        self._put(partial(describe_request, time.time(), address, reason, count))


@contextmanager
def write_audit_log(settings: Settings) -> Iterator[AuditLog]:
    """Write the audit log during the block; nobody writes it if it is turned off."""
    if settings.audit == "off":
        yield AuditLog()
        return
    file = AuditFile(settings.audit_path, max_bytes=settings.audit_max_bytes)
    writer = AuditWriter(file)
    writer.start()
    try:
        yield AuditLog(writer, settings.audit)
    finally:
        writer.close()
