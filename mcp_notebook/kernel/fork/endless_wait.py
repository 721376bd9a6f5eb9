"""Detects a deadlocked copy of the kernel: one that waits for a thread that it does not have.

Runs in the user's kernel, on the thread of a call. A copy of the kernel has one of its threads;
where another one held a lock, or should do some work, the copy would wait until its time limit.
Linux tells what each thread of a process waits for. If each one waits without a time limit, for
what only a thread of the same process could give, or for the end of one that only the kernel has,
none ever goes on. A thread that reads a pipe of its own process also counts: pyarrow has one, to
hear of signals.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())
"""The number of the system call ``futex``, in which locks of all kinds wait; None: unknown."""
_READ = {"x86_64": "0", "aarch64": "63"}.get(platform.machine())
_MAX_READ = 10_000
"""Bytes; what is told of a thread is less."""
_PRIVATE = 128
"""Set in its operation if the lock is not shared with other processes."""


def waits_for_ever(pid: int) -> bool:
    """Return whether no thread of a process will ever go on by itself.

    Args:
        pid: The process; one that has ended does not wait, nor does one on other systems.
    """
    try:
        if _read(f"/proc/{pid}/syscall").partition(" ")[0] not in (_FUTEX, _READ):
            return False  # as its first thread tells, nearly always
        before = _read_threads(pid, "status")
        calls = _read_threads(pid, "syscall")
        missing = set(os.listdir("/proc/self/task")) - set(calls)  # noqa: PTH208 - numbers only
        # They are read one after the other: one may run until another one's turn has passed. Its
        # status counts how often it began to wait.
        return (
            bool(calls)
            and all(_is_endless(pid, call, missing) for call in calls.values())
            and before == _read_threads(pid, "status")
        )
    except OSError:
        return False


def _read_threads(pid: int, name: str) -> dict[str, str]:
    """Return what the system tells of each thread of a process."""
    tasks = f"/proc/{pid}/task"
    return {task: _read(f"{tasks}/{task}/{name}") for task in os.listdir(tasks)}  # noqa: PTH208


def _read(path: str) -> str:
    """Return what a small file of the system's holds, with few calls."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_READ).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _is_endless(pid: int, syscall: str, missing: set[str]) -> bool:
    """Return whether a thread waits for others of its process.

    Args:
        pid: The process.
        syscall: The call that it is in, as the system tells it: its number and its arguments.
        missing: The numbers of the threads of this process, which the other one does not have.
    """
    number, *arguments = syscall.split()
    if number == _READ:
        return _has_both_ends(pid, int(arguments[0], 16))
    if number != _FUTEX:
        return False
    _address, operation, value, limit, *_others = (int(argument, 16) for argument in arguments)
    # Who waits for a thread's end waits for its number to be erased, in memory that counts as
    # shared since the system erases it.
    return limit == 0 and (bool(operation & _PRIVATE) or str(value) in missing)


def _has_both_ends(pid: int, descriptor: int) -> bool:
    """Return whether a descriptor is of a pipe to which nobody but its process can write.

    Args:
        pid: The process.
        descriptor: Its number there.
    """
    pipe = (Path("/proc") / str(pid) / "fd" / str(descriptor)).readlink()
    if pipe.parts[0].partition(":")[0] != "pipe" or any(_read_threads(pid, "children").values()):
        return False
    return all(pipe != other for other in _list_open_files())


def _list_open_files() -> Iterator[Path]:
    """Yield what the descriptors of this process stand for."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            yield descriptor.readlink()
