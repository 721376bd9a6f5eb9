"""Reads the audit log from its oldest line on, and then what is added, across rotations.

Runs in the process of the command that shows the log. Nothing is changed, no lock is taken, and
nothing is waited for; bridges may write and rotate meanwhile.
"""

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from mcp_notebook.bridge.telemetry.audit_file import name_old_file, open_own
from mcp_notebook.bridge.telemetry.audit_records import Record
from mcp_notebook.private_files import READ_FLAGS

_CHUNK = 2**16
_MAX_LINE = 2**20
"""Bytes of a line; bridges write less."""


class AuditReader:
    """Reads an audit log once.

    Args:
        path: The log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        """The file that is read now, oldest first."""
        self._rest = b""
        """What was read of a line that has not ended."""
        self.damaged = 0
        """Lines that were skipped, as they are no records."""
        self.has_gap = False
        """Old files went before they were read."""

    def read(self) -> Iterator[Record]:
        """Yield all that was written since the last time.

        Raises:
            OSError: A file cannot be read, or is not one of the user.
        """
        while True:
            if self._descriptor is not None:
                yield from self._read_file()
            # A rotated file is not written to any more, so what is in it now is all.
            following = self._open_following()
            if following is None:
                return
            if self._descriptor is not None:
                yield from self._read_file()
                self.damaged += bool(self._rest)
                os.close(self._descriptor)
            self._descriptor, self._rest = following, b""

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read_file(self) -> Iterator[Record]:
        """Yield the rest of the file."""
        assert self._descriptor is not None
        while chunk := os.read(self._descriptor, _CHUNK):
            *lines, rest = (self._rest + chunk).split(b"\n")
            # The end of a line that is too long is damaged by itself.
            self._rest = rest if len(rest) <= _MAX_LINE else b"?"
            for line in lines:
                record = _parse(line)
                if record is None:
                    self.damaged += 1
                else:
                    yield record

    def _open_following(self) -> int | None:
        """Open the file after the one that is read, at first the oldest; None if there is none."""
        while True:
            inodes = list(self._list_inodes())
            while inodes and not inodes[-1]:
                inodes.pop()
            number = len(inodes) - 1
            if self._descriptor is not None:
                current = os.fstat(self._descriptor).st_ino
                if current in inodes:
                    number = inodes.index(current) - 1
                else:
                    self.has_gap = True
            if number < 0 or not inodes[number]:
                return None
            try:
                descriptor = open_own(name_old_file(self._path, number), READ_FLAGS)
            except FileNotFoundError:
                continue  # the files were rotated meanwhile
            if os.fstat(descriptor).st_ino == inodes[number]:
                return descriptor
            os.close(descriptor)

    def _list_inodes(self) -> Iterator[int]:
        """Yield the identities of the files, the newest first; 0 for one that is missing.

        A rotation renames the oldest first: one may be missing meanwhile, and none is overlooked.
        """
        is_missing = False
        for number in count():
            try:
                inode = name_old_file(self._path, number).lstat().st_ino
            except FileNotFoundError:
                if is_missing:
                    return
                inode = 0
            is_missing = not inode
            yield inode


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
