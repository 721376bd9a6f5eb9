"""The live panel: shown by ``%mcp panel``, and shown anew by itself, also while a cell runs.

Runs in the user's kernel. A daemon thread waits for changes, which others tell it of on any
thread, and updates the output; it is started with the first panel. All panels of a notebook are one
output in several places: each change is sent once, however many there are.
"""

import contextlib
import logging
import os
import threading
import time
from dataclasses import replace
from time import monotonic
from typing import Protocol

from mcp_notebook.content import Result
from mcp_notebook.kernel.calls.call_log import CallLog
from mcp_notebook.kernel.calls.logged_call import LoggedCall
from mcp_notebook.kernel.notebook.live_display import LiveDisplay
from mcp_notebook.kernel.notebook.panel.panel_state import PanelState
from mcp_notebook.kernel.notebook.panel.panel_view import build_panel
from mcp_notebook.kernel.notebook.panel.update_rate import UpdateRate

logger = logging.getLogger(__name__)

_END_LIMIT = 2.0
"""Seconds to wait for the thread to end, which an update may keep busy."""


class StateReader(Protocol):
    """Knows what the panel shows: a `PanelSource`."""

    @property
    def log(self) -> CallLog:
        """Tells of the calls."""

    def read(self) -> PanelState:
        """Return what the panel shows now; on any thread."""


class LivePanel:
    """The panel of one notebook; all methods may be called on any thread.

    It observes the log of calls (`kernel.calls.call_log.CallLogObserver`).

    Args:
        source: What it shows.
        display: Where it shows it.
    """

    def __init__(self, source: StateReader, display: LiveDisplay) -> None:
        self.display = display
        """All its places in the notebook."""
        self._source = source
        self._condition = threading.Condition()
        """Guards what follows; the thread waits for it."""
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._rate = UpdateRate(monotonic())
        self._last: PanelState | None = None
        """What the thread sent last."""

    @property
    def is_shown(self) -> bool:
        """Whether there is a panel in the notebook."""
        return self._thread is not None

    def show(self) -> None:
        """Show the panel below the cell that runs."""
        state = self._source.read()
        self.display.show(build_panel(state, _make_stamp()))
        self._follow(state)

    def take_over(self, previous: "LivePanel") -> None:
        """Go on with the output of the panel of an extension that was loaded again."""
        if previous.is_shown:
            self.display = previous.display
            self._follow(None)

    def close(self, reason: str) -> None:
        """Show that the panel is gone, and why; harmless when done twice."""
        with self._condition:
            is_first, self._is_closed = not self._is_closed, True
            self._condition.notify_all()
        if not is_first or self._thread is None:
            return
        self._source.log.unsubscribe(self)
        if self._thread is not threading.current_thread():
            self._thread.join(_END_LIMIT)
        if not self._thread.is_alive():  # else what keeps it busy would do the same here
            with contextlib.suppress(Exception):  # what it reads may be half gone
                self._last = self._source.read()
        if self._last is not None:
            state = replace(self._last, departure=reason)
            self.display.update(build_panel(state, _make_stamp()))

    def note_change(self) -> None:
        """Show soon what there is now."""
        with self._condition:
            if self._thread is not None and not self._rate.has_change:
                # Once: what comes while an update is due must not wake the thread.
                self._rate.note_change(monotonic())
                self._condition.notify_all()

    def note_use(self) -> None:
        """Note that the user works in the notebook."""
        with self._condition:
            self._rate.note_use(monotonic())
        self.note_change()  # a call may wait for the cell

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

    # -- the thread --------------------------------------------------------------------------------

    def _follow(self, state: PanelState | None) -> None:
        """Keep the panel up to date from now on; `state` is what it shows."""
        with self._condition:
            if self._thread is None and not self._is_closed:
                self._last = state
                self._thread = threading.Thread(
                    target=self._run, name="mcp-notebook-panel", daemon=True
                )
                self._thread.start()
                self._source.log.subscribe(self)
        self.note_change()

    def _run(self) -> None:
        while self._wait_for_change():
            try:
                self._update()
            except Exception:
                logger.exception("the panel could not be updated")

    def _wait_for_change(self) -> bool:
        """Wait until something new may be shown; return whether the panel goes on."""
        with self._condition:
            while not self._is_closed:
                if not self._rate.has_change:
                    self._condition.wait()
                elif (seconds := self._rate.wait(monotonic())) > 0:
                    self._condition.wait(seconds)
                else:
                    self._rate.take_change()
                    return True
            return False

    def _update(self) -> None:
        state = self._source.read()
        if state == self._last:
            return
        bundle = build_panel(state, _make_stamp())
        if self._is_closed:  # it may say already that it is gone
            return
        self.display.update(bundle)
        self._last = state
        with self._condition:
            self._rate.note_update(monotonic())


def _make_stamp() -> str:
    """Return when and by which kernel something is shown."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S')}, kernel {os.getpid()}"
