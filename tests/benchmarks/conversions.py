"""Measures how values become results in a kernel: previews of large tables, small values. No test.

    python tests/benchmarks/conversions.py                             # all of it
    python tests/benchmarks/conversions.py values --against CHECKOUT   # beside another version

*table*: the preview of ten million rows, and the memory that it takes. *values*: the conversion of
small values; with ``--against``, rounds of both versions alternate, each in a process of its own,
and the ratio of the minima is what to trust.
"""

import argparse
import inspect
import io
import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import PIL.Image
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure

sys.path[:0] = [str(Path(__file__).parent)]

from comparison.memory import (  # noqa: E402 - found through the path above
    can_see_peaks,
    forget_peak,
    memory_of,
    peak_of,
)

from mcp_notebook.kernel.results.converter import Converter  # noqa: E402
from mcp_notebook.settings.settings import Settings  # noqa: E402

MB = 2**20
WHOLE = {"max_result_bytes": 2 * MB}
"""What lets a picture of 1 MB through as it is: what is measured is the way, not the encoding."""
PARTS = ("table", "values")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 10_000_000
    """Rows of the large tables."""
    rounds: int = 5
    """Rounds of the small values."""


SMALL = Sizes(rows=10_000, rounds=1)


def png_of_one_mb() -> bytes:
    """Return a picture that cannot be packed any smaller."""
    side = 580
    buffer = io.BytesIO()
    PIL.Image.frombytes("RGB", (side, side), os.urandom(3 * side * side)).save(buffer, "PNG")
    return buffer.getvalue()


def ms(times: list[float]) -> str:
    """Say the least and the median of some times."""
    return f"min {min(times) * 1e3:7.2f} ms   p50 {statistics.median(times) * 1e3:7.2f} ms"


def timed(act: Callable[[], object], rounds: int) -> list[float]:
    """Return how long something takes, each time."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return times


def converter() -> Any:
    """Return the function that converts values, with IPython's formatters."""
    more: dict[str, Any] = {}
    if "keep" in inspect.signature(Converter).parameters:
        from mcp_notebook.kernel.link.resource_store import ResourceStore  # noqa: PLC0415 - older versions

        more["keep"] = ResourceStore("k", 2**40).keep
    made = Converter(DisplayFormatter().format, Settings(**WHOLE), **more)
    return made.make_result if hasattr(made, "make_result") else made.result  # older versions


# -- table -----------------------------------------------------------------------------------------


def bench_table(sizes: Sizes) -> None:
    """Measure the previews of large tables."""
    print(f"The preview of {sizes.rows:,} rows (aim: below 50 ms, nothing copied)")
    for name, make in tables(sizes.rows).items():
        try:
            table, size = make()
        except ImportError:
            print(f"  {name:26} not installed")
            continue
        print(f"  {name:26} {preview(table)} of {size / MB:,.0f} MB")
        del table


def preview(table: Any) -> str:
    """Say what the preview of a table costs."""
    to_content = converter()
    (first, *times) = timed(lambda: to_content(table, ()), 8)
    before = memory_here()
    tracemalloc.start()
    blocks = to_content(table, ()).content
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (
        f"{ms(times)}   the first {first * 1e3:.2f} ms   peak +{traced / MB:.1f} MB of Python's, "
        f"+{(peak_here() - before) / MB:.1f} MB of the process; "
        f"{sum(len(getattr(block, 'text', '')) for block in blocks):,} characters"
    )


