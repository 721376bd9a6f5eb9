"""Detects a deadlocked copy of the kernel: one that waits for a thread that it does not have.

Runs in the user's kernel, on the thread of a call. A copy of the kernel has only one of its
threads. If another thread held a lock, or should do some work, the copy would wait until its time
limit. Linux tells what each thread of a process waits for. The process is deadlocked if every
thread waits without a timeout for another thread of the same process, or for the end of a thread
that only the kernel has. A thread that reads a pipe of its own process also counts: pyarrow has
one for signals.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())
"""Number of the system call ``futex``, which all kinds of locks wait in; None: unknown."""
_READ = {"x86_64": "0", "aarch64": "63"}.get(platform.machine())
_MAX_READ = 10_000
"""Bytes; the files about a thread are smaller."""
_PRIVATE = 128
"""Flag of a futex operation on a lock that is not shared with other processes."""
_NEW_JOIN = 0x109, 2
"""How a new glibc (seen in 2.43) joins a thread: for a state of its own, not for the id."""


def waits_for_ever(pid: int) -> bool:
    """Return whether a process is deadlocked; False if it has ended, or without /proc.

    Args:
        pid: Of the process.
    """
    try:
        if _read(f"/proc/{pid}/syscall").partition(" ")[0] not in (_FUTEX, _READ):
            return False  # the first thread nearly always shows it
        before = _read_threads(pid, "status")
        calls = _read_threads(pid, "syscall")
        missing = set(os.listdir("/proc/self/task")) - set(calls)  # noqa: PTH208 - numbers only
        # Threads are read one after the other, so one may have run in between: its status counts
        # how often it started to wait.
        return (
            bool(calls)
            and all(_is_endless(pid, call, missing) for call in calls.values())
            and before == _read_threads(pid, "status")
        )
    except OSError:
        return False


def _read_threads(pid: int, name: str) -> dict[str, str]:
    """Return the contents of a /proc file for each thread of a process."""
    tasks = f"/proc/{pid}/task"
    return {task: _read(f"{tasks}/{task}/{name}") for task in os.listdir(tasks)}  # noqa: PTH208


def _read(path: str) -> str:
    """Return the contents of a small /proc file, with few system calls."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_READ).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _is_endless(pid: int, syscall: str, missing: set[str]) -> bool:
    """Return whether a thread waits for other threads of its process.

    Args:
        pid: Of the process.
        syscall: Its current system call: the number and the arguments.
        missing: Ids of the kernel's threads that the process does not have.
    """
    number, *arguments = syscall.split()
    if number == _READ:
        return _has_both_ends(pid, int(arguments[0], 16))
    if number != _FUTEX:
        return False
    _address, operation, value, limit, *_others = (int(argument, 16) for argument in arguments)
    # Joining a thread waits until the system clears its id, in memory that counts as shared.
    is_join = str(value) in missing or (operation, value) == _NEW_JOIN
    return limit == 0 and (bool(operation & _PRIVATE) or is_join)


def _has_both_ends(pid: int, descriptor: int) -> bool:
    """Return whether a descriptor is a pipe that only its own process can write to.

    Args:
        pid: Of the process.
        descriptor: Its number in the process.
    """
    pipe = (Path("/proc") / str(pid) / "fd" / str(descriptor)).readlink()
    if pipe.parts[0].partition(":")[0] != "pipe" or any(_read_threads(pid, "children").values()):
        return False
    return all(pipe != other for other in _list_open_files())


def _list_open_files() -> Iterator[Path]:
    """Yield the files behind the descriptors of this process."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed by another thread
            yield descriptor.readlink()
