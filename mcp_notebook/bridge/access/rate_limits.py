"""How often callers may ask for something: so many times a minute each, and all of them together.

Runs on the bridge's event loop; no I/O. Each limit is a token bucket that holds a minute's worth:
what a caller has not used for a minute, it may use at once. In the form of the "generic cell rate
algorithm", a bucket is a single number, the time at which it will be full again. As of `shares`, a
quarter is kept for the user: the guests have a bucket that they take from together.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.shares import GUESTS, limit_guests

MAX_CALLERS = 1_000
"""Callers whose buckets are kept. Of more, those go whose buckets are full or will be so first."""
_MINUTE = 60.0
_ROUNDING = 1e-6
"""Seconds that times may be wrong by."""


@dataclass(frozen=True)
class Excess:
    """More than is allowed, and when to try again."""

    reason: str
    """For the client, as a sentence or two."""
    seconds: int
    """From now on, rounded up."""


class RateLimits:
    """How often a thing may be asked for; belongs to the event loop.

    Args:
        things: What it is, for messages: "calls".
        per_caller: Times a minute for each caller.
        in_all: Times a minute for all callers together.
        clock: Returns the seconds since any time.
    """

    def __init__(
        self,
        things: str,
        *,
        per_caller: int,
        in_all: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._things = things
        self._per_caller = per_caller
        self._in_all = in_all
        self._clock = clock
        self._for_guests = limit_guests(in_all)
        self._all_full_at = -math.inf
        self._guests_full_at = -math.inf
        self._full_at: dict[str, float] = {}
        """When the bucket of a caller will be full; it is if it has none."""

    def take(self, caller: Caller) -> Excess | None:
        """Count one more time, unless it would be too often.

        Args:
            caller: The caller.

        Returns:
            None if it is counted.
        """
        now = self._clock()
        # When the buckets will be full if one is taken from them now.
        alone = max(self._full_at.get(caller.owns, now), now) + _MINUTE / self._per_caller
        together = max(self._all_full_at, now) + _MINUTE / self._in_all
        guests = -math.inf
        if not caller.is_user:
            guests = max(self._guests_full_at, now) + _MINUTE / self._for_guests
        full_at = max(alone, together, guests)
        wait = full_at - now - _MINUTE
        if wait > _ROUNDING:
            if alone == full_at:
                who = f"one caller may make {self._per_caller:,}"
            elif together == full_at:
                who = f"all callers together may make {self._in_all:,}"
            else:
                who = f"{GUESTS} may make {self._for_guests:,}"
            seconds = math.ceil(wait)
            unit = "second" if seconds == 1 else "seconds"
            return Excess(
                f"Too many {self._things}: {who} a minute. Try again in {seconds} {unit}.", seconds
            )
        self._all_full_at = together
        if not caller.is_user:
            self._guests_full_at = guests
        self._full_at[caller.owns] = alone
        if len(self._full_at) > MAX_CALLERS:
            self._forget_callers(now)
        return None

    def _forget_callers(self, now: float) -> None:
        """Forget those whose buckets are full, or else the one whose bucket will be so first."""
        used = {caller: full_at for caller, full_at in self._full_at.items() if full_at > now}
        if len(used) > MAX_CALLERS:
            del used[min(used, key=used.__getitem__)]
        self._full_at = used
