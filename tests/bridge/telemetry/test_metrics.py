"""What is counted of calls."""

import pytest

from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart
from mcp_notebook.bridge.telemetry.metrics import BUCKETS, MAX_TOOLS, OTHER, Histogram, Metrics


def start(tool="top", notebook="sales"):
    return CallStart(
        id="1",
        at=0.0,
        caller="owner",
        client="",
        kernel="k",
        notebook=notebook,
        tool=tool,
        arguments={},
        input_schema={},
    )


def end(begun, outcome="ok", seconds=0.3, **more):
    return CallEnd(start=begun, outcome=outcome, seconds=seconds, **more)


@pytest.mark.parametrize(
    ("seconds", "place"),
    [(0.0, 0), (BUCKETS[0], 0), (BUCKETS[0] + 1e-9, 1), (BUCKETS[-1], -2), (1e9, -1)],
)
def test_a_time_is_counted_below_its_bound(seconds, place):
    histogram = Histogram()
    histogram.add(seconds)
    assert histogram.counts[place] == sum(histogram.counts) == 1
    assert histogram.total == seconds


def test_calls_are_counted_by_tool_and_by_how_they_ended():
    metrics = Metrics()
    for outcome in ("ok", "ok", "error", "cancelled", "timed out", "lost"):
        metrics.note_end(end(start(), outcome, queue_seconds=1.5))
    metrics.note_end(end(start("other")))
    numbers = metrics.tools["sales", "top"]
    assert numbers.outcomes == {"ok": 2, "error": 1, "cancelled": 1, "timed out": 1, "lost": 1}
    assert numbers.seconds.total == pytest.approx(1.8)
    assert numbers.queue_seconds.total == 9.0
    assert metrics.tools["sales", "other"].queue_seconds.total == 0, "its kernel did not say"


def test_names_that_clients_make_up_are_not_kept():
    metrics = Metrics()
    for number in range(1000):
        refusal = CallRefusal(at=0.0, caller="owner", client="", tool=f"t{number}", reason="no")
        metrics.note_refusal(refusal)
    assert metrics.refused_calls == 1000
    assert not metrics.tools


def test_tools_beyond_a_number_are_counted_together():
    metrics = Metrics()
    for number in range(MAX_TOOLS + 50):
        metrics.note_end(end(start(f"t{number}")))
    assert len(metrics.tools) == MAX_TOOLS + 1
    assert metrics.tools[OTHER].outcomes == {"ok": 50}
    metrics.note_end(end(start("t0")))
    assert metrics.tools["sales", "t0"].outcomes == {"ok": 2}
