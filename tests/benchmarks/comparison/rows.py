"""What is measured: each row of the table, and how one round of it is measured for one way."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import psutil

from comparison import requests
from comparison.raw_clients import PATIENCE_S, Line, StdioLine, many_callers, one_caller
from comparison.requests import Request
from comparison.servers import OURS, SERVERS, Headless, Server, Way


class Servers:
    """The servers that run, each started when first asked for; and the connections to them."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self._running: dict[tuple[str, int], Server] = {}
        self._stdio: dict[tuple[Way, int], Line] = {}

    def server(self, name: str, tools: int) -> Server:
        """Return a server with this number of tools."""
        if (name, tools) not in self._running:
            self._running[name, tools] = server = SERVERS[name](tools)
            self.stack.callback(server.close)
        return self._running[name, tools]

    @contextmanager
    def lines(self, way: Way, tools: int, callers: int) -> Iterator[tuple[list[Line], int]]:
        """Yield connections for so many callers, and how many share one.

        Over HTTP each caller has a new connection, as servers close those that are idle for some
        seconds, and a session in the legacy era. The one client of stdio sends as many requests at
        a time; its server stays.
        """
        server = self.server(way.server, tools)
        if way.transport == "stdio":
            if (way, tools) not in self._stdio:
                self._stdio[way, tools] = line = server.line(way)
                self.stack.callback(line.close)
            yield [self._stdio[way, tools]], callers
            return
        lines: list[Line] = []
        try:
            lines.extend(server.line(way) for _ in range(callers))
            yield lines, 1
        finally:
            for line in lines:
                line.close()


@contextmanager
def running() -> Iterator[Servers]:
    """Yield servers, and end them."""
    servers = Servers()
    with servers.stack:
        yield servers


@dataclass(frozen=True)
class Part:
    """A row of the table.

    Args:
        key: What it is called in the file and on the command line.
        title: What it is called in the table.
        unit: Of its values.
    """

    key: str
    title: str
    unit: str


@dataclass(frozen=True)
class Scenario:
    """What is measured at a time: one row of the table, or several.

    Args:
        family: What it is called on the command line.
        parts: The rows.
        measure: Measures one round: servers, way and seconds to a value for each part.
        ways: What it can measure.
        callers: How many ask, if that matters.
    """

    family: str
    parts: tuple[Part, ...]
    measure: Callable[[Servers, Way, float], Sequence[float]]
    ways: tuple[Way, ...]
    callers: int | None = None


def ways_of(*servers: str) -> tuple[Way, ...]:
    """Return all ways of servers."""
    return tuple(way for name in servers for way in SERVERS[name].ways())


BESIDE = ways_of(OURS, "FastMCP", "SDK", "gradio")
IN_ONE_ERA = tuple(way for way in BESIDE if way.era == "modern" or way.server == "gradio")


def median_ms(line: Line, request: Request, seconds: float) -> float:
    """Return the median of what a request takes one caller."""
    return statistics.median(one_caller(line, request, seconds)) * 1e3


def make_measure(request: Request, callers: int, tools: int = 10) -> Callable[..., Sequence[float]]:
    """Return what measures a request: ms of one caller, or calls/s of several."""

    def measure(servers: Servers, way: Way, seconds: float) -> Sequence[float]:
        with servers.lines(way, tools, callers) as (lines, each):
            lines[0].ask(request)  # not all: the first would be idle, and closed, meanwhile
            if callers == 1:
                return [median_ms(lines[0], request, seconds)]
            return [many_callers(lines, request, seconds, each)]

    return measure


def start(_servers: Servers, way: Way, _seconds: float) -> Sequence[float]:
    """Start a server and, if it is ours, a kernel; list, call, and look at their memory."""
    server = Headless(10) if way.server == OURS else SERVERS[way.server](10)
    with closing(server):
        began = time.perf_counter()
        with closing(server.line(way)) as line:
            ask_for_all_tools(line)
            took = time.perf_counter() - began
            line.ask(requests.ADD)
            process = line.process if isinstance(line, StdioLine) else server.process
            assert process is not None
            bridge = psutil.Process(process.pid)
            memory = [bridge.memory_info()]
            kernels = [child.memory_info() for child in bridge.children(recursive=True)]
        rss, rss_kernels = (sum(m.rss for m in of) / requests.MB for of in (memory, kernels))
    return [took, rss, rss + rss_kernels]


def ask_for_all_tools(line: Line) -> None:
    """List until all tools are there: ours first lists what a notebook's source tells."""
    until = time.perf_counter() + PATIENCE_S
    while True:
        try:
            line.ask(requests.LIST)
        except requests.WrongAnswer:
            if time.perf_counter() > until:
                raise
            time.sleep(0.01)
        else:
            return


def first_list(servers: Servers, way: Way, _seconds: float) -> Sequence[float]:
    """Start a server over stdio and list; the kernel is there."""
    server = servers.server(way.server, 10)
    began = time.perf_counter()
    with closing(server.line(way)) as line:
        line.ask(requests.LIST)
        return [time.perf_counter() - began]


def requests_of(
    key: str, title: str, request: Request, *, tools: int = 10, ways: tuple[Way, ...] = BESIDE
) -> list[Scenario]:
    """Return what measures a request of 1, 8 and 32 callers."""
    scenarios = []
    for callers in (1, 8, 32):
        unit = "ms" if callers == 1 else "calls/s"
        who = "1 caller" if callers == 1 else f"{callers} callers"
        part = Part(f"{key}@{callers}", f"{title}, {who}", unit)
        scenarios.append(
            Scenario(key, (part,), make_measure(request, callers, tools), ways, callers)
        )
    return scenarios


NO_MORE_TOOLS = tuple(way for way in BESIDE if way.server != "gradio")
"""gradio has no server with 500 tools: it takes minutes to start."""
SCENARIOS: list[Scenario] = [
    *requests_of("add", "`add`", requests.ADD),
    *requests_of("prompt", "`prompts/get`", requests.PROMPT, ways=ways_of(OURS, "FastMCP")),
    *requests_of("resource", "`resources/read`", requests.RESOURCE, ways=ways_of(OURS, "FastMCP")),
    *requests_of("picture-500kb", "500 KB picture", requests.PICTURE_500KB),
    *requests_of("table-1mb", "1 MB table", requests.TABLE_1MB),
    *requests_of("argument-200kb", "200 KB argument", requests.ARGUMENT_200KB),
    *requests_of(
        "list-500", "`tools/list`, 500 tools", requests.LIST_500, tools=500, ways=NO_MORE_TOOLS
    ),
    Scenario(
        "start",
        (
            Part("start", "start to the whole list (ours: with a kernel)", "s"),
            Part("memory-bridge", "memory of the bridge (RSS)", "MB"),
            Part("memory-all", "memory of bridge and kernel (RSS)", "MB"),
        ),
        start,
        IN_ONE_ERA,
    ),
    Scenario(
        "first-list",
        (Part("first-list", "start over stdio to the first list, kernel there", "s"),),
        first_list,
        tuple(way for way in BESIDE if way.transport == "stdio"),
    ),
]
FAMILIES = list(dict.fromkeys(scenario.family for scenario in SCENARIOS))
KEYS = [part.key for scenario in SCENARIOS for part in scenario.parts]
