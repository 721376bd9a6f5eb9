"""A function with its arguments, as an executor gets it.

Runs in the user's kernel. The job is called where it was made (in a pool of threads), or pickled
and run by `remote_run` on a worker; whoever waits for it reads the value with `Job.read`.
"""

import contextvars
import io
import os
import pickle
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import uuid4

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors import remote_run
from mcp_notebook.kernel.tools.options import ToolOptions

_REPORTING = frozenset({"concurrent", "executorlib", "loky"})
"""Packages of executors whose futures say when their function begins to run."""
_PREFETCHING = ("concurrent.futures.process", "loky.process_executor")
"""Modules of pools, all of this machine, whose futures run while they wait in a worker's queue."""
_PICKLING = frozenset({"distributed", "executorlib", "ipyparallel", "loky"})
_NOT_PICKLED = (
    "The function of {name!r} cannot be sent to its executor: {error}. Neither the function nor a "
    "variable that it uses may hold what exists in the notebook's process only (a lock, an open "
    "file or connection, an executor): create such things inside the function."
)


def reports_begin(executor: Executor) -> bool:
    """Return whether an executor's futures say when their function begins to run.

    Dask's and ipyparallel's, for example, are pending until they are done.
    """
    return bool(_list_packages(executor) & _REPORTING)


def sends_elsewhere(executor: Executor) -> bool:
    """Return whether an executor is known to pickle what it gets."""
    return isinstance(executor, ProcessPoolExecutor) or bool(_list_packages(executor) & _PICKLING)


def _prefetches(executor: Executor) -> bool:
    return any(kind.__module__ in _PREFETCHING for kind in type(executor).__mro__)


def _list_packages(executor: Executor) -> set[str]:
    kinds = [kind for kind in type(executor).__mro__ if kind is not Executor]
    return {kind.__module__.partition(".")[0] for kind in kinds}


class RemoteTraceback(Exception):
    """The traceback of an exception on its worker: the exception's cause, for those who print it.

    Args:
        text: As Python prints it.
    """

    __module__ = "builtins"  # printed without where it is defined, which says nothing to users

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class Job:
    """A function with its arguments, to be called once.

    Args:
        name: The tool's.
        function: The tool's.
        arguments: Of the function.
        trace: The trace that spans of the function belong to, as W3C's headers; None if the
            notebook does not use OpenTelemetry.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: dict[str, Any],
        trace: Mapping[str, str] | None = None,
    ) -> None:
        self.__name__ = self.__qualname__ = name  # dashboards of executors show it
        self._function = function
        self._arguments = arguments
        self._trace = dict(trace or {})
        self._context = contextvars.copy_context()
        self.is_local = False
        """Whether it was called in the process that made it."""
        self._ticket: Path | None = None
        """A file that the worker removes when it begins; None if the future says it, or nothing."""
        self._pickled_call: bytes | None = None
        self.failure: ToolError | None = None
        """Why it could not be pickled."""

    def submit(self, executor: Executor) -> Future[Any]:
        """Give the job to an executor, and return its future; `close` the job in the end.

        Raises:
            Exception: The executor does not take it.
        """
        if _prefetches(executor):
            with suppress(OSError):  # a full or read-only disk: the time in the queue counts, too
                descriptor, path = tempfile.mkstemp(prefix="mcp-notebook-call-")
                os.close(descriptor)
                self._ticket = Path(path)
        return executor.submit(self)

    def close(self) -> None:
        """Remove what tells that the function begins, if no worker has done so."""
        if self._ticket is not None:
            self._ticket.unlink(missing_ok=True)

    def has_begun(self, future: Future[Any]) -> bool:
        """Return whether a worker runs the function now, as far as one can know."""
        return future.running() and (self._ticket is None or not self._ticket.exists())

    def __call__(self) -> Any:
        """Run the function here: what it prints and shows belongs to its call."""
        self.is_local = True
        return self._context.run(self._function, **self._arguments)

    def pickle_call(self) -> bytes:
        """Pickle the function and its arguments, unless that is done.

        Raises:
            ToolError: They cannot be pickled.
        """
        if self._pickled_call is None:
            try:
                self._pickled_call = _pickle((self._function, self._arguments))
            except Exception as error:
                self.failure = ToolError(_NOT_PICKLED.format(name=self.__name__, error=error))
                raise self.failure from error
        return self._pickled_call

    def __reduce__(
        self,
    ) -> tuple[type[partial[Any]], tuple[Any, bytes, str | None, dict[str, str]]]:
        # What a worker unpickles needs nothing but cloudpickle. The function itself is unpickled
        # later: where it fails in between, a pool of processes breaks.
        ticket = None if self._ticket is None else str(self._ticket)
        return partial, (_Runner(), self.pickle_call(), ticket, self._trace)

    def __dask_tokenize__(self) -> str:
        """Return what Dask takes for the same call: no other one, as results may be random."""
        return uuid4().hex

    def read(self, value: Any, write: Callable[[str], None]) -> Any:
        """Return what the function returned.

        Args:
            value: The result of the executor's future.
            write: Takes what the function printed on its worker.

        Raises:
            BaseException: What the function raised.
        """
        if self.is_local:
            return value
        printed, pickled, remote_traceback = value
        write(printed)
        result = pickle.loads(pickled)  # noqa: S301 - of the author's own worker
        if remote_traceback is None:
            return result
        raise result from RemoteTraceback(remote_traceback)


class _Runner:
    """Stands for `remote_run.run_remotely`: it is pickled as a whole, not as a name to import."""

    def __call__(self, pickled_call: bytes, ticket: str | None, trace: dict[str, str]) -> Any:
        return remote_run.run_remotely(pickled_call, ticket, trace)

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (_pickle_runner(),)


@cache
def _pickle_runner() -> bytes:
    from cloudpickle import (  # noqa: PLC0415 - only executors need it
        register_pickle_by_value,
        unregister_pickle_by_value,
    )

    register_pickle_by_value(remote_run)
    try:
        return _pickle(remote_run.run_remotely)
    finally:
        unregister_pickle_by_value(remote_run)


def _pickle(value: Any) -> bytes:
    from cloudpickle import CloudPickler  # noqa: PLC0415 - only executors need it

    class Pickler(CloudPickler):  # type: ignore[misc] # it has no types
        """Leaves out the marks of ``@mcp_tool``, on the function and on others that it uses."""

        def reducer_override(self, obj: Any) -> Any:
            return (NoneType, ()) if type(obj) is ToolOptions else super().reducer_override(obj)

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    return buffer.getvalue()
