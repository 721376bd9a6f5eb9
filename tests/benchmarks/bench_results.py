"""What results cost: time to the client, previews of large tables, memory, small values. No test.

    python tests/benchmarks/bench_results.py                           # all of it
    python tests/benchmarks/bench_results.py picture memory            # parts of it
    python tests/benchmarks/bench_results.py values --against CHECKOUT # beside another version

*picture*: a PNG of 1 MB, from the function's return to the last byte at a client that does not read
it, over each transport and in each era; how much of that is the conversion, the link, the bridge.
*table*: the preview of ten million rows, and the memory that it takes.
*memory*: peaks of the kernel's and the bridge's process over what they had before, in units of the
result's size (Linux). *values*: the conversion of small values; with ``--against``, rounds of both
versions alternate, each in a process of its own, and the ratio of the minima is what to trust.
"""

import argparse
import inspect
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import PIL.Image
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "e2e")]

from live import Link, live_kernel, record_of, text_of  # noqa: E402 - found through the path above
from raw_clients import (  # noqa: E402
    ERAS,
    TRANSPORTS,
    can_see_peaks,
    forget_peak,
    memory_of,
    peak_of,
    raw_client,
)

from mcp_notebook.kernel.results.converter import Converter  # noqa: E402
from mcp_notebook.settings import Settings  # noqa: E402
from mcp_notebook.wire import messages  # noqa: E402

MB = 2**20
LARGE = ("text", "prints", "frame", "data")
WHOLE = {"MCP_NOTEBOOK_MAX_RESULT_BYTES": str(2 * MB)}
"""What lets a picture of 1 MB through as it is: what is measured is the way, not the encoding."""
PARTS = ("picture", "table", "memory", "values")
TOOLS = """
import os, time
import pandas as pd
from mcp_notebook import Image, Resource, mcp_tool
SIZE = {size}
RETURNED = 0.0
PICTURE = open("picture.png", "rb").read()
TEXT = "The quick brown fox jumps over the lazy dog.\\n" * (SIZE // 45)
BYTES = os.urandom(SIZE)
FRAME = pd.DataFrame({{"a": range(SIZE // 16), "b": 0.5}})

@mcp_tool
def picture() -> bytes:
    "A picture."
    global RETURNED
    RETURNED = time.perf_counter()
    return PICTURE

@mcp_tool
def returned() -> str:
    "When the picture's function returned, by the clock that all processes share."
    return repr(RETURNED)

@mcp_tool
def text():
    "A long text."
    return TEXT

@mcp_tool
def data():
    "A file's content."
    return Resource("file:///data.bin", BYTES, "application/octet-stream")

@mcp_tool
def prints():
    "A long print."
    print(TEXT)

@mcp_tool(output_schema={{"type": "array"}})
def frame():
    "A table as data."
    return FRAME
"""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    result: int = 100 * MB
    """Bytes of the large results."""
    rows: int = 10_000_000
    """Rows of the large tables."""
    calls: int = 30
    """Calls for the picture, in each way."""
    rounds: int = 5
    """Rounds of the small values."""


SMALL = Sizes(result=2 * MB, rows=10_000, calls=2, rounds=1)


@contextmanager
def notebook(sizes: Sizes) -> Iterator[Any]:
    """Start a kernel with the tools."""
    home = Path(tempfile.mkdtemp(prefix="mcpnb-"))
    try:
        (home / "picture.png").write_bytes(png_of_one_mb())
        with live_kernel(home) as kernel:
            kernel.ok(f"import os; os.environ |= {WHOLE!r}")
            kernel.ok("%load_ext mcp_notebook")
            kernel.ok(TOOLS.format(size=sizes.result))
            yield kernel
    finally:
        shutil.rmtree(home, ignore_errors=True)


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
    made = Converter(DisplayFormatter().format, Settings.from_environment(WHOLE), **more)
    return made.make_result if hasattr(made, "make_result") else made.result  # older versions


