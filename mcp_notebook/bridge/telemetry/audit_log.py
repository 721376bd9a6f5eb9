"""The audit log: one line for each call, also for those that were refused or lost.

`AuditLog` runs on the bridge's event loop. A thread of its own (`audit_writer`) turns what happens
to calls into records (`audit_records`) and writes them.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from mcp_notebook.bridge.telemetry.audit_file import AuditFile
from mcp_notebook.bridge.telemetry.audit_records import (
    PlainSchemas,
    describe_end,
    describe_refusal,
    describe_request,
    describe_start,
)
from mcp_notebook.bridge.telemetry.audit_writer import AuditItem, AuditWriter
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart
from mcp_notebook.settings.settings import ArgumentsInAudit, Settings

_WEIGHT = 2_000
"""Bytes of a record without its arguments, about."""
_LONG_BACKLOG = 200
"""Items from which what is kept for a disk that is behind is made as small as it can be."""


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
