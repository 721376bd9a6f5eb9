"""Links to the server's notebooks, for the side panels of its pages: what is seen there, and done.

Belongs to the event loop of Jupyter Server. A link is the protocol of `mcp_notebook.wire`, spoken
with a thread of the kernel, so that it goes on while a cell or a call holds the kernel's main
thread. No bridge is started for it. Links are open while somebody watches, and nothing is polled
meanwhile: the records are read when a kernel of the server that has no link becomes idle (a cell
may have loaded the extension), when one is started, and when a link ends.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

from mcp_notebook.discovery.greeting import greet
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import FrameError, LinkError
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import FrameProtocol

ANSWER_LIMIT = 10.0
"""Seconds that a kernel has to answer a request."""
_KERNEL_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"
"""The events of Jupyter Server that tell of started kernels."""
_TOO_OLD = (
    "The mcp-notebook in this kernel is older than the side panel. Upgrade it there, restart the "
    "kernel, and run its cells again."
)
_NO_LINK = "The notebook has no running mcp-notebook. Run `%load_ext mcp_notebook` in it."

State: TypeAlias = dict[str, Any]
"""What there is to see of a notebook: a `NotebookState` as JSON, or ``{"trouble": sentence}``."""
OnChange: TypeAlias = Callable[[str, State | None], None]
"""Takes a kernel's id and what has changed there: all of it the first time; None: it is gone."""
_Answer: TypeAlias = messages.PanelAnswer | messages.CallDetails | messages.CallStopped


