"""The metrics of one bridge: calls by tool and outcome, their durations, and open calls.

Runs on the bridge's event loop; pure. Counting is always on, as it takes a microsecond per call;
`prometheus_page` exports the metrics.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart, ViewRead

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds in seconds, from OpenTelemetry's conventions for the duration of MCP requests."""
MAX_TOOLS = 200
"""Tools that are counted separately; later tools are counted together. Notebooks come and go with
their tools, and the page must not grow without bound."""
OTHER = ("", "")
"""Notebook and tool of calls that are counted together."""

ToolKey: TypeAlias = tuple[str, str]
"""A notebook's part of the tool's full name, and the tool's name in the kernel."""


@dataclass(eq=False)
class Histogram:
    """Counts durations by the buckets in `BUCKETS`."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    """The count of each bucket; the last one has no upper bound."""
    total: float = 0.0
    """The sum of all durations, in seconds."""

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass(eq=False)
class ToolNumbers:
    """The metrics of one tool."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Calls by outcome."""
    seconds: Histogram = field(default_factory=Histogram)
    """The duration of a call, as measured by the bridge."""
    queue_seconds: Histogram = field(default_factory=Histogram)
    """How long its calls waited for their turn, if the kernel reports it."""


@dataclass(frozen=True)
class Reading:
    """A metric whose value another object holds."""

    name: str
    about: str
    read: Callable[[], float]
    only_grows: bool = False


class Metrics:
    """Counts calls; a `CallObserver`."""

    def __init__(self) -> None:
        self.tools: dict[ToolKey, ToolNumbers] = {}
        """Only existing tools are counted: clients make up names."""
        self.open_calls: dict[str, int] = {}
        """Open calls by notebook, without zeros."""
        self.refused_calls = 0
        self.readings: list[Reading] = []
        """Read when the page is rendered."""

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

    def note_refusal(self, refusal: CallRefusal) -> None:  # noqa: ARG002 - a client chose its text
        """Count a refused call."""
        self.refused_calls += 1

    def note_view(self, read: ViewRead) -> None:
        """Do nothing: a query of a view is not a call."""

    def _find_numbers(self, key: ToolKey) -> ToolNumbers:
        numbers = self.tools.get(key)
        if numbers is None:
            if len(self.tools) >= MAX_TOOLS:
                key = OTHER
            numbers = self.tools.setdefault(key, ToolNumbers())
        return numbers
