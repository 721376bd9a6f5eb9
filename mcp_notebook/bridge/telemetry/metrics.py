"""The numbers of one bridge: its calls by tool and how they ended, their times, and what is open.

Runs on the bridge's event loop; pure. Counting is always on, as it takes a microsecond a call; the
page that shows the numbers is made by `prometheus_page`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds in seconds: those of OpenTelemetry's conventions for the time of MCP requests."""
MAX_TOOLS = 200
"""Tools with numbers of their own; those that come later are counted together. Notebooks come and
go, and so do their tools: the page must not grow for as long as the bridge runs."""
OTHER = ("", "")
"""Notebook and tool of calls that are counted together."""

ToolKey: TypeAlias = tuple[str, str]
"""A notebook's part of the tool's full name, and the tool's name in the kernel."""


@dataclass(eq=False)
class Histogram:
    """How often a time was at most so long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    """Times up to each bound, but above the one before; the last are above all bounds."""
    total: float = 0.0
    """The sum of all times, in seconds."""

    def add(self, seconds: float) -> None:
        """Count a time."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass(eq=False)
class ToolNumbers:
    """The numbers of one tool."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Calls by how they ended."""
    seconds: Histogram = field(default_factory=Histogram)
    """From the start of a call to its end, as the bridge measures it."""
    queue_seconds: Histogram = field(default_factory=Histogram)
    """How long its calls waited for their turn, as far as the kernel says."""


@dataclass(frozen=True)
class Reading:
    """A number that somebody else keeps."""

    name: str
    about: str
    read: Callable[[], float]
    only_grows: bool = False


class Metrics:
    """Counts what happens to calls; a `CallObserver`."""

    def __init__(self) -> None:
        self.tools: dict[ToolKey, ToolNumbers] = {}
        """Only tools that exist are here: clients make up names."""
        self.open_calls: dict[str, int] = {}
        """Calls that run or wait now, by notebook; no notebook without any."""
        self.refused_calls = 0
        self.readings: list[Reading] = []
        """Read when the page is made."""

    def note_start(self, start: CallStart) -> None:
        """Count an open call."""
        self.open_calls[start.notebook] = self.open_calls.get(start.notebook, 0) + 1

    def note_end(self, end: CallEnd) -> None:
        """Count a call that has ended."""
        notebook = end.start.notebook
        open_calls = self.open_calls.pop(notebook, 0) - 1
        if open_calls:
            self.open_calls[notebook] = open_calls
        numbers = self._find_numbers((notebook, end.start.tool))
        numbers.outcomes[end.outcome] += 1
        numbers.seconds.add(end.seconds)
        if end.queue_seconds is not None:
            numbers.queue_seconds.add(end.queue_seconds)

    def note_refusal(self, refusal: CallRefusal) -> None:  # noqa: ARG002 - what a client wrote
        """Count a refused call."""
        self.refused_calls += 1

    def _find_numbers(self, key: ToolKey) -> ToolNumbers:
        numbers = self.tools.get(key)
        if numbers is None:
            if len(self.tools) >= MAX_TOOLS:
                key = OTHER
            numbers = self.tools.setdefault(key, ToolNumbers())
        return numbers
