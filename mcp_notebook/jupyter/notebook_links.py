"""The links between a Jupyter server and its notebooks, for the side panels of its pages.

Runs on the event loop of Jupyter Server. A link speaks the protocol of `mcp_notebook.wire` with a
thread of the kernel, so it works while a cell or a call holds the kernel's main thread; it needs no
bridge. Links are open while a page is connected. Nothing is polled: the records are read again when
a kernel starts, when a kernel without a link becomes idle (a cell may have loaded the extension),
and when a link ends.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
from msgspec import Struct, structs

from mcp_notebook.discovery.greeting import greet
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import FrameError, LinkError, VersionMismatch
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import FrameProtocol

ANSWER_LIMIT = 10.0
"""Seconds to wait for the answer to a request, and for the first state of all kernels."""
_KERNEL_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"
"""Jupyter Server's events about kernels, such as their start."""
_TOO_OLD = (
    "The mcp-notebook in this kernel is older than the side panel. Upgrade it there, restart the "
    "kernel, and run its cells again."
)
_OTHER_PROTOCOL = (
    "The kernel's mcp-notebook speaks version {} of the link's protocol, but that of the Jupyter "
    "server speaks version {}."
)
_OTHER_VERSION = (
    "Install the same version of mcp-notebook for the Jupyter server and for the kernel, and "
    "restart both."
)
_RESTARTED = "The kernel was restarted in the meantime: look at the panel again."
_NO_LINK = "The notebook has no running mcp-notebook. Run `%load_ext mcp_notebook` in it."

_RESTARTING = "The kernel is being restarted or shut down."

TroubleKind: TypeAlias = Literal["old", "version", "unreachable", "restarting"]
"""Why a kernel has no state: it is older than side panels, it is of another version that the server
does not understand, it does not answer, or its process is ending."""
State: TypeAlias = dict[str, Any]
"""A `NotebookState` as JSON, or a name with the reason why there is none (``trouble``, a sentence,
and ``trouble_kind``)."""
Event: TypeAlias = dict[str, Any]
"""``{"kernel": id, "changes": parts}``, with the changed parts of a kernel's state, or null if the
kernel is gone; or ``{"kernel": id, "show": true}`` if the notebook asks to open its panel."""
Watcher: TypeAlias = Callable[[Event], None]
"""Takes events."""
_Answer: TypeAlias = messages.PanelAnswer | messages.CallDetails | messages.CallStopped


@dataclass(eq=False)
class _Watch:
    """One period with connected pages."""

    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    """Cancelled at its end."""
    looked: anyio.Event = field(default_factory=anyio.Event)
    """Set after the records were read for the first time."""
    is_looking: bool = False
    is_due: bool = False
    """Whether the records have to be read (again)."""


@dataclass(frozen=True)
class _Trouble:
    """Why a kernel has no link."""

    record: str | None
    """The id of the record that is not tried again; None to try it at the next occasion."""
    state: State
    """The state that pages get."""


