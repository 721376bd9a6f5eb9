"""All links of a bridge or of a Jupyter server: opened and closed as kernels come and go.

Runs on the event loop of that process. Keeps the `Catalog` up to date, and reports changes.
"""

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

import anyio
import anyio.abc
from msgspec import structs

from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.locked_tools import keep_locked
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER, Listener
from mcp_notebook.content import Resource, Result
from mcp_notebook.discovery.records import Record, is_alive
from mcp_notebook.errors import KernelGone, LinkError, NotStarted, UnknownResource, VersionMismatch
from mcp_notebook.settings.settings import ErrorDetail, Settings
from mcp_notebook.text.missing_tools import DroppedTool, MissingTool
from mcp_notebook.wire import messages, resource_uris

logger = logging.getLogger(__name__)

_DEFAULTS = Settings()
RETRY_AFTER = 2.0
"""Seconds before a live kernel that did not answer is tried again."""
START_PROGRESS_INTERVAL = 5.0
"""Seconds between two progress notifications while a call waits for its kernel: without them, some
clients stop waiting."""
END_LIMIT = 0.5
"""Seconds to find out how a kernel ended; after that, calls are answered without the reason."""
_BRIDGE_ENDED = "The bridge was stopped, and the call was cancelled."
_NOT_STARTED = "The bridge was stopped before the notebook's cells had run, and nothing was called."
_NO_LINK = "The kernel that offered {name!r} is gone. List the tools again."
_NOT_READ = "The bridge was stopped before the resource was read."
_LOST_RESOURCE = (
    "The resource {uri!r} cannot be read: the kernel that kept it is gone (it was restarted, shut "
    "down, or unloaded mcp_notebook). Call the tool again."
)

OnEnd: TypeAlias = Callable[[], Awaitable[str]]
"""Called when a kernel is gone; returns the error for its calls. `END_LIMIT` bounds it."""


@dataclass(frozen=True)
class StartFailure:
    """Why a kernel could not be started."""

    text: str
    """The whole reason, which may quote the notebook's code."""
    short: str
    """What callers get who do not get errors in full."""


@dataclass(frozen=True)
class ExpectedKernel:
    """A kernel whose tools are listed before it is linked."""

    id: str
    """Its notebook's id in the catalogue."""
    notebook: str
    """The name of its notebook."""
    tools: Sequence[messages.ToolInfo]
    """What it offered when it last ran."""
    start: Callable[[str | None, str], None] | None = None
    """Starts it when a call needs it; None: it is starting already. It is given the digest of the
    code that the call may run, or None for any, and the caller, unless it is the user."""
    missing: Mapping[str, DroppedTool] = field(default_factory=dict)
    """Those that its lock keeps from clients, by name."""


class Arrival:
    """The wait for an expected kernel; belongs to the bridge's event loop.

    Args:
        start: Starts the kernel, unless it is starting; None: it is.
    """

    def __init__(self, start: Callable[[str | None, str], None] | None = None) -> None:
        self._start = start
        self._news = anyio.Event()
        self.is_over = False
        """Whether the kernel is linked, or has failed to start."""
        self.failure: StartFailure | None = None
        """Why the kernel could not be started."""
        self.status = ""
        """How far the start has come, as a sentence; empty if unknown."""

    def start(self, code: str | None, guest: str) -> None:
        """Start the kernel, unless it is starting.

        Args:
            code: The digest of the code that may run; None: whatever its notebook has.
            guest: Who needs it, unless it is the user.
        """
        if self._start is not None:
            self._start(code, guest)

    async def wait(self) -> None:
        """Wait until it is over, or its status becomes known."""
        await self._news.wait()

    def note_status(self, status: str) -> None:
        """Note how far the start has come."""
        if not self.status:
            self._news.set()
            self._news = anyio.Event()
        self.status = status

    def finish(self, failure: StartFailure | None = None) -> None:
        """End the wait: the kernel is linked, or could not be started."""
        self.is_over, self.failure = True, failure
        self._news.set()


