"""Debounces changes of the tools: bridges get the new list after a moment without changes.

Runs on the endpoint's thread; only `ToolChanges.announce` and `ToolChanges.are_due` may be used on
any thread.
"""

import asyncio
from collections.abc import Callable

CHANGE_DELAY = 0.05
"""Seconds without a further change after which the tools are sent."""
CHANGE_DELAY_MAX = 0.5
"""Seconds after which they are sent even if changes continue."""


class ToolChanges:
    """Unsent changes of the tools; sent before the next result or welcome, or after a moment.

    Args:
        send: Sends the current tools to all bridges; called on the endpoint's thread.
    """

    def __init__(self, send: Callable[[], None]) -> None:
        self._send = send
        self._last_change = self._last_told = object()
        """Tokens of the last change, and of the last change that was sent."""
        self._timer: asyncio.TimerHandle | None = None
        self._latest = 0.0

    @property
    def are_due(self) -> bool:
        """Whether some changes are unsent or being sent; on any thread."""
        return self._last_change is not self._last_told

    def announce(self, loop: asyncio.AbstractEventLoop) -> None:
        """Note a change, to be sent in a moment; on any thread."""
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
        """Send pending changes at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell()

    def _tell(self) -> None:
        self._timer = None
        change = self._last_change
        self._send()
        self._last_told = change
