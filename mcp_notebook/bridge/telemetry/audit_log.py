"""The audit log: one line for each call, also for those that were refused or lost.

`AuditLog` runs on the bridge's event loop and turns what happens to calls into records
(`audit_records`); a thread of its own writes them (`audit_writer`).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from mcp_notebook.bridge.telemetry.audit_file import AuditFile
from mcp_notebook.bridge.telemetry.audit_records import (
    Record,
    describe_end,
    describe_refusal,
    describe_start,
)
from mcp_notebook.bridge.telemetry.audit_writer import AuditItem, AuditWriter
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart
from mcp_notebook.settings import ArgumentsInAudit, Settings

_WEIGHT = 2_000
"""Bytes of a record without its arguments, about."""


class AuditLog:
    """Takes what happens to calls, for the log.

    Args:
        writer: Writes it.
        arguments: What is written of the arguments.
    """

    def __init__(self, writer: AuditWriter, arguments: ArgumentsInAudit) -> None:
        self._writer = writer
        self._arguments = arguments
        self._running: dict[str, Record] = {}
        """The records of the calls that run, by id."""

    def note_start(self, start: CallStart) -> None:
        """Take the start of a call."""
        record = self._running[start.id] = describe_start(start, self._arguments)
        self._put(record, is_running=True)

    def note_end(self, end: CallEnd) -> None:
        """Take the end of a call that was started."""
        self._put(describe_end(self._running.pop(end.start.id), end))

    def note_refusal(self, refusal: CallRefusal) -> None:
        """Take a call that was refused."""
        self._put(describe_refusal(refusal))

    def _put(self, record: Record, *, is_running: bool = False) -> None:
        weight = _WEIGHT + record.get("arguments_size", 0)
        self._writer.put(AuditItem(record, weight, is_running))


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
