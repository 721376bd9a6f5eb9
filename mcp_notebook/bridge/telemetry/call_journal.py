"""The calls that a bridge has not written to the audit log yet: they survive its sudden end.

Runs on the thread that writes. The log has one line for each call, some time after it has ended;
until then, the call is in the bridge's journal, a file beside the log that the bridge keeps locked
and removes at its end. A journal without a lock is that of a bridge that was killed: the next
bridge writes its calls to the log.
"""

import json
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_notebook.bridge.telemetry.audit_file import open_own, wait_for_lock
from mcp_notebook.settings.private_files import READ_FLAGS, lock_file

MAX_SIZE = 2**18
"""Bytes from which a journal is rewritten without the calls that have ended."""
_MARK = ".running-"
_NEW_FLAGS = (READ_FLAGS & ~os.O_RDONLY) | os.O_RDWR | os.O_CREAT | os.O_EXCL


class CallJournal:
    """The journal of this bridge.

    Each line is the record of a call that has begun or ended, or the id of one that is in the log.

    Args:
        log: The audit log, which has to be locked meanwhile: a journal without a lock of its own is
            taken for one that was left behind.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(f"{log.name}{_MARK}{secrets.token_hex(4)}")
        self._descriptor = open_own(self.path, _NEW_FLAGS)
        try:
            wait_for_lock(self._descriptor)  # the command that shows the log tries to lock it
        except BaseException:
            os.close(self._descriptor)
            raise
        self._size = 0
        self._is_behind = False

    def update(
        self, news: Mapping[str, bytes], ended: Collection[str], unwritten: Mapping[str, bytes]
    ) -> None:
        """Note what has changed.

        Args:
            news: Calls that have begun or ended: their lines by id.
            ended: The ids of calls that are in the log now.
            unwritten: All calls that are not.

        Raises:
            OSError: It cannot be written; the next update makes up for it.
        """
        if not news and not ended and not self._is_behind:
            return
        if self._is_behind or self._size > MAX_SIZE:
            self._write(0, b"".join(unwritten.values()))
            os.ftruncate(self._descriptor, self._size)
            return
        ends = b"".join(b'"%b"\n' % identity.encode("ascii") for identity in ended)
        self._write(self._size, b"".join(news.values()) + ends)

    def _write(self, position: int, data: bytes) -> None:
        self._is_behind = True
        os.lseek(self._descriptor, position, os.SEEK_SET)
        done = 0
        while done < len(data):
            done += os.write(self._descriptor, data[done:])
        self._size = position + len(data)
        self._is_behind = False

    def close(self) -> None:
        """Remove the journal."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


@dataclass(frozen=True)
class FoundJournal:
    """A journal beside the audit log."""

    path: Path
    is_left_behind: bool
    """Its bridge was killed."""
    calls: tuple[dict[str, Any], ...]
    """The last records of the calls that are not in the log."""


def find_journals(log: Path) -> Iterator[FoundJournal]:
    """Yield the journals of all bridges that write to an audit log.

    A journal that was left behind stays locked until the next one is asked for. What cannot be read
    is left out.
    """
    for path in sorted(log.parent.glob(f"{log.name}{_MARK}*")):
        try:
            descriptor = open_own(path, READ_FLAGS)
        except OSError:
            continue
        with os.fdopen(descriptor, "rb") as file:
            try:
                is_left_behind = lock_file(descriptor)
            except OSError:  # the disk has no locks
                is_left_behind = False
            try:
                calls = _read_calls(file.read())
            except OSError:  # Windows: its bridge has locked it
                continue
            yield FoundJournal(path, is_left_behind, calls)


def _read_calls(content: bytes) -> tuple[dict[str, Any], ...]:
    calls: dict[str, dict[str, Any]] = {}
    for line in content.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # the bridge was killed in the middle of a write
            continue
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            calls[entry["id"]] = entry
        elif isinstance(entry, str):
            calls.pop(entry, None)
    return tuple(calls.values())
