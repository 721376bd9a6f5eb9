"""Measures calls in a copy of the kernel, beside the same calls in a thread. No test.

    python tests/benchmarks/forks.py            # with 480 MB of data, a minute
    python tests/benchmarks/forks.py --mb 4000

*overhead*: a call that returns at once, rounds of both kinds alternating; then the same beside a
cell that computes in Python. *parallel*: a call that
only computes, and two of them at the same time, on two cores that should be free: the ratio of the
minima is what to trust.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from live import Link, live_kernel, record_of  # noqa: E402 - found through the path above

TOOLS = """
import numpy as np
from mcp_notebook import mcp_tool

data = np.ones({mb} * 2**17)

@mcp_tool(read_only=True, run="fork")
def forked() -> float:
    "Look at the data."
    return float(data[-1])

@mcp_tool(read_only=True, run="thread")
def threaded() -> float:
    "Look at the data."
    return float(data[-1])

@mcp_tool(read_only=True, run="fork")
def compute(rounds: int) -> int:
    "Compute in Python."
    total = 0
    for number in range(rounds):
        total += number * number
    return total
"""


def measure_call(link: Link, tool: str) -> float:
    """Return the milliseconds of one call."""
    began = time.perf_counter()
    result = link.call(tool)
    assert not result.is_error, result
    return 1000 * (time.perf_counter() - began)


def print_overhead(link: Link, calls: int, where: str) -> None:
    """Measure calls of both kinds, alternating, and print what came out."""
    times: dict[str, list[float]] = {"forked": [], "threaded": []}
    for _ in range(calls):
        for tool, milliseconds in times.items():
            milliseconds.append(measure_call(link, tool))
    for tool, milliseconds in times.items():
        median, least = statistics.median(milliseconds), min(milliseconds)
        print(f"overhead  {where:7} {tool:9} median {median:6.1f} ms  minimum {least:6.1f} ms")


def measure_together(links: list[Link], rounds: int) -> float:
    """Return the seconds until calls that compute, one for each link, have all ended."""
    began = time.perf_counter()
    for link in links:
        link.start("compute", rounds=rounds)
    for link in links:
        assert not link.result().is_error
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=480, help="megabytes of data in the kernel")
    parser.add_argument("--calls", type=int, default=60, help="calls of each kind")
    parser.add_argument("--rounds", type=int, default=10_000_000, help="of the computation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, live_kernel(Path(home)) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(TOOLS.replace("{mb}", str(options.mb)))
        record = record_of(kernel)
        with Link(record) as link, Link(record) as other:
            link.call("forked")
            print_overhead(link, options.calls, "idle")
            cell = kernel.start("print('began', flush=True)\nwhile True: sum(range(1000))")
            kernel.wait_for("stream")
            print_overhead(link, options.calls, "busy")
            os.kill(kernel.pid, signal.SIGINT)
            kernel.finish(cell)
            one, two = [], []
            for _ in range(5):
                one.append(measure_together([link], options.rounds))
                two.append(measure_together([link, other], options.rounds))
            print(
                f"parallel  one {min(one):.2f} s  two {min(two):.2f} s  "
                f"ratio {min(two) / min(one):.2f}"
            )


if __name__ == "__main__":
    main()
