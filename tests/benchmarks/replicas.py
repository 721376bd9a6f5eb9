"""What replicas of a notebook give, and what they lose: a script, as its figures need a quiet time.

    python tests/benchmarks/replicas.py speed     # calls per second: 1 kernel, 2 kernels, by turns
    python tests/benchmarks/replicas.py losses    # 20 calls per second, a save, a kill -9

Bridges are real ones over HTTP on loopback. Each figure is printed, and a figure that is not
reached ends the script with status 1.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from pathlib import Path

import nbformat

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "e2e")]

from clients import http_bridge, over_http, text_of

LEAST_GAIN = 1.8
"""Calls per second of two kernels on two cores, in those of one."""
ROUNDS, CALLS = 5, 40
RATE = 20
TOOLS = """%%mcp_tool
import os, time

VERSION = {version}

def work() -> int:
    "Keep a processor busy for 100 ms of its time."
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    return os.getpid()

def who() -> str:
    "The version and the process, after 30 ms: a kernel that is killed has a call."
    time.sleep(0.03)
    return f"{{VERSION}} {{os.getpid()}}"
"""


def write_notebook(path: Path, version: int) -> None:
    """Save a version of the notebook, as Jupyter does: at once."""
    cells = [nbformat.v4.new_code_cell("%load_ext mcp_notebook")]
    cells.append(nbformat.v4.new_code_cell(TOOLS.format(version=version)))
    new = path.with_suffix(".new")
    nbformat.write(nbformat.v4.new_notebook(cells=cells), new)
    new.replace(path)


@contextmanager
def served(home: Path, *options: str):
    """Serve the notebook; yields the address and the file."""
    home.mkdir()
    path = home / "work.ipynb"
    write_notebook(path, 1)
    with http_bridge(home, str(path), *options, env={"MCP_NOTEBOOK_AUDIT": "no"}) as bridge:
        yield bridge.url, path


async def measure_rate(url: str) -> float:
    """Return the calls per second of four that call at once."""
    async with over_http(url, "auto") as client:
        await client.call_tool("work", {})
        left = list(range(CALLS))

        async def call() -> None:
            while left:
                left.pop()
                await client.call_tool("work", {})

        began = time.perf_counter()
        await asyncio.gather(*(call() for _ in range(4)))
        return CALLS / (time.perf_counter() - began)


async def compare_speed(folder: Path) -> bool:
    """Compare one kernel with two, by turns, so that a busy machine slows both."""
    with served(folder / "one") as (one, _), served(folder / "two", "--replicas", "2") as (two, _):
        gains = []
        for _ in range(ROUNDS):
            alone, together = await measure_rate(one), await measure_rate(two)
            gains.append(together / alone)
            print(f"{alone:6.1f} /s with 1 kernel, {together:6.1f} /s with 2: {gains[-1]:.2f}x")
    gain = statistics.median(gains)
    print(f"2 kernels answer {gain:.2f}x the calls per second of 1 (at least {LEAST_GAIN})")
    return gain >= LEAST_GAIN


async def count_losses(folder: Path) -> bool:
    """Call 20 times a second while the file is saved and a kernel is killed; count what is lost."""
    with served(folder / "loss", "--replicas", "2", "--watch") as (url, path):
        async with over_http(url, "auto") as client:
            answers: list[str] = []
            lost: list[str] = []

            async def call() -> None:
                result = await client.call_tool("who", {})
                (lost if result.is_error else answers).append(text_of(result))

            calls = 0
            async with asyncio.TaskGroup() as tasks:

                async def call_for(seconds: float) -> None:
                    nonlocal calls
                    began = time.perf_counter()
                    for number in range(round(RATE * seconds)):
                        await asyncio.sleep(began + number / RATE - time.perf_counter())
                        tasks.create_task(call())
                        calls += 1

                await call_for(4)
                write_notebook(path, 2)
                while not any(answer.startswith("2") for answer in answers):
                    await call_for(1)
                await call_for(2)
                os.kill(int(answers[-1].split()[1]), signal.SIGKILL)
                while len({answer for answer in answers if answer.startswith("2")}) < 3:
                    await call_for(1)  # until there is another kernel in its place
                await call_for(2)
    versions = [answer.split()[0] for answer in answers]
    figures = {
        "calls": calls,
        "answered": len(answers),
        "by version 2": versions.count("2"),
        "kernels": len(set(answers)),
        "lost": lost,
    }
    print(json.dumps(figures, indent=1))
    # A killed kernel has at most the calls that were sent to it: they are told so.
    is_told = all("was killed by SIGKILL" in text for text in lost)
    return len(answers) + len(lost) == calls and is_told


def main() -> int:
    """Run one of the measurements."""
    measure: dict[str, Callable[[Path], Awaitable[bool]]]
    measure = {"speed": compare_speed, "losses": count_losses}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figure", choices=measure)
    figure = parser.parse_args().figure
    with tempfile.TemporaryDirectory(prefix="mcpnb-", ignore_cleanup_errors=True) as folder:
        return 0 if asyncio.run(measure[figure](Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
