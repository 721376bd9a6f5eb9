"""Draws the picture ``replicas.svg``: how long calls wait for one of a notebook's kernels.

Run by hand after `MEASURED` has changed: ``python docs/simulate_replicas.py``, with the extra
``demo`` installed (matplotlib). It also writes the sentence of `PAGE` that has the picture's
figures.

It simulates kernels that run one call at a time, behind a bridge. Calls come at random, so many
that kernels are busy for `LOAD` of the time. Their lengths are those that
``tests/benchmarks/compare.py`` has measured; one call in `LONG_EACH` takes `LONG` seconds, as when
a model is fitted. Each call goes to the kernel with the fewest open calls, as in mcp-notebook, or
to the kernels in turn (round robin), as plain load balancers do.
"""

import hashlib
import heapq
import json
import random
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
PICTURE = DOCS / "images" / "simulations" / "replicas.svg"
PAGE = DOCS / "guides" / "headless.md"
MEASURED = DOCS / "measurements" / "comparison.json"
SERVER = "mcp-notebook http modern"
LENGTHS = ("add@1", "picture-100kb@1", "argument-200kb@1", "picture-1mb@1", "table-1mb@1")
"""The rows whose calls are made, equally often."""
LIMIT = "add@8"
"""The row that says how many calls per second a bridge passes on."""
LONG, LONG_EACH = 2.0, 100
LOAD = 0.7
KERNELS = (1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1_000)
CALLS, CALLS_EACH = 30_000, 300
"""At least, in all and for each kernel. The first third is not counted: queues begin empty."""
WAYS = ("fewest open calls", "round robin")
TITLE = "How long calls wait for a kernel"


@dataclass(frozen=True)
class Measured:
    """What the simulation takes from measurements."""

    lengths: tuple[float, ...]
    """Seconds."""
    limit: float
    """Calls per second of one bridge."""

    @property
    def mean(self) -> float:
        """The mean length of calls, the long ones among them, in seconds."""
        return statistics.mean(self.lengths) * (1 - 1 / LONG_EACH) + LONG / LONG_EACH


def read_measured() -> Measured:
    """Return the medians of what is stored."""
    rows = json.loads(MEASURED.read_text(encoding="utf-8"))["rows"]
    lengths = (statistics.median(rows[row]["rounds"][SERVER]) / 1_000 for row in LENGTHS)
    return Measured(tuple(lengths), statistics.median(rows[LIMIT]["rounds"][SERVER]))


def simulate(measured: Measured, kernels: int, way: str) -> list[float]:
    """Return how long each call waits for a kernel, in seconds."""
    dice = random.Random(kernels)  # noqa: S311 - the same calls for each way
    rate = LOAD * kernels / measured.mean
    free_at = [0.0] * kernels
    open_calls = [0] * kernels
    ends: list[tuple[float, int]] = []
    idle = [(0, number, number) for number in range(kernels)]  # by open calls, last call
    heapq.heapify(idle)
    now, waits = 0.0, []
    for number in range(calls := max(CALLS, CALLS_EACH * kernels)):
        now += dice.expovariate(rate)
        length = LONG if dice.random() < 1 / LONG_EACH else dice.choice(measured.lengths)
        while ends and ends[0][0] <= now:
            kernel = heapq.heappop(ends)[1]
            open_calls[kernel] -= 1
            heapq.heappush(idle, (open_calls[kernel], kernels + number, kernel))
        kernel = number % kernels
        if way == WAYS[0]:
            while True:  # entries of the heap may be out of date
                count, _, kernel = heapq.heappop(idle)
                if count == open_calls[kernel]:
                    break
        waits.append(max(free_at[kernel] - now, 0.0))
        free_at[kernel] = now + waits[-1] + length
        open_calls[kernel] += 1
        heapq.heappush(ends, (free_at[kernel], kernel))
        heapq.heappush(idle, (open_calls[kernel], kernels + number, kernel))
    return waits[calls // 3 :]


def percentile(waits: Sequence[float], part: float) -> float:
    """Return what a part of the calls wait at most."""
    return sorted(waits)[min(int(part * len(waits)), len(waits) - 1)]


def find_limit(measured: Measured) -> int:
    """Return how many kernels, so busy, take as many calls as one bridge forwards."""
    return int(measured.limit * measured.mean / LOAD)


def describe_limit(measured: Measured) -> str:
    """Return what the page says of it."""
    return (
        f"One bridge forwards about {round(measured.limit, -2):,.0f} calls per second, as many "
        f"as about {round(find_limit(measured), -1)} kernels run here"
    )


def digest(measured: Measured) -> str:
    """Return what says which simulation a picture shows."""
    about = (measured, LONG, LONG_EACH, LOAD, KERNELS, CALLS, CALLS_EACH)
    return hashlib.sha256(repr(about).encode()).hexdigest()


def draw(measured: Measured, path: Path) -> None:
    """Draw the means and the slowest hundredth."""
    import matplotlib as mpl  # noqa: PLC0415 - only who draws needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    style = {"svg.hashsalt": "mcp-notebook", "svg.fonttype": "none", "font.size": 10}
    with mpl.rc_context(style):
        figure = Figure(figsize=(8.6, 4), layout="constrained")
        axes = figure.add_subplot(xscale="log", yscale="log")
        for color, way in zip(("#0969da", "#bc4c00"), WAYS, strict=True):
            waits = [simulate(measured, kernels, way) for kernels in KERNELS]
            means = [max(statistics.mean(each) * 1_000, 0.1) for each in waits]
            slow = [max(percentile(each, 0.99) * 1_000, 0.1) for each in waits]
            axes.plot(KERNELS, means, "o-", color=color, markersize=4, label=f"{way}: mean")
            axes.plot(
                KERNELS, slow, "s--", color=color, markersize=4, label=f"{way}: 99th percentile"
            )
        limit = find_limit(measured)
        axes.axvline(limit, color="#57606a", linewidth=1, linestyle=":")
        axes.annotate(
            f" one bridge: up to {limit} kernels", (limit, 30), color="#57606a", fontsize=9
        )
        axes.set(title=TITLE, xlabel="kernels", ylabel="waiting time, ms (0.1: none)")
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.grid(visible=True, color="#d0d7de", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, fontsize=9, loc="outside right upper")
        about = {"Date": None, "Description": digest(measured), "Title": TITLE}
        figure.savefig(path, metadata=about)
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def write_limit(measured: Measured, page: Path) -> None:
    """Write what is said of the limit into the page."""
    text = page.read_text(encoding="utf-8")
    text, count = re.subn(
        r"One bridge forwards .* kernels run here", describe_limit(measured), text
    )
    assert count == 1
    page.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    draw(read_measured(), PICTURE)
    write_limit(read_measured(), PAGE)
