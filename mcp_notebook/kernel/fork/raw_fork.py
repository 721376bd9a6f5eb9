"""``fork`` without the handlers that C libraries have registered for it.

Runs in the user's kernel, on the thread of a call. ``os.fork`` runs each library's handler.
OpenBLAS's handler waits for its threads to end, and if another thread of the kernel multiplies
matrices at that moment, they never do: the kernel would hang forever, while holding the GIL.
glibc's ``_Fork`` (2.34 and newer; also in musl) runs no such handlers. So the kernel is safe, but
the copy is unprepared: OpenBLAS must not use its threads there, which are gone (`BlasThreads`), and
a copy that was forked while another thread was within ``malloc`` waits for that thread forever
(`wait_for_malloc`). Python's own handlers, and those of ``os.register_at_fork``, do run.
"""

import ctypes
import operator
import os
import sys
from collections import deque
from itertools import repeat, tee
from pathlib import Path
from typing import Any

_SETTERS = tuple(
    f"{prefix}openblas_set_num_threads{suffix}"
    for prefix in ("", "scipy_")
    for suffix in ("", "64_", "_64")
)


def has_raw_fork() -> bool:
    """Return whether this system has ``_Fork``."""
    return hasattr(os, "fork") and hasattr(ctypes.pythonapi, "_Fork")


def fork_process() -> int:
    """Fork; return 0 in the copy, and the copy's PID in this process.

    Raises:
        OSError: The system has no memory or process for it.
    """
    sys.audit("os.fork")
    pid = _run_fork(ctypes.PyDLL(None, use_errno=True))
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid


def _run_fork(library: Any) -> int:
    """Do what ``os.fork`` does in C: the hook before, the fork, and one of the hooks after it.

    No Python instruction may run in between: the interpreter could switch to another thread, which
    the copy does not have. So only C functions call each other here. Python's own `os.fork` would
    warn about the other threads.
    """
    fork = library["_Fork" if has_raw_fork() else "fork"]
    before, after_in_copy, after_here = (
        library.PyOS_BeforeFork,
        library.PyOS_AfterFork_Child,
        library.PyOS_AfterFork_Parent,
    )
    for function in (before, after_in_copy, after_here):
        function.restype = None
    call: Any = operator.call
    results, kept_results = tee(map(call, (before, fork)))
    # `before` returns None, which calls `int()` and does nothing; `_Fork` returns 0 in the copy.
    functions: dict[int | None, Any] = {None: int, 0: after_in_copy}
    following = map(functions.get, results, repeat(after_here))
    deque(map(call, following), maxlen=0)
    _, pid = kept_results
    return int(pid)


class _MallocInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = (("fields", ctypes.c_size_t * 10),)


def wait_for_malloc() -> None:
    """In a copy: take each lock of glibc's ``malloc`` once.

    This blocks forever if one of the kernel's other threads held a lock at the fork. So the kernel
    notices now, and not when the tool's function allocates memory. Other libraries' ``malloc`` has
    one lock, which Python itself has already used.
    """
    look = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if look is not None:
        look.restype = _MallocInfo
        look()


class BlasThreads:
    """The threads of all OpenBLAS libraries that are loaded when this object is created."""

    def __init__(self) -> None:
        self._libraries = [library for path in _find_libraries() if (library := _load(path))]

    def do_without(self) -> None:
        """In a copy: let OpenBLAS compute on the calling thread only."""
        for library in self._libraries:
            setter = next((name for name in _SETTERS if hasattr(library, name)), None)
            if setter is not None:
                getattr(library, setter)(1)


def _find_libraries() -> set[str]:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not on macOS, where OpenBLAS's own handlers run
        return set()
    return {line[line.index("/") :] for line in lines if "openblas" in line and "/" in line}


def _load(path: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(path)
    except OSError:  # the file was replaced
        return None
