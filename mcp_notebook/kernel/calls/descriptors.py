"""Sends to a call what the programs that it starts write to the kernel's descriptors 1 and 2.

Runs in the user's kernel. ipykernel reads both descriptors in threads of its own, which write to
``sys.stdout`` and ``sys.stderr`` what they read, for whichever cell ran last: they cannot know who
wrote it. While a call holds the main thread, no cell does, so what comes then is the call's. What
comes from programs that calls on other threads start is not routed: a cell may run beside them.
"""

import os
import select
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self

Write = Callable[[str], None]

SETTLE_LIMIT = 0.1
"""Seconds to wait at the end of a call until all is read that programs have written."""
_LOOK = 0.002
"""Seconds between two looks: enough for ipykernel's thread, once it runs, to pass on its text."""

_MAX_WRITTEN = 1_000_000
"""Bytes that are read at a time of what programs of a copy of the kernel have written."""


@dataclass(frozen=True)
class _Claim:
    """Who had what is written before a call had it."""

    write: Write | None
    children: int


class Descriptors:
    """Has the call on the main thread take what is written to descriptors 1 and 2."""

    def __init__(self) -> None:
        self._write: Write | None = None
        self._threads: frozenset[int] = frozenset()
        self._native_threads: frozenset[int | None] = frozenset()
        self._pipes: Any = None
        """A ``select.poll`` of the pipes that ipykernel reads; None without any."""
        self._children = 0
        self._is_settled = False
        self._main_thread = threading.main_thread().ident

    def watch(self, stream: Any) -> None:
        """Look out for what comes from a stream's descriptor, if ipykernel reads it."""
        thread, pipe = getattr(stream, "watch_fd_thread", None), getattr(stream, "_fid", None)
        if isinstance(thread, threading.Thread) and isinstance(pipe, int) and thread.ident:
            self._threads |= {thread.ident}
            self._native_threads |= {thread.native_id}
            self._pipes = self._pipes or select.poll()
            self._pipes.register(pipe, select.POLLIN)

    def find_writer(self) -> Write | None:
        """Return what takes the text of the calling thread; None if it is not ipykernel's."""
        if self._write is None or threading.get_ident() not in self._threads:
            return None
        return self._write

    def claim(self, write: Write) -> "_Claim | None":
        """Hand what is written from now on to a call; None beside the main thread: nothing is."""
        if self._pipes is None or threading.get_ident() != self._main_thread:
            return None
        claim = _Claim(self._write, self._children)
        self._write, self._children = write, _count_children()
        self._is_settled = False
        return claim

    def release(self, claim: "_Claim | None") -> None:
        """Hand it to whoever had it before."""
        if claim is None:
            return
        try:
            if not self._is_settled:
                self.settle()
        finally:  # an interrupt may come while it waits
            self._write, self._children = claim.write, claim.children

    def settle(self) -> None:
        """Wait until ipykernel has read what the programs of the call wrote, within bounds."""
        if self._write is None or threading.get_ident() != self._main_thread:
            return
        self._is_settled = True
        is_due = _count_children() != self._children
        if not is_due and not self._pipes.poll(0):
            return
        deadline = monotonic() + SETTLE_LIMIT
        while (is_due or self._is_reading()) and monotonic() < deadline:
            is_due = self._is_reading()
            sleep(_LOOK)

    def _is_reading(self) -> bool:
        """Return whether something is to be read, or has been and may not be passed on yet."""
        return bool(self._pipes.poll(0)) or any(map(_wants_to_run, self._native_threads))


class OwnDescriptors(Descriptors):
    """Descriptors 1 and 2 of a process that runs one call and nothing else.

    A file takes what is written: a pipe would have to be read beside code in C that holds Python.

    Args:
        write: Takes the text.
    """

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._take = write
        self._read = 0
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `__exit__`
        except OSError:  # the disk is full or read-only: what programs write is lost
            self._file = Path(os.devnull).open("r+b")  # noqa: SIM115
        for number in (1, 2):
            os.dup2(self._file.fileno(), number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def watch(self, stream: Any) -> None:
        """Do nothing: ipykernel's threads, which read descriptors, are not in this process."""

    def settle(self) -> None:
        """Hand over what was written since the last time, up to a bound."""
        # Programs write where the file's position is: it is read without moving that.
        data = os.pread(self._file.fileno(), _MAX_WRITTEN, self._read)
        self._read += len(data)
        self._take(data.decode("utf-8", "replace"))

    def release(self, claim: "_Claim | None") -> None:  # noqa: ARG002
        """Hand over the rest."""
        self.settle()


def _wants_to_run(thread: int | None) -> bool:
    """Return whether a thread has something to do, as it may have for long on a busy machine.

    Returns:
        False also where the system does not say it.
    """
    try:
        status = Path(f"/proc/self/task/{thread}/stat").read_bytes()
    except OSError:
        return False
    return status.rpartition(b") ")[2].startswith(b"R")


def _count_children() -> int:
    """Return a number that grows when the process has waited for a child."""
    import resource  # noqa: PLC0415 - not on Windows, where ipykernel reads no descriptors

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
