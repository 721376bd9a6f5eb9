"""The states of a Jupyter server's notebooks, for the side panels of its pages.

Runs on the event loop of Jupyter Server. Its links speak with a thread of the kernel, so they work
while a cell or a call holds the kernel's main thread; they need no bridge. Links are open, and the
records of kernels are looked at, while a page is connected.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
from msgspec import Struct, structs

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.kernel_requests import PanelRequest
from mcp_notebook.bridge.kernels.link import Link, OfPanel
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import KernelGone, LinkError, VersionMismatch
from mcp_notebook.wire import messages

LOOK_INTERVAL = 0.5
"""Seconds between two looks at the records of the kernels."""
ANSWER_LIMIT = 10.0
"""Seconds to wait for the answer to a request, and for the first state of all kernels."""
_OTHER_PROTOCOL = (
    "The kernel's mcp-notebook speaks version {} of the link's protocol, but that of the Jupyter "
    "server speaks version {}. "
)
_NOT_UNDERSTOOD = "The side panel does not understand this kernel: {} "
_OTHER_VERSION = (
    "Install the same version of mcp-notebook for the Jupyter server and for the kernel, and "
    "restart both."
)
_RESTARTED = "The kernel was restarted in the meantime: look at the panel again."
_NO_LINK = "The notebook has no running mcp-notebook. Run `%load_ext mcp_notebook` in it."
_RESTARTING = "The kernel is being restarted or shut down."

TroubleKind: TypeAlias = Literal["version", "unreachable", "restarting"]
"""Why a kernel has no state: it is of another version that the server does not understand, it does
not answer, or its process is ending."""
State: TypeAlias = dict[str, Any]
"""A `NotebookState` as JSON, or a name with the reason why there is none (``trouble``, a sentence,
and ``trouble_kind``)."""
Event: TypeAlias = dict[str, Any]
"""``{"kernel": id, "changes": parts}``, with the changed parts of a kernel's state, or null if the
kernel is gone, with ``"unloaded": true`` if it runs on without mcp_notebook; or ``{"kernel": id,
"show": true}`` if the notebook asks to open its panel."""
Watcher: TypeAlias = Callable[[Event], None]
"""Takes events."""


class NotebookLinks:
    """The links to the notebooks of one server.

    Args:
        kernels: The server's kernels.
        folder: The folder with the records of live kernels.
        log: The server's log.
    """

    def __init__(self, kernels: MappingKernelManager, folder: Path, log: logging.Logger) -> None:
        self._kernels = kernels
        self._folder = folder
        self._log = log
        self._watchers: set[Watcher] = set()
        self._linked: dict[str, Link] = {}
        """The open links, by the Jupyter ids of their kernels."""
        self._states: dict[str, State] = {}
        """What pages see, by Jupyter id."""
        self._not_understood: set[str] = set()
        """The ids of the records of kernels that are not linked again."""
        self._links = Links(Catalog())
        self._running: asyncio.Task[None] | None = None
        """Keeps the links while there is a watcher."""
        self._news = asyncio.Event()
        """Set at each event."""

    async def add(self, watcher: Watcher) -> None:
        """Report all states and then each event to a watcher; return after the first states.

        Args:
            watcher: Must be removed in any case.
        """
        self._watchers.add(watcher)
        if self._running is None:
            self._begin()
        for kernel, state in self._states.items():
            watcher({"kernel": kernel, "changes": state})
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                await self._links.wait_until_settled()
                while self._linked.keys() - self._states.keys():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass  # their states will be events

    def remove(self, watcher: Watcher) -> None:
        """Remove a watcher; with the last one, all links are closed."""
        self._watchers.discard(watcher)
        if not self._watchers and self._running is not None:
            self._end(self._running)

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
        return dict(self._states)

    async def ask(
        self, kernel: str, make: Callable[[int], PanelRequest], *, record: str | None = None
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
        link = self._linked.get(kernel)
        if link is None:
            raise LinkError(_NO_LINK)
        if record is not None and link.record.id != record:
            raise LinkError(_RESTARTED)
        name = link.record.name
        try:
            return await link.requests.ask_for_panel(make, ANSWER_LIMIT)
        except KernelGone:
            raise LinkError(f"The kernel of {name!r} ended.") from None
        except TimeoutError:
            raise LinkError(
                f"The kernel of {name!r} did not answer within {ANSWER_LIMIT:g} s."
            ) from None

    # -- which kernels there are -------------------------------------------------------------------

    def _begin(self) -> None:
        self._links = Links(Catalog())
        self._links.on_link = self._note_link
        self._links.on_failure = self._note_failure
        self._running = asyncio.get_running_loop().create_task(self._run(self._links))
        self._running.add_done_callback(self._report_failure)

    def _end(self, running: asyncio.Task[None]) -> None:
        running.cancel()
        self._running = None
        self._linked.clear()
        self._states.clear()
        self._not_understood.clear()

    async def _run(self, links: Links) -> None:
        async with links:
            await links.follow(self._read_records())

    def _report_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._log.error("mcp-notebook's side panel failed", exc_info=task.exception())

    async def _read_records(self) -> AsyncIterator[tuple[Record, ...]]:
        """Yield the records of the server's kernels, again and again.

        Not `watch_records`: its thread would keep a server that is stopped from ending.
        """
        while True:
            records = await asyncio.to_thread(list_live_records, self._folder)
            ids = self._kernels.list_kernel_ids()
            # The newest record of a kernel is the one of the extension that is loaded now.
            newest = {record.jupyter_id: record for record in records if record.jupyter_id in ids}
            for kernel in self._states.keys() - self._linked.keys() - newest.keys():
                if not self._is_ending(kernel):
                    self._forget(kernel)
            yield tuple(
                record for record in newest.values() if record.id not in self._not_understood
            )
            await asyncio.sleep(LOOK_INTERVAL)

    def _is_ending(self, kernel: str) -> bool:
        """Return whether a kernel's process is ending, after which it may be started again.

        Pages that have not asked for it do not learn of it, and what they send the kernel is lost.
        """
        return (
            kernel in self._kernels.list_kernel_ids()
            # Not of all managers; this one's own restart sets and clears it.
            and getattr(self._kernels.get_kernel(kernel), "shutting_down", False) is True
        )

    # -- what pages see ----------------------------------------------------------------------------

    def _note_link(self, link: Link) -> None:
        """Watch a notebook whose link has opened; forget one whose link has ended."""
        kernel = link.record.jupyter_id or ""
        if link.is_open:
            self._forget(kernel)
            self._linked[kernel] = link
            link.watch(partial(self._take, kernel))
        elif self._linked.get(kernel) is link:
            del self._linked[kernel]
            self._forget(kernel, is_unloaded=link.is_unloaded)
            if self._is_ending(kernel):
                self._show_trouble(link.record, _RESTARTING, "restarting")
            if link.failure is not None and not link.is_understood:
                self._not_understood.add(link.record.id)
                text = _NOT_UNDERSTOOD.format(link.failure) + _OTHER_VERSION
                self._show_trouble(link.record, text, "version")

    def _note_failure(self, record: Record, error: LinkError) -> None:
        if isinstance(error, VersionMismatch):
            text = _OTHER_PROTOCOL.format(error.kernel, error.bridge) + _OTHER_VERSION
            self._show_trouble(record, text, "version")
        else:
            self._show_trouble(record, str(error), "unreachable")

    def _show_trouble(self, record: Record, text: str, kind: TroubleKind) -> None:
        """Show why a kernel has no state."""
        kernel = record.jupyter_id or ""
        self._states[kernel] = {"name": record.name, "trouble": text, "trouble_kind": kind}
        self._send({"kernel": kernel, "changes": self._states[kernel]})

    def _forget(self, kernel: str, *, is_unloaded: bool = False) -> None:
        if self._states.pop(kernel, None) is not None:
            unloaded = {"unloaded": True} if is_unloaded else {}
            self._send({"kernel": kernel, "changes": None, **unloaded})

    def _take(self, kernel: str, message: OfPanel) -> None:
        if isinstance(message, messages.ShowPanel):
            self._send({"kernel": kernel, "show": True})
        else:
            changes: State = _drop_absent(message)
            state = self._states.get(kernel, {})
            self._states[kernel] = state | _apply_counts(state, changes)
            self._send({"kernel": kernel, "changes": changes})

    def _send(self, event: Event) -> None:
        self._news.set()
        for watcher in tuple(self._watchers):
            watcher(event)


def _apply_counts(state: State, changes: State) -> State:
    """Return changes with the new numbers of calls in the tools that are known."""
    if "counts" not in changes:
        return changes
    others = {name: part for name, part in changes.items() if name != "counts"}
    tools = []
    for tool in state.get("tools", ()):
        calls, errors = changes["counts"].get(tool["name"], (tool["calls"], tool["errors"]))
        tools.append(tool | {"calls": calls, "errors": errors})
    return others | {"tools": tools}


def _drop_absent(value: Any) -> Any:
    """Return a part of a notebook's state as JSON, without members that are None."""
    if isinstance(value, Struct):
        parts = structs.asdict(value)
        return {name: _drop_absent(part) for name, part in parts.items() if part is not None}
    return [_drop_absent(item) for item in value] if isinstance(value, list) else value
