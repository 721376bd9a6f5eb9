"""The tools that somebody has allowed for a while: "for this session".

Runs on the bridge's event loop. Up to 2025-11-25 a session is the client's connection. At
2026-07-28 there are no sessions: it is the caller and the name of the client's program, for
`GRANT_SECONDS`. What was allowed is the tool as it is: a change that clients can see ends it, and
with `--confirm` any change.
"""

import time
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

GRANT_SECONDS = 3600.0
"""How long a grant lasts that belongs to no connection."""
MAX_GRANTS = 256
"""Grants without a connection that are kept; of more, the oldest ones expire."""


class ConsentGrants:
    """What callers may call without a further question; belongs to the bridge's event loop."""

    def __init__(self) -> None:
        self._by_connection: WeakKeyDictionary[Any, set[tuple[str, str]]] = WeakKeyDictionary()
        self._by_client: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        """When each expires."""

    def add(self, caller: str, tool: str, *, connection: Any = None, client: str = "") -> None:
        """Allow a caller a tool for a while.

        Args:
            caller: Whose it is: `Caller.owns`.
            tool: Identifies the tool as it is.
            connection: The client's connection; None if it has none that lasts.
            client: The name of its program, which stands for the connection then.
        """
        if connection is not None:
            self._by_connection.setdefault(connection, set()).add((caller, tool))
            return
        self._by_client[caller, client, tool] = time.monotonic() + GRANT_SECONDS
        self._by_client.move_to_end((caller, client, tool))
        if len(self._by_client) > MAX_GRANTS:
            self._by_client.popitem(last=False)

    def has(self, caller: str, tool: str, *, connection: Any = None, client: str = "") -> bool:
        """Return whether that caller may call this tool; the arguments are those of `add`."""
        if connection is not None:
            return (caller, tool) in self._by_connection.get(connection, ())
        return time.monotonic() < self._by_client.get((caller, client, tool), 0.0)
