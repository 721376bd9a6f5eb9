"""Notifies clients that the list of resources has changed: rarely, and once per burst.

Runs on the bridge's event loop. Every shortened result adds resources to the list, and the
resources of a kernel disappear with it. A client may fetch the whole list at each notice, so
notices are spaced out: a result already contains the links to its resources. Expiry sends no
notice; reading an expired resource returns an error that says so. A caller who does not see all
resources is notified only of changes of those that it sees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import anyio

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.server.listing.change_notices import ChangeNotices
from mcp_notebook.content import ResourceLink, Result
from mcp_notebook.wire import resource_uris

NOTICE_DELAY = 0.5
"""Seconds within which several changes become one notice."""
NOTICE_INTERVAL = 10.0
"""Seconds between two notices."""


class ResourceNotices:
    """Notifies the clients of one bridge that resources have appeared or disappeared.

    Args:
        changes: Knows the clients.
        delay: Seconds within which several changes become one notice.
        interval: Seconds between two notices.
    """

    def __init__(
        self,
        changes: ChangeNotices,
        *,
        delay: float = NOTICE_DELAY,
        interval: float = NOTICE_INTERVAL,
    ) -> None:
        self._changes = changes
        self._delay, self._interval = delay, interval
        self._change = anyio.Event()
        self._callers: set[str] = set()
        """Those whom the change concerns, besides callers who see all resources."""
        self._kernels: dict[str, set[str]] = {}
        """By id of each kernel whose resources clients have seen: the callers who do not see all
        resources. Entries stay, because a kernel whose link was lost may return."""

    def note_result(self, caller: Caller, result: Result) -> None:
        """Note that a caller's result has added resources, if it links to any."""
        for block in result.content:
            kernel_id = isinstance(block, ResourceLink) and resource_uris.find_kernel_id(block.uri)
            if kernel_id:
                self.note_list(caller, kernel_id)
                self._note_change([caller.owns])

    def note_list(self, caller: Caller, kernel_id: str) -> None:
        """Note that a caller's list contains resources of this kernel."""
        callers = self._kernels.setdefault(kernel_id, set())
        if not caller.permissions.is_everything:
            callers.add(caller.owns)

    def note_kernel(self, kernel_id: str) -> None:
        """Note that a kernel was linked or unlinked."""
        if kernel_id in self._kernels:
            self._note_change(self._kernels[kernel_id])

    def _note_change(self, callers: Iterable[str]) -> None:
        self._callers.update(callers)
        self._change.set()

    async def run(self) -> None:
        """Notify all clients, once for each burst of changes; runs forever."""
        while True:
            await self._change.wait()
            await anyio.sleep(self._delay)
            self._change = anyio.Event()
            callers, self._callers = self._callers, set()
            await self._changes.broadcast("resources", partial(_is_concerned, callers))
            await anyio.sleep(self._interval)


def _is_concerned(callers: Collection[str], caller: Caller) -> bool:
    return caller.permissions.is_everything or caller.owns in callers
