"""Sends the notebook's state to side panels after each change, and handles their requests.

Runs on the endpoint's thread; `Watchers.note_change` may be called from any thread. Without a side
panel, nothing is read or sent. A `NotebookView` provides the state.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct, structs

from mcp_notebook.errors import LinkError, McpNotebookError
from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.tools.context import Update
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between two updates."""
SETTLING = 0.03
"""Seconds by which an update is delayed, so that a short call causes one update and not three."""
CATCH_UP = 1.0
"""Seconds after which an update is tried again for a watcher that was behind."""
RETURN_LIMIT = 30.0
"""Seconds that a page has to come back, such as when it is reloaded, before the notebook counts as
shown nowhere."""
Send: TypeAlias = Callable[[messages.AnyMessage, Sequence[bytes]], None]
"""Sends a watcher a message with attachments; on the endpoint's thread."""


class NotebookView(Protocol):
    """Provides the notebook's state; implemented in `kernel.notebook.panel.side_panel_state`."""

    @property
    def log(self) -> CallLog:
        """The log of calls."""

    def read(self, progress: Mapping[int, Update]) -> messages.NotebookState:
        """Return the current state.

        Args:
            progress: The progress of open calls, by their numbers in the log.
        """

    def describe_call(
        self, request: messages.AskCall
    ) -> tuple[messages.CallDetails, Sequence[bytes]]:
        """Return a call's details and pictures. May take long; called on any thread."""

    def act(self, request: messages.PanelAction) -> str:
        """Do what a person wants, and return a sentence about it.

        Raises:
            McpNotebookError: It cannot be done now.
        """

    def set_watched(self, frontends: frozenset[messages.Frontend]) -> None:
        """Note which frontends have a side panel open."""