class NotebookLinks:
    """The links to the notebooks of one server.

    Args:
        kernels: The server's kernels.
        folder: The folder with the records of live kernels.
        events: The server's event logger; None if it has none.
        log: The server's log.
    """

    def __init__(
        self, kernels: MappingKernelManager, folder: Path, events: Any, log: logging.Logger
    ) -> None:
        self._kernels = kernels
        self._folder = folder
        self._events = events
        self._log = log
        self._watchers: set[Watcher] = set()
        self._links: dict[str, _NotebookLink] = {}
        """The links, by the Jupyter ids of their kernels."""
        self._troubles: dict[str, _Trouble] = {}
        """Kernels without a link, by Jupyter id."""
        self._observed: dict[str, Any] = {}
        """Kernels whose execution state is observed, by id."""
        self._watch = _Watch()

    async def add(self, watcher: Watcher) -> None:
        """Report all states and then each event to a watcher; return after the first states.

        Args:
            watcher: Must be removed in any case.
        """
        is_first = not self._watchers
        self._watchers.add(watcher)
        if is_first:
            self._begin()
        for kernel, state in self.read().items():
            watcher({"kernel": kernel, "changes": state})
        with anyio.move_on_after(ANSWER_LIMIT):
            await self._watch.looked.wait()

    def remove(self, watcher: Watcher) -> None:
        """Remove a watcher; with the last one, all links are closed."""
        if watcher in self._watchers:
            self._watchers.discard(watcher)
            if not self._watchers:
                self._end()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep links to all notebooks open during the block."""

        def ignore(_event: Event) -> None:
            pass

        try:
            await self.add(ignore)
            yield
        finally:
            self.remove(ignore)

    def read(self) -> dict[str, State]:
        """Return the state of each notebook, by the id of its kernel."""
        states = {kernel: dict(trouble.state) for kernel, trouble in self._troubles.items()}
        return states | {kernel: dict(it.state) for kernel, it in self._links.items() if it.state}

    async def ask(
        self,
        kernel: str,
        make: Callable[[int], messages.AnyMessage],
        *,
        record: str | None = None,
    ) -> tuple[Any, Sequence[bytes]]:
        """Send a kernel a request, and return its answer with the attachments.

        Args:
            kernel: Its Jupyter id, which it keeps when it is restarted.
            make: Makes the request, given its id.
            record: The id of the record that the page shows; None if it does not matter. The
                numbers of calls and questions begin again with each record.

        Raises:
            LinkError: The kernel has no link, has been restarted, or does not answer.
        """
        link = self._links.get(kernel)
        if link is None or not link.is_welcome:
            raise LinkError(_NO_LINK)
        if record is not None and link.state.get("kernel") != record:
            raise LinkError(_RESTARTED)
        return await link.ask(make)

    # -- which kernels there are -------------------------------------------------------------------

    def _begin(self) -> None:
        self._watch = _Watch()
        if self._events is not None:
            self._events.add_listener(schema_id=_KERNEL_ACTIONS, listener=self._hear_action)
        self._look_soon()

    def _end(self) -> None:
        if self._events is not None:
            self._events.remove_listener(schema_id=_KERNEL_ACTIONS, listener=self._hear_action)
        for kernel in self._observed.values():
            kernel.unobserve(self._hear_state, "execution_state")
        self._observed.clear()
        for task in tuple(self._watch.tasks):
            task.cancel()
        self._watch.looked.set()
        self._links.clear()
        self._troubles.clear()

    async def _hear_action(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:  # noqa: ARG002 - as Jupyter Server calls it
        self._look_soon()

    def _hear_state(self, change: dict[str, Any]) -> None:
        """Look for the record of a kernel without a link once it is idle."""
        kernel = getattr(change["owner"], "kernel_id", None)
        if change["new"] == "idle" and kernel not in self._links:
            self._look_soon()

    def _look_soon(self) -> None:
        """Read the records now, or again if they are being read."""
        if not self._watchers:
            return
        self._watch.is_due = True
        if not self._watch.is_looking:
            self._watch.is_looking = True
            self._start(self._look(self._watch))

    def _start(self, work: Any) -> None:
        watch = self._watch
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        watch.tasks.add(task)

        def forget(task: asyncio.Task[None]) -> None:
            watch.tasks.discard(task)
            if not task.cancelled() and task.exception() is not None:
                self._log.error("mcp-notebook's side panel failed", exc_info=task.exception())

        task.add_done_callback(forget)

    async def _look(self, watch: "_Watch") -> None:
        try:
            while watch.is_due:
                watch.is_due = False
                await self._find_notebooks()
                watch.looked.set()
        finally:
            watch.is_looking = False
            watch.looked.set()

    async def _find_notebooks(self) -> None:
        self._observe()
        records = await asyncio.to_thread(list_live_records, self._folder)
        ids = set(self._kernels.list_kernel_ids())
        # The newest record of a kernel is the one of the extension that is loaded now.
        newest = {record.jupyter_id: record for record in records if record.jupyter_id in ids}
        for kernel in self._troubles.keys() - newest.keys():
            if not self._is_ending(kernel):
                del self._troubles[kernel]
                self._tell(kernel, None)
        async with anyio.create_task_group() as greetings:
            for kernel, record in newest.items():
                if kernel is not None and not self._is_known(kernel, record):
                    greetings.start_soon(self._open, kernel, record)

    def _is_known(self, kernel: str, record: Record) -> bool:
        """Return whether a kernel has a link, or has failed to get one for good."""
        trouble = self._troubles.get(kernel)
        return kernel in self._links or (trouble is not None and trouble.record == record.id)

    def _is_ending(self, kernel: str) -> bool:
        """Return whether a kernel's process is ending, after which it may be started again.

        Pages that have not asked for it do not learn of it, and what they send the kernel is lost.
        """
        return (
            kernel in self._kernels.list_kernel_ids()
            # Not of all managers; this one's own restart sets and clears it.
            and getattr(self._kernels.get_kernel(kernel), "shutting_down", False) is True
        )

    def _observe(self) -> None:
        """Observe the execution states of all kernels, which Jupyter Server tracks."""
        kernel_ids = self._kernels.list_kernel_ids()
        for kernel_id in self._observed.keys() - set(kernel_ids):
            self._observed.pop(kernel_id).unobserve(self._hear_state, "execution_state")
        for kernel_id in kernel_ids:
            kernel = self._kernels.get_kernel(kernel_id)
            if self._observed.get(kernel_id) is not kernel and kernel.has_trait("execution_state"):
                kernel.observe(self._hear_state, "execution_state")
                self._observed[kernel_id] = kernel

    # -- links -------------------------------------------------------------------------------------

    async def _open(self, kernel: str, record: Record) -> None:
        try:
            greeting = await greet(record)
        except VersionMismatch as error:
            text = _OTHER_PROTOCOL.format(error.kernel, error.bridge)
            self._note_trouble(kernel, record, f"{text} {_OTHER_VERSION}", "version")
            return
        except LinkError as error:
            self._note_trouble(kernel, record, str(error), "unreachable")
            return
        link = _NotebookLink(greeting.connection, record.name)
        self._links[kernel] = link
        if self._troubles.pop(kernel, None) is not None:
            self._tell(kernel, None)
        first = anyio.Event()

        def tell(changes: State) -> None:
            self._tell(kernel, changes)
            first.set()

        link.on_state = tell
        link.on_show = partial(self._send, {"kernel": kernel, "show": True})
        if greeting.welcome.panel:
            link.is_welcome = True
            link.send(messages.WatchNotebook())
        else:
            link.state = _describe_trouble(record, _TOO_OLD, "old")
            tell(link.state)
        self._start(self._follow(kernel, record, link, first))
        with anyio.move_on_after(ANSWER_LIMIT):
            await first.wait()

    async def _follow(
        self, kernel: str, record: Record, link: "_NotebookLink", ended: anyio.Event
    ) -> None:
        """Receive a kernel's messages until the link ends; then set `ended`."""
        trouble = None
        try:
            await link.listen()
        except OSError as error:
            self._log.warning("mcp-notebook's link to %s is closed: %s", link.name, error)
        except FrameError as error:
            trouble = f"The side panel does not understand this kernel: {error} {_OTHER_VERSION}"
        finally:
            link.close()
            ended.set()
            if self._links.get(kernel) is link:
                del self._links[kernel]
                self._tell(kernel, None)
                if self._is_ending(kernel):
                    state = _describe_trouble(record, _RESTARTING, "restarting")
                    self._troubles[kernel] = _Trouble(None, state)
                    self._tell(kernel, state)
        if trouble is not None:
            self._note_trouble(kernel, record, trouble, "version")
        self._look_soon()  # the extension may have been reloaded

    def _note_trouble(self, kernel: str, record: Record, text: str, kind: TroubleKind) -> None:
        """Show why a kernel has no link.

        Another version is tried again only when the extension has been reloaded.

        Args:
            kernel: Its Jupyter id.
            record: Its record.
            text: Why.
            kind: Why, in a word.
        """
        self._log.warning("mcp-notebook's side panel: %s", text)
        final = None if kind == "unreachable" else record.id
        self._troubles[kernel] = _Trouble(final, _describe_trouble(record, text, kind))
        self._tell(kernel, self._troubles[kernel].state)

    def _tell(self, kernel: str, changes: State | None) -> None:
        self._send({"kernel": kernel, "changes": changes})

    def _send(self, event: Event) -> None:
        for watcher in tuple(self._watchers):
            watcher(event)


