"""Measures the memory that large results take beside themselves. No test; Linux.

    python tests/benchmarks/peaks.py                            # results of 100 MB
    python tests/benchmarks/peaks.py --mb 5 --ways stdio        # sooner

Peaks of the kernel's and the bridge's process over what they had before, in units of the result's
size (aim: below 2), for each kind of result, and for reading the original that it links to.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from comparison.memory import (  # noqa: E402 - found through the path above
    can_see_peaks,
    forget_peak,
    memory_of,
    peak_of,
)
from comparison.raw_clients import Line, StdioLine  # noqa: E402
from comparison.requests import ADD, MB, Request, call  # noqa: E402
from comparison.servers import Ours  # noqa: E402

TOOLS = """
import os
import pandas as pd
from mcp_notebook import Resource, mcp_tool
SIZE = {size}
TEXT = "The quick brown fox jumps over the lazy dog.\\n" * (SIZE // 45)
BYTES = os.urandom(SIZE)
FRAME = pd.DataFrame({{"a": range(SIZE // 16), "b": 0.5}})

@mcp_tool
def text():
    "A long text."
    return TEXT

@mcp_tool
def prints():
    "A long print."
    print(TEXT)

@mcp_tool(output_schema={{"type": "array"}})
def frame():
    "A table as data."
    return FRAME

@mcp_tool
def data():
    "A file's content."
    return Resource("file:///data.bin", BYTES, "application/octet-stream")

@mcp_tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""
LARGE = ("text", "prints", "frame", "data")


class Large(Ours):
    """A kernel with tools whose results have so many bytes, and the limits that everybody has."""

    limits: dict[str, str] = {}  # noqa: RUF012 - not changed

    def cells(self) -> list[str]:
        """Return what is in the notebook."""
        return ["%load_ext mcp_notebook", TOOLS.format(size=self.tools)]


def measure(server: Large, line: Line, request: Request, what: str) -> bytes:
    """Print the peaks of one request, and return its answer, which may be an error."""
    process = line.process if isinstance(line, StdioLine) else server.process
    assert process is not None
    processes = {"kernel": server.kernel.pid, "bridge": process.pid}
    before = {}
    for name, pid in processes.items():
        forget_peak(pid)
        before[name] = memory_of(pid)
    line.prepare(request)
    began = time.perf_counter()
    answer = line.exchange()
    took = time.perf_counter() - began
    peaks = "   ".join(
        f"{name} +{(peak_of(pid) - before[name]) / server.tools:5.2f}"
        for name, pid in processes.items()
    )
    print(f"  {what:40} {peaks}   {took:6.2f} s   {len(answer):,} bytes at the client")
    return bytes(answer)


def originals(answer: bytes) -> list[str]:
    """Return the addresses of the originals that a result links to."""
    message = json.JSONDecoder().raw_decode(answer[answer.index(b"{") :].decode())[0]
    blocks = message["result"]["content"]
    texts = "\n".join(block.get("text", "") for block in blocks)
    return re.findall(r"notebook://[^\s,\]]+", texts)


def main() -> None:
    """Measure each result over each way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=100, metavar="N", help="default: 100")
    parser.add_argument("--ways", nargs="+", choices=["http", "stdio"], default=["http", "stdio"])
    options = parser.parse_args()
    if not can_see_peaks():
        parser.error("this system does not tell peaks")
    server = Large(options.mb * MB)
    try:
        for way in Large.ways():
            if way.transport not in options.ways:
                continue
            line = server.line(way)
            try:
                line.ask(ADD)
                for tool in LARGE:
                    answer = measure(server, line, call(tool, b""), f"{way} {tool}")
                    for uri in originals(answer) if tool == "text" else ():
                        request = Request("resources/read", {"uri": uri})
                        measure(server, line, request, f"{way} resources/read")
            finally:
                line.close()
    finally:
        server.close()


if __name__ == "__main__":
    main()
