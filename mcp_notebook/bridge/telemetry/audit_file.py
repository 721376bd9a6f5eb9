"""The file of the audit log: lines are appended, it is rotated when it has grown, and it is read.

Writing runs on the thread that writes. All bridges of a user write to the same file: whoever writes
holds a lock, so that no line is torn and no two bridges rotate at once. Only a regular file of the
user is written to, whatever somebody has put in its place. Nothing here waits for more than
`LOCK_LIMIT`, but a disk that hangs hangs the thread.

Reading (`AuditReader`) runs in the process of the command that shows the log, from the oldest line
on, and then what is added, across rotations. It changes nothing, takes no lock and waits for
nothing; bridges may write and rotate meanwhile.
"""

import errno
import json
import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from mcp_notebook.bridge.telemetry.audit_records import Record
from mcp_notebook.settings.private_files import READ_FLAGS, is_own, lock_file

LOCK_LIMIT = 5.0
"""Seconds to wait for other bridges, which hold the lock for microseconds."""
_LOCK_INTERVAL = 0.001
_OPEN_FLAGS = (READ_FLAGS & ~os.O_RDONLY) | os.O_RDWR | os.O_CREAT
"""As for reading: waits for nothing, and follows no link."""


class AuditFile:
    """The file of the audit log, and the old ones beside it.

    Args:
        path: Where it is, or will be.
        max_bytes: Its greatest size; a single longer line is written nevertheless.
        old_files: How many old files are kept.
    """

    def __init__(self, path: Path, *, max_bytes: int, old_files: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._old_files = old_files

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other bridges from writing for the length of the block.

        Raises:
            OSError: The folder cannot be used, or another process keeps the lock.
        """
        path = self.path.with_name(f"{self.path.name}.lock")
        try:
            descriptor = open_own(path, _OPEN_FLAGS)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_own(path, _OPEN_FLAGS)
        try:
            wait_for_lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def append(self, lines: deque[bytes]) -> None:
        """Append lines, and take those that are written out of the queue; needs the lock.

        Raises:
            OSError: A line cannot be written; nothing of it is in the file.
        """
        while True:
            descriptor = open_own(self.path, _OPEN_FLAGS | os.O_APPEND)
            try:
                size = os.lseek(descriptor, 0, os.SEEK_END)
                room = self._max_bytes - size
                group = _take_group(lines, room, at_least_one=not size)
                if group:
                    _append(descriptor, size, b"".join(group))
                for _ in group:
                    lines.popleft()
            finally:
                os.close(descriptor)
            if not lines:
                return
            self._rotate()

    def read(self) -> bytes:
        """Return what is in the file and in the newest old one.

        Raises:
            OSError: One of them cannot be read.
        """
        content = b""
        for path in (name_old_file(self.path, 1), self.path):
            try:
                descriptor = open_own(path, READ_FLAGS)
            except FileNotFoundError:
                continue
            with os.fdopen(descriptor, "rb") as file:
                content += file.read()
        return content

    def _rotate(self) -> None:
        free = 1
        while free < self._old_files and os.path.lexists(name_old_file(self.path, free)):
            free += 1
        for number in range(free, 0, -1):
            name_old_file(self.path, number - 1).replace(name_old_file(self.path, number))


def name_old_file(path: Path, number: int) -> Path:
    """Return the path of an old file: 1 is the newest one, 0 the log itself."""
    return path.with_name(f"{path.name}.{number}") if number else path


def open_own(path: Path, flags: int) -> int:
    """Open a regular file of the user, which nobody else can read, and return its descriptor.

    Args:
        path: Its path.
        flags: As for `os.open`.

    Raises:
        OSError: It is something else, or cannot be opened.
    """
    descriptor = os.open(path, flags, 0o600)
    try:
        status = os.fstat(descriptor)
        _check_own(path, status)
        if hasattr(os, "fchmod") and status.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_own(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a regular file")
    if not is_own(status):
        raise PermissionError(f"{path} belongs to another user")


def explain_problem(error: OSError) -> str:
    """Return what is wrong with a file, as the end of a sentence."""
    if error.errno == errno.ELOOP:
        return f"{error.filename} is a link"
    if error.filename is None or error.strerror is None:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


def wait_for_lock(descriptor: int) -> None:
    """Lock a file; does nothing if its disk has no locks.

    Raises:
        TimeoutError: Somebody else keeps the lock.
    """
    deadline = time.monotonic() + LOCK_LIMIT
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process has had its lock for {LOCK_LIMIT:g} s")
        time.sleep(_LOCK_INTERVAL)


def _try_lock(descriptor: int) -> bool:
    try:
        return lock_file(descriptor)
    except OSError:  # the disk has no locks: single appended writes are whole on most
        return True


def _take_group(lines: deque[bytes], room: int, *, at_least_one: bool) -> list[bytes]:
    """Return the lines at the head of the queue for which there is room."""
    group: list[bytes] = []
    for line in lines:
        room -= len(line)
        if room < 0 and not (at_least_one and not group):
            break
        group.append(line)
    return group


def _append(descriptor: int, size: int, data: bytes) -> None:
    """Append bytes in one write, as whole lines, or not at all."""
    if size and not _ends_with_newline(descriptor, size):
        data = b"\n" + data  # a bridge was killed in the middle of a write
    try:
        done = 0
        while done < len(data):
            done += os.write(descriptor, data[done:])
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _ends_with_newline(descriptor: int, size: int) -> bool:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) == b"\n"


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
        """Lines that were skipped because they are not records."""
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
            # Nobody writes to a rotated file, so it is complete.
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
        """Yield the inodes of the files, the newest first; 0 for a missing file.

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