def tables(rows: int) -> dict[str, Callable[[], tuple[Any, int]]]:
    """Return what makes each kind of table, and tells its bytes."""

    def pandas() -> Any:
        names = np.array([f"name {i}" for i in range(1000)], dtype=object)
        return pd.DataFrame(
            {
                "number": np.arange(rows),
                "ratio": np.linspace(0, 1, rows),
                "when": pd.date_range("2020-01-01", periods=rows, freq="s", tz="UTC"),
                "name": pd.Series(names[np.arange(rows) % 1000]),
            }
        )

    def indexed() -> Any:
        frame = pandas()
        return frame.set_index(["name", "number"])

    def polars() -> Any:
        import polars as pl  # noqa: PLC0415 - it need not be there

        return pl.from_pandas(pandas())

    def arrow() -> Any:
        import pyarrow as pa  # noqa: PLC0415 - it need not be there

        return pa.Table.from_pandas(pandas())

    def of_pandas(make: Callable[[], Any]) -> Callable[[], tuple[Any, int]]:
        def made() -> tuple[Any, int]:
            table = make()
            return table, int(table.memory_usage().sum())

        return made

    def of_polars() -> tuple[Any, int]:
        table = polars()
        return table, int(table.estimated_size())

    def of_arrow() -> tuple[Any, int]:
        table = arrow()
        return table, int(table.nbytes)

    return {
        "pandas": of_pandas(pandas),
        "pandas, with a MultiIndex": of_pandas(indexed),
        "pandas, one column": of_pandas(lambda: pandas()[["when", "ratio"]].set_index("when")),
        "polars": of_polars,
        "pyarrow": of_arrow,
    }


def memory_here() -> int:
    """Forget this process's peak, and return what it has now."""
    if not can_see_peaks():
        return 0
    forget_peak(os.getpid())
    return memory_of(os.getpid())


def peak_here() -> int:
    """Return this process's peak."""
    return peak_of(os.getpid()) if can_see_peaks() else 0


# -- values ----------------------------------------------------------------------------------------


def bench_values(sizes: Sizes, against: Path | None) -> None:
    """Measure the conversion of small values, of two versions in turn if asked to."""
    here = Path(__file__).parents[2]
    checkouts = {"here": here} | ({} if against is None else {"against": against})
    least: dict[str, dict[str, float]] = {name: {} for name in checkouts}
    for _ in range(sizes.rounds):
        for name, checkout in checkouts.items():
            done = subprocess.run(
                [sys.executable, __file__, "--one-round-of-values"],
                env=os.environ | {"PYTHONPATH": str(checkout)},
                check=True,
                capture_output=True,
                text=True,
            )
            for value, took in json.loads(done.stdout).items():
                least[name][value] = min(took, least[name].get(value, took))
    print("The conversion of small values, minima in µs" + (" beside the other's" * bool(against)))
    for value, took in least["here"].items():
        ratio = ""
        if against is not None:
            other = least["against"][value]
            ratio = f"{other * 1e6:10.1f}   x {took / other:.2f}"
        print(f"  {value:26}{took * 1e6:10.1f}{ratio}")


def one_round_of_values() -> None:
    """Print the least time of each conversion as JSON."""
    to_content = converter()
    found = {}
    for name, value in small_values().items():
        to_content(value, ())
        times = timed(lambda: to_content(value, ()), 10)  # noqa: B023 - used at once
        rounds = max(20, min(2_000, int(0.2 / min(times))))
        found[name] = min(timed(lambda: to_content(value, ()), rounds))  # noqa: B023
    print(json.dumps(found))


def small_values() -> dict[str, Any]:
    """Return values as most tools give them."""
    figure = Figure(figsize=(4, 3))
    figure.add_subplot().plot([1, 2, 3])
    records = [{"id": i, "name": f"customer {i}", "revenue": i * 1.5} for i in range(20)]
    return {
        "None": None,
        "int": 42,
        "float": 0.5,
        "short str": "The model has been trained.",
        "str of 20,000": "The model has been trained.\n" * 714,
        "small dict": {"rows": 10, "columns": ["a", "b"], "mean": 0.5},
        "list of 20 dicts": records,
        "array of 10 x 3": np.zeros((10, 3)),
        "frame of 20 x 3": pd.DataFrame(records),
        "frame of 1,000 x 3": pd.DataFrame(records * 50),
        "series of 20": pd.Series(range(20)),
        "figure of 4 x 3 inches": figure,
        "PNG of 1 MB": png_of_one_mb(),
    }


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--against", metavar="CHECKOUT", type=Path, help="another version's folder")
    parser.add_argument("--small", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--one-round-of-values", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one_round_of_values:
        one_round_of_values()
        return
    sizes = SMALL if given.small else Sizes()
    for part in given.parts or PARTS:
        if part == "values":
            bench_values(sizes, given.against)
        else:
            bench_table(sizes)
        print()


if __name__ == "__main__":
    main()
