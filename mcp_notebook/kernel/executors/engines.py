"""How calls are submitted to executors of various packages, and what each of them reports.

Runs in the user's kernel, on the threads of calls. Unknown executors get their jobs like any other.
A worker on this machine writes to a file when its function starts, its progress, and its log
messages; the worker's end of the file is in `remote_context`.
"""

import json
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.job import Channel, Job
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error

_REPORTING = frozenset({"concurrent", "loky"})
"""Packages of executors whose futures report when their function starts to run."""
_OF_THIS_MACHINE = (
    "concurrent.futures.process",
    "loky.process_executor",
)
"""Modules of process pools on this machine. Some mark a future as running while it still waits in a
worker's queue."""
_VIEW = "ipyparallel.client.view.ViewExecutor"
_PICKLING = frozenset({"distributed", "ipyparallel", "loky"})

_BROKEN = (
    "A worker of the executor of {!r} ended: {}. The executor can no longer be used: the user has "
    "to create a new one and declare the tool again with it."
)
_RENEWED = (
    "A worker of the process pool of {!r} ended: {}. The next call gets a new pool: call again if "
    "the tool may run twice."
)
_FAILED = (
    "The executor of {!r} did not run the call: {}. If this happens again, the user has to check "
    "the executor, or create a new one and declare the tool again with it."
)


class FileChannel:
    """A channel from workers on this machine, through a temporary file.

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
        """Return the messages written since the last call."""
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
    """Submits calls to an executor, and cancels them.

    Args:
        executor: The author's.
        renew: Returns an executor in place of a broken one; None: nothing can replace it.
    """

    def __init__(
        self,
        executor: Any,
        renew: Callable[[Any], Any] = lambda _executor: None,
    ) -> None:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - loads multiprocessing

        self.executor = executor
        self._renew = renew
        kinds = [kind for kind in type(executor).__mro__ if kind is not Executor]
        packages = {kind.__module__.partition(".")[0] for kind in kinds}
        self.reports_begin = bool(packages & _REPORTING)
        """Whether the executor reports when a function starts to run."""
        self.sends_elsewhere = isinstance(executor, ProcessPoolExecutor) or bool(
            packages & _PICKLING
        )
        """Whether the executor is known to pickle jobs."""
        self._is_of_this_machine = any(kind.__module__ in _OF_THIS_MACHINE for kind in kinds)

    def open_channel(self) -> Channel | None:
        """Open a channel from a worker to a call; None if there is none."""
        if self._is_of_this_machine:
            # The disk is full or read-only: the time limit then includes the queue.
            with suppress(OSError):
                return FileChannel()
        return None

    def submit(self, job: Job) -> "Future[Any]":
        """Submit a job, and return its future.

        Raises:
            Exception: The executor rejects it.
        """
        try:
            future: Future[Any] = self.executor.submit(job)
        except BrokenExecutor:  # by an earlier call, or in a cell
            new = self._renew(self.executor)
            if new is None:
                raise
            self.executor = new
            future = new.submit(job)
        return future

    def cancel(self, future: "Future[Any]") -> bool:
        """Cancel a job; return False if its function runs or may still run."""
        return future.cancel()

    def describe_wait(self) -> str:
        """Describe what a call that has not started waits for."""
        if is_instance(self.executor, _VIEW) and not self.executor.view.client.ids:
            return "an engine of the ipyparallel cluster, which has none now,"
        return "a free worker" if self.reports_begin else "its executor's result"

    def explain(self, name: str, error: Exception) -> ToolError:
        """Return the error for a failure of the executor, not of the function.

        Args:
            name: The tool's.
            error: What the executor or its future raised.
        """
        text = _FAILED
        if isinstance(error, BrokenExecutor):
            text = _RENEWED if self._renew(self.executor) is not None else _BROKEN
        return ToolError(text.format(name, describe_error(error).rstrip(".")))

    def check(self) -> None:
        """Check that the executor still works.

        Raises:
            Exception: It does not, although its futures may not report that.
        """