class _NotebookLink:
    """The conversation with one kernel."""

    def __init__(self, connection: FrameProtocol, name: str) -> None:
        self.name = name
        self.state: State = {}
        """The kernel's state."""
        self.is_welcome = False
        """Whether the kernel takes requests."""
        self.on_state: Callable[[State], None] = lambda _: None
        self.on_show: Callable[[], None] = lambda: None
        self._connection = connection
        self._next_id = itertools.count(1).__next__
        self._asked: dict[int, asyncio.Future[tuple[_Answer, Sequence[bytes]]]] = {}

    def send(self, message: messages.AnyMessage) -> None:
        """Send the kernel a message."""
        self._connection.send(message)

    async def listen(self) -> None:
        """Receive messages until the link ends."""
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
        """Close the link, and fail the requests that wait for an answer."""
        self.is_welcome = False
        self._connection.transport.close()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(LinkError(f"The kernel of {self.name!r} ended."))

    def _take(self, message: messages.AnyMessage, attachments: list[bytes]) -> None:
        match message:
            case messages.NotebookState():
                changes: State = _drop_absent(message)
                self.state |= changes
                self.on_state(changes)
            case messages.ShowPanel():
                self.on_show()
            case messages.PanelAnswer() | messages.CallDetails() | messages.CallStopped():
                answer = self._asked.get(message.id)
                if answer is not None and not answer.done():
                    answer.set_result((message, attachments))


def _describe_trouble(record: Record, text: str, kind: TroubleKind) -> State:
    return {"name": record.name, "trouble": text, "trouble_kind": kind}


def _drop_absent(value: Any) -> Any:
    """Return a part of a notebook's state as JSON, without members that are None."""
    if isinstance(value, Struct):
        parts = structs.asdict(value)
        return {name: _drop_absent(part) for name, part in parts.items() if part is not None}
    return [_drop_absent(item) for item in value] if isinstance(value, list) else value
