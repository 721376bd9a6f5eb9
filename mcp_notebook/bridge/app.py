"""The bridge as a whole: builds its parts, owns their tasks, starts and stops them in order.

Runs in the bridge process; `run_stdio` and `run_http` are its two forms. Shutdown goes in this
order, within two seconds: no new requests, subscriptions ended, links closed (which cancels their
calls), headless kernels ended.
"""

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import anyio
import anyio.abc

from mcp_notebook._version import __version__
from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import NO_TOOLS, NotebookServer
from mcp_notebook.bridge.transports.access import read_token
from mcp_notebook.bridge.transports.http import listen, serve_http, serve_stdio, url_of
from mcp_notebook.discovery import (
    BridgeRecord,
    Record,
    process_started,
    read_bridge,
    watch_records,
    write_private,
)
from mcp_notebook.errors import McpNotebookError, NotebookError
from mcp_notebook.settings import Settings

logger = logging.getLogger(__name__)

FIRST_LIST_LIMIT = 30.0
"""Seconds that a client's first list of tools may wait: for the links to live notebooks, which
takes milliseconds, or for the cells of a headless one. Otherwise `tools/list` never waits; here it
would show nothing, and for good to clients that ignore `list_changed`."""
_IDLE_LOOK = 5.0
"""Seconds between two looks at whether a background bridge still has a notebook to serve."""
_SETTLE_LIMIT = 3.0
"""Seconds that live notebooks have to answer before the tools are told without them."""


async def run_stdio(settings: Settings, notebooks: Sequence[Path] = ()) -> None:
    """Serve one client over stdin and stdout until it leaves or a signal comes.

    Args:
        settings: All options.
        notebooks: To be run and served; all live notebooks of the user if there are none.

    Raises:
        McpNotebookError: A notebook cannot be served.
        KeyboardInterrupt: SIGINT came; all is shut down.
    """
    with _plain_errors():
        async with _Bridge(settings).running() as bridge, anyio.create_task_group() as tasks:

            async def end() -> None:
                await bridge.stop.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end)
            bridge.start(tasks, notebooks)
            await serve_stdio(bridge.server)
            tasks.cancel_scope.cancel()
        bridge.check_interrupted()


async def run_http(
    settings: Settings, notebooks: Sequence[Path] = (), *, background: bool = False
) -> None:
    """Serve clients over Streamable HTTP until a signal comes.

    Args:
        settings: All options.
        notebooks: To be run and served; all live notebooks of the user if there are none.
        background: Be the user's one background bridge: publish a record, keep the port from day
            to day, end some time after the last notebook has gone.

    Raises:
        McpNotebookError: A notebook cannot be served, or the address or token cannot be used.
        KeyboardInterrupt: SIGINT came; all is shut down.
    """
    if background and read_bridge(settings.bridge_file) is not None:
        return
    token = read_token(settings)
    listener = listen(settings, _remembered_port(settings) if background else None)
    with _plain_errors(), listener:
        async with _Bridge(settings).running() as bridge, anyio.create_task_group() as tasks:
            bridge.start(tasks, notebooks)
            await bridge.ready.wait()
            if background:
                tasks.start_soon(bridge.stop_when_idle)
            published = _published(settings, url_of(listener)) if background else nullcontext()
            if not bridge.stop.is_set():
                with published:
                    bridge.tell_address(url_of(listener))
                    await serve_http(
                        bridge.server, listener, token=token, host=settings.host, stop=bridge.stop
                    )
            tasks.cancel_scope.cancel()
        bridge.check_interrupted()


