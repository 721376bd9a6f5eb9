"""The changes of the tools that bridges have not been told yet; they are told after a moment.

Runs on the endpoint's thread; only `ToolChanges.announce` and `ToolChanges.are_due` may be used on
any thread.
"""

import asyncio
from collections.abc import Callable

CHANGE_DELAY = 0.05
"""Seconds without a further change of the tools after which bridges are told."""
CHANGE_DELAY_MAX = 0.5
"""Seconds after which they are told although changes keep coming."""


class ToolChanges:
    """What bridges have not been told; they are told at once before a result, else after a moment.

    Args:
        send: Tells all bridges the tools as they are now; called on the endpoint's thread.
    """

    def __init__(self, send: Callable[[], None]) -> None:
        self._send = send
        self._last_change = self._last_told = object()
        """Stand for the last change, and the last one that bridges were told."""
        self._timer: asyncio.TimerHandle | None = None
        self._latest = 0.0

    @property
    def are_due(self) -> bool:
        """Whether bridges have not been told all changes, or are just being told; any thread."""
        return self._last_change is not self._last_told

    def announce(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell bridges in a moment that something has changed; any thread."""
        self._last_change = object()
        loop.call_soon_threadsafe(self._schedule, loop)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        if self._timer is None:
            self._latest = now + CHANGE_DELAY_MAX
        else:
            self._timer.cancel()
        self._timer = loop.call_at(min(now + CHANGE_DELAY, self._latest), self._tell)

    def send(self) -> None:
        """Tell bridges at once what they would be told in a moment."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell()

    def _tell(self) -> None:
        self._timer = None
        change = self._last_change
        self._send()
        self._last_told = change
