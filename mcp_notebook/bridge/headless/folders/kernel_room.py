"""Room on the machine for kernels that start on call: one that is not used makes way for another.

Runs on the bridge's event loop. Without this, a client that calls a tool of each notebook in a
folder would start all their kernels.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
_WAIT = "or call again later: other notebooks have calls, or results that clients still fetch."


class Tenant(Protocol):
    """A notebook that has a kernel, or starts one."""

    @property
    def is_starting(self) -> bool:
        """Whether its cells have not run yet, so that its kernel still takes up memory."""

    @property
    def idle_since(self) -> float | None:
        """When its kernel was last used, on the monotonic clock; None if it must be kept."""

    def make_way(self) -> None:
        """End the kernel, which must not be kept."""


class KernelRoom:
    """Makes room for the kernels of one bridge's folders."""

    def __init__(self) -> None:
        self._tenants: dict[Tenant, anyio.Event] = {}
        """Who has room, each with the event that is set when its kernel has ended."""
        self._lock = anyio.Lock()
        """Held while room is made, so that it is not given to two."""

    @asynccontextmanager
    async def take(self, tenant: Tenant, memory: int) -> AsyncIterator[None]:
        """Have room for a kernel during the block.

        Args:
            tenant: Whose kernel it is.
            memory: Bytes that it needs, as far as that is known.

        Raises:
            NoRoom: There is none, and no kernel can make way.
        """
        async with self._lock:
            await self._make_room(max(memory, LEAST_MEMORY))
            gone = self._tenants[tenant] = anyio.Event()
        try:
            yield
        finally:
            del self._tenants[tenant]
            gone.set()

    async def _make_room(self, memory: int) -> None:
        while lack := self._explain_lack(memory):
            idle = {
                tenant: since
                for tenant in self._tenants
                if (since := tenant.idle_since) is not None
            }
            if not idle:
                raise NoRoom(lack)
            oldest = min(idle, key=idle.__getitem__)
            gone = self._tenants[oldest]
            oldest.make_way()
            await gone.wait()

    def _explain_lack(self, memory: int) -> str:
        """Return why there is no room for one more kernel; empty if there is."""
        starting = sum(tenant.is_starting for tenant in self._tenants)
        wait = _WAIT if self._tenants else "and call again."
        if allow_open_files(starting + 1) <= starting:
            return (
                "its kernel needs more open files than this process may have. Raise the limit "
                f"(`ulimit -Hn`), {wait}"
            )
        free = max(find_free_memory() - starting * LEAST_MEMORY, 0)
        if free < memory:
            return (
                f"its kernel needs about {format_bytes(memory)} of memory, and "
                f"{format_bytes(free)} is free. Free some, {wait}"
            )
        return ""
