"""Runs calls on the workers of a Dask client (``distributed.Client``).

Runs in the user's kernel, on the threads of calls; messages from workers arrive on the client's
thread. Dask is never imported here: a client exists only if the user has imported it. The scheduler
plugin that keeps a function from running twice is sent by value, and needs nothing of this package.
"""

import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from time import monotonic
from typing import Any
from uuid import uuid4

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.engines import Engine
from mcp_notebook.kernel.executors.job import Job
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error

logger = logging.getLogger(__name__)

_CLIENT = "distributed.client.Client"
_EXECUTOR = "distributed.cfexecutor.ClientExecutor"
_ONCE = "mcp-notebook-"
"""Prefix of the keys of tasks that are never retried on another worker."""
_ASK_INTERVAL = 1.0
"""Seconds between two requests to the scheduler by all calls, and before a call's first one."""
_ANSWER_LIMIT = 5.0
"""Seconds to wait for the scheduler's answer."""
_FETCH_LOOK = 0.5
"""Seconds between two checks of whether the client was closed while a result is fetched."""
_WORKER_ENDED = (
    "The worker of the Dask cluster that ran {name!r} ended before the function did ({worker}). "
    "The function was not retried, because it might end another worker as well. The worker's log "
    "may say why; running out of memory is a frequent cause."
)
_CLUSTER_GONE = (
    "The Dask cluster of {name!r} is gone: {error}. The user has to start a new one, and declare "
    "the tool again with a client of it."
)


class DaskChannel:
    """A channel from Dask's workers, through events of the scheduler.

    Args:
        inbox: Of the client.
    """

    def __init__(self, inbox: "Inbox") -> None:
        self._number = uuid4().hex
        self._inbox = inbox
        self._messages: deque[list[Any]] = deque()
        inbox.channels[self._number] = self._messages

    @property
    def address(self) -> tuple[str, ...]:
        """The topic, and the number of the call."""
        return ("dask", self._inbox.topic, self._number)

    def receive(self) -> list[list[Any]]:
        """Return the messages that have arrived since the last call."""
        return [self._messages.popleft() for _ in range(len(self._messages))]

    def close(self) -> None:
        """Stop receiving."""
        self._inbox.channels.pop(self._number, None)


class Inbox:
    """The state shared by all calls with one Dask client; the client's thread adds messages."""

    def __init__(self) -> None:
        self.topic = f"mcp-notebook-{uuid4().hex}"
        """The topic of the events."""
        self.last_question = 0.0
        """When a call last asked the scheduler for its workers, on the monotonic clock."""
        self.workers: int | None = None
        """The number of workers then; None: unknown."""
        self.is_silent = False
        """Whether the scheduler did not answer then."""
        self.channels: dict[str, deque[list[Any]]] = {}
        """Unread messages of the waiting calls, by their numbers."""

    def take(self, event: tuple[float, Any]) -> None:
        """Handle an event of the scheduler."""
        number, *message = event[1]
        messages = self.channels.get(number)
        if messages is not None:
            messages.append(message)


def open_inbox(client: Any) -> Inbox:
    """Subscribe to the messages of a client's workers, and keep its scheduler from retrying.

    Args:
        client: A ``distributed.Client``.
    """
    inbox = Inbox()
    client.subscribe_topic(inbox.topic, inbox.take)
    try:
        # Pickled code crashes a scheduler with another Python version, and ends the cluster.
        python = _ask(client, client.scheduler.versions)["host"]["python"]
        if python.split(".")[:2] == [str(number) for number in sys.version_info[:2]]:
            client.register_plugin(_make_guard())
    except Exception:
        logger.debug("the scheduler takes no plugin", exc_info=True)
    return inbox


def _ask(client: Any, question: Any) -> Any:
    """Ask a client's scheduler, and return its answer.

    Args:
        client: A ``distributed.Client``.
        question: A method of its ``scheduler``.

    Raises:
        OSError: The scheduler does not answer, or cannot be reached.
    """
    return client.sync(question, callback_timeout=_ANSWER_LIMIT)


def _make_guard() -> Any:
    once = _ONCE

    class NoSecondRun(sys.modules["distributed"].SchedulerPlugin):  # type: ignore[misc]
        """Sets the failure count of our tasks to the scheduler's limit.

        Otherwise it would retry a task whose worker was killed on three others.
        """

        name = "mcp-notebook"
        idempotent = True

        def update_graph(self, scheduler: Any, *, tasks: Any, **_kwargs: Any) -> None:
            for key in tasks:
                if str(key).startswith(once):
                    scheduler.tasks[key].suspicious = scheduler.allowed_failures

    return NoSecondRun()