class Links:
    """All links of one process; an async context manager that owns their tasks.

    Args:
        catalog: Receives the kernels' tools.
        settings: Whether the kernels' variables are offered, and tools compared with locks.
        retry_after: Seconds before a live kernel that did not answer is tried again.
    """

    def __init__(
        self, catalog: Catalog, settings: Settings = _DEFAULTS, *, retry_after: float = RETRY_AFTER
    ) -> None:
        self._retry_after = retry_after
        self._catalog = catalog
        self._settings = settings
        self.on_change: Callable[[], None] = lambda: None
        """Called whenever the list of tools that clients see has changed."""
        self.on_link: Callable[[Link], None] = lambda _link: None
        """Called when a link has opened, and when it has ended."""
        self.on_failure: Callable[[Record, LinkError], None] = lambda _record, _error: None
        """Called when a live kernel cannot be linked, once for each reason."""
        self.on_resource_changes: Callable[[str, messages.ResourcesChanged], None]
        self.on_resource_changes = lambda _entry_id, _message: None
        """Called when declared resources may have changed, with the id of the kernel's notebook in
        the catalogue, and the kernel's message."""
        self._links: dict[str, Link] = {}
        """The open links, by the ids of their kernels."""
        self._serving: dict[str, Link] = {}
        """Those that calls go to, by the ids of their notebooks in the catalogue."""
        self._last_place = 0
        self._pending: set[str] = set()
        """Ids of the kernels that a task is trying to link."""
        self._first_attempts: set[str] = set()
        """Ids of the pending kernels that have neither answered nor failed yet."""
        self._expected: dict[str, Arrival] = {}
        """The kernels whose tools are listed before they are linked, by catalogue id."""
        self._settled = anyio.Event()
        self._records: dict[str, Record] = {}
        self._failures: dict[str, LinkError] = {}
        self._modified: dict[str, dict[str, float]] = {}
        """When each linked kernel's resources were last modified; see `messages.Tools.modified`."""
        self._tasks: anyio.abc.TaskGroup

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each live kernel that cannot be linked."""
        return tuple(str(error) for error in self._failures.values())

    @property
    def initial_calls(self) -> tuple[tuple[str, messages.CallInfo], ...]:
        """The calls that kernels already had when they were linked, with the kernels' ids."""
        return tuple(
            (id_, call) for id_, link in self._links.items() for call in link.initial_calls
        )

    @property
    def open_links(self) -> tuple[Link, ...]:
        """The open links, in the order in which they were opened."""
        return tuple(self._links.values())

    def __len__(self) -> int:
        return len(self._links)

    async def wait_until_settled(self) -> None:
        """Wait until every live kernel that `follow` found has answered or failed once."""
        await self._settled.wait()

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for link in self.open_links:
            link.close(_BRIDGE_ENDED)
        self._tasks.cancel_scope.cancel()
        # Not given the block's error: the task group would wrap it although no task raised it.
        await self._tasks.__aexit__(None, None, None)

    def expect(self, kernels: Sequence[ExpectedKernel], *, is_first: bool = False) -> None:
        """List the tools of kernels that are not linked yet, or no longer.

        A call that waits for one of them already continues to wait.

        Args:
            kernels: The kernels.
            is_first: Whether no list has been sent yet, so that nobody is told of a change.
        """
        for kernel in kernels:
            if kernel.id not in self._expected:
                self._expected[kernel.id] = Arrival(kernel.start)
        named = [(each.id, each.notebook, each.tools, each.missing) for each in kernels]
        if self._catalog.set_kernels(named) and not is_first:
            self.on_change()

    async def wait_for_kernel(  # noqa: PLR0913 - what it needs
        self,
        entry: CatalogEntry,
        listener: Listener = NO_LISTENER,
        *,
        errors: ErrorDetail,
        code: str | None = None,
        guest: str = "",
        progress_interval: float = START_PROGRESS_INTERVAL,
    ) -> bool:
        """Start a tool's kernel if necessary, and wait until it has run the notebook's cells.

        Args:
            entry: The tool, which its caller may call.
            listener: Is told that the call waits.
            errors: What its caller gets of a failure.
            code: The digest of the code that may run; None: whatever its notebook has.
            guest: The caller, unless it is the user.
            progress_interval: Seconds between two progress notifications.

        Returns:
            Whether it had to wait, so that the tool may have changed.

        Raises:
            NotStarted: The kernel cannot be started.
        """
        arrival = self._expected.get(entry.kernel_id)
        if arrival is not None:
            arrival.start(code, guest)
            await self._wait_for_arrival(arrival, entry, listener, errors, progress_interval)
        if (link := self.find_own_link(entry)) is not None:
            # It must not be stopped before the call is sent.
            link.note_use(is_users=not guest)
        return arrival is not None

    @staticmethod
    async def _wait_for_arrival(
        arrival: Arrival, entry: CatalogEntry, listener: Listener, errors: ErrorDetail, pause: float
    ) -> None:
        text = f"The kernel of {entry.notebook!r} is starting: the call waits until it is ready."
        while not arrival.is_over:
            if listener.progress is not None:
                message = f"{text} {arrival.status}".rstrip()
                await listener.progress(messages.Progress(id=0, message=message))
            with anyio.move_on_after(pause):
                await arrival.wait()
        failure = arrival.failure
        if failure is not None:
            text = failure.text if errors == "full" else failure.short
            raise NotStarted(text, details=failure.text)

    def is_expected(self, kernel_id: str) -> bool:
        """Return whether a kernel's tools are listed although it is not linked."""
        return kernel_id in self._expected

    def note_status(self, kernel_id: str, status: str) -> None:
        """Note how far the start of a kernel has come, for the calls that wait for it."""
        if (arrival := self._expected.get(kernel_id)) is not None:
            arrival.note_status(status)

    def note_failure(self, kernel: ExpectedKernel, failure: StartFailure) -> None:
        """Tell the calls that wait for a kernel why it could not be started; later ones try again.

        Args:
            kernel: The kernel.
            failure: Why it could not be started.
        """
        self._note_arrival(kernel.id, failure)
        self.expect([kernel])

    def forget(self, kernel_id: str, why: MissingTool) -> None:
        """Remove an expected kernel and its tools, and tell the calls that wait for it."""
        text = (
            f"The notebook {why.notebook!r} has not run to its end, and nothing was called. "
            f"{why.reason} {why.next_step}"
        )
        self._note_arrival(kernel_id, StartFailure(text, text))
        if self._catalog.remove_kernel(kernel_id, why):
            self.on_change()

    def _note_arrival(self, kernel_id: str, failure: StartFailure | None = None) -> None:
        if (arrival := self._expected.pop(kernel_id, None)) is not None:
            arrival.finish(failure)

    def end_starts(self, failure: StartFailure) -> None:
        """Tell the calls that wait for kernels why none of them will be there."""
        for kernel_id in tuple(self._expected):
            self._note_arrival(kernel_id, failure)

    def end_calls(self) -> None:
        """Cancel and answer all open calls and requests, because the bridge is stopping."""
        self.end_starts(StartFailure(_NOT_STARTED, _NOT_STARTED))
        for link in self.open_links:
            link.end_calls(_BRIDGE_ENDED)
            link.requests.end_reads(_NOT_READ)

    async def follow(self, records: AsyncIterable[tuple[Record, ...]]) -> None:
        """Link the kernels of these records as they come and go."""
        async for current in records:
            self._records = {record.id: record for record in current}
            for kernel_id in self._failures.keys() - self._records.keys():
                del self._failures[kernel_id]
            for record in current:
                if record.id in self._links:
                    self._rename(self._links[record.id], record)
                elif record.id not in self._pending and not self._is_of_other_version(record):
                    # Reserve its place and name, which must not depend on who answers first.
                    self._set_tools(record.id, record.name, messages.Tools(tools=[]))
                    self._pending.add(record.id)
                    self._first_attempts.add(record.id)
                    self._tasks.start_soon(self._link_when_ready, record)
            self._settle()

    async def connect(self, record: Record) -> None:
        """Link one kernel. Its tools are in the catalogue from then on until it is gone.

        Raises:
            LinkError: The kernel does not answer, or refuses the connection.
        """
        link = await self._connect(record)
        self._tasks.start_soon(self._run_link, link, None)

    @asynccontextmanager
    async def open_link(
        self, record: Record, on_end: OnEnd, entry_id: str = ""
    ) -> AsyncIterator[Link]:
        """Link one kernel for the block.

        Args:
            record: The kernel's record.
            on_end: Called when the kernel is gone. It must also update the catalogue.
            entry_id: The id of its notebook in the catalogue, whose calls go to it from now on;
                empty: that of its record.

        Raises:
            LinkError: The kernel does not answer, or refuses the connection.
        """
        link = await self._connect(record, entry_id)
        self._tasks.start_soon(self._run_link, link, on_end)
        try:
            yield link
        finally:
            link.close(_BRIDGE_ENDED)

    async def call(
        self,
        entry: CatalogEntry,
        arguments: dict[str, Any],
        listener: Listener = NO_LISTENER,
        *,
        client: messages.ClientInfo | None = None,
        confirmed: str | None = None,
    ) -> Result:
        """Call a tool in its kernel, and wait for the result; see `Link.start_call`.

        Raises:
            KernelGone: The kernel died or left before it answered.
        """
        call = self.find_link(entry).start_call(
            entry.tool.name, arguments, listener, client=client, confirmed=confirmed
        )
        with call.cancel_on_error():
            result = await call.follow(listener)
        assert result is not None  # the call cannot ask questions
        return result

    def find_own_link(self, entry: CatalogEntry) -> Link | None:
        """Return the link to a tool's kernel; None if it is gone."""
        return self._serving.get(entry.kernel_id)

    def find_link(self, entry: CatalogEntry) -> Link:
        """Return the link to a tool's kernel.

        Raises:
            KernelGone: The kernel is gone.
        """
        link = self.find_own_link(entry)
        if link is None:
            raise KernelGone(_NO_LINK.format(name=entry.name))
        return link

    async def read_resource(
        self, uri: str, most: int | None = None, *, guest: str = ""
    ) -> Resource:
        """Return the content of a kernel's resource.

        Raises:
            CallError: It cannot be read; see `KernelRequests.read_resource`.
        """
        kernel_id = resource_uris.find_kernel_id(uri)
        link = self._links.get(kernel_id or "")
        if link is None:
            raise UnknownResource(uri, kernel_id and _LOST_RESOURCE.format(uri=uri))
        return await link.requests.read_resource(uri, most, guest=guest)

    async def _connect(self, record: Record, entry_id: str = "") -> Link:
        link = Link(
            record,
            lambda message: self._take_tools(link, message),
            lambda message: self._note_resource_changes(link, message),
            inspects=self._settings.inspect,
        )
        link.entry_id = entry_id or record.id
        await link.connect()
        self._last_place += 1
        link.place = self._last_place
        self._links[record.id] = self._serving[link.entry_id] = link
        self.on_link(link)
        self._note_arrival(link.entry_id)
        return link

    def _rename(self, link: Link, record: Record) -> None:
        """Serve a renamed notebook under its new name."""
        if link.record.name == record.name:
            return
        link.record = structs.replace(link.record, name=record.name, notebook=record.notebook)
        if self._catalog.rename_kernel(record.id, record.name):
            self.on_change()

    async def _link_when_ready(self, record: Record) -> None:
        """Link a live kernel, retrying while it is alive and does not answer."""
        try:
            while record.id in self._records and is_alive(record):
                try:
                    await self.connect(record)
                except VersionMismatch as error:
                    self._note_link_failure(record, error)
                    return
                except LinkError as error:
                    self._note_link_failure(record, error)
                else:
                    self._failures.pop(record.id, None)
                    return
                self._first_attempts.discard(record.id)
                self._settle()
                await anyio.sleep(self._retry_after)
        finally:
            self._first_attempts.discard(record.id)
            self._pending.discard(record.id)
            if record.id not in self._links:
                self._catalog.remove_kernel(record.id)
            self._settle()

    def _settle(self) -> None:
        if not self._first_attempts:
            self._settled.set()

    def _note_link_failure(self, record: Record, error: LinkError) -> None:
        previous = self._failures.get(record.id)
        self._failures[record.id] = error
        if previous is None or str(previous) != str(error):
            logger.warning("%s", error)
            self.on_failure(record, error)

    def _is_of_other_version(self, record: Record) -> bool:
        """Return whether it is known that a kernel speaks another version, as it always will."""
        return isinstance(self._failures.get(record.id), VersionMismatch)

    async def _run_link(self, link: Link, on_end: OnEnd | None) -> None:
        reason = None
        try:
            await link.listen()
            is_newest = self._drop(link)
            is_forgotten = on_end is None and is_newest  # together with its tools
            if is_forgotten and self._catalog.remove_kernel(link.record.id, link.explain_end()):
                self.on_change()
            with anyio.move_on_after(END_LIMIT):
                if on_end is None:
                    await link.wait_for_death()
                else:
                    reason = await on_end()
            if on_end is None:
                self._catalog.explain_removal(link.record.id, link.explain_end())
        finally:
            self._drop(link)
            link.close(reason)
            link.end.set()

    def _drop(self, link: Link) -> bool:
        """Forget a link, and return whether it was the kernel's newest."""
        if self._serving.get(link.entry_id) is link:
            del self._serving[link.entry_id]
        if self._links.get(link.record.id) is not link:
            return False
        del self._links[link.record.id]
        self._modified.pop(link.record.id, None)
        self.on_link(link)
        return True

    def _note_resource_changes(self, link: Link, message: messages.ResourcesChanged) -> None:
        self._modified.setdefault(link.record.id, {}).update(message.modified)
        self.on_resource_changes(link.entry_id, message)

    def find_modified(self, entry: CatalogEntry, uri: str) -> float | None:
        """Return when a resource was last modified, in seconds since the epoch, if it is known.

        Args:
            entry: The resource, or its template.
            uri: The URI as the notebook knows it.
        """
        link = self.find_own_link(entry)
        return None if link is None else self._modified.get(link.record.id, {}).get(uri)

    def _take_tools(self, link: Link, message: messages.Welcome | messages.Tools) -> None:
        record = link.record  # now: the notebook may have been renamed
        self._modified[record.id] = dict(message.modified)
        is_replaced = self._links.get(record.id) is link is not self._serving.get(link.entry_id)
        if not is_replaced:
            if self._settings.locked:
                message = keep_locked(message, Path(record.notebook or "NOTEBOOK"))
            self._set_tools(link.entry_id, record.name, message)

    def _set_tools(
        self, entry_id: str, notebook: str, message: messages.Welcome | messages.Tools
    ) -> None:
        tools, missing = message.tools, message.missing
        if self._catalog.set_kernel(entry_id, notebook=notebook, tools=tools, missing=missing):
            self.on_change()
