"""The live panel: shown by ``%mcp panel``, and shown anew by itself, also while a cell runs.

Runs in the user's kernel. A daemon thread waits for changes, which others tell it of on any
thread, and updates the output; it is started with the first panel. All panels of a notebook are one
output in several places: each change is sent once, however many there are.

A burst of changes is shown as it happens, a few times a second. A kernel that is called without end
for days shows what is new every few seconds, and twice a minute once no cell has run for an hour:
then probably nobody looks, and Jupyter Server keeps each update for a page that was closed.
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
from mcp_notebook.kernel.calls.call_log import CallLog, LoggedCall
from mcp_notebook.kernel.notebook.live_display import LiveDisplay
from mcp_notebook.kernel.notebook.panel.panel_state import PanelState
from mcp_notebook.kernel.notebook.panel.panel_view import build_panel

logger = logging.getLogger(__name__)

_END_LIMIT = 2.0
"""Seconds to wait for the thread to end, which an update may keep busy."""
SHORTEST = 0.3
"""Seconds between two updates."""
SETTLING = 0.05
"""Seconds that an update waits for more: a short call comes and ends within them."""
BURST = 100
"""Updates that may come at the shortest distance."""
STEADY = 3.0
"""Seconds between two updates in the long run."""
ASLEEP = 30.0
"""The same when no cell has run for long."""
ASLEEP_AFTER = 3600.0
"""Seconds after the last cell."""


class StateReader(Protocol):
    """Knows what the panel shows: a `PanelSource`."""

    @property
    def log(self) -> CallLog:
        """Tells of the calls."""

    def read(self) -> PanelState:
        """Return what the panel shows now; on any thread."""


class UpdateRate:
    """Says when the next update may go out. Pure: the time goes in.

    Args:
        now: The monotonic clock's time, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._last_update = now - SHORTEST
        self._last_use = now
        self._left = float(BURST)
        """Updates that may come at the shortest distance, as of `_counted`."""
        self._counted = now
        self._first_change: float | None = None
        """When what is to be shown next began to change."""

    def note_use(self, now: float) -> None:
        """Note that the user works in the notebook."""
        self._count(now)
        self._last_use = now

    def note_update(self, now: float) -> None:
        """Note that an update went out."""
        self._count(now)
        self._last_update = now
        self._left = max(self._left - 1, 0.0)

    @property
    def has_change(self) -> bool:
        """Whether there is something new that is not shown."""
        return self._first_change is not None

    def note_change(self, now: float) -> None:
        """Note that there is something new."""
        if self._first_change is None:
            self._first_change = now

    def wait(self, now: float) -> float:
        """Return the seconds until what is new may be shown; 0 or less if it may now."""
        self._count(now)
        assert self._first_change is not None
        due = max(self._first_change + SETTLING, self._last_update + SHORTEST)
        if self._left < 1:
            due = max(due, now + (1 - self._left) * self._find_distance(now))
        return due - now

    def take_change(self) -> None:
        """Note that what is new is being shown; what comes from now on is new again."""
        self._first_change = None

    def _find_distance(self, now: float) -> float:
        return STEADY if now - self._last_use < ASLEEP_AFTER else ASLEEP

    def _count(self, now: float) -> None:
        """Allow updates for the time that has passed."""
        passed = max(now - self._counted, 0.0)
        self._left = min(self._left + passed / self._find_distance(now), float(BURST))
        self._counted = now


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
