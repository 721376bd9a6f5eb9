"""Shows what 100,000 calls leave behind in a bridge and in a kernel. No test.

    python tests/benchmarks/leaks.py                              # over HTTP and stdio, both eras
    python tests/benchmarks/leaks.py --calls 10000 --ways stdio   # sooner

Memory, descriptors, threads, and objects of Python by type. The first 5,000 calls fill what is kept
on purpose: the log of calls, caches, pools. `test_leaks.py` does it with fewer calls.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from comparison.leaks import calling  # noqa: E402 - found through the path above
from comparison.servers import Ours  # noqa: E402
from rich.console import Console  # noqa: E402

WARM_UP, STEPS = 5_000, 5


def main() -> None:
    """Call, and print what there is more after each fifth of the calls."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=100_000, metavar="N", help="default: 100,000")
    parser.add_argument("--ways", nargs="+", choices=["http", "stdio"], default=["http", "stdio"])
    parser.add_argument("--eras", nargs="+", choices=["modern", "legacy"])
    options = parser.parse_args()
    console = Console(stderr=True)
    for way in Ours.ways():
        if way.transport not in options.ways or (options.eras and way.era not in options.eras):
            continue
        with console.status(f"{way}: the first calls"), calling(way) as calls:
            calls.call(WARM_UP)
            before = calls.count()
            for step in range(STEPS):
                calls.call(options.calls // STEPS)
                done = (step + 1) * options.calls // STEPS
                for name, now in calls.count().items():
                    print(f"{way}: {done:8,} calls, {name}: {now.more_than(before[name])}")


if __name__ == "__main__":
    main()
