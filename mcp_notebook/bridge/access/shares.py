"""How many of a thing callers may have at a time: so many each, and so many all of them together.

Runs on the bridge's event loop; no I/O.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class Shares:
    """The callers' shares of a thing; belongs to the event loop.

    Args:
        things: What it is, for messages: "calls running".
        per_caller: How many each caller may have.
        in_all: How many all callers together may have.
    """

    def __init__(self, things: str, *, per_caller: int, in_all: int) -> None:
        self._things = things
        self._per_caller = per_caller
        self._in_all = in_all
        self._total = 0
        self._counts: dict[str, int] = {}
        """By the caller's name; only callers that have any are in it."""

    def explain_lack(self, caller: str) -> str | None:
        """Return why a caller cannot have one more, as sentences; None if it can."""
        if self._counts.get(caller, 0) >= self._per_caller:
            most = f"one caller can have {self._per_caller:,}"
        elif self._total >= self._in_all:
            most = f"all callers together can have {self._in_all:,}"
        else:
            return None
        return f"Too many {self._things}: {most} at a time. Try again when one has ended."

    @contextmanager
    def hold(self, caller: str) -> Iterator[None]:
        """Give a caller one more for the block."""
        self.add(caller)
        try:
            yield
        finally:
            self.remove(caller)

    def add(self, caller: str) -> None:
        """Give a caller one more."""
        self._total += 1
        self._counts[caller] = self._counts.get(caller, 0) + 1

    def remove(self, caller: str) -> None:
        """Take one from a caller."""
        self._total -= 1
        self._counts[caller] -= 1
        if not self._counts[caller]:
            del self._counts[caller]
