"""The metrics page for Prometheus; the only module that imports prometheus_client.

Runs on the bridge's event loop, where the metrics are counted. A thread imports the library, which
takes a tenth of a second.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mcp_notebook.bridge.telemetry.metrics import BUCKETS, Histogram, Metrics, ToolKey
from mcp_notebook.errors import MissingLibrary

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_LABELS = ("notebook", "tool")


def load_library() -> None:
    """Import prometheus_client.

    Raises:
        MissingLibrary: It is not installed.
    """
    try:
        import prometheus_client.core  # noqa: F401, PLC0415 - slow, and needed only for scraping
    except ImportError as error:
        raise MissingLibrary("The metrics need", "prometheus_client", "observability") from error


def render(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    """Return the page and its content type; call `load_library` first.

    Args:
        metrics: The metrics.
        accept: The `Accept` header, which selects Prometheus' text format or OpenMetrics.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector  # noqa: PLC0415
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415
    from prometheus_client.registry import Collector  # noqa: PLC0415

    class Numbers(Collector):
        def collect(self) -> Iterator["Metric"]:
            return _collect(metrics)

    registry = CollectorRegistry()
    registry.register(Numbers())
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def _collect(metrics: Metrics) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    calls = CounterMetricFamily(
        "mcp_notebook_calls",
        'Calls that have ended, by how: "ok", "error", "cancelled", "timed out" or "lost".',
        labels=[*_LABELS, "outcome"],
    )
    for key, numbers in metrics.tools.items():
        for outcome, count in numbers.outcomes.items():
            calls.add_metric([*key, outcome], count)
    yield calls
    yield _make_histogram(
        "mcp_notebook_call_seconds",
        "Time from the start of a call to its end.",
        ((key, numbers.seconds) for key, numbers in metrics.tools.items()),
    )
    yield _make_histogram(
        "mcp_notebook_call_queue_seconds",
        "Time that a call waited in its kernel for its turn.",
        ((key, numbers.queue_seconds) for key, numbers in metrics.tools.items()),
    )
    yield CounterMetricFamily(
        "mcp_notebook_refused_calls",
        "Calls that were not started.",
        metrics.refused_calls,
    )
    open_calls = GaugeMetricFamily(
        "mcp_notebook_open_calls", "Calls that run or wait now.", labels=_LABELS[:1]
    )
    for notebook, count in metrics.open_calls.items():
        open_calls.add_metric([notebook], count)
    yield open_calls
    for reading in metrics.readings:
        family = CounterMetricFamily if reading.only_grows else GaugeMetricFamily
        yield family(f"mcp_notebook_{reading.name}", reading.about, reading.read())


def _make_histogram(
    name: str, about: str, histograms: Iterable[tuple[ToolKey, Histogram]]
) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415
    from prometheus_client.utils import floatToGoString  # noqa: PLC0415

    bounds = [*map(floatToGoString, BUCKETS), "+Inf"]
    family = HistogramMetricFamily(name, about, labels=_LABELS)
    for key, histogram in histograms:
        counts = itertools.accumulate(histogram.counts)
        family.add_metric(key, [*zip(bounds, counts, strict=True)], histogram.total)
    return family
