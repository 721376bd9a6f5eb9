"""Reads and writes the user's private files in `home`, and trusts none of them.

A path there may be a pipe, a broken link or a file of gigabytes. Reading never blocks, never
follows a link, and accepts only regular files of the user of a bounded size. JSON is validated as
it is read. Runs in every process; the content of the files is defined elsewhere.
"""

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")
MAX_SIZE = 2**16
"""Default for the maximum bytes of a file. A record has a hundredth of it."""
READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe without a writer would block
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
"""For `os.open`: opens a file for reading without blocking or following a link."""
LOCK_LIMIT = 10.0
"""Seconds to wait for a lock, which other processes hold for milliseconds."""


def make_private_folder(folder: Path) -> Path:
    """Create a folder that only the user can access, with missing parents, and return it."""
    for missing in reversed([path for path in folder.parents if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)  # `parents=True` would let others list them
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def write_private(path: Path, text: str) -> None:
    """Write a file atomically; only the user can read it."""
    import tempfile  # noqa: PLC0415 - a bridge without notebooks writes none

    make_private_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")  # is 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_private(path: Path, most: int = MAX_SIZE) -> bytes:
    """Return the content of a file of the user.

    Args:
        path: The file.
        most: Maximum bytes of the file.

    Raises:
        OSError: It belongs to another user, is not a regular file, is too large, or is unreadable.
    """
    descriptor = os.open(path, READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if not is_own(status):
            raise PermissionError("it belongs to another user")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise OSError(f"it is larger than {most:,} bytes")
    return content


def write_private_json(path: Path, content: object) -> None:
    """Write a file of JSON, as `write_private` does.

    Raises:
        ValueError: The content cannot be represented in JSON.
    """
    write_private(path, msgspec.json.format(msgspec.json.encode(content), indent=1).decode())


def read_private_json(path: Path, kind: type[T], most: int = MAX_SIZE) -> T:
    """Return the content of a file of JSON, as `read_private` does.

    Raises:
        OSError: See `read_private`.
        ValueError: The content is not JSON of this kind. The message is the end of a sentence.
    """
    content = read_private(path, most)
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        reason = str(error)  # for example "Expected `int` >= 1 - at `$.pid`"
        raise ValueError(reason[0].lower() + reason[1:].replace(" - at", " at")) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"it is not valid JSON ({error})") from None


@contextmanager
def lock_private(path: Path, *, wait_limit: float = LOCK_LIMIT) -> Iterator[None]:
    """Let one process at a time into the block, by a lock on an empty file, which is not removed.

    The operating system releases the lock of a process that dies.

    Args:
        path: The empty file.
        wait_limit: Seconds to wait for the lock.

    Raises:
        OSError: The file cannot be used.
        TimeoutError: Another process holds the lock for too long.
    """
    make_private_folder(path.parent)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        deadline = time.monotonic() + wait_limit
        while not lock_file(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(f"another process has locked {path} for {wait_limit:g} s")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)  # releases the lock


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to the user of this process."""
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def lock_file(descriptor: int) -> bool:
    """Try to lock a file until its descriptor is closed, and return whether it worked.

    It fails if another descriptor holds the lock, in this process or another.

    Raises:
        OSError: The file system does not support locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # PermissionError on Windows
        return False
    return True
