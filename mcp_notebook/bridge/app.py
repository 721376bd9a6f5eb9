"""The bridge as a whole: builds its parts, owns their tasks, starts and stops them in order.

Runs on the bridge's event loop, over stdio (`run_stdio`) or HTTP (`http_app.run_http`). It shuts
down in this order: it starts no more calls, ends subscriptions, cancels the running calls and
answers them, closes the clients' sessions and streams, then the links, and ends its headless
kernels. Clients that do not read their answers delay it by `ANSWER_GRACE`.
"""

import logging
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import anyio
import anyio.abc
import anyio.to_thread

from mcp_notebook.bridge.absent_notebooks import find_departed_notebooks, has_kernel
from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links, StartFailure
from mcp_notebook.bridge.server.server import FirstTools, NotebookServer, ServerOptions
from mcp_notebook.bridge.telemetry.audit_log import AuditLog, write_audit_log
from mcp_notebook.bridge.transports.stdio import serve_stdio
from mcp_notebook.discovery.records import Record, watch_records
from mcp_notebook.errors import McpNotebookError, NotebookError
from mcp_notebook.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.termination import handle_signals, list_termination_signals
from mcp_notebook.text.missing_tools import MissingTool
from mcp_notebook.text.terminal import print_note

if TYPE_CHECKING:
    from mcp_notebook.bridge.headless.early_kernel import EarlyKernel
    from mcp_notebook.bridge.headless.served_notebook import ServedNotebook

logger = logging.getLogger(__name__)

FIRST_LIST_LIMIT = 30.0
"""Seconds that a client's first list of tools may wait: for the links to live notebooks
(milliseconds) or for the cells of a headless one whose source tells nothing. `tools/list` never
waits otherwise, but an empty first list would stay empty for clients that ignore `list_changed`."""
_FAILURE_GRACE = 1.0
"""Seconds in which a client's first request may come when no notebook can be served: it is answered
with the reason."""
_IDLE_CHECK_INTERVAL = 5.0
"""Seconds between two checks whether a background bridge still has a notebook to serve."""
_NO_TOOLS = "none yet. Open a notebook, run `%load_ext mcp_notebook` and a `%%mcp_tool` cell."
_GREETING_LIMIT = 1.0
"""Seconds to wait for live notebooks before the server describes itself to its first client."""
_NO_TOOLS_IN_FOLDER = "none yet. Save a notebook there that has a `%%mcp_tool` cell."
_MAX_SHOWN = 40
"""Names of tools, and of notebooks, that are printed at the start."""
_NO_START = "The notebook could not be run. Its owner sees why where mcp-notebook was started."
"""The failure, for callers who do not get errors in full."""
_SETTLE_LIMIT = 3.0
"""Seconds that live notebooks have to answer before the first list goes out without them."""


async def run_stdio(
    settings: Settings, notebooks: Sequence[Path] = (), early: "EarlyKernel | None" = None
) -> None:
    """Serve one client over stdin and stdout until it leaves or a signal arrives.

    Args:
        settings: All options.
        notebooks: Notebooks to run and serve; if empty, the user's live notebooks are served.
        early: The kernel of the first of them, if it has been started already.

    Raises:
        McpNotebookError: A notebook cannot be served.
        KeyboardInterrupt: SIGINT arrived, and everything has been shut down.
    """
    caller = Caller(
        name="stdio",
        is_user=True,
        permissions=Permissions.from_settings(settings),
        errors=settings.errors or "full",
    )
    folders, _ = split_folders(notebooks)
    with unwrap_errors(), write_audit_log(settings) as audit:
        async with (
            Bridge(settings, audit, caller, has_folders=bool(folders)).run() as bridge,
            anyio.create_task_group() as tasks,
        ):
            bridge.start(tasks, notebooks, early)
            await serve_stdio(bridge.server, stop=bridge.stop, limits=settings)
            tasks.cancel_scope.cancel()
        bridge.check_end()


