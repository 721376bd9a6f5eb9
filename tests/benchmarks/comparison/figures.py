"""What a run has measured, and the ratios that are made of it. No process, no clock.

All servers are measured in each round, one after the other, so that whatever else the machine does
hurts all of them. The ratio of two servers is the median of their ratios in each round, and not the
ratio of their medians.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Measured:
    """A row: what each way took in each round.

    Args:
        title: What was measured.
        unit: "ms", "calls/s", "s", "MB" or "x".
        rounds: Way (as text) to its value in each round.
    """

    title: str
    unit: str
    rounds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def more_is_better(self) -> bool:
        """Tell whether a larger value is better."""
        return self.unit == "calls/s"

    def median(self, way: str) -> float:
        """Return the median of a way's rounds."""
        return statistics.median(self.rounds[way])

    def ratio(self, way: str, other: str) -> float | None:
        """Return the median of the rounds' ratios of two ways; None if one was not measured."""
        if not (self.rounds.get(way) and self.rounds.get(other)):
            return None
        return median_ratio(self.rounds[way], self.rounds[other])


@dataclass
class Run:
    """All that a run has measured.

    Args:
        about: When, on what, and of which versions.
        rows: The rows by key.
    """

    about: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, Measured] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it to a file as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Run":
        """Read it from a file."""
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = {key: Measured(**row) for key, row in content["rows"].items()}
        return cls(content["about"], rows)


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of what each round's ratio is."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
