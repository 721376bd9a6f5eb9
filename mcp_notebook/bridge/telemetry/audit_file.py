"""The files of the audit log: the log, its rotated files, and a journal for each bridge.

Writing runs on the audit log's thread. All bridges of a user write to the same log: a writer holds
a lock, so that no line is torn and no two bridges rotate at once. Only a regular file that belongs
to the user is ever written to. Nothing here waits longer than `LOCK_TIMEOUT`, unless a disk hangs.

Reading (`AuditReader`) runs in the process of the command that shows the log: from the oldest line
to the newest, then new lines, across rotations. It changes nothing, takes no lock and never waits;
bridges may write and rotate at the same time.
"""

import errno
import json
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from mcp_notebook.bridge.telemetry.audit_records import Record
from mcp_notebook.settings.private_files import READ_FLAGS, is_own, lock_file

LOCK_TIMEOUT = 5.0
"""Seconds to wait for other bridges, which hold the lock for microseconds."""
_LOCK_INTERVAL = 0.001
_OPEN_FLAGS = (READ_FLAGS & ~os.O_RDONLY) | os.O_RDWR | os.O_CREAT
"""Like for reading: never blocks, and follows no symbolic link."""
MAX_JOURNAL = 2**18
"""Bytes from which a journal is rewritten without ended calls."""
_JOURNAL_MARK = ".running-"
_NEW_FLAGS = _OPEN_FLAGS | os.O_EXCL
_CHUNK = 2**16
_MAX_LINE = 2**20
"""Bytes of a line; bridges write shorter ones."""


class AuditFile:
    """The audit log and its rotated files.

    Args:
        path: The log's path; it need not exist.
        max_bytes: The greatest size of a file; a single longer line is still written.
        old_files: The number of rotated files to keep.
    """

    def __init__(self, path: Path, *, max_bytes: int, old_files: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._old_files = old_files

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other bridges from writing while the block runs.

        Raises:
            OSError: The folder cannot be used, or another process holds the lock for too long.
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
        """Append lines, and remove written lines from the queue; the lock must be held.

        Raises:
            OSError: A line cannot be written; no part of it is in the file.
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
        """Return the content of the newest rotated file and the log.

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
    """Return the path of a rotated file: 1 is the newest, 0 the log itself."""
    return path.with_name(f"{path.name}.{number}") if number else path


def open_own(path: Path, flags: int) -> int:
    """Open a regular file that belongs to the user, and make it private.

    Args:
        path: Its path.
        flags: Like for `os.open`.

    Returns:
        The file descriptor.

    Raises:
        OSError: The path is not such a file, or cannot be opened.
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
    """Return the problem with a file, as the end of a sentence."""
    if error.errno == errno.ELOOP:
        return f"{error.filename} is a symbolic link"
    if error.filename is None or error.strerror is None:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


def wait_for_lock(descriptor: int) -> None:
    """Lock a file; does nothing if its file system has no locks.

    Raises:
        TimeoutError: Another process holds the lock.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process has had its lock for {LOCK_TIMEOUT:g} s")
        time.sleep(_LOCK_INTERVAL)


def _try_lock(descriptor: int) -> bool:
    try:
        return lock_file(descriptor)
    except OSError:  # no locks on this file system; most of them append a single write atomically
        return True


def _take_group(lines: deque[bytes], room: int, *, at_least_one: bool) -> list[bytes]:
    """Return the lines at the head of the queue that fit."""
    group: list[bytes] = []
    for line in lines:
        room -= len(line)
        if room < 0 and not (at_least_one and not group):
            break
        group.append(line)
    return group


def _append(descriptor: int, size: int, data: bytes) -> None:
    """Append whole lines, or nothing."""
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


# -- the journals of calls -------------------------------------------------------------------------


class CallJournal:
    """This bridge's journal of the calls that are not in the audit log yet.

    A call's line is written to the log some time after the call has ended. Until then, the call is
    in the journal, a file beside the log that the bridge keeps locked and deletes when it ends. An
    unlocked journal belongs to a killed bridge: the next bridge writes its calls to the log.

    Each line is the record of a call that has begun or ended, or the id of a call that is in the
    log.

    Args:
        log: The audit log. It must be locked while this object is created: until the journal is
            locked, it looks like one that was left behind.

    Raises:
        OSError: The journal cannot be created.
    """

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(f"{log.name}{_JOURNAL_MARK}{secrets.token_hex(4)}")
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
        """Write the changes.

        Args:
            news: The lines of calls that have begun or ended, by id.
            ended: The ids of calls that are now in the log.
            unwritten: The lines of all calls that are not in the log, by id.

        Raises:
            OSError: The journal cannot be written; the next update rewrites it.
        """
        if not news and not ended and not self._is_behind:
            return
        if self._is_behind or self._size > MAX_JOURNAL:
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
        """Delete the journal."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


@dataclass(frozen=True)
class FoundJournal:
    """A journal beside the audit log."""

    path: Path
    is_left_behind: bool
    """Whether its bridge was killed."""
    calls: tuple[dict[str, Any], ...]
    """The latest records of the calls that are not in the log."""


def find_journals(log: Path) -> Iterator[FoundJournal]:
    """Yield the journals of all bridges that write to an audit log.

    A journal that was left behind stays locked until the next one is requested. Unreadable journals
    are skipped.
    """
    for path in sorted(log.parent.glob(f"{log.name}{_JOURNAL_MARK}*")):
        try:
            descriptor = open_own(path, READ_FLAGS)
        except OSError:
            continue
        with os.fdopen(descriptor, "rb") as file:
            try:
                is_left_behind = lock_file(descriptor)
            except OSError:  # the file system has no locks
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


# -- reading ---------------------------------------------------------------------------------------


class AuditReader:
    """Reads an audit log once.

    Args:
        path: The log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        """The current file; files are read oldest first."""
        self._rest = b""
        """The beginning of a line whose end has not been read yet."""
        self.damaged = 0
        """The number of lines that were skipped because they are not records."""
        self.has_gap = False
        """Whether rotated files were deleted before they were read."""

    def read(self) -> Iterator[Record]:
        """Yield all records that were written since the last call.

        Raises:
            OSError: A file cannot be read, or belongs to another user.
        """
        while True:
            if self._descriptor is not None:
                yield from self._read_file()
            # A rotated file is never written to, so it is complete.
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
            # A line that is too long counts as damaged.
            self._rest = rest if len(rest) <= _MAX_LINE else b"?"
            for line in lines:
                record = _parse(line)
                if record is None:
                    self.damaged += 1
                else:
                    yield record

    def _open_following(self) -> int | None:
        """Open the next newer file, at first the oldest; None if there is none."""
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
                continue  # another bridge rotated the file
            if os.fstat(descriptor).st_ino == inodes[number]:
                return descriptor
            os.close(descriptor)

    def _list_inodes(self) -> Iterator[int]:
        """Yield the inodes of the files, the newest first; 0 for a missing file.

        A rotation renames the oldest first, so at most one is missing at a time.
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
