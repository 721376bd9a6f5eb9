"""Measures what calls take with more tools, kernels and clients, and with larger results. No test.

    python tests/benchmarks/grow.py                           # all of it
    python tests/benchmarks/grow.py tools results             # two of the plots
    python tests/benchmarks/grow.py --json docs/measurements/growth.json   # for the documentation

`python docs/make_performance.py` draws the plots. What stands behind "x linear" is
the last value in units of what it would be if the line went straight on from the points before it.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from comparison import about, growth  # noqa: E402 - found through the path above
from comparison.growth import GROWTHS, Growth  # noqa: E402
from rich.console import Console  # noqa: E402


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(GROWTHS)}")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument(
        "--seconds", type=float, default=0.5, metavar="S", help="of one measurement (default: 0.5)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it, beside what is there")
    options = parser.parse_args()
    if unknown := set(options.what) - set(GROWTHS):
        parser.error(f"{', '.join(unknown)}: one of {', '.join(GROWTHS)}")
    console = Console(stderr=True)
    for key in options.what or GROWTHS:
        title, sizes, measure, steps = GROWTHS[key]
        grown = Growth(title, sizes, about.describe_run(set()))
        with console.status(key) as status:
            for number, _ in enumerate(measure(grown, steps, options.rounds, options.seconds), 1):
                status.update(f"{key}: {number} measurements")
        if options.json:
            growth.write({key: grown}, options.json)
        for line in grown.lines:
            points = grown.points(line)
            values = ", ".join(f"{size:,}: {value:.3g}" for size, value in points)
            print(f"{key}: {line}: {values} ms; {growth.excess(points):.2f} x linear")


if __name__ == "__main__":
    main()
