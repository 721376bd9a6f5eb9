"""Two kernels, an HTTP bridge and four clients of both eras and transports, for `test_sequences`.

Runs in the test's thread; the clients live on the loop of a portal, in a thread of its own, and are
driven from outside. Every wait is for an event and bounded by `LIMIT`.
"""

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from clients import ERAS, TRANSPORTS, Changes, connected, http_bridge, over_http
from desk import LIMIT, Desk
from listing import list_tools
from live import LiveKernel, live_kernel
from mcp import Client
from mcp_types import CallToolResult, Tool

Listing = tuple[Tool, ...]


class Viewer:
    """A client that lists the tools when it is told that they changed, and only then.

    Belongs to the portal's loop.
    """

    def __init__(self, client: Client, changes: Changes) -> None:
        self.client = client
        self._changes = changes
        self._news = anyio.Event()
        self.seen: Listing = ()
        """The tools as it knows them."""

    async def list(self) -> Listing:
        """Ask for the tools."""
        with anyio.fail_after(LIMIT):
            return tuple(await list_tools(self.client, cache_mode="bypass"))

    async def follow(self) -> None:
        """List at each notice; runs for ever."""
        while True:
            self.seen = await self.list()
            self._news.set()
            self._news = anyio.Event()
            await self._changes.seen.wait()
            self._changes.seen = anyio.Event()

    async def until(self, wanted: Callable[[Listing], bool]) -> str:
        """Wait until it knows what is wanted, and is told the same when it asks.

        Where it is told something else, a notice must follow: a notebook that is loaded anew is
        away for a moment.

        Returns:
            What is wrong after all, "" for nothing.
        """
        problem = ""
        with anyio.move_on_after(LIMIT):
            while True:
                news = self._news
                if not wanted(self.seen):
                    problem = f"was not told, and knows {self.seen}"
                elif not wanted(listed := await self.list()):
                    problem = f"is told {listed} when it asks"
                else:
                    return ""
                await news.wait()
        return problem


@asynccontextmanager
async def _viewer(connect: Callable[..., Any], era: str) -> AsyncIterator[Viewer]:
    changes = Changes()
    async with (
        connect(message_handler=changes.handle) as client,
        changes.watch(client, era),
        anyio.create_task_group() as tasks,
    ):
        viewer = Viewer(client, changes)
        tasks.start_soon(viewer.follow)
        yield viewer
        tasks.cancel_scope.cancel()


class Connection:
    """A client that can go and come back."""

    def __init__(self, system: "System", era: str, transport: str) -> None:
        self.era, self.transport = era, transport
        self._system = system
        self._context: AbstractContextManager[Viewer] | None = None
        self.viewer: Viewer

    def __str__(self) -> str:
        return f"{self.era}/{self.transport}"

    def open(self) -> None:
        """Connect, over stdio to a bridge of its own."""
        connect = (
            partial(over_http, self._system.url, self.era)
            if self.transport == "http"
            else partial(connected, self._system.home, self.era, "stdio")
        )
        self._context = self._system.portal.wrap_async_context_manager(_viewer(connect, self.era))
        self.viewer = self._context.__enter__()

    def close(self) -> None:
        """Go."""
        if self._context is not None:
            context, self._context = self._context, None
            context.__exit__(None, None, None)

    def call(self, tool: str, arguments: dict[str, Any]) -> "Future[CallToolResult]":
        """Start a call."""
        return self._system.portal.start_task_soon(self.viewer.client.call_tool, tool, arguments)


class System:
    """All of it. Made by `running`."""

    def __init__(self, home: Path, portal: BlockingPortal, url: str, desk: Desk) -> None:
        self.home, self.portal, self.url, self.desk = home, portal, url, desk
        self.kernels: list[LiveKernel] = []
        self.oldest_first: list[LiveKernel] = []
        """The same, in the order in which their processes were started."""
        self.connections = [
            Connection(self, era, transport) for era in ERAS for transport in TRANSPORTS
        ]

    def shows(self, checks: dict[Connection, Callable[[Listing], bool]]) -> str:
        """Wait until all clients know what they should; return what is wrong after all."""

        async def wait() -> str:
            problems: list[str] = []

            async def one(connection: Connection, check: Callable[[Listing], bool]) -> None:
                if problem := await connection.viewer.until(check):
                    problems.append(f"{connection} {problem}")

            async with anyio.create_task_group() as tasks:
                for connection, check in checks.items():
                    tasks.start_soon(one, connection, check)
            return "\n".join(problems)

        return self.portal.call(wait)

    def leave(self, kernel: LiveKernel, *, kill: bool) -> None:
        """End a kernel's process: kill it, or as frontends do for a restart."""
        if kill:
            os.kill(kernel.pid, signal.SIGKILL)
        else:
            kernel.manager.interrupt_kernel()
            kernel.manager.request_shutdown(restart=True)
            kernel.manager.finish_shutdown(restart=True)

    def start_again(self, kernel: LiveKernel) -> None:
        """Start a kernel's process that has been left."""
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=LIMIT)
        self.oldest_first.remove(kernel)
        self.oldest_first.append(kernel)


@contextmanager
def running(home: Path) -> Iterator[System]:
    """Start everything in an empty folder, and end it."""
    with ExitStack() as stack:
        desk = Desk(home)
        stack.callback(desk.close)
        portal = stack.enter_context(start_blocking_portal())
        served = stack.enter_context(http_bridge(home))
        system = System(home, portal, served.url, desk)
        for notebook in ("sales", "stock"):
            path = str(home / f"{notebook}.ipynb")
            system.kernels.append(stack.enter_context(live_kernel(home, notebook=path)))
        system.oldest_first = list(system.kernels)
        for connection in system.connections:
            stack.callback(connection.close)
            connection.open()
        yield system
