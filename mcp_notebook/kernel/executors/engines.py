"""What is known of the executors of various packages: when a call begins, where it runs.

Runs in the user's kernel, on the threads of calls. Unknown executors get their jobs all the
same. A worker of this machine says by a file that its function begins, how far it is,
and what it logs; its end of the file is in `remote_context`.
"""

import json
import os
import tempfile
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.job import Job, WayBack
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error

_REPORTING = frozenset({"concurrent", "executorlib", "loky"})
"""Packages of executors whose futures say when their function begins to run."""
_OF_THIS_MACHINE = (
    "concurrent.futures.process",
    "executorlib.executor.single",
    "loky.process_executor",
)
"""Modules of pools of processes of this machine. The futures of some are running already while they
wait in a worker's queue."""
_VIEW = "ipyparallel.client.view.ViewExecutor"
_PICKLING = frozenset({"distributed", "executorlib", "ipyparallel", "loky"})

_BROKEN = (
    "A worker of the executor of {!r} ended: {}. The executor can no longer be used: the user has "
    "to make a new one and declare the tool again with it."
)
_FAILED = (
    "The executor of {!r} did not run it: {}. If this happens again, the user has to check the "
    "executor, or make a new one and declare the tool again with it."
)


class FileWay:
    """By a temporary file, to workers of this machine.

    Raises:
        OSError: The disk is full or read-only.
    """

    def __init__(self) -> None:
        descriptor, path = tempfile.mkstemp(prefix="mcp-notebook-call-")
        os.close(descriptor)
        self._path = Path(path)
        self._position = 0

    @property
    def address(self) -> tuple[str, ...]:
        """The file's path."""
        return ("file", str(self._path))

    def receive(self) -> list[list[Any]]:
        """Return the lines that were added since the last time."""
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._position)
            data, end, _ = file.read().rpartition(b"\n")
            self._position += len(data) + len(end)
            return [json.loads(line) for line in data.splitlines()]
        return []

    def close(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


class Engine:
    """How calls get to an executor, and how they are taken back.

    Args:
        executor: The author's.
        large_tools: Tools whose author has been warned that their calls are large; None: none.
    """

    advice = "It is better if the function loads such data itself, on its worker."
    """How to make a call smaller; ``{name}`` is a variable."""

    def __init__(self, executor: Any, large_tools: set[str] | None = None) -> None:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - loads multiprocessing

        self.executor = executor
        self._large_tools = set() if large_tools is None else large_tools
        kinds = [kind for kind in type(executor).__mro__ if kind is not Executor]
        packages = {kind.__module__.partition(".")[0] for kind in kinds}
        self.reports_begin = bool(packages & _REPORTING)
        """Whether one learns when a function begins to run."""
        self.sends_elsewhere = isinstance(executor, ProcessPoolExecutor) or bool(
            packages & _PICKLING
        )
        """Whether it is known to pickle what it gets."""
        self._is_of_this_machine = any(kind.__module__ in _OF_THIS_MACHINE for kind in kinds)

    def open_way(self) -> WayBack | None:
        """Return a way from a worker to a call; None if there is none."""
        if self._is_of_this_machine:
            # A full or read-only disk: the time limit then includes the queue.
            with suppress(OSError):
                return FileWay()
        return None

    def submit(self, job: Job) -> "Future[Any]":
        """Give a job to the executor, and return its future.

        Raises:
            Exception: The executor does not take it.
        """
        future: Future[Any] = self.executor.submit(job)
        return future

    def cancel(self, future: "Future[Any]") -> bool:
        """Take a job back, and return whether its function does not run, nor ever will."""
        return future.cancel()

    def begin_warning(self, name: str) -> bool:
        """Return whether it has to be told that calls of a tool are large: once is enough."""
        is_new = name not in self._large_tools
        self._large_tools.add(name)
        return is_new

    def describe_wait(self) -> str:
        """Say what a call waits for that has not begun."""
        if is_instance(self.executor, _VIEW) and not self.executor.view.client.ids:
            return "an engine of the ipyparallel cluster, which has none now,"
        return "a free worker" if self.reports_begin else "its executor's result"

    def explain(self, name: str, error: Exception) -> ToolError:
        """Return the error for a failure of the executor, not of the function.

        Args:
            name: The tool's.
            error: What the executor or its future raised.
        """
        text = _BROKEN if isinstance(error, BrokenExecutor) else _FAILED
        return ToolError(text.format(name, describe_error(error).rstrip(".")))

    def check(self) -> None:
        """See whether the executor still works.

        Raises:
            Exception: It does not, and its futures may not say so.
        """
