"""The goals: how many times another server's time, or which value, each row may have at most."""

from dataclasses import dataclass

from comparison.figures import Measured

OURS, THEIRS = "mcp-notebook", "FastMCP"


@dataclass(frozen=True)
class Goal:
    """What one row of one way should be.

    Args:
        row: Key of the row.
        transport: "http" or "stdio".
        era: "modern" or "legacy".
        bound: At most this; at least this for calls a second.
        against: Whose ratio it bounds; None if it bounds the value.
    """

    row: str
    transport: str
    era: str
    bound: float
    against: str | None = THEIRS

    @property
    def way(self) -> str:
        """The column that it is about."""
        return f"{OURS} {self.transport} {self.era}"

    def value(self, measured: Measured) -> float | None:
        """Return what it bounds; None if that was not measured."""
        if self.against is None:
            return measured.median(self.way) if measured.rounds.get(self.way) else None
        return measured.ratio(self.way, f"{self.against} {self.transport} {self.era}")

    def holds(self, measured: Measured) -> bool | None:
        """Tell whether it holds; None if it was not measured."""
        value = self.value(measured)
        if value is None:
            return None
        return value >= self.bound if measured.more_is_better else value <= self.bound

    def describe_bound(self, measured: Measured) -> str:
        """Say it as in ``<= 0.3x``."""
        sign = "≥" if measured.more_is_better else "≤"
        return f"{sign} {self.bound:g}{'x' if self.against else ''}"


def both_eras(row: str, bound: float, against: str | None = THEIRS) -> list[Goal]:
    """Return a goal of HTTP in both eras."""
    return [Goal(row, "http", era, bound, against) for era in ("modern", "legacy")]


GOALS = [
    Goal("add@1", "http", "modern", 0.3),
    Goal("add@1", "http", "legacy", 0.4),
    Goal("add@1", "stdio", "modern", 0.3),
    Goal("add@1", "stdio", "legacy", 0.3),
    *both_eras("add@8", 5),
    *both_eras("picture-500kb@1", 0.6),
    *both_eras("argument-200kb@1", 0.5),
    *both_eras("list-500@1", 0.1),
    *(Goal("start", over, "modern", 1.2, None) for over in ("http", "stdio")),
    *(Goal("memory-bridge", over, "modern", 55, None) for over in ("http", "stdio")),
]
