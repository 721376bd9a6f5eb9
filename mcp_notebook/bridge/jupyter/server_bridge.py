"""The bridge behind a Jupyter Server: serves the tools of that server's kernels to it only.

Runs on the event loop of a process that the server extension (`mcp_notebook.jupyter`) starts. It
listens where only the user can connect, on a Unix socket in a private folder (on Windows: on
loopback), and only the server has its token. Its first line on stdout is its address. Each line of
stdin is the list of the server's kernels, and the answer is a line on stdout: from then on, all
requests are answered for these kernels. When stdin ends, the server has ended, and the bridge ends
too.

Paths: ``/mcp`` has the tools of all notebooks, ``/mcp/NOTEBOOK`` those of one. When Jupyter ends
that notebook's kernel, its clients stay connected until the notebook is opened again. A client that
runs the notebook itself (`RUNS_HEADER`) is told that it is closed.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.abc

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.own_token_file import read_token
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.access.token_check import OwnToken
from mcp_notebook.bridge.asgi import Receive, Scope, Send, make_json_response, read_header
from mcp_notebook.bridge.jupyter.server_kernels import ServerKernels, is_of_notebook
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import FirstTools, NotebookServer, ServerOptions
from mcp_notebook.bridge.telemetry.audit_log import AuditLog, write_audit_log
from mcp_notebook.bridge.transports.connections import Connections
from mcp_notebook.bridge.transports.endpoint import PATH, Endpoint
from mcp_notebook.bridge.transports.http import serve_http
from mcp_notebook.discovery.records import Record
from mcp_notebook.http_headers import RUNS_HEADER
from mcp_notebook.settings.settings import Settings
from mcp_notebook.termination import handle_signals, list_termination_signals
from mcp_notebook.text.terminal import print_output

SETTLE_LIMIT = 3.0
"""Seconds that live notebooks have to answer before the first list is sent without them."""
MAX_VIEWS = 64
"""Endpoints of single notebooks. Beyond that, the oldest whose notebook is closed is removed."""


async def run_server_bridge(settings: Settings, folder: Path | None = None) -> None:
    """Serve the kernels that stdin lists until it ends or a signal arrives.

    Args:
        settings: All options.
        folder: Private folder for the socket; removed at the end. None: a new one.

    Raises:
        McpNotebookError: The token is too short.
    """
    settings = replace(settings, host="127.0.0.1", certfile=None, keyfile=None)
    token = read_token(settings)
    stop = anyio.Event()
    numbers = (signal.SIGINT, *list_termination_signals())
    with (
        handle_signals(numbers, lambda _: stop.set()),
        _open_private_listener(folder) as listener,
        write_audit_log(settings) as audit,
    ):
        kernels = ServerKernels(settings.records_folder)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kernels.watch_folder)
            views = _Views(settings, audit, kernels, tasks)
            address = listener.getsockname()
            is_socket = isinstance(address, str)
            print_output(json.dumps({"socket": address} if is_socket else {"port": address[1]}))
            _follow_stdin(kernels.take_line, stop)
            await serve_http(
                views,
                listener,
                settings=settings,
                authenticators=[OwnToken(token)],
                stop=stop,
                connections=Connections(RefusalLog(audit.note_request)),
            )
            tasks.cancel_scope.cancel()


class _NotebookView:
    """An MCP endpoint for some of the kernels.

    It has a catalogue of its own, so tool names do not depend on other notebooks.

    Args:
        settings: All options.
        audit: Notified of calls.
        records: Yields the records of these kernels, now and after each change.
    """

    def __init__(
        self,
        settings: Settings,
        audit: AuditLog,
        records: AsyncIterable[tuple[Record, ...]],
    ) -> None:
        self._records = records
        self._ready = anyio.Event()
        self._running = anyio.CancelScope()
        self._catalog = Catalog()
        self.links = Links(self._catalog, settings)
        self._server = NotebookServer(
            self._catalog,
            self.links,
            ServerOptions.from_settings(settings),
            first_tools=FirstTools(ready=self._ready.wait),
            audit=audit,
        )
        self.endpoint = Endpoint(self._server, settings)
        """Answers its clients."""
        self.kernel_ids: frozenset[str | None] = frozenset()
        """The Jupyter ids of its kernels, or else of those that it had last."""

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Follow the kernels and serve, until this is cancelled."""
        with self._running:
            async with self.links, self.endpoint.run(), anyio.create_task_group() as tasks:
                tasks.start_soon(self._server.announce_changes)
                tasks.start_soon(self.links.follow, self._read_records())
                task_status.started()
                with anyio.move_on_after(SETTLE_LIMIT):
                    await self.links.wait_until_settled()
                self._ready.set()

    def close(self) -> None:
        """Stop serving."""
        self._running.cancel()

    async def _read_records(self) -> AsyncIterator[tuple[Record, ...]]:
        async for records in self._records:
            ids = frozenset(record.jupyter_id for record in records)
            self.kernel_ids = ids or self.kernel_ids
            yield records


