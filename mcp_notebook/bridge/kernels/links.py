"""All links of a bridge: made, kept and ended as kernels come and go; which of them a call is for.

Runs in the bridge, on its event loop. It keeps the `Catalog` up to date, and says when what clients
see has changed. Which kernels there are comes from `discovery` (live notebooks) or from
`bridge.headless.notebook`, the conversation with one of them is `bridge.kernels.link`'s business,
and what MCP makes of all this `bridge.server.server`'s.
"""

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias

import anyio
import anyio.abc

from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.running_call import NOBODY, Listener, RunningCall
from mcp_notebook.content import Resource, Result
from mcp_notebook.discovery import Record, is_alive
from mcp_notebook.errors import (
    KernelGone,
    LinkError,
    UnknownResource,
    VersionMismatch,
)
from mcp_notebook.wire import messages, resource_uris

logger = logging.getLogger(__name__)

RETRY_AFTER = 2.0
"""Seconds until a kernel that lives but did not answer is asked again."""
END_KNOWN_WITHIN = 0.5
"""Seconds to find out how a kernel ended; then its calls are answered without knowing it."""
_BRIDGE_ENDED = "The bridge ended, and the call was cancelled."
_GONE = (
    "The resource {uri!r} cannot be read: the notebook's kernel that kept it is gone (restarted, "
    "shut down, or mcp_notebook was unloaded). Call the tool again."
)

OnEnd: TypeAlias = Callable[[], Awaitable[str]]
"""Called when a kernel is gone; returns what its calls are told, `END_KNOWN_WITHIN` bounds it."""