def find_client(executor: Any) -> tuple[Any, dict[str, Any]] | None:
    """Return the Dask client of an executor, and the options of ``submit``; None if it has none.

    Args:
        executor: A client, one of its executors, or anything else.
    """
    if is_instance(executor, _CLIENT):
        return executor, {}
    if is_instance(executor, _EXECUTOR):
        return executor._client, executor._kwargs  # noqa: SLF001 - it has no public names
    return None


class DaskFuture(Future[Any]):
    """A future of a Dask task; `result` fetches the task's result.

    Args:
        task: Dask's own future.
        check: Raises an error if the client is closed.
    """

    def __init__(self, task: Any, check: Callable[[], None]) -> None:
        super().__init__()
        self.task = task
        self._check = check
        task.add_done_callback(self._end)

    def result(self, timeout: float | None = None) -> Any:
        """Return the task's result.

        Raises:
            Exception: The task failed or was lost, or the client was closed.
        """
        fetched: Future[Any] = Future()

        def fetch() -> None:
            try:
                fetched.set_result(self.task.result(timeout=timeout))
            except BaseException as error:  # noqa: BLE001 - whatever the task raised
                fetched.set_exception(error)

        # In a thread, because Dask waits forever on the loop of a closed client.
        threading.Thread(target=fetch, name="mcp-notebook-fetch", daemon=True).start()
        while not wait((fetched,), timeout=_FETCH_LOOK).done:
            self._check()
        return fetched.result()

    def _end(self, _task: Any) -> None:
        self.set_result(None)


class DaskEngine(Engine):
    """Submits calls to a Dask client.

    Args:
        client: A ``distributed.Client``.
        options: Of its ``submit``.
        inbox: Of the client.
    """

    def __init__(self, client: Any, options: dict[str, Any], inbox: Inbox) -> None:
        super().__init__(client)
        self.reports_begin = True
        self._client = client
        self._inbox = inbox
        self._options = {"retries": 0, **options, "pure": False}
        self._since = monotonic()

    def open_channel(self) -> DaskChannel:
        """Open a channel from a worker to a call."""
        return DaskChannel(self._inbox)

    def submit(self, job: Job) -> Future[Any]:
        """Submit a job to the cluster, and return its future.

        Raises:
            Exception: The client is closed.
        """
        prefix = _ONCE if self._options["retries"] == 0 else ""
        key = f"{prefix}{job.name}-{uuid4().hex}"
        values = {"values": job.futures}  # Dask replaces them by their values
        return DaskFuture(self._client.submit(job, values, key=key, **self._options), self.check)

    def cancel(self, future: Future[Any]) -> bool:
        """Cancel a job: Dask forgets it, even while a worker runs its function."""
        assert isinstance(future, DaskFuture)
        try:
            self._client.cancel([future.task], force=True)
        except Exception:
            logger.debug("a call is not cancelled", exc_info=True)
        return True

    def describe_wait(self) -> str:
        """Describe what a call that has not started waits for, according to the scheduler."""
        inbox, client, now = self._inbox, self._client, monotonic()
        if client.status != "running":
            return "the scheduler of the Dask cluster, to which the connection is lost,"
        if now - self._since < _ASK_INTERVAL:
            return "a free worker of the Dask cluster"
        if now - inbox.last_question >= _ASK_INTERVAL:
            inbox.last_question = now  # set first, so that no other call asks
            try:
                info = _ask(client, client.scheduler.identity)
                inbox.workers = info.get("n_workers", len(info["workers"]))
                inbox.is_silent = False
            except OSError:
                inbox.is_silent = True
        if inbox.is_silent:
            return "the scheduler of the Dask cluster, which does not answer,"
        if inbox.workers is None:
            return "a free worker of the Dask cluster"
        if not inbox.workers:
            return "a worker of the Dask cluster, which has none now,"
        return f"a free worker of the Dask cluster, which has {inbox.workers},"

    def explain(self, name: str, error: Exception) -> ToolError:
        """Return the error for a failure of Dask's."""
        if is_instance(error, "distributed.scheduler.KilledWorker"):
            worker = getattr(error, "last_worker", None)
            address = getattr(worker, "address", "its address is not known")
            return ToolError(_WORKER_ENDED.format(name=name, worker=address))
        if self._client.status != "running":
            reason = describe_error(error).rstrip(".")
            return ToolError(_CLUSTER_GONE.format(name=name, error=reason))
        return super().explain(name, error)

    def check(self) -> None:
        """Check that the client is open.

        Raises:
            ConnectionError: It is closed, and its futures stay pending forever.
        """
        if self._client.status == "closed":
            raise ConnectionError("the client is closed")
