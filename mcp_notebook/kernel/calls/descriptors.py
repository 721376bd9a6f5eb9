"""Routes to a call what its child processes write to the kernel's file descriptors 1 and 2.

Runs in the user's kernel. ipykernel reads both descriptors in its own threads, and writes the text
to ``sys.stdout`` and ``sys.stderr`` on behalf of the cell that ran last. While a call holds the
main thread, no cell runs, so text that arrives then belongs to the call. The child processes of
calls on other threads are not routed: a cell may run at the same time.
"""

import os
import select
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self

from msgspec import Struct

Write = Callable[[str], None]

SETTLE_LIMIT = 0.1
"""Seconds to wait at the end of a call until everything that child processes wrote is read."""
_LOOK = 0.002
"""Seconds between two checks: enough for ipykernel's thread, once it runs, to pass on its text."""

_MAX_WRITTEN = 1_000_000
"""Bytes that are read at a time from the child processes of a copy of the kernel."""


class _Claim(Struct, frozen=True):
    """The receiver before a call took over."""

    write: Write | None
    children: int


class Descriptors:
    """Routes descriptors 1 and 2 to the call on the main thread.

    Args:
        settle_limit: Seconds to wait at most at the end of a call.
    """

    def __init__(self, *, settle_limit: float = SETTLE_LIMIT) -> None:
        self._settle_limit = settle_limit
        self._write: Write | None = None
        self._threads: frozenset[int] = frozenset()
        self._native_threads: frozenset[int | None] = frozenset()
        self._pipes: Any = None
        """A ``select.poll`` of the pipes that ipykernel reads; None without any."""
        self._children = 0
        self._is_settled = False
        self._main_thread = threading.main_thread().ident

    def watch(self, stream: Any) -> None:
        """Watch a stream's descriptor, if ipykernel reads it."""
        thread, pipe = getattr(stream, "watch_fd_thread", None), getattr(stream, "_fid", None)
        if isinstance(thread, threading.Thread) and isinstance(pipe, int) and thread.ident:
            self._threads |= {thread.ident}
            self._native_threads |= {thread.native_id}
            self._pipes = self._pipes or select.poll()
            self._pipes.register(pipe, select.POLLIN)

    def find_writer(self) -> Write | None:
        """Return the receiver of the calling thread's text; None if ipykernel does not own it."""
        if self._write is None or threading.get_ident() not in self._threads:
            return None
        return self._write

    def claim(self, write: Write) -> "_Claim | None":
        """Route text to a call from now on; does nothing and returns None off the main thread."""
        if self._pipes is None or threading.get_ident() != self._main_thread:
            return None
        claim = _Claim(self._write, self._children)
        self._write, self._children = write, _count_children()
        self._is_settled = False
        return claim

    def release(self, claim: "_Claim | None") -> None:
        """Restore the previous receiver."""
        if claim is None:
            return
        try:
            if not self._is_settled:
                self.settle()
        finally:  # an interrupt may arrive during the wait
            self._write, self._children = claim.write, claim.children

    def settle(self) -> None:
        """Wait, within bounds, until ipykernel has read what the call's child processes wrote."""
        if self._write is None or threading.get_ident() != self._main_thread:
            return
        self._is_settled = True
        is_due = _count_children() != self._children
        if not is_due and not self._pipes.poll(0):
            return
        deadline = monotonic() + self._settle_limit
        while (is_due or self._is_reading()) and monotonic() < deadline:
            is_due = self._is_reading()
            sleep(_LOOK)

    def _is_reading(self) -> bool:
        """Return whether text is waiting to be read, or was read and may not be passed on yet."""
        return bool(self._pipes.poll(0)) or any(map(_wants_to_run, self._native_threads))


class OwnDescriptors(Descriptors):
    """Descriptors 1 and 2 of a process that runs one call and nothing else.

    They write to a file: a pipe could not be read while C code holds the GIL.

    Args:
        write: Receives the text.
    """

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._take = write
        self._read = 0
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `__exit__`
        except OSError:  # the disk is full or read-only: child processes' output is lost
            self._file = Path(os.devnull).open("r+b")  # noqa: SIM115
        for number in (1, 2):
            os.dup2(self._file.fileno(), number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def watch(self, stream: Any) -> None:
        """Do nothing: this process lacks ipykernel's threads."""

    def settle(self) -> None:
        """Pass on what was written since the last call, up to a bound."""
        # `pread` leaves the file's position alone, which is where child processes write.
        data = os.pread(self._file.fileno(), _MAX_WRITTEN, self._read)
        self._read += len(data)
        self._take(data.decode("utf-8", "replace"))

    def release(self, claim: "_Claim | None") -> None:  # noqa: ARG002
        """Pass on the rest."""
        self.settle()


def _wants_to_run(thread: int | None) -> bool:
    """Return whether a thread is runnable, as it may be for a long time on a busy machine.

    Returns:
        False if the system does not report it.
    """
    try:
        status = Path(f"/proc/self/task/{thread}/stat").read_bytes()
    except OSError:
        return False
    return status.rpartition(b") ")[2].startswith(b"R")


def _count_children() -> int:
    """Return a number that grows whenever the process has reaped a child."""
    import resource  # noqa: PLC0415 - not on Windows, where ipykernel reads no descriptors

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
