"""What ``%load_ext`` adds to a kernel that has pandas and matplotlib. No test: run it by hand.

    python tests/benchmarks/bench_load.py

Each round is a new kernel. Time and memory (resident set) of ``%load_ext`` and of the first tool.
"""

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from live import live_kernel  # noqa: E402 - found through the path above

ROUNDS = 5
MEASURE = """
import matplotlib.pyplot, pandas, psutil, time
process, shell = psutil.Process(), get_ipython()
tool = 'def add(a: int, b: int) -> int:\\n    "Add."\\n    return a + b'
def cost(act):
    memory, began = process.memory_info().rss, time.perf_counter()
    act()
    return time.perf_counter() - began, (process.memory_info().rss - memory) / 2**20
load = cost(lambda: shell.run_line_magic("load_ext", "mcp_notebook"))
first = cost(lambda: shell.run_cell_magic("mcp_tool", "", tool))
print(*load, *first)
"""


def main() -> None:
    """Measure, and print the medians."""
    rounds = []
    for _ in range(ROUNDS):
        home = Path(tempfile.mkdtemp(prefix="mcpnb-"))
        with live_kernel(home) as kernel:
            rounds.append([float(number) for number in kernel.ok(MEASURE).stdout.split()])
        shutil.rmtree(home, ignore_errors=True)
    load_s, load_mib, tool_s, tool_mib = map(statistics.median, zip(*rounds, strict=True))
    print(f"%load_ext    {load_s:.3f} s   {load_mib:.1f} MiB")
    print(f"first tool   {tool_s:.3f} s   {tool_mib:.1f} MiB")


if __name__ == "__main__":
    main()
