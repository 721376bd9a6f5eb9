"""Finds out how calls get to an executor, and keeps what is known of it from call to call.

Runs in the user's kernel, on the threads of calls.
"""

import threading
from typing import Any
from weakref import WeakKeyDictionary

from mcp_notebook.kernel.executors.dask_engine import DaskEngine, Inbox, find_client, open_inbox
from mcp_notebook.kernel.executors.engines import Engine


class EngineFinder:
    """Finds the engines of a notebook's executors; on any thread."""

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
