"""Limits per caller: how many things at a time, and how many per minute.

Runs on the bridge's event loop; no I/O. A quarter of every limit is kept for the user: callers with
a token of their own and those who come in by OAuth are guests, and all guests together cannot use
it.

A rate limit is a token bucket that holds a minute's worth. In the form of the "generic cell rate
algorithm", a bucket is a single number: the time at which it will be full again.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp_notebook.bridge.access.caller import Caller

GUESTS = "all who have tokens of their own together"
"""The guests, in messages."""
CALLERS = 8
"""All callers together may have as much as this number of them, unless it is said."""
_MINUTE = 60.0
_ROUNDING = 1e-6
"""Seconds of rounding error in a time."""


def limit_guests(in_all: int) -> int:
    """Return the share of a limit that all guests together may use."""
    return max(1, in_all - in_all // 4)


class Shares:
    """Limits how many of a thing callers have at a time; belongs to the event loop.

    Args:
        things: The thing's name in messages: "calls running".
        per_caller: The limit for each caller.
        in_all: The limit for all callers together; None: `CALLERS` times that of one.
        for_user: The limit for the user; None: `per_caller`.
    """

    def __init__(
        self,
        things: str,
        *,
        per_caller: int,
        in_all: int | None = None,
        for_user: int | None = None,
    ) -> None:
        self._things = things
        self._per_caller = per_caller
        self._for_user = per_caller if for_user is None else for_user
        self._in_all = CALLERS * per_caller if in_all is None else in_all
        self._for_guests = limit_guests(self._in_all)
        self._total = 0
        self._guests = 0
        self._counts: dict[str, int] = {}
        """The number of each caller that has any, by `Caller.owns`."""

    def explain_lack(self, caller: Caller) -> str | None:
        """Return why a caller cannot have another one, as sentences; None if it can."""
        share = self._for_user if caller.is_user else self._per_caller
        if self._counts.get(caller.owns, 0) >= share:
            most = f"one caller can have {share:,}"
        elif self._total >= self._in_all:
            most = f"all callers together can have {self._in_all:,}"
        elif not caller.is_user and self._guests >= self._for_guests:
            most = f"{GUESTS} can have {self._for_guests:,}"
        else:
            return None
        return f"Too many {self._things}: {most} at a time. Try again when one has ended."

    @contextmanager
    def hold(self, caller: Caller) -> Iterator[None]:
        """Count one more for a caller while the block runs."""
        self.add(caller)
        try:
            yield
        finally:
            self.remove(caller)

    def add(self, caller: Caller) -> None:
        """Count one more for a caller."""
        self._total += 1
        self._guests += not caller.is_user
        self._counts[caller.owns] = self._counts.get(caller.owns, 0) + 1

    def remove(self, caller: Caller) -> None:
        """Count one less for a caller."""
        self._total -= 1
        self._guests -= not caller.is_user
        self._counts[caller.owns] -= 1
        if not self._counts[caller.owns]:
            del self._counts[caller.owns]


@dataclass(frozen=True)
class Excess:
    """Why a request exceeds a rate limit, and when to try again."""

    reason: str
    """Sentences for the client."""
    seconds: int
    """Until the next attempt, rounded up."""


class RateLimits:
    """Limits how many of a thing callers start per minute; belongs to the event loop.

    Args:
        things: The thing's name in messages: "calls".
        per_caller: The limit per minute for each caller.
        in_all: The limit per minute for all callers together; None: `CALLERS` times that of one.
        clock: Returns monotonic seconds.
        max_callers: Callers with a bucket of their own. Beyond that, those with the fullest
            buckets are forgotten.
    """

    def __init__(
        self,
        things: str,
        *,
        per_caller: int,
        in_all: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        max_callers: int = 1_000,
    ) -> None:
        self._max_callers = max_callers
        self._things = things
        self._per_caller = per_caller
        self._in_all = CALLERS * per_caller if in_all is None else in_all
        self._clock = clock
        self._for_guests = limit_guests(self._in_all)
        self._all_full_at = -math.inf
        self._guests_full_at = -math.inf
        self._full_at: dict[str, float] = {}
        """When a caller's bucket will be full; a caller without an entry has a full bucket."""

    def take(self, caller: Caller) -> Excess | None:
        """Count one more for a caller, unless a limit is reached.

        Returns:
            None if it was counted, else the limit that it exceeds.
        """
        now = self._clock()
        # When the buckets will be full if one token is taken now.
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
                f"Too many {self._things}: {who} per minute. Try again in {seconds} {unit}.",
                seconds,
            )
        self._all_full_at = together
        if not caller.is_user:
            self._guests_full_at = guests
        self._full_at[caller.owns] = alone
        if len(self._full_at) > self._max_callers:
            self._forget_callers(now)
        return None

    def _forget_callers(self, now: float) -> None:
        """Forget callers with full buckets, or else the one whose bucket is full first."""
        used = {caller: full_at for caller, full_at in self._full_at.items() if full_at > now}
        if len(used) > self._max_callers:
            del used[min(used, key=used.__getitem__)]
        self._full_at = used
