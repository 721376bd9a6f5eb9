"""Room on the machine for kernels that start on call: one that is not used makes way for another.

Runs on the bridge's event loop. Without this, a client that calls a tool of each notebook in a
folder would start all their kernels.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

import anyio

from mcp_notebook.bridge.headless.machine_limits import (
    allow_open_files,
    find_free_memory,
    format_bytes,
)
from mcp_notebook.errors import NoRoom

LEAST_MEMORY = 200_000_000
"""Bytes that are free before a kernel starts: one that has hardly loaded anything takes 80 MB."""
SPARED = 30.0
"""Seconds that a kernel is kept after its last use although another needs its room: its client may
be about to call it again, or to read what a result refers to."""
_WAIT = (
    f"or call again later: other notebooks have calls, were used in the last {SPARED:.0f} seconds, "
    "or have results that clients still fetch."
)


class KernelState(Enum):
    """What the kernel of a notebook does."""

    ASLEEP = auto()
    """There is none."""
    STARTING = auto()
    """It runs the cells, or waits for room to do so."""
    AWAKE = auto()
    """It answers calls."""
    ENDING = auto()
    """It answers no more calls, and will soon be gone."""


class Tenant(Protocol):
    """A notebook that has a kernel, or starts one."""

    state: KernelState

    @property
    def idle_since(self) -> float | None:
        """When its kernel was last used, on the monotonic clock; None if it must be kept."""

    def measure(self) -> int:
        """Return the bytes that the end of its kernel would free."""

    def make_way(self) -> None:
        """Begin to end the kernel, which must not be kept."""


@dataclass(frozen=True)
class _Place:
    """The room of one tenant."""

    memory: int
    """Bytes that its kernel is expected to need for the cells."""
    gone: anyio.Event = field(default_factory=anyio.Event)
    """Set when its kernel has ended."""


class KernelRoom:
    """Makes room for the kernels of one bridge's folders."""

    def __init__(self) -> None:
        self._places: dict[Tenant, _Place] = {}
        """The room of all who have some."""
        self._lock = anyio.Lock()
        """Held while room is made, so that it is not given to two."""

    @asynccontextmanager
    async def take(self, tenant: Tenant, memory: int) -> AsyncIterator[None]:
        """Have room for a kernel during the block.

        Args:
            tenant: Whose kernel it is.
            memory: Bytes that it needs, as far as that is known.

        Raises:
            NoRoom: There is none, and the kernels that can make way do not have enough.
        """
        place = _Place(max(memory, LEAST_MEMORY))
        async with self._lock:
            await self._make_room(place.memory)
            self._places[tenant] = place
        try:
            yield
        finally:
            del self._places[tenant]
            place.gone.set()

    async def _make_room(self, memory: int) -> None:
        while lack := self._explain_lack(memory):
            if (ending := self._find_ending()) is not None:
                await ending.gone.wait()  # soon: a kernel that does not end is killed
                continue
            idle = {
                tenant: since for tenant in self._places if (since := tenant.idle_since) is not None
            }
            if not idle or self._explain_lack(memory, without=idle):
                raise NoRoom(lack)
            min(idle, key=idle.__getitem__).make_way()

    def _find_ending(self) -> _Place | None:
        """Return the room of a kernel that is ending."""
        places = self._places.items()
        ending = (place for tenant, place in places if tenant.state is KernelState.ENDING)
        return next(ending, None)

    def _explain_lack(self, memory: int, without: Collection[Tenant] = ()) -> str:
        """Return why there is no room for one more kernel; empty if there is.

        Args:
            memory: Bytes that it needs.
            without: Whose kernels to count as ended.
        """
        starting = [
            place for tenant, place in self._places.items() if tenant.state is KernelState.STARTING
        ]
        must_wait = any(tenant.idle_since is None for tenant in self._places)
        wait = _WAIT if must_wait else "and call again."
        if allow_open_files(len(starting) + 1) + len(without) <= len(starting):
            return (
                "its kernel needs more open files than this process may have. Raise the limit "
                f"(`ulimit -Hn`), {wait}"
            )
        freed = sum(tenant.measure() for tenant in without)
        promised = sum(place.memory for place in starting)
        free = max(find_free_memory() + freed - promised, 0)
        if free < memory:
            return (
                f"its kernel needs about {format_bytes(memory)} of memory, and "
                f"{format_bytes(free)} is free. Free some, {wait}"
            )
        return ""