def split_folders(notebooks: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the folders among what is to be served, and the notebooks."""
    folders = [path for path in notebooks if path.expanduser().is_dir()]
    return folders, [path for path in notebooks if path not in folders]


class Bridge:
    """The parts of one bridge process, and what keeps them going.

    Args:
        settings: All options.
        audit: Notified of each call.
        default_caller: The caller if the transport does not name one.
        has_folders: Whether folders of notebooks are served.
        is_shared: Whether others than the user may be clients.
    """

    def __init__(
        self,
        settings: Settings,
        audit: AuditLog,
        default_caller: Caller = OWNER,
        *,
        has_folders: bool = False,
        is_shared: bool = False,
    ) -> None:
        self._settings = settings
        self._is_shared = is_shared
        self.ready = anyio.Event()
        """Set when the first tools are known, or when none can be expected."""
        self._can_list = anyio.Event()
        """Set when the first list can be answered, perhaps while headless kernels still start."""
        self._has_folders = has_folders
        self._starts_kernels = False
        """Whether kernels of notebooks are started at once."""
        self._is_interrupted = False
        self._failure: McpNotebookError | None = None
        """Why there is no notebook to serve."""
        self._is_failure_told = anyio.Event()
        """Set when a request has been answered with it."""
        self._headless_count = 0
        """Headless notebooks that are served or being started."""
        self._catalog = Catalog()
        self.links = Links(self._catalog, settings)
        self.server = NotebookServer(
            self._catalog,
            self.links,
            ServerOptions.from_settings(settings, runs_notebooks=has_folders),
            first_tools=FirstTools(
                ready=partial(self._wait_for_first, self.ready),
                can_list=partial(self._wait_for_first, self._can_list),
                settled=self._settle,
            ),
            default_caller=default_caller,
            audit=audit,
        )
        self.server.calls.find_departed_notebooks = self._find_departed_notebooks
        self.server.tasks.finder.has_kernel = partial(has_kernel, settings)
        self.stop = anyio.Event()
        """Set when the bridge is to stop."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Self]:
        """Watch for signals, run the links and announce changes for the block."""
        numbers = (signal.SIGINT, *list_termination_signals())
        with handle_signals(numbers, self._note_signal):
            async with anyio.create_task_group() as tasks:
                async with self.links:
                    tasks.start_soon(
                        self.server.announce_changes, partial(self._wait_for, self._can_list)
                    )
                    yield self
                tasks.cancel_scope.cancel()

    def start(
        self,
        tasks: anyio.abc.TaskGroup,
        notebooks: Sequence[Path],
        early: "EarlyKernel | None" = None,
    ) -> None:
        """Start serving these notebooks, or the user's live ones if there are none."""
        _, files = split_folders(notebooks)
        self._starts_kernels = bool(files)
        if notebooks:
            tasks.start_soon(self._serve_until_failure, notebooks, early)
        else:
            tasks.start_soon(self._serve_live)

    async def _serve_live(self) -> None:
        """Serve the user's live notebooks as they come and go, but not those of other bridges."""

        async def watch_users() -> AsyncIterator[tuple[Record, ...]]:
            async for records in watch_records(self._settings.records_folder):
                yield tuple(record for record in records if record.owner == "user")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.links.follow, watch_users())
            with anyio.move_on_after(_SETTLE_LIMIT):
                await self.links.wait_until_settled()
            self.note_ready()

    async def _serve_until_failure(
        self, notebooks: Sequence[Path], early: "EarlyKernel | None"
    ) -> None:
        """Serve notebooks; if that is impossible, tell the client why and stop the bridge."""
        try:
            with unwrap_errors():
                await self._serve_headless(notebooks, early)
        except McpNotebookError as error:
            self._failure = error
            self.links.end_starts(StartFailure(f"Nothing was called. {error}", _NO_START))
            self.note_ready()
            with anyio.move_on_after(_FAILURE_GRACE):
                await self._is_failure_told.wait()
            self.stop.set()

    async def _serve_headless(self, notebooks: Sequence[Path], early: "EarlyKernel | None") -> None:
        """Run notebooks and keep serving them; those in folders run when a call needs them.

        If a notebook cannot be run at the start, the bridge ends: a person is watching and can fix
        it. If a notebook cannot be restarted later, the others are still served, and the bridge
        ends after the last of them.

        Raises:
            McpNotebookError: A folder cannot be read, a notebook cannot be run, or the last one
                cannot be restarted.
        """
        folders, files = split_folders(notebooks)
        self._headless_count = len(notebooks)
        progress = SharedProgress()
        async with anyio.create_task_group() as tasks:
            served = self._list_last_offers(files, progress, early) if files else []
            if folders:
                from mcp_notebook.bridge.headless.folders.folder import (  # noqa: PLC0415 - see below
                    NotebookFolders,
                )

                labels = self._catalog.labels
                besides = {labels[notebook.id]: notebook.path for notebook in served}
                rest = NotebookFolders(folders, self._settings, self.links, progress, besides)
                await tasks.start(rest.run)
            if all(self.links.is_expected(notebook.id) for notebook in served):
                self._can_list.set()
            for notebook in served:
                await tasks.start(self._keep_served, notebook)
            self.note_ready()

    def _list_last_offers(
        self, notebooks: Sequence[Path], progress: SharedProgress, early: "EarlyKernel | None"
    ) -> "list[ServedNotebook]":
        """List what notebooks last offered, or declare; return what will serve them."""
        # A bridge for live notebooks starts in three quarters of the time without this import.
        from mcp_notebook.bridge.headless.served_notebook import ServedNotebook  # noqa: PLC0415

        served = []
        for path in notebooks:
            served.append(ServedNotebook(path, self._settings, self.links, progress, early=early))
            early = None
        # Reserve their names, which must not depend on which of them have run before.
        self._catalog.set_kernels([(notebook.id, notebook.name, (), {}) for notebook in served])
        known = [notebook.expect() for notebook in served if notebook.take_offer()]
        self.links.expect(known, is_first=True)
        return served

    async def _keep_served(
        self,
        notebook: "ServedNotebook",
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Keep one notebook served.

        Raises:
            McpNotebookError: It cannot be run, or it was the last one and cannot be restarted.
        """
        run = notebook.run
        if self._settings.watch:
            from mcp_notebook.bridge.headless.saved_notebook import (  # noqa: PLC0415 - see above
                SavedNotebook,
            )

            run = SavedNotebook(notebook).run
        reason = await run(task_status=task_status)
        self._headless_count -= 1
        if not self._headless_count:
            raise NotebookError(reason)
        print_note(reason)

    async def stop_when_idle(self) -> None:
        """Stop some time after the last notebook has gone."""
        idle_since = anyio.current_time()
        while True:
            await anyio.sleep(_IDLE_CHECK_INTERVAL)
            now = anyio.current_time()
            if len(self.links):
                idle_since = now
            elif now - idle_since > self._settings.idle_minutes * 60:
                logger.warning(
                    "stops after %g minutes without a notebook", self._settings.idle_minutes
                )
                self.stop.set()

    def print_address(self, url: str, notices: Sequence[str]) -> None:
        """Print the URL, the place of the token, an example and the tools to stderr."""
        # Not at the top: stdio bridges do not need it.
        from mcp_notebook.clients.snippets import format_install_command  # noqa: PLC0415

        lines = [
            f"Serving at {url}",
            *(f"Note:      {notice}" for notice in notices),
            f"Token:     in {self._settings.token_place}",
            f"Connect:   {format_install_command(self._settings, url)}",
            f"Tools:     {self._describe_tools()}",
            *(f"Problem:   {problem}" for problem in self.links.problems),
        ]
        print_note("\n".join(lines))

    def _describe_tools(self) -> str:
        """Return the names of the tools, or why there are none."""
        may_be_seen = Permissions.from_settings(self._settings).allow
        entries = self._catalog.entries()
        names = [entry.name for entry in filter(may_be_seen, entries)]
        if entries and not names:
            names = [entry.name for entry in entries]
            return (
                "none. --tools, --exclude or --read-only leaves out all of them: "
                f"{', '.join(names)}."
            )
        unknown = [entry.name for entry in self._catalog.entries("notebook")]
        texts = [_list_first(names)] if names else []
        if unknown:
            texts.append(f"unknown until they run: {_list_first(unknown)}")
        return "; ".join(texts) or (_NO_TOOLS_IN_FOLDER if self._has_folders else _NO_TOOLS)

    @property
    def is_ending(self) -> bool:
        """Whether the bridge has nothing to serve, or has been told to stop."""
        return self._failure is not None or self.stop.is_set()

    def check_end(self) -> None:
        """Raise what ended the bridge, unless its client left or a signal terminated it.

        Raises:
            McpNotebookError: No notebook could be served.
            KeyboardInterrupt: SIGINT arrived.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_interrupted:
            raise KeyboardInterrupt

    def _find_departed_notebooks(self) -> list[MissingTool]:
        """Return the user's notebooks that have left lately, if it is those that are served."""
        return [] if self._headless_count else find_departed_notebooks(self._settings)

    def note_ready(self) -> None:
        """Note that the first tools are known, or that none can be expected."""
        self.ready.set()
        self._can_list.set()

    async def _settle(self) -> bool:
        """Wait a moment for live notebooks, and return whether the first tools are known."""
        if not self._starts_kernels:
            with anyio.move_on_after(_GREETING_LIMIT):
                await self.ready.wait()
        return self.ready.is_set()

    async def _wait_for(self, event: anyio.Event) -> None:
        if not event.is_set():  # most requests come later: they take no turn of the loop
            with anyio.move_on_after(FIRST_LIST_LIMIT):
                await event.wait()

    async def _wait_for_first(self, event: anyio.Event) -> None:
        await self._wait_for(event)
        self._check_failure()

    def _check_failure(self) -> None:
        """Raise the error for a request if no notebook can be served."""
        if self._failure is not None:
            self._is_failure_told.set()
            # The text has the code of the cell that failed.
            text = _NO_START if self._is_shared else str(self._failure)
            raise ProtocolError(INTERNAL_ERROR, text)

    def _note_signal(self, number: signal.Signals) -> None:
        self._is_interrupted = number == signal.SIGINT
        self.stop.set()
        self.note_ready()


def _list_first(names: Sequence[str]) -> str:
    more = len(names) - _MAX_SHOWN
    return ", ".join(names[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")


@contextmanager
def unwrap_errors() -> Iterator[None]:
    """Unwrap our errors from the exception groups of task groups."""
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