class _Watcher(Struct, eq=False):
    """A connected side panel, or a server with several."""

    is_behind: Callable[[], bool]
    """Returns whether too much of what was sent is still waiting."""
    frontend: messages.Frontend
    """Where it shows the notebook's questions."""
    told: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The state that was sent last, by field."""


class Watchers:
    """The connected side panels.

    Args:
        view: Provides the state.
        read_progress: Returns the progress of open calls, by their numbers in the log.
        interval: Seconds between two updates.
    """

    def __init__(
        self,
        view: NotebookView,
        read_progress: Callable[[], Mapping[int, Update]],
        *,
        interval: float = INTERVAL,
    ) -> None:
        self._view = view
        self._interval = interval
        self._read_progress = read_progress
        self._watchers: dict[Send, _Watcher] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        """None without watchers."""
        self._leaving: asyncio.TimerHandle | None = None
        """Runs when a watcher that left has not come back."""
        self._frontends: frozenset[messages.Frontend] = frozenset()
        """Those that the view was told of."""
        self._is_due = False
        self._last = 0.0

    def are_there(self) -> bool:
        """Whether there is a watcher."""
        return bool(self._watchers)

    def add(
        self,
        send: Send,
        is_behind: Callable[[], bool],
        frontend: messages.Frontend = "Jupyter",
    ) -> None:
        """Send the state to a watcher, now and after each change.

        Args:
            send: Sends it a message.
            is_behind: Returns whether too much of what was sent is still waiting.
            frontend: Where it shows the notebook's questions; may change.
        """
        if not self._watchers:
            self._loop = asyncio.get_running_loop()
            self._view.log.subscribe(self.note_change)
        watcher = self._watchers.setdefault(send, _Watcher(is_behind, frontend))
        watcher.frontend = frontend
        self._tell_frontends(self._frontends | self._find_frontends())
        self._note_departure()
        self._update()

    def remove(self, send: Send) -> None:
        """Stop sending to a watcher; does nothing if it was not added.

        The view is told only later: a reloaded page comes back at once, and what it shows must not
        appear in the notebook in the meantime.
        """
        if self._watchers.pop(send, None) is not None:
            if not self._watchers:
                self._view.log.unsubscribe(self.note_change)
                self._loop = None
            self._note_departure()

    def _find_frontends(self) -> frozenset[messages.Frontend]:
        return frozenset(each.frontend for each in self._watchers.values() if each.frontend)

    def _note_departure(self) -> None:
        """Wait for frontends that have left, if there are any, before the view is told."""
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self._find_frontends() != self._frontends:
            self._leaving = asyncio.get_running_loop().call_later(
                RETURN_LIMIT, lambda: self._tell_frontends(self._find_frontends())
            )

    def _tell_frontends(self, frontends: frozenset[messages.Frontend]) -> None:
        if frontends != self._frontends:
            self._frontends = frontends
            self._view.set_watched(frontends)

    def show_panel(self) -> bool:
        """Ask the watchers' pages to open their side panels; called on any thread.

        Returns:
            Whether there is a watcher that shows the notebook.
        """
        loop = self._loop
        if loop is None or not self._frontends:
            return False
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._send_to_all, messages.ShowPanel())
        return True

    def note_change(self) -> None:
        """Schedule an update; called on any thread."""
        loop = self._loop
        if loop is None or self._is_due:
            return
        # The call that reports progress here may be interrupted: without the shield, an interrupt
        # between the two steps would be the end of all updates.
        with Shield(), contextlib.suppress(RuntimeError):  # the loop is closed
            self._is_due = True
            loop.call_soon_threadsafe(self._schedule)

    def take(self, message: messages.AboutPanel, send: Send, is_behind: Callable[[], bool]) -> None:
        """Handle a watcher's request; `send` and `is_behind` as in `add`."""
        match message:
            case messages.WatchNotebook():
                self.add(send, is_behind, message.frontend)
            case messages.AskCall():
                self._describe_call(message, send)
            case _:
                try:
                    text, is_error = self._view.act(message), False
                except McpNotebookError as error:
                    text, is_error = str(error), True
                answer = messages.PanelAnswer(id=message.id, message=text, is_error=is_error)
                send(answer, ())
                self.note_change()

    def _send_to_all(self, message: messages.ShowPanel) -> None:
        for send in tuple(self._watchers):
            send(message, ())

    def _describe_call(self, request: messages.AskCall, send: Send) -> None:
        loop = asyncio.get_running_loop()

        def finish(done: asyncio.Future[Any]) -> None:
            if done.cancelled():
                return
            if done.exception() is not None:
                logger.error("a call could not be described", exc_info=done.exception())
                send(messages.CallDetails(id=request.id, is_known=False), ())
            else:
                send(*done.result())

        loop.run_in_executor(None, self._view.describe_call, request).add_done_callback(finish)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(max(SETTLING, self._last + self._interval - loop.time()), self._update)

    def _update(self) -> None:
        self._is_due = False  # later changes schedule another update
        self._last = asyncio.get_running_loop().time()
        if not self._watchers:
            return
        state = self._view.read(self._read_progress())
        parts = structs.asdict(state) | _count_apart(state.tools)
        for send, watcher in tuple(self._watchers.items()):
            if watcher.is_behind():  # it gets the whole difference once it has caught up
                asyncio.get_running_loop().call_later(CATCH_UP, self.note_change)
                continue
            changed = {name: part for name, part in parts.items() if part != watcher.told.get(name)}
            counts, before = changed.pop("counts", {}), watcher.told.get("counts", {})
            if "tools" in changed:
                changed["tools"] = state.tools  # with their counts
            elif counts:
                changed["counts"] = {
                    name: new for name, new in counts.items() if before.get(name) != new
                }
            if changed:
                try:
                    send(messages.NotebookState(**changed), ())
                except LinkError as error:  # the other watchers still get it
                    logger.warning("the state could not be sent to a side panel: %s", error)
                else:
                    watcher.told = parts


def _count_apart(tools: Sequence[messages.SeenTool] | None) -> dict[str, Any]:
    """Return tools apart from the numbers of their calls, which alone change with each call."""
    return {
        "tools": tools and [structs.replace(tool, calls=0, errors=0) for tool in tools],
        "counts": {tool.name: (tool.calls, tool.errors) for tool in tools or ()},
    }
