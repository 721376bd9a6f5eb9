"""How often the panel may show something new.

Runs on the panel's thread; pure, time goes in. A burst of changes is shown as it happens, a few
times a second. A kernel that is called without end for days shows what is new every few seconds,
and twice a minute once no cell has run for an hour: then probably nobody looks, and Jupyter Server
keeps each update for a page that was closed.
"""

SHORTEST = 0.3
"""Seconds between two updates."""
SETTLING = 0.05
"""Seconds that an update waits for more: a short call comes and ends within them."""
BURST = 100
"""Updates that may come at the shortest distance."""
STEADY = 3.0
"""Seconds between two updates in the long run."""
ASLEEP = 30.0
"""The same when no cell has run for long."""
ASLEEP_AFTER = 3600.0
"""Seconds after the last cell."""


class UpdateRate:
    """Says when the next update may go out.

    Args:
        now: The monotonic clock's time, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._last_update = now - SHORTEST
        self._last_use = now
        self._left = float(BURST)
        """Updates that may come at the shortest distance, as of `_counted`."""
        self._counted = now
        self._first_change: float | None = None
        """When what is to be shown next began to change."""

    def note_use(self, now: float) -> None:
        """Note that the user works in the notebook."""
        self._count(now)
        self._last_use = now

    def note_update(self, now: float) -> None:
        """Note that an update went out."""
        self._count(now)
        self._last_update = now
        self._left = max(self._left - 1, 0.0)

    @property
    def has_change(self) -> bool:
        """Whether there is something new that is not shown."""
        return self._first_change is not None

    def note_change(self, now: float) -> None:
        """Note that there is something new."""
        if self._first_change is None:
            self._first_change = now

    def wait(self, now: float) -> float:
        """Return the seconds until what is new may be shown; 0 or less if it may now."""
        self._count(now)
        assert self._first_change is not None
        due = max(self._first_change + SETTLING, self._last_update + SHORTEST)
        if self._left < 1:
            due = max(due, now + (1 - self._left) * self._find_distance(now))
        return due - now

    def take_change(self) -> None:
        """Note that what is new is being shown; what comes from now on is new again."""
        self._first_change = None

    def _find_distance(self, now: float) -> float:
        return STEADY if now - self._last_use < ASLEEP_AFTER else ASLEEP

    def _count(self, now: float) -> None:
        """Allow updates for the time that has passed."""
        passed = max(now - self._counted, 0.0)
        self._left = min(self._left + passed / self._find_distance(now), float(BURST))
        self._counted = now
