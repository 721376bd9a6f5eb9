"""``fork`` without the handlers that C libraries have registered for it.

Runs in the user's kernel, on the thread of a call. ``os.fork`` lets each library prepare itself.
OpenBLAS then waits for its threads to end, and where another thread of the kernel multiplies
matrices at that moment they never do: the kernel would hang for ever, while holding Python. glibc's
``_Fork`` (2.34 and newer; also in musl) runs no such handler. So the kernel is safe; what is
not prepared is the copy: OpenBLAS must not use its threads there, which are gone (`BlasThreads`),
and a copy that was made while another thread was within ``malloc`` waits for that thread for ever
(`wait_for_malloc`). Python's own handlers, and those of ``os.register_at_fork``, do run.
"""

import ctypes
import operator
import os
import sys
import warnings
from collections import deque
from itertools import repeat, tee
from pathlib import Path
from typing import Any

_fork_with_handlers = getattr(os, "fork", None)  # a copy puts another one in its place
_SETTERS = tuple(
    f"{prefix}openblas_set_num_threads{suffix}"
    for prefix in ("", "scipy_")
    for suffix in ("", "64_", "_64")
)


def has_raw_fork() -> bool:
    """Return whether this system has it."""
    return hasattr(os, "fork") and hasattr(ctypes.pythonapi, "_Fork")


def fork_process() -> int:
    """Return 0 in the copy, and the copy's number in this process.

    Raises:
        OSError: The system gives no memory or process for it.
    """
    if not has_raw_fork():
        with warnings.catch_warnings():
            # From 3.12 on, Python warns of other threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            assert _fork_with_handlers is not None
            return int(_fork_with_handlers())
    sys.audit("os.fork")
    pid = _run_fork(ctypes.PyDLL(None, use_errno=True))
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid


def fork_terminal() -> tuple[int, int]:
    """Do what ``os.forkpty`` does, by which IPython runs ``!program`` and ``%%bash``.

    Returns:
        In the copy 0 and a number without meaning; in this process the copy's number, and a
        descriptor of the terminal that the copy has.

    Raises:
        OSError: The system gives no memory, process or terminal for it.
    """
    ours, theirs = os.openpty()
    try:
        pid = fork_process()
        if pid == 0:
            os.close(ours)
            os.login_tty(theirs)  # closes it
            return 0, -1
    except BaseException:
        os.close(ours)
        os.close(theirs)
        raise
    os.close(theirs)
    return pid, ours


def _run_fork(library: Any) -> int:
    """Do what ``os.fork`` does in C: before, fork, and after it one of two.

    No instruction of Python may run in between: the interpreter could pass control to another
    thread, which the copy does not have. So only functions in C call each other here.
    """
    before, after_in_copy, after_here = (
        library.PyOS_BeforeFork,
        library.PyOS_AfterFork_Child,
        library.PyOS_AfterFork_Parent,
    )
    for function in (before, after_in_copy, after_here):
        function.restype = None
    call: Any = operator.call
    results, kept_results = tee(map(call, (before, library["_Fork"])))
    # `before` returns None, after which nothing is to be done; `_Fork` returns 0 in the copy.
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

    This does not return if a thread of the kernel held one, which is gone. So whoever has made the
    copy finds out now, and not when the tool's function allocates memory. Elsewhere ``malloc`` has
    one lock, which Python itself has needed by now.
    """
    look = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if look is not None:
        look.restype = _MallocInfo
        look()


class BlasThreads:
    """The threads of all OpenBLAS libraries that are loaded when this is made."""

    def __init__(self) -> None:
        self._libraries = [library for path in _find_libraries() if (library := _load(path))]

    def do_without(self) -> None:
        """In a copy: let OpenBLAS compute on the calling thread, which is the only one."""
        for library in self._libraries:
            setter = next((name for name in _SETTERS if hasattr(library, name)), None)
            if setter is not None:
                getattr(library, setter)(1)


def _find_libraries() -> set[str]:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not on macOS, where the copy is made with OpenBLAS's own handlers
        return set()
    return {line[line.index("/") :] for line in lines if "openblas" in line and "/" in line}


def _load(path: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(path)
    except OSError:  # the file was replaced
        return None