class _Views:
    """The endpoints of one bridge, each created at its first request."""

    def __init__(
        self,
        settings: Settings,
        audit: AuditLog,
        kernels: ServerKernels,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._settings = settings
        self._audit = audit
        self._kernels = kernels
        self._tasks = tasks
        self._views: dict[str, _NotebookView] = {}
        self._opening = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or list the notebooks if there is no such notebook."""
        path = scope["path"]
        notebook = path.removeprefix(PATH).strip("/") if path.startswith(f"{PATH}/") else ""
        async with self._opening:
            view = self._views.get(notebook) or await self._open_view(notebook)
        if view is None or (notebook and _runs_notebooks(scope) and self._has_ended(view)):
            answer = make_json_response({"error": self._explain_absence(notebook)}, 404)
            await answer(scope, receive, send)
        else:
            await view.endpoint({**scope, "path": PATH}, receive, send)

    async def end(self) -> None:
        """Answer the running calls, then end all streams and sessions."""
        async with anyio.create_task_group() as tasks:
            for view in self._views.values():
                tasks.start_soon(view.endpoint.end)

    async def end_sessions(self, caller: Caller) -> None:
        """End the sessions of a caller."""
        for view in self._views.values():
            await view.endpoint.end_sessions(caller)

    async def _open_view(self, notebook: str) -> _NotebookView | None:
        """Create the endpoint of a notebook, or of all; None if there is no such notebook."""

        def is_served(record: Record) -> bool:
            return not notebook or is_of_notebook(record, notebook)

        if notebook:
            await self._kernels.refresh()
            if not any(map(is_served, self._kernels.records)):
                return None
            self._make_room()
        view = _NotebookView(self._settings, self._audit, self._kernels.watch(is_served))
        await self._tasks.start(view.run)
        self._views[notebook] = view
        return view

    def _has_ended(self, view: _NotebookView) -> bool:
        """Return whether Jupyter has ended the kernels of an endpoint, such as idle ones."""
        return bool(view.kernel_ids) and not self._kernels.has_any(view.kernel_ids)

    def _make_room(self) -> None:
        """If there are too many endpoints, remove the oldest whose notebook is closed."""
        if len(self._views) >= MAX_VIEWS:
            absent = (name for name, view in self._views.items() if name and not len(view.links))
            name = next(absent, None)
            if name is not None:
                self._views.pop(name).close()

    def _explain_absence(self, notebook: str) -> str:
        names = sorted({record.name for record in self._kernels.records})
        others = f"Notebooks with tools: {', '.join(names)}." if names else "None is open."
        return (
            f"No open notebook of this Jupyter Server that has run `%load_ext mcp_notebook` is "
            f"called {notebook!r}. {others} {PATH} alone has the tools of all of them, also of "
            "those that are opened later."
        )


def _runs_notebooks(scope: Scope) -> bool:
    """Return whether a request's client runs the notebook once it is told that it is closed."""
    return read_header(scope, RUNS_HEADER.lower()) is not None


def _follow_stdin(take_line: Callable[[str], None], stop: anyio.Event) -> None:
    """Handle each line of stdin and confirm it, and stop when it ends."""
    loop = asyncio.get_running_loop()

    def take(line: str) -> None:
        take_line(line)
        with suppress(OSError):  # the server has ended: stdin ends, too
            print_output("taken")

    def read() -> None:
        # Not `sys.stdin`: the interpreter would wait for its lock at exit.
        with os.fdopen(os.dup(0), encoding="utf-8") as lines:
            for line in lines:
                loop.call_soon_threadsafe(take, line)
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=read, name="stdin", daemon=True).start()


@contextmanager
def _open_private_listener(folder: Path | None) -> Iterator[socket.socket]:
    """Listen where no other user can connect, if the system supports it."""
    if not hasattr(socket, "AF_UNIX"):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            yield listener
        return
    folder = folder or Path(tempfile.mkdtemp(prefix="mcp-notebook-"))  # mode 0700
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.fspath(folder / "bridge.sock"))
            listener.listen()
            yield listener
    finally:
        shutil.rmtree(folder, ignore_errors=True)
