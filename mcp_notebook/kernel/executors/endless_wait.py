"""Whether a process waits for what can never come: a lock that a thread has which it lacks.

Runs in the user's kernel, on the thread of a call. A copy of the kernel has one of its threads;
where another one held a lock, or should do some work, the copy would wait until its time limit.
Linux tells what each thread of a process waits for. If each one waits without a time limit, for
what only a thread of the same process could give, or for the end of one that only the kernel has,
none ever goes on.
"""

import os
import platform
from pathlib import Path

_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())
"""The number of Linux's call by which locks of all kinds wait; None: not known."""
_PRIVATE = 128
"""Set in its operation if the lock is not shared with other processes."""


def waits_for_ever(pid: int) -> bool:
    """Return whether no thread of a process will ever go on by itself.

    Args:
        pid: The process; one that has ended does not wait, nor does one on other systems.
    """
    try:
        before = _read_threads(pid, "status")
        calls = _read_threads(pid, "syscall")
        missing = set(os.listdir("/proc/self/task")) - set(calls)  # noqa: PTH208 - numbers only
        # They are read one after the other: one may run until another one's turn has passed. Its
        # status counts how often it began to wait.
        return (
            bool(calls)
            and all(_is_endless(call, missing) for call in calls.values())
            and before == _read_threads(pid, "status")
        )
    except OSError:
        return False


def _read_threads(pid: int, name: str) -> dict[str, str]:
    """Return what the system tells of each thread of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {task.name: (task / name).read_text("utf-8", "replace") for task in tasks}


def _is_endless(syscall: str, missing: set[str]) -> bool:
    """Return whether a thread waits for others of its process.

    Args:
        syscall: The call that it is in, as the system tells it: its number and its arguments.
        missing: The numbers of the threads of this process, which the other one does not have.
    """
    number, *arguments = syscall.split()
    if number != _FUTEX:
        return False
    _address, operation, value, limit, *_others = (int(argument, 16) for argument in arguments)
    # Who waits for a thread's end waits for its number to be erased, in memory that counts as
    # shared since the system erases it.
    return limit == 0 and (bool(operation & _PRIVATE) or str(value) in missing)
