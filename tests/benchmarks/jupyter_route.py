"""Measures what calls through a Jupyter Server's ``/mcp`` cost its pages. No test; Unix.

    python tests/benchmarks/jupyter_route.py                  # 50 callers
    python tests/benchmarks/jupyter_route.py --callers 8

In one run: the processor's time of a call in the Jupyter Server and in the bridge behind it (aim:
less in the server), and how long ``/api/status`` takes while the callers call (aim: 50 ms).
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from comparison.raw_clients import HttpLine, many_callers  # noqa: E402 - found through the path above
from comparison.requests import ADD  # noqa: E402
from jupyter_servers import HEADERS, JupyterServer, jupyter_server  # noqa: E402

TOOL = '%%mcp_tool\ndef add(a: int, b: int) -> int:\n    "Add."\n    return a + b'
PAUSE = 0.05
"""Seconds between two requests of the page."""
STATUS_AIM = 50.0
"""Milliseconds that ``/api/status`` may take."""


def time_status(server: JupyterServer, stop: threading.Event) -> list[float]:
    """Return the milliseconds that each request of a page takes, until it is stopped."""
    times = []
    while not stop.wait(PAUSE):
        began = time.perf_counter()
        server.http.get("api/status").raise_for_status()
        times.append((time.perf_counter() - began) * 1_000)
    return times


def count_seconds(process: psutil.Process) -> float:
    """Return the processor's time that a process has used."""
    times = process.cpu_times()
    return times.user + times.system


def show(what: str, times: list[float]) -> None:
    """Print the spread of times."""
    ordered = sorted(times)
    p95 = ordered[int(len(ordered) * 0.95)]
    print(
        f"/api/status {what}: median {statistics.median(ordered):.1f} ms, 95 % {p95:.1f} ms, "
        f"at most {ordered[-1]:.1f} ms ({len(ordered)} requests)"
    )


def measure(server: JupyterServer, callers: int, seconds: float) -> bool:
    """Print all figures of a server, and return whether they reach the aims."""
    headers = [f"{name}: {value}" for name, value in HEADERS.items()]
    lines = [HttpLine("modern", f"{server.url}mcp", headers) for _ in range(callers)]
    for line in lines:
        line.ask(ADD)
    (bridge,) = server.find_bridges()
    processes = {"Jupyter": psutil.Process(server.pid), "the bridge": bridge}
    with ThreadPoolExecutor() as threads:
        quiet = threading.Event()
        idle = threads.submit(time_status, server, quiet)
        time.sleep(min(seconds, 2.0))
        quiet.set()
        show("without callers", idle.result())
        stop = threading.Event()
        page = threads.submit(time_status, server, stop)
        before = {name: count_seconds(process) for name, process in processes.items()}
        began = time.perf_counter()
        rate = many_callers(lines, ADD, seconds)
        calls = rate * (time.perf_counter() - began)
        stop.set()
        times = page.result()
    for line in lines:
        line.close()
    show(f"with {callers} callers", times)
    print(f"{rate:.0f} calls/s")
    costs = {
        name: (count_seconds(process) - before[name]) / calls * 1_000
        for name, process in processes.items()
    }
    for name, cost in costs.items():
        print(f"{name}: {cost:.2f} ms of the processor for a call")
    ratio = costs["Jupyter"] / costs["the bridge"]
    print(f"Jupyter uses {ratio:.2f}x the bridge's (aim: below 1)")
    return ratio < 1 and statistics.median(times) <= STATUS_AIM


def main() -> int:
    """Measure a Jupyter Server with one notebook."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--callers", type=int, default=50, metavar="N", help="default: 50")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="default: 5")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="mcpnb-", ignore_cleanup_errors=True) as folder,
        jupyter_server(Path(folder)) as server,
        closing(server.http),
    ):
        server.start_kernel("%load_ext mcp_notebook", TOOL, path="add.ipynb")
        return 0 if measure(server, options.callers, options.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
