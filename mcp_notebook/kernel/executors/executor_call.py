"""A call whose function an executor of the author's runs: a process pool, a thread pool, Dask.

Runs in the user's kernel, on a thread of the call that waits for the executor's worker. A worker
that has begun cannot be stopped; its call is answered, and what it returns is thrown away.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.dask_engine import DaskEngine, Inbox, find_client, open_inbox
from mcp_notebook.kernel.executors.engines import Engine
from mcp_notebook.kernel.executors.job import Job, OutputTaker
from mcp_notebook.kernel.executors.pickling import MUCH
from mcp_notebook.kernel.safe.interrupter import Shield

_LOOK = 0.1
"""Seconds between two looks at whether a worker has begun, what it has sent, and whether the user
has interrupted the cell: a signal that comes just before a wait begins does not end it."""


class WaitingCall(OutputTaker, Protocol):
    """A call, as far as what waits for its worker has to know it."""

    @property
    def tool(self) -> str:
        """Name of the tool."""

    @property
    def trace(self) -> Mapping[str, str]:
        """The trace that spans of the function belong to, as W3C's headers; empty if none is."""

    @property
    def has_to_stop(self) -> bool:
        """Whether it has to stop."""

    def set_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Set what asks it to stop."""

    def wait_for(self, whom: str) -> None:
        """Count as waiting for somebody."""

    def resume(self) -> None:
        """Count as running again."""

    def limit_time(self) -> None:
        """Let its time begin."""

    def answer_early(self) -> None:
        """Answer it, as it has to stop, while its function runs on."""

    def tell(self, kind: str, *fields: Any) -> None:
        """Take a message of the function's context: progress, or one for the log."""


def run_in_executor(
    call: WaitingCall, function: Callable[..., Any], engine: Engine, arguments: dict[str, Any]
) -> Any:
    """Run a tool's function in an executor, and wait for what it returns.

    Args:
        call: Of the tool. Its time begins when a worker has begun, or now if nobody would say so.
        function: The tool's, as it is called.
        engine: Of the tool's executor.
        arguments: Of its function.

    Raises:
        KeyboardInterrupt: The call has to stop.
        ToolError: The executor does not run the function.
        BaseException: What the function raised.
    """
    # An interrupt within the executor's own code could leave one of its locks held for ever.
    with Shield() as shield:
        way = engine.open_way()
        try:
            job = Job(call.tool, function, arguments, call.trace, way)
            return _Run(call, job, engine, shield).wait()
        finally:
            if way is not None:
                way.close()


class _Run:
    """A job at its executor; used by the call's thread."""

    def __init__(self, call: WaitingCall, job: Job, engine: Engine, shield: Shield) -> None:
        self._call, self._job, self._engine, self._shield = call, job, engine, shield
        self._has_begun = False
        self._events: SimpleQueue[object] = SimpleQueue()
        """Gets something when the job is done, and when the call has to stop."""

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
        return self._shield.run(self._job.read, value, self._call)

    def _submit(self) -> Future[Any]:
        if self._engine.sends_elsewhere:
            # Pickled here, as Dask would also log an error.
            size = len(self._shield.run(self._job.pickle_call))
            if size > MUCH and self._engine.begin_warning(self._call.tool):
                self._call.write(self._job.describe_size(self._engine.advice))
        return self._engine.submit(self._job)

    def _wait(self, future: Future[Any]) -> None:
        """Wait until a job is done.

        Raises:
            KeyboardInterrupt: The call has to stop.
            Exception: The executor is broken.
        """
        if not self._engine.reports_begin:
            self._call.limit_time()
        while not future.done() and not self._call.has_to_stop:
            self._engine.check()
            self._look(future)
            self._wait_for_event(future)
        if not future.done():
            if not self._engine.cancel(future):
                self._call.answer_early()
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
        """See whether a worker has begun, and what it has sent."""
        self._receive()
        if self._has_begun:
            return
        if self._job.way is None and future.running():
            self._begin()
        else:
            self._call.wait_for(self._engine.describe_wait())

    def _receive(self) -> None:
        for kind, *fields in [] if self._job.way is None else self._job.way.receive():
            if kind != "begin":
                self._call.tell(kind, *fields)
            elif not self._has_begun:
                self._begin()

    def _begin(self) -> None:
        self._has_begun = True
        self._call.resume()
        if self._engine.reports_begin:
            self._call.limit_time()  # not before a worker has begun


class EngineFinder:
    """Finds how calls get to executors, and keeps what is known of these; on any thread."""

    def __init__(self) -> None:
        self._inboxes: WeakKeyDictionary[Any, Inbox] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._large_tools: set[str] = set()

    def find(self, executor: Any) -> Engine:
        """Return how calls get to an executor."""
        client = find_client(executor)
        if client is None:
            return Engine(executor, self._large_tools)
        return DaskEngine(*client, self._open_inbox(client[0]), self._large_tools)

    def _open_inbox(self, client: Any) -> Inbox:
        with self._lock:
            if client not in self._inboxes:
                self._inboxes[client] = open_inbox(client)
            return self._inboxes[client]
