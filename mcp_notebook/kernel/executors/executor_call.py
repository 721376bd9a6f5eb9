"""Submits a call to the author's executor, and waits for its worker.

Runs in the user's kernel, on the thread of the call. A worker that has started cannot be stopped:
its call is answered, and its value is dropped.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.dask_engine import DaskEngine, Inbox, find_client, open_inbox
from mcp_notebook.kernel.executors.engines import Engine
from mcp_notebook.kernel.executors.job import Job, OutputTaker
from mcp_notebook.kernel.safe.interrupter import Shield

_LOOK = 0.1
"""Seconds between two checks of the worker and its messages, and of the user's interrupt: a signal
that arrives just before a wait does not end it."""


class WaitingCall(OutputTaker, Protocol):
    """The parts of a call that the wait for its worker uses."""

    @property
    def tool(self) -> str:
        """Name of the tool."""

    @property
    def has_to_stop(self) -> bool:
        """Whether it has to stop."""

    def set_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Set the function that asks it to stop."""

    def wait_for(self, whom: str) -> None:
        """Change its state to waiting."""

    def resume(self) -> None:
        """Change its state back to running."""

    def limit_time(self) -> None:
        """Start its time limit."""

    def answer_early(self) -> None:
        """Answer it, because it has to stop, while its function still runs."""

    def tell(self, kind: str, *fields: Any) -> None:
        """Forward progress or a log message from the function's context."""


def run_in_executor(
    call: WaitingCall, function: Callable[..., Any], engine: Engine, arguments: dict[str, Any]
) -> Any:
    """Run a tool's function in an executor, and wait for what it returns.

    Args:
        call: Of the tool. Its time limit starts when a worker starts, or now if the executor does
            not report that.
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
            return _Run(call, job, engine, shield).wait()
        finally:
            if channel is not None:
                channel.close()


class _Run:
    """A submitted job; used by the call's thread."""

    def __init__(self, call: WaitingCall, job: Job, engine: Engine, shield: Shield) -> None:
        self._call, self._job, self._engine, self._shield = call, job, engine, shield
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
        return self._shield.run(self._job.read, value, self._call)

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
                self._call.tell(kind, *fields)
            elif not self._has_begun:
                self._begin()

    def _begin(self) -> None:
        self._has_begun = True
        self._call.resume()
        if self._engine.reports_begin:
            self._call.limit_time()  # waiting for a worker does not count


class EngineFinder:
    """Returns the engines of executors, with one inbox for each Dask client; on any thread."""

    def __init__(self) -> None:
        self._inboxes: WeakKeyDictionary[Any, Inbox] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._pools: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """The pools made in place of broken ones."""

    def find(self, executor: Any) -> Engine:
        """Return the engine of an executor."""
        client = find_client(executor)
        if client is None:
            return Engine(self._find_pool(executor), self._renew)
        return DaskEngine(*client, self._open_inbox(client[0]))

    def _find_pool(self, executor: Any) -> Any:
        with suppress(TypeError):  # an executor without weak references or hash
            while executor in self._pools:
                executor = self._pools[executor]
        return executor

    def _renew(self, broken: Any) -> Any:
        """Return a pool like a broken one; None if that is not one of Python's process pools.

        A killed worker breaks a pool for good, and a notebook that runs headless has nobody to make
        another. The notebook's own variable keeps the broken one.
        """
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - loads multiprocessing

        if type(broken) is not ProcessPoolExecutor:  # a subclass may take other arguments
            return None
        with self._lock:
            if broken not in self._pools:
                pool: Any = broken  # its arguments are not public
                self._pools[broken] = ProcessPoolExecutor(
                    pool._max_workers,  # noqa: SLF001
                    pool._mp_context,  # noqa: SLF001
                    pool._initializer,  # noqa: SLF001
                    pool._initargs,  # noqa: SLF001
                    max_tasks_per_child=pool._max_tasks_per_child,  # noqa: SLF001
                )
            return self._pools[broken]

    def _open_inbox(self, client: Any) -> Inbox:
        with self._lock:
            if client not in self._inboxes:
                self._inboxes[client] = open_inbox(client)
            return self._inboxes[client]
