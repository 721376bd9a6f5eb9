"""Submits a call to the author's executor, and waits for its worker.

Runs in the user's kernel, on the thread of the call. A worker that has started cannot be stopped:
its call is answered, and its value is dropped.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.executors.engines import Engine
from mcp_notebook.kernel.executors.job import Job
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.tools.context import LogMessage, Update

_LOOK = 0.1
"""Seconds between two checks of the worker and its messages, and of the user's interrupt: a signal
that arrives just before a wait does not end it."""


def run_in_executor(
    call: ActiveCall,
    stopper: Stopper,
    function: Callable[..., Any],
    engine: Engine,
    arguments: dict[str, Any],
) -> Any:
    """Run a tool's function in an executor, and wait for what it returns.

    Args:
        call: Of the tool. Its time limit starts when a worker starts, or now if the executor does
            not report that. Its capture is active.
        stopper: Limits its time, and answers it early if the worker cannot be stopped.
        function: Of the tool.
        engine: Of the tool's executor.
        arguments: Of the function.

    Raises:
        KeyboardInterrupt: The call has to stop.
        ToolError: The executor does not run the function.
        BaseException: What the function raised.
    """
    # An interrupt within the executor's own code could leave one of its locks held forever.
    with Shield() as shield:
        channel = engine.open_channel()
        try:
            job = Job(call.tool, function, arguments, channel)
            return _Run(call, stopper, job, engine, shield).wait()
        finally:
            if channel is not None:
                channel.close()


class _Run:
    """A submitted job; used by the call's thread."""

    def __init__(
        self, call: ActiveCall, stopper: Stopper, job: Job, engine: Engine, shield: Shield
    ) -> None:
        self._call, self._stopper = call, stopper
        self._job, self._engine, self._shield = job, engine, shield
        self._has_begun = False
        self._events: SimpleQueue[object] = SimpleQueue()
        """Wakes the thread when the job is done, and when the call has to stop."""

    def wait(self) -> Any:
        self._call.set_interrupt(lambda: self._events.put(None))
        try:
            future = self._submit()
            future.add_done_callback(self._events.put)
            self._wait(future)
            self._receive()
            self._call.resume()
            value = future.result()
        except ToolError:
            raise
        except Exception as error:
            if self._job.is_local:
                raise
            raise self._job.failure or self._engine.explain(self._call.tool, error) from error
        return self._shield.run(self._job.read, value, self._call.capture.write)

    def _submit(self) -> Future[Any]:
        if self._engine.sends_elsewhere:
            # Pickled here: on failure, Dask would log an error as well.
            self._shield.run(self._job.pickle_call)
        return self._engine.submit(self._job)

    def _wait(self, future: Future[Any]) -> None:
        """Wait until a job is done.

        Raises:
            KeyboardInterrupt: The call has to stop.
            Exception: The executor is broken.
        """
        if not self._engine.reports_begin:
            self._stopper.limit_time(self._call)
        while not future.done() and self._call.stop_request is None:
            self._engine.check()
            self._look(future)
            self._wait_for_event(future)
        if not future.done():
            if not self._engine.cancel(future):
                self._stopper.answer_early(self._call)
                while not future.done():
                    self._wait_for_event(future)
            raise KeyboardInterrupt

    def _wait_for_event(self, future: Future[Any]) -> None:
        """Wait a moment, at most until the job is done or the call has to stop.

        Raises:
            KeyboardInterrupt: The user interrupted the cell that the call is made in.
        """
        try:
            with suppress(Empty):
                self._shield.run(self._events.get, True, _LOOK)
        except KeyboardInterrupt:
            self._engine.cancel(future)
            raise

    def _look(self, future: Future[Any]) -> None:
        """Check whether a worker has started, and take its messages."""
        self._receive()
        if self._has_begun:
            return
        if self._job.channel is None and future.running():
            self._begin()
        else:
            self._call.wait_for(self._engine.describe_wait())

    def _receive(self) -> None:
        for kind, *fields in [] if self._job.channel is None else self._job.channel.receive():
            if kind != "begin":
                self._tell(kind, *fields)
            elif not self._has_begun:
                self._begin()

    def _begin(self) -> None:
        self._has_begun = True
        self._call.resume()
        if self._engine.reports_begin:
            self._stopper.limit_time(self._call)  # waiting for a worker does not count

    def _tell(self, kind: str, *fields: Any) -> None:
        """Take progress or a log message from the function's context."""
        capture = self._call.capture
        if kind == "log":
            capture.log(LogMessage(*fields))
        elif capture.report is not None:
            capture.report(Update(*fields))
