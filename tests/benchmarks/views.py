"""Measures the live views of large tables, in the process of a kernel. No test.

    python tests/benchmarks/views.py                  # ten million rows x 3 columns
    python tests/benchmarks/views.py --rows 100000    # sooner

For each library: CPU seconds of all threads for each thing that a person does, and the memory of
the process before and after (Linux). The table is a number, a real number and one of a thousand
texts; each library is measured in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent)]

from comparison.memory import can_see_peaks, forget_peak, memory_of, peak_of  # noqa: E402

from mcp_notebook.bridge.views.pages import PAGES  # noqa: E402
from mcp_notebook.kernel.link.resource_store import ResourceStore  # noqa: E402
from mcp_notebook.kernel.results.tables.table_text import (  # noqa: E402
    describe_table,
    find_frame,
)
from mcp_notebook.wire.resource_uris import make_view_uri  # noqa: E402

MB = 2**20
LIBRARIES = ("pandas", "polars")
SORTED = {"sort": 1}
DRY = {"conditions": [{"column": 1, "test": "to", "value": "0.0002"}]}
NAMED = {"conditions": [{"column": 2, "test": "contains", "value": "name 77"}]}
STEPS: dict[str, dict[str, Any]] = {
    "first page": {"kind": "page"},
    "last page": {"kind": "page", "start": -50},
    "sorted, first page": {"kind": "page", "rows": SORTED},
    "sorted, next page": {"kind": "page", "rows": SORTED, "start": 50},
    "sorted, page 100": {"kind": "page", "rows": SORTED, "start": 5_000},
    "filter of numbers": {"kind": "page", "rows": DRY},
    "filter of numbers, next page": {"kind": "page", "rows": DRY, "start": 50},
    "texts that contain": {"kind": "page", "rows": NAMED},
    "texts that contain, sorted": {"kind": "page", "rows": NAMED | SORTED},
    "search in all columns": {"kind": "page", "rows": {"search": "name 77"}},
    "summary of numbers": {"kind": "summary", "column": 1},
    "summary of texts": {"kind": "summary", "column": 2},
}


def make_table(library: str, rows: int) -> Any:
    """Return the table."""
    random = np.random.default_rng(0)
    names = np.array([f"name {i}" for i in range(1_000)])
    columns = {"number": np.arange(rows), "ratio": random.random(rows)}
    columns["name"] = names[random.integers(0, 1_000, rows)]
    if library == "pandas":
        import pandas as pd  # noqa: PLC0415 - of one process

        return pd.DataFrame(columns)
    import polars as pl  # noqa: PLC0415 - of one process

    return pl.DataFrame(columns)


def measure(library: str, rows: int) -> None:
    """Print what the view of one library's table costs."""
    table = make_table(library, rows)
    frame = find_frame(table)
    assert frame is not None
    size = frame.estimate_bytes()
    print(f"{library}: {rows:,} rows x {frame.width} columns, {size / MB:,.0f} MB")
    before = here()
    store = ResourceStore("k", 4 * size)
    (link, *_) = store.keep(describe_table(frame))
    view = store.find_view(make_view_uri(link.uri))
    assert view is not None
    for name, step in STEPS.items():
        query = dict(step)
        if query.get("start", 0) < 0:
            query["start"] += rows
        forget()
        began, clock = time.process_time(), time.perf_counter()
        answer = view.answer(json.dumps(query))
        took, passed = time.process_time() - began, time.perf_counter() - clock
        found = json.loads(answer)
        assert "error" not in found, found
        more = f"{found['matching']:,} rows match, " if "matching" in found else ""
        peak = (peak_of(os.getpid()) - before) / MB if can_see_peaks() else 0
        print(
            f"  {name:30}{took:7.3f} s CPU {passed:7.3f} s, {more}{len(answer.encode()):,} bytes, "
            f"now +{(here() - before) / MB:,.0f} MB, peak +{peak:,.0f} MB"
        )
    del view
    store.clear()
    print(f"  {'when it has expired':30}{'':27}+{(here() - before) / MB:,.0f} MB")


def here() -> int:
    """Return the memory of this process."""
    return memory_of(os.getpid()) if can_see_peaks() else 0


def forget() -> None:
    """Forget the peak of this process."""
    if can_see_peaks():
        forget_peak(os.getpid())


def main() -> None:
    """Measure each library in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--library", choices=LIBRARIES, help="only this one")
    given = parser.parse_args()
    if given.library:
        measure(given.library, given.rows)
        return
    print(f"The page of all views: {len(PAGES['result'].html.encode()):,} bytes")
    for library in LIBRARIES:
        command = [sys.executable, __file__, "--rows", str(given.rows), "--library", library]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
