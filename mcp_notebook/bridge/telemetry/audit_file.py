"""The files of the audit log: one for each month, and more for a month with many calls.

All bridges of a user append to the newest file, on the threads of their audit logs, whole lines
with one write. No file is ever renamed, so readers know the name of what they have read. The oldest
files are deleted when all together are too large. Only regular files that belong to the user are
written to. Nothing here waits, unless a disk hangs.

Reading (`AuditReader`) runs in the process of the command that shows the log, while bridges write.
It changes nothing.
"""

import errno
import json
import os
import re
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from pathlib import Path

from mcp_notebook.bridge.telemetry.audit_records import Record
from mcp_notebook.settings.private_files import READ_FLAGS, is_own

_WRITE_FLAGS = (READ_FLAGS & ~os.O_RDONLY) | os.O_RDWR | os.O_CREAT | os.O_APPEND
"""Like for reading: never blocks, and follows no symbolic link."""
_PARTS = 6
"""Files that together have the greatest size of the log."""
_MAX_LINE = 2**20
"""Bytes of a line; bridges write shorter ones."""


class AuditFile:
    """Appends to the audit log.

    Args:
        path: The log's path; its files have the month, and from the second file of a month on a
            number, before the suffix.
        max_bytes: The greatest size of all files together. Bridges that write at once may exceed
            it by a line each.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self.path = path
        self._max_bytes = max_bytes

    @contextmanager
    def open(self) -> Iterator[Callable[[Sequence[bytes]], int]]:
        """Open the newest file.

        Yields:
            A function that appends lines, and returns how many of them it has written as a whole:
            fewer if the file is full, or the disk. To learn which, open the file again.

        Raises:
            OSError: The log cannot be used.
        """
        descriptor = self._open_newest()
        try:
            os.lseek(descriptor, max(os.fstat(descriptor).st_size - 1, 0), os.SEEK_SET)
            if os.read(descriptor, 1) not in (b"", b"\n"):
                os.write(descriptor, b"\n")  # the disk was full, or a bridge was killed
            yield partial(self._append, descriptor)
        finally:
            os.close(descriptor)

    def _append(self, descriptor: int, lines: Sequence[bytes]) -> int:
        size = os.fstat(descriptor).st_size
        begins = [*accumulate(map(len, lines), initial=size)]
        most = bisect_left(begins, self._max_bytes // _PARTS, hi=len(lines))
        if not most:
            return 0
        return bisect_right(begins, size + os.write(descriptor, b"".join(lines[:most]))) - 1

    def _open_newest(self) -> int:
        files = list_files(self.path)
        month, number = max([*files, (f"{datetime.now(UTC):%Y-%m}", 1)])
        path = name_file(self.path, month, number)
        try:
            is_full = (month, number) in files and path.lstat().st_size >= self._max_bytes // _PARTS
        except FileNotFoundError:  # since it was listed, others have filled it, and deleted it
            return self._open_newest()
        if is_full or (month, number) not in files:
            path = name_file(self.path, month, number + ((month, number) in files))
            self._delete_oldest([*files.values()])
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return open_own(path, _WRITE_FLAGS)

    def _delete_oldest(self, files: list[Path]) -> None:
        """Make room for a new file."""
        with suppress(FileNotFoundError):  # another bridge is doing the same
            total = sum(file.lstat().st_size for file in files)
            while files and total > self._max_bytes - self._max_bytes // _PARTS:
                total -= files[0].lstat().st_size
                files.pop(0).unlink()


def name_file(path: Path, month: str, number: int = 1) -> Path:
    """Return the path of a file of the log.

    Args:
        path: The log's path.
        month: The month, such as ``2026-11``.
        number: The number of the file in that month.
    """
    more = f".{number}" if number > 1 else ""
    return path.with_name(f"{path.stem}-{month}{more}{path.suffix}")


def list_files(path: Path) -> dict[tuple[str, int], Path]:
    """Return the files of the log, oldest first, by month and number."""
    pattern = re.compile(
        rf"{re.escape(path.stem)}-(\d{{4}}-\d\d)(?:\.([1-9]\d*))?{re.escape(path.suffix)}"
    )
    files = {
        (match[1], int(match[2] or 1)): file
        for file in (path.parent.iterdir() if path.parent.exists() else ())
        if (match := pattern.fullmatch(file.name))
    }
    return dict(sorted(files.items()))


def open_own(path: Path, flags: int) -> int:
    """Open a regular file that belongs to the user, and return its descriptor.

    Args:
        path: Its path; a new file is only for the user.
        flags: Like for `os.open`.

    Raises:
        OSError: The path is not such a file, or cannot be opened.
    """
    descriptor = os.open(path, flags, 0o600)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and is_own(status):
        return descriptor
    os.close(descriptor)
    what = "belongs to another user" if stat.S_ISREG(status.st_mode) else "is not a regular file"
    raise OSError(f"{path} {what}")


def explain_problem(error: OSError) -> str:
    """Return the problem with a file, as the end of a sentence."""
    if error.errno == errno.ELOOP:
        return f"{error.filename} is a symbolic link"
    if error.filename is None or error.strerror is None:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


class AuditReader:
    """Reads an audit log.

    Args:
        path: The log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.damaged = 0
        """The number of lines that were skipped because they are not records."""

    def read(self) -> Iterator[Record]:
        """Yield all records.

        Raises:
            OSError: A file cannot be read, or belongs to another user.
        """
        for path in list_files(self._path).values():
            try:
                descriptor = open_own(path, READ_FLAGS)
            except FileNotFoundError:  # a bridge has just deleted it
                continue
            with os.fdopen(descriptor, "rb") as file:
                for line in iter(partial(file.readline, _MAX_LINE), b""):
                    if not line.endswith(b"\n") and len(line) < _MAX_LINE:
                        break  # not whole yet
                    if line == b"\n":  # a bridge saw half of a line that another one was writing
                        continue
                    record = _parse(line)
                    if record is None:
                        self.damaged += 1
                    else:
                        yield record


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
