"""Results of read-only tools, stored for equal calls.

Runs in the user's kernel; pure, for any thread. A result is looked up by its tool, as it is
declared now, and by the arguments as the client sent them: no code of the tool's author has to run
for that, so it is returned at once, even while a cell runs. A default that one call names and
another leaves out makes two entries. Two equal calls at the same time both run. `invoker` decides
what is stored: results that are not errors, of calls that were not stopped and asked nobody.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from mcp_notebook.content import Result
from mcp_notebook.meta_keys import CACHED

MAX_ENTRIES = 1000
MAX_BYTES = 64 * 2**20
"""Of all results together; of one, a quarter."""


@dataclass(frozen=True)
class Ticket:
    """A place in the cache for the result of a call that begins."""

    tool: object
    key: str
    lifetime: float
    """Seconds."""
    generation: int


@dataclass(frozen=True)
class _Entry:
    tool: object
    result: Result
    size: int
    stored: float
    lifetime: float


class ResultCache:
    """Results by tool and arguments; the least recently used go first.

    Args:
        clock: The time, in seconds.
        is_whole: Tells whether all that a result links to can still be read.
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
        self, tool: object, arguments: Mapping[str, Any], lifetime: float
    ) -> Ticket | None:
        """Return where the result of a call is stored; None if its arguments cannot be a key.

        Args:
            tool: Whatever stands for the tool as it is declared now; a new one has no results.
            arguments: JSON, as the client sent them.
            lifetime: Seconds for which the result is reused.
        """
        try:
            text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):  # too odd, or too deep, to be compared
            return None
        key = hashlib.sha256(text.encode()).hexdigest()
        return Ticket(tool, key, lifetime, self._generation)

    def find(self, ticket: Ticket) -> Result | None:
        """Return the stored result, marked as such, if there is one that still holds."""
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
            ticket: From before the call ran.
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
        """Forget the results of all tools but these."""
        ids = {id(tool) for tool in tools}
        with self._lock:
            for place in [place for place in self._entries if place[0] not in ids]:
                self._drop(place)

    def clear(self) -> int:
        """Forget all results, also those of calls that run now; return how many there were."""
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
    """Return about how many bytes a result holds."""
    blocks = sum(
        len(value)
        for block in result.content
        for value in vars(block).values()
        if isinstance(value, str | bytes)
    )
    return blocks + len(json.dumps([result.structured, dict(result.meta)], default=str))
