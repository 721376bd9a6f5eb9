"""The bridge's end of the links: one to each kernel, with its calls.

Runs in the bridge, on its event loop. It speaks `wire`, keeps the `Catalog` up to date, and says
when what clients see has changed. Which kernels there are comes from `discovery` (live notebooks)
or from `bridge.headless`; what MCP makes of all this is `bridge.server`'s business.

The end of a link's stream is how the death of a kernel is seen: every call of it is answered at
once. A link that ends on our side cancels its calls in the kernel, which would run on otherwise.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeAlias

import anyio
import anyio.abc

from mcp_notebook import wire
from mcp_notebook._version import __version__
from mcp_notebook.bridge.catalog import Catalog, CatalogEntry
from mcp_notebook.bridge.running import NOBODY, Listener, RunningCall
from mcp_notebook.content import Resource, Result
from mcp_notebook.discovery import Record, is_alive
from mcp_notebook.errors import (
    FrameError,
    KernelGone,
    LinkError,
    ResourceFailed,
    UnknownResource,
    VersionMismatch,
)

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5.0
"""Seconds that a kernel has to say welcome."""
LIST_LIMIT = 2.0
"""Seconds that a kernel has to say which resources it keeps, which its own thread does at once."""
READ_LIMIT = 60.0
"""Seconds that a kernel has to make the content of a resource, and to send it."""
RETRY_AFTER = 2.0
"""Seconds until a kernel that lives but did not answer is asked again."""
END_KNOWN_WITHIN = 0.5
"""Seconds to find out how a kernel ended; then its calls are answered without knowing it."""
_BRIDGE_ENDED = "The bridge ended, and the call was cancelled."
_LOOK_EVERY = 0.02
"""Seconds between two looks at whether the process of a link that ended is gone, too."""


_Reply: TypeAlias = tuple[wire.Resources | wire.Contents, list[bytes]]


class Link:
    """The conversation with one kernel, from its welcome to its end.

    Args:
        record: Where the kernel listens.
        on_tools: Takes the kernel's tools whenever they change.
    """

    def __init__(self, record: Record, on_tools: Callable[[list[wire.ToolInfo]], None]) -> None:
        self.record = record
        self._on_tools = on_tools
        self._calls: dict[int, RunningCall] = {}
        self._requests: dict[int, asyncio.Future[_Reply]] = {}
        """Questions for resources that are not answered yet."""
        self._has_resources = False
        self._last_id = 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._goodbye: str | None = None
        self._failure: str | None = None
        self.alive = False
        """Whether calls can be made."""
        self.calls_before: tuple[wire.CallInfo, ...] = ()
        """The calls, of any bridge, that the kernel had when this conversation began."""
        self.ended = anyio.Event()
        """Set when the conversation has ended and all its calls are answered."""

    async def connect(self) -> None:
        """Connect and greet; the kernel's tools are known afterwards.

        Raises:
            LinkError: The kernel does not answer, or refuses.
        """
        name = self.record.name
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                self._on_tools((await self._greet()).tools)
            self.alive = True
        except TimeoutError:
            raise LinkError(
                f"The kernel of {name!r} did not answer within {CONNECT_TIMEOUT:g} s."
            ) from None
        except OSError as error:
            raise LinkError(f"The kernel of {name!r} cannot be reached: {error}.") from None
        except FrameError as error:
            raise LinkError(f"What listens for {name!r} is no kernel of ours: {error}") from None
        finally:
            if not self.alive:
                self.close()

    async def _greet(self) -> wire.Welcome:
        self._reader, self._writer = await _open(self.record)
        self._send(wire.Hello(version=__version__, token=self.record.token))
        match await wire.read_message(self._reader):
            case (wire.Welcome() as welcome, _):
                if welcome.protocol != wire.PROTOCOL_VERSION:
                    raise VersionMismatch(kernel=welcome.protocol, bridge=wire.PROTOCOL_VERSION)
                self.calls_before = tuple(welcome.calls)
                self._has_resources = welcome.resources
                return welcome
            case (wire.Refused() as refused, _):
                raise LinkError(f"{self.record.name}: {refused.message}")
            case None:
                raise LinkError(f"The kernel of {self.record.name!r} hung up.")
            case (message, _):
                raise FrameError(f"its first message is {message.type!r}.")

    async def listen(self) -> None:
        """Take messages until the conversation ends; its calls wait on until `close`."""
        assert self._reader is not None
        try:
            while (frame := await wire.read_message(self._reader)) is not None:
                self._take(*frame)
        except (FrameError, OSError) as error:
            logger.warning("The link to %s is closed: %s", self.record.name, error)
            self._failure = f"The link to the kernel failed: {error}"
        finally:
            self.alive = False

    def close(self, reason: str | None = None) -> None:
        """End the conversation.

        Args:
            reason: What the calls that wait are told; None: what the link itself knows.
        """
        self.alive = False
        for call in self._calls.values():
            call.cancel("The bridge ended.")
            call.end(KernelGone(reason or self._obituary()))
        self._calls.clear()
        for request in self._requests.values():
            request.cancel()
        self._requests.clear()
        if self._writer is not None:
            self._writer.close()

    async def seen_dead(self) -> None:
        """Wait until the process is gone, if the kernel did not say goodbye.

        A process's streams end a moment before itself: asked too early, it would seem to live.
        """
        while self._goodbye is None and self._failure is None and is_alive(self.record):  # noqa: ASYNC110
            await anyio.sleep(_LOOK_EVERY)  # no event tells of the end of a process not our own

    def begin(
        self,
        tool: str,
        arguments: dict[str, Any],
        listener: Listener = NOBODY,
        *,
        can_elicit: bool = False,
    ) -> RunningCall:
        """Run a tool in the kernel.

        Raises:
            KernelGone: The kernel died, or left.
        """
        if not self.alive:
            raise KernelGone(self._obituary())
        call = RunningCall(self._next_id(), self._send_if_open)
        self._calls[call.id] = call
        self._send(
            wire.Call(
                id=call.id,
                tool=tool,
                arguments=arguments,
                progress=listener.progress is not None,
                log_level=listener.log_level,
                can_elicit=can_elicit,
            )
        )
        return call

    async def list_resources(self, after: int, limit: int) -> list[wire.ResourceInfo]:
        """Return resources that can be read now; none if the kernel does not say so in time.

        Args:
            after: Only those with a higher number.
            limit: At most so many.
        """
        number = self._next_id()
        question = wire.ListResources(id=number, after=after, limit=limit)
        try:
            async with asyncio.timeout(LIST_LIMIT):
                reply, _ = await self._request(number, question)
        except (KernelGone, TimeoutError) as error:
            logger.warning("The resources of %s are not listed: %r", self.record.name, error)
            return []
        assert isinstance(reply, wire.Resources)
        return reply.resources

    async def read_resource(self, uri: str) -> Resource:
        """Return the content of a resource.

        Raises:
            UnknownResource: There is none of this URI, or none any more.
            ResourceFailed: Its content cannot be made or sent.
            KernelGone: The kernel is gone, and the resource with it.
        """
        number = self._next_id()
        try:
            async with asyncio.timeout(READ_LIMIT):
                question = wire.ReadResource(id=number, uri=uri)
                reply, attachments = await self._request(number, question)
        except TimeoutError:
            raise ResourceFailed(
                f"The resource {uri!r} was not made within {READ_LIMIT:g} s, the limit of a read. "
                "Read another form of it, or ask the tool for less."
            ) from None
        assert isinstance(reply, wire.Contents)
        if reply.error is not None:
            raise UnknownResource(uri, reply.error) if reply.unknown else ResourceFailed(reply.error)
        return wire.unpack_contents(reply, attachments)

    async def _request(
        self, number: int, question: wire.ListResources | wire.ReadResource
    ) -> "_Reply":
        if not self.alive or not self._has_resources:
            raise KernelGone(f"The kernel of {self.record.name!r} keeps nothing to be read.")
        answered: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._requests[number] = answered
        try:
            self._send_if_open(question)
            await asyncio.wait([answered])
        finally:
            self._requests.pop(number, None)
        if answered.cancelled():
            raise KernelGone(
                f"The kernel of {self.record.name!r} is gone, and what it kept is gone with it. "
                "Call the tool again when the notebook's cells have run again."
            )
        return answered.result()

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _send_if_open(self, message: wire.AnyMessage) -> None:
        assert self._reader is not None
        assert self._writer is not None
        if not self._reader.at_eof() and not self._writer.is_closing():
            self._send(message)

    def _send(self, message: wire.AnyMessage) -> None:
        assert self._writer is not None
        for buffer in wire.encode(message):
            self._writer.write(buffer)

    def _take(self, message: wire.AnyMessage, attachments: list[bytes]) -> None:
        match message:
            case wire.Returned():
                call = self._calls.get(message.id)
                if call is not None:
                    call.take(message, attachments)
                    del self._calls[message.id]
            case wire.Progress() | wire.Log() | wire.Ask() | wire.Withdraw():
                call = self._calls.get(message.id)
                if call is not None:
                    call.take(message, attachments)
            case wire.Resources() | wire.Contents():
                request = self._requests.get(message.id)
                if request is not None and not request.done():
                    request.set_result((message, attachments))
            case wire.Tools():
                self._on_tools(message.tools)
            case wire.Goodbye():
                self._goodbye = message.reason
            case _:
                raise FrameError(f"A kernel does not send {message.type!r}.")

    def _obituary(self) -> str:
        name = self.record.name
        if self._goodbye is not None:
            return (
                f"The call was lost: {self._goodbye} The tools of {name!r} are back when its cells "
                "have run again."
            )
        if self._failure is not None:
            return f"The call was lost: {self._failure} (notebook {name!r})"
        if is_alive(self.record):
            return f"The kernel of {name!r} closed the link, and the call was lost. Call it again."
        return (
            f"The kernel of {name!r} died, and the call was lost. Its tools are back when the user "
            "has restarted the notebook's kernel and run its cells again."
        )


_GONE = (
    "The resource {uri!r} cannot be read: the notebook's kernel that kept it is gone (restarted, "
    "shut down, or mcp_notebook was unloaded). Call the tool again; list the tools if it is unknown."
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
    def calls_before(self) -> tuple[tuple[str, wire.CallInfo], ...]:
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

    async def read_resource(self, uri: str) -> Resource:
        """Return the content of a resource of a kernel's.

        Raises:
            CallError: It cannot be read, see `Link.read_resource`.
        """
        link = self._links.get(wire.kernel_of(uri) or "")
        if link is None:
            raise UnknownResource(uri, None if wire.kernel_of(uri) is None else _GONE.format(uri=uri))
        return await link.read_resource(uri)

    async def _connect(self, record: Record) -> Link:
        link = Link(record, lambda tools: self._set(record, tools))
        await link.connect()
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

    def _set(self, record: Record, tools: list[wire.ToolInfo]) -> None:
        if self._catalog.set_kernel(record.id, notebook=record.name, tools=tools):
            self._on_change()


async def _open(record: Record) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if record.socket is None:
        return await asyncio.open_connection("127.0.0.1", record.port, limit=wire.STREAM_LIMIT)
    owner = Path(record.socket).stat().st_uid  # noqa: ASYNC240 - a local socket, instant
    if owner != os.getuid():
        raise PermissionError(f"{record.socket} belongs to another user")
    return await asyncio.open_unix_connection(record.socket, limit=wire.STREAM_LIMIT)