class Links:
    """All links of one bridge; an async context manager that owns their tasks.

    Args:
        catalog: Gets the kernels' tools.
        on_change: Called on the event loop whenever what clients see has changed.
    """

    def __init__(self, catalog: Catalog, *, on_change: Callable[[], None]) -> None:
        self._catalog = catalog
        self._on_change = on_change
        self._links: dict[str, Link] = {}
        self._last_place = 0
        self._kept: set[str] = set()
        """Kernels that a task links, again and again if need be."""
        self._connecting: set[str] = set()
        """Those of them that are asked for the first time."""
        self._settled = anyio.Event()
        self._wanted: dict[str, Record] = {}
        self._problems: dict[str, str] = {}
        self._tasks: anyio.abc.TaskGroup

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each live kernel that could not be linked."""
        return tuple(self._problems.values())

    @property
    def calls_before(self) -> tuple[tuple[str, messages.CallInfo], ...]:
        """The calls that kernels had when they were linked, each with its kernel's id."""
        return tuple((id_, call) for id_, link in self._links.items() for call in link.calls_before)

    @property
    def current(self) -> tuple[Link, ...]:
        """The links that there are now, in the order in which they were made."""
        return tuple(self._links.values())

    @property
    def linked(self) -> int:
        """How many kernels are linked now."""
        return len(self._links)

    async def settled(self) -> None:
        """Wait until `follow` has asked each live kernel once; each answers or fails in time."""
        await self._settled.wait()

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for link in tuple(self._links.values()):
            link.close(_BRIDGE_ENDED)
        self._tasks.cancel_scope.cancel()
        # Not told of an error of the block: it would put that into a group, and no task has a part
        # in it.
        await self._tasks.__aexit__(None, None, None)

    async def follow(self, records: AsyncIterable[tuple[Record, ...]]) -> None:
        """Link the kernels that these records name, now and as they come and go."""
        async for current in records:
            self._wanted = {record.id: record for record in current}
            for gone in self._problems.keys() - self._wanted.keys():
                del self._problems[gone]
            for record in current:
                if record.id not in self._links and record.id not in self._kept:
                    # Its place and name among the notebooks: not a matter of who answers first.
                    self._set(record, [])
                    self._kept.add(record.id)
                    self._connecting.add(record.id)
                    self._tasks.start_soon(self._keep, record)
            self._settle()

    async def connect(self, record: Record) -> None:
        """Link one kernel; its tools are in the catalogue afterwards, until it is gone.

        Raises:
            LinkError: The kernel does not answer, or refuses.
        """
        link = await self._connect(record)
        self._tasks.start_soon(self._run, link, None)

    @asynccontextmanager
    async def linked_to(self, record: Record, on_end: OnEnd) -> AsyncIterator[Link]:
        """Link one kernel for the block.

        Args:
            record: Of the kernel.
            on_end: Called when the kernel is gone: the catalogue is up to it then.

        Raises:
            LinkError: The kernel does not answer, or refuses.
        """
        link = await self._connect(record)
        self._tasks.start_soon(self._run, link, on_end)
        try:
            yield link
        finally:
            link.close(_BRIDGE_ENDED)

    def set_away(self, kernel_id: str, reason: str) -> None:
        """Have a kernel's tools listed no more until it is linked again; calls get the reason."""
        if self._catalog.set_away(kernel_id, reason):
            self._on_change()

    async def call(
        self,
        entry: CatalogEntry,
        arguments: dict[str, Any],
        listener: Listener = NOBODY,
    ) -> Result:
        """Run a call in the kernel that offers the tool, to its end.

        Raises:
            KernelGone: The kernel died, or left, before it answered.
        """
        call = self.begin(entry, arguments, listener)
        with call.cancelled_with_block():
            result = await call.follow(listener)
        assert result is not None  # it cannot ask
        return result

    def begin(
        self,
        entry: CatalogEntry,
        arguments: dict[str, Any],
        listener: Listener = NOBODY,
        *,
        can_elicit: bool = False,
    ) -> RunningCall:
        """Begin a call in the kernel that offers the tool.

        Args:
            entry: The tool.
            arguments: As the client gave them.
            listener: What the client wants to hear of it.
            can_elicit: The client's user can be asked.

        Raises:
            KernelGone: The kernel is gone.
        """
        link = self._links.get(entry.kernel_id)
        if link is None:
            raise KernelGone(
                f"The kernel that offered {entry.name!r} is gone. List the tools again."
            )
        return link.begin(entry.tool.name, arguments, listener, can_elicit=can_elicit)

    async def read_resource(self, uri: str, most: int | None = None) -> Resource:
        """Return the content of a resource of a kernel's.

        Raises:
            CallError: It cannot be read, see `Link.read_resource`.
        """
        link = self._links.get(resource_uris.find_kernel_id(uri) or "")
        if link is None:
            raise UnknownResource(
                uri, None if resource_uris.find_kernel_id(uri) is None else _GONE.format(uri=uri)
            )
        return await link.read_resource(uri, most)

    async def _connect(self, record: Record) -> Link:
        link = Link(record, lambda tools: self._set(record, tools))
        await link.connect()
        self._last_place += 1
        link.place = self._last_place
        self._links[record.id] = link
        return link

    async def _keep(self, record: Record) -> None:
        """Connect to a live kernel, again and again while it lives and does not answer."""
        try:
            while record.id in self._wanted and is_alive(record):
                try:
                    await self.connect(record)
                except VersionMismatch as error:
                    self._problem(record, error)
                    return
                except LinkError as error:
                    self._problem(record, error)
                else:
                    self._problems.pop(record.id, None)
                    return
                self._connecting.discard(record.id)
                self._settle()
                await anyio.sleep(RETRY_AFTER)
        finally:
            self._connecting.discard(record.id)
            self._kept.discard(record.id)
            if record.id not in self._links:
                self._catalog.remove_kernel(record.id)
            self._settle()

    def _settle(self) -> None:
        if not self._connecting:
            self._settled.set()

    def _problem(self, record: Record, error: LinkError) -> None:
        if self._problems.get(record.id) != str(error):
            self._problems[record.id] = str(error)
            logger.warning("%s", error)

    async def _run(self, link: Link, on_end: OnEnd | None) -> None:
        reason = None
        try:
            await link.listen()
            self._drop(link)
            if on_end is None:
                self._forget(link.record)
            with anyio.move_on_after(END_KNOWN_WITHIN):
                if on_end is None:
                    await link.seen_dead()
                else:
                    reason = await on_end()
        finally:
            self._drop(link)
            link.close(reason)
            link.ended.set()

    def _drop(self, link: Link) -> None:
        # The same kernel may be linked anew already.
        if self._links.get(link.record.id) is link:
            del self._links[link.record.id]

    def _forget(self, record: Record) -> None:
        if self._catalog.remove_kernel(record.id):
            self._on_change()

    def _set(self, record: Record, tools: list[messages.ToolInfo]) -> None:
        if self._catalog.set_kernel(record.id, notebook=record.name, tools=tools):
            self._on_change()
