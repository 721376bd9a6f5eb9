"""Finds the engine of an executor: one inbox for each Dask client, a new pool for a broken one.

Runs in the user's kernel, on the threads of calls.
"""

import threading
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from mcp_notebook.kernel.executors.dask_engine import DaskEngine, Inbox, find_client, open_inbox
from mcp_notebook.kernel.executors.engines import Engine


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
