"""Room on the machine for kernels that start on call: one that is not used makes way for another.

Runs on the bridge's event loop. Without this, a client that calls a tool of each notebook in a
folder would start all their kernels.

A kernel is the user's if he started it or has used it, else the guest's who started it. One guest
may have half of the places, and all guests together three quarters of the places and of the memory.
A guest never ends the kernel that the user used last; the user's calls end any kernel of a guest
that runs nothing.
"""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple, Protocol

import anyio

from mcp_notebook.bridge.access.caller_limits import limit_guests
from mcp_notebook.bridge.headless.machine_limits import (
    allow_open_files,
    find_free_memory,
)
from mcp_notebook.errors import NoRoom
from mcp_notebook.text.wording import count, format_size

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
    def guest(self) -> str:
        """Whose kernel it is, unless it is the user's."""

    @property
    def last_use_of_user(self) -> float | None:
        """When the user last used the kernel, on the monotonic clock; None if he has not."""

    def find_idle_since(self, *, spared: bool) -> float | None:
        """Return when its kernel was last used; None if it must be kept.

        Args:
            spared: Whether it is also kept for a while after its last use, and with its results.
        """

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


class _Lack(NamedTuple):
    """Why there is no room for a kernel."""

    text: str
    helps: Callable[[Tenant], bool]
    """Returns whether it would help that this tenant made way."""


class KernelRoom:
    """Makes room for the kernels of one bridge's folders.

    Args:
        max_kernels: How many may run at the same time.
    """

    def __init__(self, max_kernels: int) -> None:
        self._max = max_kernels
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
            await self._make_room(tenant, place.memory)
            self._places[tenant] = place
        try:
            yield
        finally:
            del self._places[tenant]
            place.gone.set()

    async def _make_room(self, tenant: Tenant, memory: int) -> None:
        while (lack := self._find_lack(tenant, memory)) is not None:
            if (ending := self._find_ending()) is not None:
                await ending.gone.wait()  # soon: a kernel that does not end is killed
                continue
            idle = self._list_idle(tenant)
            helpful = [other for other in idle if lack.helps(other)]
            if not helpful or self._find_lack(tenant, memory, without=idle) is not None:
                raise NoRoom(lack.text)
            min(helpful, key=idle.__getitem__).make_way()

    def _list_idle(self, tenant: Tenant) -> dict[Tenant, tuple[bool, float]]:
        """Return who can make way for a tenant; the least value does so first."""
        idle: dict[Tenant, tuple[bool, float]] = {}
        used = [other for other in self._places if other.last_use_of_user is not None]
        last = max(used, key=lambda other: other.last_use_of_user or 0, default=None)
        for other in self._places:
            if tenant.guest and other is last:
                continue
            if (since := other.find_idle_since(spared=True)) is not None:
                idle[other] = False, since
            elif other.guest and not tenant.guest:
                since = other.find_idle_since(spared=False)
                if since is not None:
                    idle[other] = True, since
        return idle

    def _find_ending(self) -> _Place | None:
        """Return the room of a kernel that is ending."""
        places = self._places.items()
        ending = (place for tenant, place in places if tenant.state is KernelState.ENDING)
        return next(ending, None)

    def _find_lack(
        self, tenant: Tenant, memory: int, without: Collection[Tenant] = ()
    ) -> _Lack | None:
        """Return why there is no room for one more kernel; None if there is.

        Args:
            tenant: Whose kernel it is.
            memory: Bytes that it needs.
            without: Whose kernels to count as ended.
        """
        places = {other: place for other, place in self._places.items() if other not in without}
        starting = {
            other: place.memory
            for other, place in places.items()
            if other.state is KernelState.STARTING
        }
        must_wait = any(other.find_idle_since(spared=True) is None for other in self._places)
        wait = _WAIT if must_wait else "and call again."
        if tenant.guest and (lack := self._find_lack_of_guest(tenant, places, wait)) is not None:
            return lack
        if len(places) >= self._max:
            running = count(self._max, "kernel runs", "kernels run")
            text = f"{running} already, the most at a time. Stop one, "
            return _Lack(text + wait, lambda _: True)
        if allow_open_files(len(starting) + 1) + len(without) <= len(starting):
            return _Lack(
                "its kernel needs more open files than this process may have. Raise the limit "
                f"(`ulimit -Hn`), {wait}",
                lambda _: True,
            )
        promised = sum(starting.values())
        free = max(find_free_memory() + sum(other.measure() for other in without) - promised, 0)
        need = f"its kernel needs about {format_size(memory)} of memory, and"
        if free < memory:
            text = f"{need} {format_size(free)} is free. Free some, {wait}"
            return _Lack(text, lambda _: True)
        if tenant.guest:
            used = {other: starting.get(other) or other.measure() for other in places}
            for_guests = limit_guests(free + sum(used.values()))
            of_guests = sum(size for other, size in used.items() if other.guest)
            if of_guests + memory > for_guests:
                return _Lack(
                    f"{need} a quarter of what is free is kept for the user. Call again later.",
                    _is_guests,
                )
        return None

    def _find_lack_of_guest(
        self, tenant: Tenant, places: Collection[Tenant], wait: str
    ) -> _Lack | None:
        most, most_of_guests = max(1, self._max // 2), limit_guests(self._max)
        own = [other for other in places if other.guest == tenant.guest]
        if len(own) >= most:
            running = count(most, "kernel runs", "kernels run")
            text = f"{running} that you have started. Use fewer notebooks at a time, "
            return _Lack(text + wait, lambda other: other.guest == tenant.guest)
        if sum(map(_is_guests, places)) >= most_of_guests:
            running = count(most_of_guests, "kernel", "kernels")
            text = f"{running} of the user's guests run already. Use fewer notebooks, "
            return _Lack(text + wait, _is_guests)
        return None


def _is_guests(tenant: Tenant) -> bool:
    return bool(tenant.guest)
