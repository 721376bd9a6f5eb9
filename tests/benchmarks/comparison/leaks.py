"""What a bridge and a kernel have more after many calls: memory, descriptors, threads, objects.

The kernel counts in a cell, a bridge at a signal (`programs/counting_bridge.py`). Linux and macOS.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import psutil

from comparison import requests
from comparison.raw_clients import PATIENCE_S, Hung, Line, StdioLine, many_callers
from comparison.requests import MB
from comparison.servers import PROGRAMS, Ours, Way

COUNT = """
import collections as _c, gc as _gc, json as _j
_gc.collect()
print(_j.dumps(_c.Counter(type(value).__qualname__ for value in _gc.get_objects())))
"""
CALLERS, BATCH_S = 8, 0.5


@dataclass
class Counted:
    """What a process has."""

    memory_mb: float
    descriptors: int
    threads: int
    objects: Counter[str]

    def more_than(self, before: "Counted") -> "Counted":
        """Return what it has more than before."""
        more = Counter(self.objects)
        more.subtract(before.objects)
        return Counted(
            self.memory_mb - before.memory_mb,
            self.descriptors - before.descriptors,
            self.threads - before.threads,
            Counter({name: number for name, number in more.items() if number}),
        )

    def __str__(self) -> str:
        """Say it on a line."""
        most = ", ".join(f"{name} {number:+}" for name, number in self.objects.most_common(3))
        return (
            f"{self.memory_mb:+8.1f} MB {self.descriptors:+4} descriptors {self.threads:+4} "
            f"threads {self.objects.total():+8} objects ({most})"
        )


class Watched(Ours):
    """A kernel and bridges that count what they have."""

    def command(self, *how: str) -> tuple[list[str], dict[str, str]]:
        """Return what starts a bridge."""
        command, env = super().command(*how)
        counting = [sys.executable, str(PROGRAMS / "counting_bridge.py"), str(self.counts)]
        return counting + command[3:], env

    @property
    def counts(self) -> "os.PathLike[str]":
        """Where the bridge writes its numbers."""
        return self.home / "counts.json"

    def in_the_kernel(self) -> Counted:
        """Count in the kernel."""
        output = self.kernel.ok(COUNT).stdout.splitlines()[-1]
        return count_objects(self.kernel.pid, Counter(json.loads(output)))

    def in_the_bridge(self, pid: int) -> Counted:
        """Count in a bridge."""
        file = self.home / "counts.json"
        file.unlink(missing_ok=True)
        os.kill(pid, signal.SIGUSR1)
        until = time.monotonic() + PATIENCE_S
        while not file.exists():
            if time.monotonic() > until:
                raise Hung("the bridge does not count")
            time.sleep(0.02)
        return count_objects(pid, Counter(json.loads(file.read_text(encoding="utf-8"))))


def count_objects(pid: int, objects: Counter[str]) -> Counted:
    """Return what a process has."""
    process = psutil.Process(pid)
    return Counted(
        process.memory_info().rss / MB, process.num_fds(), process.num_threads(), objects
    )


@contextmanager
def calling(way: Way) -> Iterator["Calling"]:
    """Yield what calls a tool again and again, over one way."""
    with closing(Watched(10)) as server:
        lines = [server.line(way) for _ in range(1 if way.transport == "stdio" else CALLERS)]
        try:
            first = lines[0]
            process = first.process if isinstance(first, StdioLine) else server.process
            assert process is not None
            yield Calling(server, lines, process.pid)
        finally:
            for line in lines:
                line.close()


class Calling:
    """Callers of one bridge."""

    def __init__(self, server: Watched, lines: list[Line], pid: int) -> None:
        self.server = server
        self.lines = lines
        self.pid = pid

    def call(self, calls: int) -> None:
        """Make at least so many calls."""
        each, done = CALLERS // len(self.lines), 0.0
        while done < calls:
            began = time.perf_counter()
            rate = many_callers(self.lines, requests.ADD, BATCH_S, each)
            done += rate * (time.perf_counter() - began)

    def count(self) -> dict[str, Counted]:
        """Return what both processes have."""
        return {
            "kernel": self.server.in_the_kernel(),
            "bridge": self.server.in_the_bridge(self.pid),
        }
