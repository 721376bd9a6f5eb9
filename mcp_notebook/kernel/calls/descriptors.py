"""Sends to a call what the programs that it starts write to the kernel's descriptors 1 and 2.

Runs in the user's kernel. ipykernel reads both descriptors in threads of its own, which write to
``sys.stdout`` and ``sys.stderr`` what they read, for whichever cell ran last: they cannot know who
wrote it. While a call holds the main thread, no cell does, so what comes then is the call's. What
comes from programs that calls on other threads start is not routed: a cell may run beside them.
"""

import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

Write = Callable[[str], None]

SETTLE_LIMIT = 0.1
"""Seconds to wait at the end of a call until all is read that programs have written."""
_LOOK = 0.002
"""Seconds between two looks: enough for ipykernel's thread to pass on what it has read."""


class Descriptors:
    """Has the call on the main thread take what is written to descriptors 1 and 2."""

    def __init__(self) -> None:
        self._write: Write | None = None
        self._threads: frozenset[int] = frozenset()
        self._pipes: Any = None
        """A ``select.poll`` of the pipes that ipykernel reads; None without any."""
        self._children = 0
        self._is_settled = False

    def watch(self, stream: Any) -> None:
        """Look out for what comes from a stream's descriptor, if ipykernel reads it."""
        thread, pipe = getattr(stream, "watch_fd_thread", None), getattr(stream, "_fid", None)
        if isinstance(thread, threading.Thread) and isinstance(pipe, int) and thread.ident:
            self._threads |= {thread.ident}
            self._pipes = self._pipes or select.poll()
            self._pipes.register(pipe, select.POLLIN)

    def find_writer(self) -> Write | None:
        """Return what takes the text of the calling thread; None if it is not ipykernel's."""
        if self._write is None or threading.get_ident() not in self._threads:
            return None
        return self._write

    @contextmanager
    def claim(self, write: Write) -> Iterator[None]:
        """Hand what is written in this block to a call; does nothing beside the main thread."""
        if self._pipes is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        before, self._write = self._write, write
        children, self._children = self._children, _count_children()
        self._is_settled = False
        try:
            yield
        finally:
            try:
                if not self._is_settled:
                    self.settle()
            finally:  # an interrupt may come while it waits
                self._write, self._children = before, children

    def settle(self) -> None:
        """Wait until ipykernel has read what the programs of the call wrote, within bounds."""
        if self._write is None or threading.current_thread() is not threading.main_thread():
            return
        self._is_settled = True
        is_due = _count_children() != self._children
        if not is_due and not self._pipes.poll(0):
            return
        deadline = monotonic() + SETTLE_LIMIT
        while (is_due or self._pipes.poll(0)) and monotonic() < deadline:
            is_due = bool(self._pipes.poll(0))
            sleep(_LOOK)


def _count_children() -> int:
    """Return a number that grows when the process has waited for a child."""
    import resource  # noqa: PLC0415 - not on Windows, where ipykernel reads no descriptors

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
