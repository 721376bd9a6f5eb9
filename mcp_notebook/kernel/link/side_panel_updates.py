"""Those who show the notebook to people: what they are told, and what they ask for.

Belongs to the endpoint's thread, apart from `Watchers.note_change` and the methods that the log of
calls calls, which come on any thread. While nobody watches, nothing is read and nothing noted. What
there is to see comes from a `NotebookView`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from mcp_notebook.content import Result
from mcp_notebook.errors import LinkError, NoSuchQuestion
from mcp_notebook.kernel.calls.call_log import CallLog, LoggedCall
from mcp_notebook.kernel.tools.context import Update
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between two states that watchers are told."""
SETTLING = 0.03
"""Seconds that a state waits for more changes: a short call comes and ends within them."""

CATCH_UP = 1.0
"""Seconds after which a watcher that was behind is looked at again."""
Send: TypeAlias = Callable[[messages.AnyMessage, Sequence[bytes]], None]
"""Sends a watcher a message with attachments; on the endpoint's thread."""


class NotebookView(Protocol):
    """Knows what there is to see: `kernel.notebook.panel.side_panel_state`."""

    @property
    def log(self) -> CallLog:
        """Tells of the calls."""

    def read(self, progress: Mapping[int, Update]) -> messages.NotebookState:
        """Return all that there is to see now.

        Args:
            progress: What open calls have reported, by their numbers in the log.
        """

    def describe_call(
        self, request: messages.AskCall
    ) -> tuple[messages.CallDetails, Sequence[bytes]]:
        """Return all that is known of a call, and its pictures; on any thread: it may take long."""

    def answer_question(self, number: int, decision: messages.ConsentDecision) -> str:
        """Answer an open question, and return a sentence about it.

        Raises:
            NoSuchQuestion: It is not open.
        """

    def switch_tool(self, name: str, *, on: bool) -> str | None:
        """Take a tool from clients or give it back, and return a sentence; None: no such tool."""

    def set_watched(self, *, is_watched: bool) -> None:
        """Hear that somebody watches now, or nobody any more."""


@dataclass(eq=False)
class _Watcher:
    """Someone who watches."""

    is_behind: Callable[[], bool]
    """Returns whether much of what was sent has not been taken."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What it was told last: the parts by their names."""


class Watchers:
    """The conversations that show the notebook to people.

    It observes the log of calls (`kernel.calls.call_log.CallLogObserver`).

    Args:
        view: What they see.
        read_progress: Returns what open calls have reported, by their numbers in the log.
    """

    def __init__(
        self, view: NotebookView, read_progress: Callable[[], Mapping[int, Update]]
    ) -> None:
        self._view = view
        self._read_progress = read_progress
        self._watchers: dict[Send, _Watcher] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        """None while nobody watches."""
        self._is_due = False
        self._last = 0.0

    @property
    def are_there(self) -> bool:
        """Whether somebody watches."""
        return bool(self._watchers)

    def add(self, send: Send, is_behind: Callable[[], bool]) -> None:
        """Tell a watcher what there is to see from now on.

        Args:
            send: Sends it a message.
            is_behind: Returns whether it has not taken much of what was sent.
        """
        if not self._watchers:
            self._loop = asyncio.get_running_loop()
            self._view.log.subscribe(self)
            self._view.set_watched(is_watched=True)
        self._watchers.setdefault(send, _Watcher(is_behind))
        self._update()

    def remove(self, send: Send) -> None:
        """Tell a watcher nothing more; harmless if it is none."""
        if self._watchers.pop(send, None) is not None and not self._watchers:
            self._view.log.unsubscribe(self)
            self._loop = None
            self._view.set_watched(is_watched=False)

    def note_change(self) -> None:
        """Tell watchers soon what there is now; on any thread."""
        loop = self._loop
        if loop is None or self._is_due:
            return
        self._is_due = True
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody watches
            loop.call_soon_threadsafe(self._schedule)

    def take(self, message: messages.AboutPanel, send: Send, is_behind: Callable[[], bool]) -> None:
        """Do what a watcher asks for, and answer it; the last arguments are those of `add`."""
        match message:
            case messages.WatchNotebook():
                self.add(send, is_behind)
            case messages.SwitchTool():
                text = self._view.switch_tool(message.tool, on=message.on)
                _answer(send, message.id, text, f"There is no tool {message.tool!r} any more.")
            case messages.AnswerConsent():
                try:
                    text = self._view.answer_question(message.number, message.decision)
                except NoSuchQuestion as error:
                    _answer(send, message.id, None, str(error))
                else:
                    _answer(send, message.id, text)
            case messages.AskCall():
                self._describe_call(message, send)

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
        loop.call_later(max(SETTLING, self._last + INTERVAL - loop.time()), self._update)

    def _update(self) -> None:
        self._is_due = False  # what changes from here on is told by the next one
        self._last = asyncio.get_running_loop().time()
        if not self._watchers:
            return
        state = self._view.read(self._read_progress())
        parts = {name: getattr(state, name) for name in type(state).model_fields if name != "type"}
        for send, watcher in tuple(self._watchers.items()):
            if watcher.is_behind():  # it gets everything at once when it has caught up
                asyncio.get_running_loop().call_later(CATCH_UP, self.note_change)
                continue
            changed = {name: part for name, part in parts.items() if part != watcher.told.get(name)}
            if changed:
                try:
                    send(messages.NotebookState.model_construct(**changed), ())
                except LinkError as error:  # the others are told all the same
                    logger.warning("a side panel cannot be told of the notebook: %s", error)
                else:
                    watcher.told = parts

    # -- what the log of calls tells ---------------------------------------------------------------

    def call_came(self, call: LoggedCall) -> None:  # noqa: ARG002 - as the log tells it
        """Show a call that came."""
        self.note_change()

    def call_moved(self, call: LoggedCall) -> None:  # noqa: ARG002
        """Show that a call runs, or waits."""
        self.note_change()

    def call_ended(self, call: LoggedCall, result: Result) -> None:  # noqa: ARG002
        """Show what became of a call."""
        self.note_change()


def _answer(send: Send, request: int, text: str | None, failure: str = "") -> None:
    answer = messages.PanelAnswer(
        id=request, message=failure if text is None else text, is_error=text is None
    )
    send(answer, ())
