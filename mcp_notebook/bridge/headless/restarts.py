"""When a notebook's kernel is started again: after a delay, at most so often, once it is trusted.

Runs on the bridge's event loop. Used for the kernel that replaces a dead one, and for that of a
saved version.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from mcp_notebook.errors import UntrustedNotebook

FIRST_DELAY = 1.0
"""Seconds before the second restart; the first is immediate."""
LONGEST_DELAY = 30.0
"""Seconds between a death and the restart, at most."""
STEADY_AFTER = 60.0
"""Seconds of life after which a kernel's death counts as the first again."""
MAX_FAILURES = 3
"""Failed starts in a row after which a notebook is given up."""
TRUST_INTERVAL = 5.0
"""Seconds between two checks whether a notebook is trusted now."""

_Started = TypeVar("_Started")


class Restarts:
    """Counts the failed starts of a notebook, and delays the next ones.

    Args:
        first_delay: Seconds before the second restart.
        trust_interval: Seconds between two checks whether the notebook is trusted now.
    """

    def __init__(
        self, *, first_delay: float = FIRST_DELAY, trust_interval: float = TRUST_INTERVAL
    ) -> None:
        self._first_delay, self._trust_interval = first_delay, trust_interval
        self.failures = 0
        """Failed starts in a row."""
        self._delay = 0.0
        """Seconds before the next restart."""

    def take_delay(self) -> float:
        """Return the seconds to wait before the next restart; it doubles each time."""
        delay = self._delay
        self._delay = min(max(2 * delay, self._first_delay), LONGEST_DELAY)
        return delay

    def note_failure(self) -> bool:
        """Count a failed start, and return whether it was the last."""
        self.failures += 1
        return self.failures >= MAX_FAILURES

    def note_success(self) -> None:
        """Note that the kernel runs and is linked."""
        self.failures = 0

    def note_death(self, age: float) -> None:
        """Note that a kernel that ran has ended.

        Args:
            age: How long it was served, in seconds.
        """
        if age > STEADY_AFTER:
            self._delay = 0.0

    async def start_when_trusted(
        self, start: Callable[[], Awaitable[_Started]], tell: Callable[[UntrustedNotebook], None]
    ) -> _Started:
        """Start the notebook, as soon as its user trusts it.

        Args:
            start: Starts it.
            tell: Called with the reason if it is not trusted, and whenever the reason changes.
        """
        told = None
        while True:
            try:
                return await start()
            except UntrustedNotebook as error:
                if str(error) != told:
                    told = str(error)
                    tell(error)
            await anyio.sleep(self._trust_interval)
