"""Compares this project with what people would pick instead, side by side in one run. No test.

    python tests/benchmarks/compare.py                              # all of it
    python tests/benchmarks/compare.py --quick --rows add list-500  # two rows, a rough idea
    python tests/benchmarks/compare.py --callers 1 --json now.json  # keep what was measured
    python tests/benchmarks/compare.py --show now.json              # and show it again

In each round, every server is measured once, in a random order, by a client of sockets and pipes
that checks each answer. A value is the median of the rounds; what stands in parentheses is the
median of the rounds' ratios to FastMCP over the same transport and in the same era of the protocol
("modern": 2026-07-28, "legacy": 2025-11-25). Trust the ratios: the machine's noise is in both.

The other servers get environments of their own, below ~/.cache/mcp-notebook-benchmarks, at the
first run, for which the network is needed.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from comparison import about, table  # noqa: E402 - found through the path above
from comparison.figures import Run  # noqa: E402
from comparison.rounds import measure  # noqa: E402
from comparison.rows import FAMILIES, KEYS, SCENARIOS, Scenario  # noqa: E402
from comparison.servers import SERVERS  # noqa: E402


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", nargs="+", metavar="ROW", choices=sorted({*FAMILIES, *KEYS}),
        help=f"what to measure (default: all): {', '.join(FAMILIES)}; one number of callers: add@8",
    )  # fmt: skip
    parser.add_argument(
        "--callers", nargs="+", choices=["1", "8", "32"], help="only rows of so many callers"
    )
    parser.add_argument("--servers", nargs="+", choices=list(SERVERS), help="only these")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument(
        "--seconds", type=float, default=0.8, metavar="S", help="of one measurement (default: 0.8)"
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.3 seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured here")
    parser.add_argument(
        "--add", action="store_true", help="keep what else is in the file of --json"
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing, show this")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    return parser.parse_args()


def is_wanted(scenario: Scenario, options: argparse.Namespace) -> bool:
    """Tell whether the command line asks for it."""
    names = {scenario.family, *(part.key for part in scenario.parts)}
    callers = scenario.callers is None or str(scenario.callers) in (
        options.callers or ["1", "8", "32"]
    )
    return callers and not (options.rows and names.isdisjoint(options.rows))


def main() -> None:
    """Measure, and show it."""
    options = arguments()
    if options.show:
        run = Run.read(options.show)
    else:
        scenarios = [scenario for scenario in SCENARIOS if is_wanted(scenario, options)]
        rounds, seconds = (3, 0.3) if options.quick else (options.rounds, options.seconds)
        only = set(options.servers or ())
        servers = only or {way.server for scenario in scenarios for way in scenario.ways}
        description = about.describe_run(servers)
        before = Run.read(options.json) if options.add and options.json.exists() else Run()
        description |= {"rounds": rounds, "seconds": seconds, "pieces": bool(before.rows)}

        def keep(run: Run) -> None:
            run.about = description
            if options.json:
                rows = before.rows | run.rows
                in_order = {key: rows[key] for key in KEYS if key in rows}
                Run(description, in_order).write(options.json)

        run = measure(scenarios, rounds=rounds, seconds=seconds, only=only, keep=keep)
    if options.markdown:
        print(table.markdown(run))
    else:
        table.show(run)


if __name__ == "__main__":
    main()
