"""Dask: how calls get to the workers of a ``distributed.Client``, and what is heard of them.

Runs in the user's kernel, on the threads of calls; messages of workers come on the client's thread.
Dask is never imported here: a client is there only if the user has imported it. What keeps a
function from running twice goes to Dask's scheduler by value, and needs nothing of this package.
"""

import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from time import monotonic
from typing import Any
from uuid import uuid4

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors.engines import Engine
from mcp_notebook.kernel.executors.job import Job
from mcp_notebook.kernel.executors.pickling import MUCH
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error

logger = logging.getLogger(__name__)

_CLIENT = "distributed.client.Client"
_EXECUTOR = "distributed.cfexecutor.ClientExecutor"
_ONCE = "mcp-notebook-"
"""How the keys of tasks begin that are tried on one worker only."""
_ASK_INTERVAL = 1.0
"""Seconds between two questions to the scheduler by all calls, and before a call's first one."""
_ANSWER_LIMIT = 5.0
"""Seconds to wait for the scheduler's answer."""
_FETCH_LOOK = 0.5
"""Seconds between two looks at whether a client is closed from which a result is fetched."""
_WORKER_ENDED = (
    "The worker of the Dask cluster that ran {name!r} ended before the function did ({worker}). "
    "The function was not retried on another worker, since it might end that one as well. The "
    "worker's log may say why; running out of memory is a frequent cause."
)
_CLUSTER_GONE = (
    "The Dask cluster of {name!r} is gone: {error}. The user has to start a new one, and declare "
    "the tool again with a client of it."
)
_ADVICE = (
    "To send it only once, write `shared = client.scatter({name}, broadcast=True)` in the notebook "
    "and `shared.result()` in the function."
)


class DaskWay:
    """By the events of Dask's scheduler.

    Args:
        inbox: Of the client.
    """

    def __init__(self, inbox: "Inbox") -> None:
        self._number = uuid4().hex
        self._inbox = inbox
        self._messages: deque[list[Any]] = deque()
        inbox.ways[self._number] = self._messages

    @property
    def address(self) -> tuple[str, ...]:
        """The topic, and the call in it."""
        return ("dask", self._inbox.topic, self._number)

    def receive(self) -> list[list[Any]]:
        """Return the messages that have come since the last time."""
        return [self._messages.popleft() for _ in range(len(self._messages))]

    def close(self) -> None:
        """Stop receiving."""
        self._inbox.ways.pop(self._number, None)


class Inbox:
    """What is known of a client's workers by all calls: messages are written by its own thread."""

    def __init__(self) -> None:
        self.topic = f"mcp-notebook-{uuid4().hex}"
        """Of the events."""
        self.lock = threading.Lock()
        """Held by a call that changes Dask's settings."""
        self.last_question = 0.0
        """When a call has asked the scheduler for its workers, on the monotonic clock."""
        self.workers: int | None = None
        """How many there were then; None: unknown."""
        self.is_silent = False
        """Whether the scheduler did not answer then."""
        self.ways: dict[str, deque[list[Any]]] = {}
        """The messages of the calls that wait, by their numbers."""

    def take(self, event: tuple[float, Any]) -> None:
        """Take an event of the scheduler's."""
        number, *message = event[1]
        messages = self.ways.get(number)
        if messages is not None:
            messages.append(message)


def open_inbox(client: Any) -> Inbox:
    """Have a client hear of its workers, and its scheduler try our tasks once.

    Args:
        client: A ``distributed.Client``.
    """
    inbox = Inbox()
    client.subscribe_topic(inbox.topic, inbox.take)
    try:
        # Code of this Python would crash the scheduler if it had another one, and end the cluster.
        python = _ask(client, client.scheduler.versions)["host"]["python"]
        if python.split(".")[:2] == [str(number) for number in sys.version_info[:2]]:
            client.register_plugin(_make_guard())
    except Exception:
        logger.debug("the scheduler takes no plugin", exc_info=True)
    return inbox


def _ask(client: Any, question: Any) -> Any:
    """Return what a client's scheduler answers.

    Args:
        client: A ``distributed.Client``.
        question: A method of its ``scheduler``.

    Raises:
        OSError: It does not answer, or cannot be reached.
    """
    return client.sync(question, callback_timeout=_ANSWER_LIMIT)


def _make_guard() -> Any:
    once = _ONCE

    class NoSecondRun(sys.modules["distributed"].SchedulerPlugin):  # type: ignore[misc]
        """Counts the failures of our tasks from the most that the scheduler allows.

        Else it would try one whose worker was killed on three others.
        """

        name = "mcp-notebook"
        idempotent = True

        def update_graph(self, scheduler: Any, *, tasks: Any, **_kwargs: Any) -> None:
            for key in tasks:
                if str(key).startswith(once):
                    scheduler.tasks[key].suspicious = scheduler.allowed_failures

    return NoSecondRun()


