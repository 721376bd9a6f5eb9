"""What a call takes with more tools, kernels and clients, and with larger results. Ours alone.

Each size is measured once a round. `GROWTHS` names what grows; `comparison.figures` keeps none of
it, as there is nobody to compare with but the smaller size.
"""

import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from live import live_kernel

from comparison import requests
from comparison.raw_clients import Line, many_callers, one_caller
from comparison.requests import Request
from comparison.servers import NO_LIMITS, Ours, Way

WAYS = {
    "HTTP modern": Way(Ours.name, "http", "modern"),
    "HTTP legacy": Way(Ours.name, "http", "legacy"),
    "stdio modern": Way(Ours.name, "stdio", "modern"),
}
MODERN = "HTTP modern"


@dataclass
class Growth:
    """A plot: lines of values, each in each round, over sizes.

    Args:
        title: What is measured.
        sizes: What grows, for the axis.
        about: When, on what, and of which versions.
        lines: Name of a line to size (as text) to its rounds, in ms.
    """

    title: str
    sizes: str
    about: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, line: str, size: int, value: float) -> None:
        """Add a round's value."""
        self.lines.setdefault(line, {}).setdefault(str(size), []).append(value)

    def points(self, line: str) -> list[tuple[int, float]]:
        """Return a line's sizes and medians."""
        rounds = self.lines[line].items()
        return sorted((int(size), statistics.median(values)) for size, values in rounds)


def linear(points: list[tuple[int, float]]) -> list[float]:
    """Return what each point would be if the last one went on as those before it.

    That is a fixed cost and so much for each more: the straight line that is closest to all points
    but the last, by the squares of what is missing in parts of each.
    """
    weighted = [(x, y, y**-2) for x, y in points[:-1]]
    total = sum(w for _, _, w in weighted)
    mean_x, mean_y = (sum(p[i] * p[2] for p in weighted) / total for i in (0, 1))
    spread = sum(w * (x - mean_x) ** 2 for x, _, w in weighted)
    together = sum(w * (x - mean_x) * (y - mean_y) for x, y, w in weighted)
    slope = max(0.0, together / spread)
    cost = max(0.0, mean_y - slope * mean_x)
    return [cost + slope * x for x, _ in points]


def excess(points: list[tuple[int, float]]) -> float:
    """Return how many times as much as linear the largest size takes."""
    return points[-1][1] / linear(points)[-1]


def write(growths: dict[str, Growth], path: Path) -> None:
    """Write growths to a file, beside those that are there."""
    there = read(path) if path.exists() else {}
    content = {key: asdict(growth) for key, growth in (there | growths).items()}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Growth]:
    """Read growths from a file."""
    return {key: Growth(**of) for key, of in json.loads(path.read_text(encoding="utf-8")).items()}


# -- what is measured ------------------------------------------------------------------------------


class Growing(Ours):
    """A kernel with `add` as the first of so many tools."""

    def cells(self) -> list[str]:
        """Return what is in the notebook."""
        return ["%load_ext mcp_notebook", TOOLS % {"programs": str(PROGRAMS), "tools": self.tools}]

    def add_kernel(self, number: int) -> None:
        """Start another kernel, with a tool of its own."""
        notebook = f"notebook_{number}.ipynb"
        kernel = self.stack.enter_context(
            live_kernel(self.home, env=NO_LIMITS, notebook=str(self.home / notebook))
        )
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(
            f"%%mcp_tool\ndef other_{number}(a: int) -> int:\n    'Add one.'\n    return a + 1"
        )


PROGRAMS = Path(__file__).parents[1] / "programs"
TOOLS = """
import sys
sys.path.insert(0, %(programs)r)
from same_tools import add, fillers
from mcp_notebook import Resource, mcp_tool

@mcp_tool
def text(size: int) -> str:
    "Return a text."
    return "x" * size

@mcp_tool
def document(size: int) -> Resource:
    "Return a document that is not text."
    return Resource("file:///data.bin", bytes(size), "application/octet-stream")

for tool in [add, *fillers(%(tools)d - 3)]:
    mcp_tool(tool)
"""