class NotebookLinks:
    """The links to the notebooks of one server.

    Args:
        kernels: The server's kernels.
        folder: Of the records of live kernels.
        events: The server's event logger; None if it has none.
        log: Of the server.
    """

    def __init__(
        self, kernels: MappingKernelManager, folder: Path, events: Any, log: logging.Logger
    ) -> None:
        self._kernels = kernels
        self._folder = folder
        self._events = events
        self._log = log
        self._watchers: set[OnChange] = set()
        self._links: dict[str, _NotebookLink] = {}
        """By the Jupyter ids of their kernels."""
        self._observed: dict[str, Any] = {}
        """The kernels whose state is observed, by their ids."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_looking = self._look_again = False
        self._looked = anyio.Event()

    async def add(self, on_change: OnChange) -> None:
        """Tell a watcher of each change, and first of all that there is; returns after that.

        Args:
            on_change: To be removed in any case.
        """
        if not self._watchers:
            self._begin()
        self._watchers.add(on_change)
        for kernel, state in self.read().items():
            on_change(kernel, state)
        await self._looked.wait()

    def remove(self, on_change: OnChange) -> None:
        """Tell a watcher nothing more; the last one takes the links with it."""
        if on_change in self._watchers:
            self._watchers.discard(on_change)
            if not self._watchers:
                self._end()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Have links to all notebooks during the block, which starts when they are open."""

        def ignore(_kernel: str, _changes: State | None) -> None:
            pass

        try:
            await self.add(ignore)
            yield
        finally:
            self.remove(ignore)

    def read(self) -> dict[str, State]:
        """Return what there is to see, by the ids of the kernels."""
        return {kernel: dict(link.state) for kernel, link in self._links.items() if link.state}

    async def ask(
        self, kernel: str, make: Callable[[int], messages.AnyMessage]
    ) -> tuple[Any, Sequence[bytes]]:
        """Send a kernel a request, and return its answer with the attachments.

        Args:
            kernel: Its Jupyter id.
            make: Makes the request of its id.

        Raises:
            LinkError: The kernel has no link, or does not answer.
        """
        link = self._links.get(kernel)
        if link is None or not link.is_welcome:
            raise LinkError(_NO_LINK)
        return await link.ask(make)

    # -- which kernels there are -------------------------------------------------------------------

    def _begin(self) -> None:
        self._looked = anyio.Event()
        if self._events is not None:
            self._events.add_listener(schema_id=_KERNEL_ACTIONS, listener=self._hear_action)
        self._look_soon()

    def _end(self) -> None:
        if self._events is not None:
            self._events.remove_listener(schema_id=_KERNEL_ACTIONS, listener=self._hear_action)
        for kernel in self._observed.values():
            kernel.unobserve(self._hear_state, "execution_state")
        self._observed.clear()
        for task in tuple(self._tasks):
            task.cancel()
        self._links.clear()
        self._is_looking = False

    async def _hear_action(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:  # noqa: ARG002 - as Jupyter Server calls it
        self._look_soon()

    def _hear_state(self, change: dict[str, Any]) -> None:
        """Look for the record of a kernel without a link once it is idle."""
        kernel = getattr(change["owner"], "kernel_id", None)
        if change["new"] == "idle" and kernel not in self._links:
            self._look_soon()

    def _look_soon(self) -> None:
        """Read the records; what happens meanwhile is seen by another look."""
        if self._is_looking:
            self._look_again = True
            return
        self._is_looking = True
        self._start(self._look())

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("mcp-notebook's side panel failed", exc_info=task.exception())

    async def _look(self) -> None:
        try:
            await self._find_notebooks()
        finally:
            self._is_looking = False
            self._looked.set()

    async def _find_notebooks(self) -> None:
        self._look_again = True
        while self._look_again:
            self._look_again = False
            self._observe()
            records = await anyio.to_thread.run_sync(list_live_records, self._folder)
            ids = set(self._kernels.list_kernel_ids())
            # The newest record of a kernel is the one of the extension that is loaded now.
            newest = {record.jupyter_id: record for record in records if record.jupyter_id in ids}
            async with anyio.create_task_group() as greetings:
                for kernel, record in newest.items():
                    if kernel is not None and kernel not in self._links:
                        greetings.start_soon(self._open, kernel, record)

    def _observe(self) -> None:
        """Hear of the states of all kernels; Jupyter Server reads them from their messages."""
        for kernel_id in self._kernels.list_kernel_ids():
            kernel = self._kernels.get_kernel(kernel_id)
            if self._observed.get(kernel_id) is not kernel and kernel.has_trait("execution_state"):
                kernel.observe(self._hear_state, "execution_state")
                self._observed[kernel_id] = kernel

    # -- links -------------------------------------------------------------------------------------

    async def _open(self, kernel: str, record: Record) -> None:
        try:
            greeting = await greet(record)
        except LinkError as error:
            self._log.warning("mcp-notebook's side panel: %s", error)
            return
        link = _NotebookLink(greeting.connection, record.name)
        self._links[kernel] = link
        first = anyio.Event()

        def tell(changes: State) -> None:
            self._tell(kernel, changes)
            first.set()

        link.on_state = tell
        if greeting.welcome.panel:
            link.is_welcome = True
            link.send(messages.WatchNotebook())
        else:
            link.state = {"name": record.name, "trouble": _TOO_OLD}
            tell(link.state)
        self._start(self._follow(kernel, link))
        with anyio.move_on_after(ANSWER_LIMIT):
            await first.wait()

    async def _follow(self, kernel: str, link: "_NotebookLink") -> None:
        """Take what a kernel says, until it is gone."""
        try:
            await link.listen()
        except (FrameError, OSError) as error:
            self._log.warning("mcp-notebook's link to %s is closed: %s", link.name, error)
        finally:
            link.close()
            if self._links.get(kernel) is link:
                del self._links[kernel]
                self._tell(kernel, None)
        self._look_soon()  # the extension may have been loaded anew

    def _tell(self, kernel: str, changes: State | None) -> None:
        for on_change in tuple(self._watchers):
            on_change(kernel, changes)


class _NotebookLink:
    """The conversation with one kernel."""

    def __init__(self, connection: FrameProtocol, name: str) -> None:
        self.name = name
        self.state: State = {}
        """All that the kernel has told, put together."""
        self.is_welcome = False
        """Whether the kernel takes requests."""
        self.on_state: Callable[[State], None] = lambda _: None
        self._connection = connection
        self._next_id = itertools.count(1).__next__
        self._asked: dict[int, asyncio.Future[tuple[_Answer, Sequence[bytes]]]] = {}

    def send(self, message: messages.AnyMessage) -> None:
        """Send the kernel a message."""
        self._connection.send(message)

    async def listen(self) -> None:
        """Take messages until the kernel is gone."""
        await self._connection.listen(self._take)

    async def ask(
        self, make: Callable[[int], messages.AnyMessage]
    ) -> tuple[_Answer, Sequence[bytes]]:
        """Send a request, and wait for its answer.

        Raises:
            LinkError: There is none.
        """
        request = self._next_id()
        answer: asyncio.Future[tuple[_Answer, Sequence[bytes]]]
        answer = self._asked[request] = asyncio.get_running_loop().create_future()
        try:
            self.send(make(request))
            async with asyncio.timeout(ANSWER_LIMIT):
                return await answer
        except TimeoutError:
            raise LinkError(
                f"The kernel of {self.name!r} did not answer within {ANSWER_LIMIT:g} s."
            ) from None
        finally:
            del self._asked[request]

    def close(self) -> None:
        """End the conversation, and what waits for answers."""
        self.is_welcome = False
        self._connection.transport.close()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(LinkError(f"The kernel of {self.name!r} ended."))

    def _take(self, message: messages.AnyMessage, attachments: list[bytes]) -> None:
        match message:
            case messages.NotebookState():
                changes = message.model_dump(exclude_none=True, exclude={"type"})
                self.state |= changes
                self.on_state(changes)
            case messages.PanelAnswer() | messages.CallDetails() | messages.CallStopped():
                answer = self._asked.get(message.id)
                if answer is not None and not answer.done():
                    answer.set_result((message, attachments))