class _Bridge:
    """The parts of one bridge process, and what keeps them going."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.ready = anyio.Event()
        """Set when the first tools are known, or never will be."""
        self._interrupted = False
        self._kept = 0
        """Headless notebooks that are served, or will be."""
        self._catalog = Catalog()
        self.links = Links(self._catalog, on_change=self._changed)
        self.server = NotebookServer(
            self._catalog,
            self.links,
            ready=self._first_tools,
            with_meta_tools=settings.meta_tools,
            page_size=settings.page_size,
        )
        self.stop = anyio.Event()
        """Set when the bridge shall end."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Watch for signals, keep links and tell clients about changes for the block."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._watch_signals)
            async with self.links:
                tasks.start_soon(self.server.announce_changes)
                yield self
            tasks.cancel_scope.cancel()

    def start(self, tasks: anyio.abc.TaskGroup, notebooks: Sequence[Path]) -> None:
        """Start to serve these notebooks, or all live ones of the user if there are none."""
        if notebooks:
            tasks.start_soon(self._keep_notebooks, notebooks)
        else:
            tasks.start_soon(self._follow_users)

    async def _follow_users(self) -> None:
        """Serve the user's live notebooks as they come and go; headless ones have their bridge."""

        async def of_users() -> AsyncIterator[tuple[Record, ...]]:
            async for records in watch_records(self._settings.records_folder):
                yield tuple(record for record in records if record.owner == "user")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.links.follow, of_users())
            with anyio.move_on_after(_SETTLE_LIMIT):
                await self.links.settled()
            self.ready.set()

    async def _keep_notebooks(self, notebooks: Sequence[Path]) -> None:
        """Run notebooks, and keep them served.

        One that cannot be run at the start ends the bridge: somebody looks at it and can mend it.
        One that later cannot be restarted leaves the others served; the last one ends the bridge.

        Raises:
            McpNotebookError: One of these happened.
        """
        async with anyio.create_task_group() as tasks:
            progress = SharedProgress()
            self._kept = len(notebooks)
            for path in notebooks:
                await tasks.start(self._keep_notebook, path, progress)
            self.ready.set()

    async def _keep_notebook(
        self,
        path: Path,
        progress: SharedProgress,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        # Late: a bridge of live notebooks starts in three quarters of the time without.
        from mcp_notebook.bridge.headless.supervisor import Supervisor  # noqa: PLC0415

        supervisor = Supervisor(path, self._settings, self.links, progress)
        gave_up = await supervisor.run(task_status=task_status)
        self._kept -= 1
        if not self._kept:
            raise NotebookError(gave_up)
        print(gave_up, file=sys.stderr, flush=True)  # noqa: T201 - for the person who started it

    async def stop_when_idle(self) -> None:
        """Stop some time after the last notebook has gone."""
        idle_since = anyio.current_time()
        while True:
            await anyio.sleep(_IDLE_LOOK)
            now = anyio.current_time()
            if self.links.linked:
                idle_since = now
            elif now - idle_since > self._settings.idle_minutes * 60:
                logger.warning("no notebook for %g minutes: ends", self._settings.idle_minutes)
                self.stop.set()

    def tell_address(self, url: str) -> None:
        """Say on stderr where clients find what."""
        token = (
            "in the environment variable MCP_NOTEBOOK_TOKEN"
            if self._settings.token is not None
            else f"in the file {self._settings.token_path}"
        )
        tools = ", ".join(entry.name for entry in self._catalog.entries())
        print(  # noqa: T201 - for the person who started it
            f"Serving at {url}\nToken:     {token}\nTools:     {tools or 'none yet. ' + NO_TOOLS}",
            *(f"Problem:   {problem}" for problem in self.links.problems),
            sep="\n",
            file=sys.stderr,
            flush=True,
        )

    def check_interrupted(self) -> None:
        """Raise KeyboardInterrupt if that is what ended the bridge."""
        if self._interrupted:
            raise KeyboardInterrupt

    def _changed(self) -> None:
        self.server.tools_changed()

    async def _first_tools(self) -> None:
        with anyio.move_on_after(FIRST_LIST_LIMIT):
            await self.ready.wait()

    async def _watch_signals(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for signum in signals:
                self._interrupted = signum == signal.SIGINT
                self.stop.set()
                self.ready.set()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise an error of ours as itself, not in the groups that task groups make."""
    try:
        yield
    except BaseExceptionGroup as group:
        ours, _ = group.split(McpNotebookError)
        if ours is None:
            raise
        error: BaseException = ours
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@contextmanager
def _published(settings: Settings, url: str) -> Iterator[None]:
    """Publish the background bridge's record, and remember its port, for the block."""
    started = process_started(os.getpid())
    assert started is not None
    record = BridgeRecord(pid=os.getpid(), started=started, version=__version__, url=url)
    write_private(_port_file(settings), str(urlsplit(url).port))
    write_private(settings.bridge_file, record.model_dump_json(indent=1))
    try:
        yield
    finally:
        if read_bridge(settings.bridge_file) == record:
            settings.bridge_file.unlink(missing_ok=True)


def _port_file(settings: Settings) -> Path:
    return settings.home / "port"


def _remembered_port(settings: Settings) -> int | None:
    try:
        port = int(_port_file(settings).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return port if 0 < port < 2**16 else None  # nothing but a port can be listened on
