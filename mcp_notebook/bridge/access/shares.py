"""How many of a thing callers may have at a time: so many each, and so many all of them together.

Runs on the bridge's event loop; no I/O. A quarter of all is kept for the user: whoever else has a
token or comes in by OAuth is a guest, and the guests together cannot take it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from mcp_notebook.bridge.access.caller import Caller

GUESTS = "all who have tokens of their own together"
"""What messages call the guests."""


def limit_guests(in_all: int) -> int:
    """Return how many of all places guests may take together."""
    return max(1, in_all - in_all // 4)


class Shares:
    """The callers' shares of a thing; belongs to the event loop.

    Args:
        things: What it is, for messages: "calls running".
        per_caller: How many each caller may have.
        in_all: How many all callers together may have.
        for_user: How many the user may have; None: as each caller.
    """

    def __init__(
        self, things: str, *, per_caller: int, in_all: int, for_user: int | None = None
    ) -> None:
        self._things = things
        self._per_caller = per_caller
        self._for_user = per_caller if for_user is None else for_user
        self._in_all = in_all
        self._for_guests = limit_guests(in_all)
        self._total = 0
        self._guests = 0
        self._counts: dict[str, int] = {}
        """By what callers own things as; only callers that have any are in it."""

    def explain_lack(self, caller: Caller) -> str | None:
        """Return why a caller cannot have one more, as sentences; None if it can."""
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
        """Give a caller one more for the block."""
        self.add(caller)
        try:
            yield
        finally:
            self.remove(caller)

    def add(self, caller: Caller) -> None:
        """Give a caller one more."""
        self._total += 1
        self._guests += not caller.is_user
        self._counts[caller.owns] = self._counts.get(caller.owns, 0) + 1

    def remove(self, caller: Caller) -> None:
        """Take one from a caller."""
        self._total -= 1
        self._guests -= not caller.is_user
        self._counts[caller.owns] -= 1
        if not self._counts[caller.owns]:
            del self._counts[caller.owns]