# -- picture ---------------------------------------------------------------------------------------


def bench_picture(sizes: Sizes) -> None:
    """Measure the way of a picture of 1 MB to the client."""
    picture = png_of_one_mb()
    to_content = converter()
    print(f"A PNG of {len(picture) / MB:.2f} MB from the function's return (aim: below 20 ms)")
    print(f"  converted                 {ms(timed(lambda: to_content(picture, ()), 20))}")
    with notebook(sizes) as kernel:
        link = over_link(kernel, sizes.calls)
        print(f"  converted, over the link  {ms(link)}")
        for transport in TRANSPORTS:
            for era in ERAS:
                with raw_client(kernel.home, era, transport) as client:
                    times = []
                    for _ in range(sizes.calls):
                        size = len(client.call("picture"))
                        arrived = time.perf_counter()
                        assert size > len(picture), size
                        times.append(arrived - float(client.text("returned")))
                bridge = statistics.median(times) - statistics.median(link)
                print(
                    f"  at the client, {transport:5} {era}  {ms(times)}   "
                    f"of which the bridge {bridge * 1e3:.2f}"
                )


def over_link(kernel: Any, calls: int) -> list[float]:
    """Return the times to the end of the link, where a bridge would begin."""
    times = []
    with Link(record_of(kernel)) as link:
        for _ in range(calls):
            link.send(messages.Call(id=0, tool="picture", arguments={}))
            header = link.socket.recv(4, 0x100)  # MSG_WAITALL
            header = link.socket.recv(int.from_bytes(header, "big"), 0x100)
            (size,) = json.loads(header)["attachments"]
            data = memoryview(bytearray(size))
            while data:
                data = data[link.socket.recv_into(data) :]
            arrived = time.perf_counter()
            times.append(arrived - float(text_of(link.call("returned"))))
    return times


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


# -- memory ----------------------------------------------------------------------------------------


def bench_memory(sizes: Sizes) -> None:
    """Measure what large results take beside themselves."""
    if not can_see_peaks():
        print("Memory: this system does not tell peaks.")
        return
    print(
        f"Peaks over what was there before, for results of {sizes.result / MB:.0f} MB, in units of "
        "that (aim: below 2)"
    )
    with notebook(sizes) as kernel:
        for transport in TRANSPORTS:
            for era in ERAS:
                with raw_client(kernel.home, era, transport) as client:
                    client.text("returned")
                    way = f"{transport:5} {era}"
                    for tool in LARGE:
                        peaks(
                            kernel,
                            client,
                            sizes.result,
                            f"{way} {tool}",
                            partial(client.call, tool),
                        )
                    for uri in originals(client.call("text")):
                        what = f"{way} resources/read"
                        peaks(kernel, client, sizes.result, what, partial(client.read, uri))


def peaks(kernel: Any, client: Any, size: int, what: str, act: Callable[[], bytes]) -> bytes:
    """Print the peaks of one request."""
    processes = {"kernel": kernel.pid, "bridge": client.pid}
    before = {}
    for name, pid in processes.items():
        forget_peak(pid)
        before[name] = memory_of(pid)
    began = time.perf_counter()
    answer = act()
    took = time.perf_counter() - began
    said = "   ".join(
        f"{name} +{(peak_of(pid) - before[name]) / size:5.2f}" for name, pid in processes.items()
    )
    print(f"  {what:30} {said}   {took:6.2f} s   {len(answer):,} bytes at the client")
    return answer


def originals(answer: bytes) -> list[str]:
    """Return the addresses of the originals that a result links to."""
    result = json.loads(answer[answer.index(b"{") :])["result"]
    return [block["uri"] for block in result["content"] if block["type"] == "resource_link"]


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
            {"picture": bench_picture, "table": bench_table, "memory": bench_memory}[part](sizes)
        print()


if __name__ == "__main__":
    main()
