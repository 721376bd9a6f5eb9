"""Results of read-only tools, stored for equal calls.

Runs in the user's kernel; pure, for any thread. A result is looked up by the tool as currently
declared and by the arguments as the client sent them. No code of the author's runs for that, so a
result is returned at once, even while a cell runs. A call that passes a default explicitly has
another entry than one that omits it. Two equal calls at the same time both run. `invoker` decides
what is stored: results without an error, of calls that were not stopped and asked no question.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from msgspec import Struct

from mcp_notebook.content import Result
from mcp_notebook.meta_keys import CACHED

MAX_ENTRIES = 1000
MAX_BYTES = 64 * 2**20
"""Bytes of all results together; a single result may take a quarter."""


class Ticket(Struct, frozen=True):
    """A place in the cache for the result of a call."""

    tool: object
    key: str
    lifetime: float
    """Seconds."""
    generation: int


class _Entry(Struct, frozen=True):
    tool: object
    result: Result
    size: int
    stored: float
    lifetime: float


class ResultCache:
    """Results by tool and arguments; the least recently used go first.

    Args:
        clock: The time, in seconds.
        is_whole: Returns whether everything that a result links to can still be read.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        is_whole: Callable[[Result], bool] = lambda _result: True,
    ) -> None:
        self._clock = clock
        self._is_whole = is_whole
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[int, str], _Entry] = OrderedDict()
        self._size = 0
        self._generation = 0

    def __len__(self) -> int:
        return len(self._entries)

    def make_ticket(
        self,
        tool: object,
        arguments: Mapping[str, Any],
        lifetime: float,
        *,
        shows_views: bool = False,
    ) -> Ticket | None:
        """Return where the result of a call is stored; None if its arguments cannot be a key.

        Args:
            tool: An object for the tool as currently declared; a new object has no results.
            arguments: JSON, as the client sent them.
            lifetime: Seconds for which the result is reused.
            shows_views: Whether its client shows live views: its results are others.
        """
        try:
            text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):  # too odd, or too deep, to be compared
            return None
        key = hashlib.sha256(f"{shows_views:d}{text}".encode()).hexdigest()
        return Ticket(tool, key, lifetime, self._generation)

    def find(self, ticket: Ticket) -> Result | None:
        """Return the stored result, marked as cached; None if there is none or it has expired."""
        place = (id(ticket.tool), ticket.key)
        with self._lock:
            entry = self._entries.get(place)
            if entry is None or entry.tool is not ticket.tool:
                return None
            age = self._clock() - entry.stored
            if age >= entry.lifetime or not self._is_whole(entry.result):
                self._drop(place)
                return None
            self._entries.move_to_end(place)
        mark = {"age": round(age, 3), "ttl": entry.lifetime}
        return replace(entry.result, meta={**entry.result.meta, CACHED: mark})

    def store(self, ticket: Ticket, result: Result) -> None:
        """Store a result, unless it is too large or the cache was cleared since its call began.

        Args:
            ticket: Created before the call ran.
            result: Not an error.
        """
        size = _size(result)
        if size > MAX_BYTES / 4:
            return
        place = (id(ticket.tool), ticket.key)
        entry = _Entry(ticket.tool, result, size, self._clock(), ticket.lifetime)
        with self._lock:
            if ticket.generation != self._generation:
                return
            self._drop(place)
            self._entries[place] = entry
            self._size += size
            while len(self._entries) > MAX_ENTRIES or self._size > MAX_BYTES:
                self._drop(next(iter(self._entries)))

    def keep(self, tools: Collection[object]) -> None:
        """Drop the results of all other tools."""
        ids = {id(tool) for tool in tools}
        with self._lock:
            for place in [place for place in self._entries if place[0] not in ids]:
                self._drop(place)

    def clear(self) -> int:
        """Drop all results, and those of running calls to come; return how many there were."""
        with self._lock:
            number = len(self._entries)
            self._entries.clear()
            self._size = 0
            self._generation += 1
        return number

    def _drop(self, place: tuple[int, str]) -> None:
        entry = self._entries.pop(place, None)
        if entry is not None:
            self._size -= entry.size


def _size(result: Result) -> int:
    """Return the approximate bytes of a result."""
    blocks = sum(
        len(value)
        for block in result.content
        for value in vars(block).values()
        if isinstance(value, str | bytes)
    )
    return blocks + len(json.dumps([result.structured, dict(result.meta)], default=str))