def find_client(executor: Any) -> tuple[Any, dict[str, Any]] | None:
    """Return the client of an executor, and the options of its ``submit``; None: it is not Dask's.

    Args:
        executor: A client, one of its executors, or anything else.
    """
    if is_instance(executor, _CLIENT):
        return executor, {}
    if is_instance(executor, _EXECUTOR):
        return executor._client, executor._kwargs  # noqa: SLF001 - it has no public names
    return None


class DaskFuture(Future[Any]):
    """A future of a Dask task; the task's result is fetched by whoever asks for it.

    Args:
        task: Dask's own future.
        check: Raises an error if its client is closed.
    """

    def __init__(self, task: Any, check: Callable[[], None]) -> None:
        super().__init__()
        self.task = task
        self._check = check
        task.add_done_callback(self._end)

    def result(self, timeout: float | None = None) -> Any:
        """Return what the task returned.

        Raises:
            Exception: The task has failed, or it is lost, or its client is closed meanwhile.
        """
        fetched: Future[Any] = Future()

        def fetch() -> None:
            try:
                fetched.set_result(self.task.result(timeout=timeout))
            except BaseException as error:  # noqa: BLE001 - whatever the task raised
                fetched.set_exception(error)

        # A thread, as Dask waits for ever on the loop of a client that is closed.
        threading.Thread(target=fetch, name="mcp-notebook-fetch", daemon=True).start()
        while not wait((fetched,), timeout=_FETCH_LOOK).done:
            self._check()
        return fetched.result()

    def _end(self, _task: Any) -> None:
        self.set_result(None)


class DaskEngine(Engine):
    """A client of Dask's.

    Args:
        client: A ``distributed.Client``.
        options: Of its ``submit``.
        inbox: Of the client.
        large_tools: Tools whose author has been warned that their calls are large.
    """

    advice = _ADVICE

    def __init__(
        self, client: Any, options: dict[str, Any], inbox: Inbox, large_tools: set[str]
    ) -> None:
        super().__init__(client, large_tools)
        self.reports_begin = True
        self._client = client
        self._inbox = inbox
        self._options = {"retries": 0, **options, "pure": False}
        self._since = monotonic()

    def open_way(self) -> DaskWay:
        """Return a way from a worker to a call."""
        return DaskWay(self._inbox)

    def submit(self, job: Job) -> Future[Any]:
        """Give a job to the cluster, and return its future.

        Raises:
            Exception: The client is closed.
        """
        prefix = _ONCE if self._options["retries"] == 0 else ""
        key = f"{prefix}{job.name}-{uuid4().hex}"
        values = {"values": job.futures}  # Dask puts their values there
        with self._allow_size(len(job.pickle_call())):
            task = self._client.submit(job, values, key=key, **self._options)
            return DaskFuture(task, self.check)

    @contextmanager
    def _allow_size(self, size: int) -> Iterator[None]:
        """Keep Dask from warning of a large call: we have, and could say more."""
        if size <= MUCH:
            yield
            return
        limit = {"distributed.admin.large-graph-warning-threshold": 2 * size}
        # Dask's settings are the process's: two changes at a time would not undo each other.
        with self._inbox.lock, sys.modules["dask.config"].set(limit):
            yield

    def cancel(self, future: Future[Any]) -> bool:
        """Take a job back: Dask forgets it, also while a worker runs its function."""
        assert isinstance(future, DaskFuture)
        try:
            self._client.cancel([future.task], force=True)
        except Exception:
            logger.debug("a call is not cancelled", exc_info=True)
        return True

    def describe_wait(self) -> str:
        """Say what a call waits for that has not begun, as the scheduler knows it."""
        inbox, client, now = self._inbox, self._client, monotonic()
        if client.status != "running":
            return "the scheduler of the Dask cluster, to which the connection is lost,"
        if now - self._since < _ASK_INTERVAL:
            return "a free worker of the Dask cluster"
        if now - inbox.last_question >= _ASK_INTERVAL:
            inbox.last_question = now  # first, so that no other call asks as well
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
        """Return what to tell of an error of Dask's."""
        if is_instance(error, "distributed.scheduler.KilledWorker"):
            worker = getattr(error, "last_worker", None)
            address = getattr(worker, "address", "its address is not known")
            return ToolError(_WORKER_ENDED.format(name=name, worker=address))
        if self._client.status != "running":
            reason = describe_error(error).rstrip(".")
            return ToolError(_CLUSTER_GONE.format(name=name, error=reason))
        return super().explain(name, error)

    def check(self) -> None:
        """See whether the client is still there.

        Raises:
            ConnectionError: It is closed: its futures are pending for ever.
        """
        if self._client.status == "closed":
            raise ConnectionError("the client is closed")