def p50(line: Line, request: Request, seconds: float) -> float:
    """Return the median of what a request takes one caller, in ms."""
    line.ask(request)
    return statistics.median(one_caller(line, request, seconds)) * 1e3


Step = Callable[[], None]


@contextmanager
def servers(sizes: list[int]) -> Iterator[list[Growing]]:
    """Yield a server for each number of tools."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Growing(size))) for size in sizes]


def grow_tools(growth: Growth, sizes: list[int], rounds: int, seconds: float) -> Iterator[None]:
    """Measure a call, and the list, with more tools."""
    with servers(sizes) as running:
        for _ in range(rounds):
            for server, size in zip(running, sizes, strict=True):
                for name, way in WAYS.items():
                    with closing(server.line(way)) as line:
                        growth.add(f"`add`, {name}", size, p50(line, requests.ADD, seconds))
                        if name == MODERN:
                            listing = Request("tools/list", says=b'"tools"', least=100 * size)
                            growth.add("`tools/list`", size, p50(line, listing, seconds))
                    yield


def grow_kernels(growth: Growth, sizes: list[int], rounds: int, seconds: float) -> Iterator[None]:
    """Measure a call of one kernel's tool with more kernels beside it, and one without any."""
    with servers([10, 10]) as (server, alone):
        kernels = 1
        for size in sizes:
            while kernels < size:
                server.add_kernel(kernels)
                kernels += 1
                yield
            listing = Request("tools/list", says=b'"tools"', least=500 + 100 * size)
            for _ in range(rounds):
                for of, name in ((server, "beside the others"), (alone, "alone, at the same time")):
                    with closing(of.line(WAYS[MODERN])) as line:
                        growth.add(f"`add`, {name}", size, p50(line, requests.ADD, seconds))
                        if of is server:
                            growth.add("`tools/list`", size, p50(line, listing, seconds))
                yield


def grow_clients(growth: Growth, sizes: list[int], rounds: int, seconds: float) -> Iterator[None]:
    """Measure how long each of many clients waits that call all the time."""
    with servers([10]) as (server,):
        for _ in range(rounds):
            for size in sizes:
                for name in (MODERN, "HTTP legacy"):
                    with ExitStack() as stack:
                        lines = [
                            stack.enter_context(closing(server.line(WAYS[name])))
                            for _ in range(size)
                        ]
                        rate = many_callers(lines, requests.ADD, seconds)
                    growth.add(f"`add`, {name}", size, size / rate * 1e3)
                    yield


def grow_results(growth: Growth, sizes: list[int], rounds: int, seconds: float) -> Iterator[None]:
    """Measure calls that return a text, or a document that is not text."""
    with servers([10]) as (server,):
        for _ in range(rounds):
            for size in sizes:
                for name, way in WAYS.items():
                    with closing(server.line(way)) as line:
                        for tool, says in (("text", b'"x'), ("document", b'"blob"')):
                            if tool == "text" and size > LONGEST_TEXT:
                                continue
                            request = requests.call(tool, says, least=size, size=size)
                            growth.add(f"{tool}, {name}", size, p50(line, request, seconds))
                    yield


LONGEST_TEXT = 60_000_000
"""A longer one is an error: the link takes 64 MiB of JSON; documents travel beside it."""
GROWTHS = {
    "tools": (
        "Duration of a call and of tools/list, by number of tools",
        "tools",
        grow_tools,
        [3, 10, 50, 200, 500, 1_000],
    ),
    "kernels": (
        "Duration of a call and of tools/list, by number of kernels",
        "kernels",
        grow_kernels,
        [1, 2, 5, 10, 20],
    ),
    "clients": (
        "Duration of a call, by number of clients calling at the same time",
        "clients",
        grow_clients,
        [1, 5, 20, 50, 100, 200],
    ),
    "results": (
        "Duration of a call, by size of its result",
        "size of the result, bytes",
        grow_results,
        [10**n for n in range(9)],
    ),
}
"""Title, what grows, how it is measured, and the sizes."""
