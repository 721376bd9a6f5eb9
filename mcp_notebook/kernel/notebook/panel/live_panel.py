"""The live panel: shown by ``%mcp panel`` and updated automatically, also while a cell runs.

Runs in the user's kernel. A daemon thread, started with the first panel, waits for changes, which
any thread may note, and updates the output. All panels of a notebook are one output in several
places, so each change is sent once.

A burst of changes is shown at once, a few times a second. Under constant load, the panel is updated
every few seconds, and twice a minute when no cell has run for an hour: then probably nobody is
looking, and Jupyter Server buffers each update for a page that was closed.
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
"""Seconds to wait for the thread to end, which may be busy with an update."""
SHORTEST = 0.3
"""Seconds between two updates."""
SETTLING = 0.05
"""Seconds that an update waits for more changes: a short call ends within them."""
BURST = 100
"""Updates that may follow each other after `SHORTEST` seconds."""
STEADY = 3.0
"""Seconds between two updates under constant load."""
ASLEEP = 30.0
"""Seconds between two updates when the notebook is not in use."""
ASLEEP_AFTER = 3600.0
"""Seconds after the last cell until the notebook counts as not in use."""


class StateReader(Protocol):
    """Reads the panel's state: a `PanelSource`."""

    @property
    def log(self) -> CallLog:
        """The log of calls."""

    def read(self) -> PanelState:
        """Return the current state; on any thread."""


class UpdateRate:
    """Rate limit of the updates, a token bucket. Pure: callers pass the time.

    Args:
        now: The monotonic clock's time, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._last_update = now - SHORTEST
        self._last_use = now
        self._left = float(BURST)
        """Tokens in the bucket, as of `_counted`."""
        self._counted = now
        self._first_change: float | None = None
        """When the first change came that is not shown yet."""

    def note_use(self, now: float) -> None:
        """Note that the user works in the notebook."""
        self._count(now)
        self._last_use = now

    def note_update(self, now: float) -> None:
        """Note that an update was sent."""
        self._count(now)
        self._last_update = now
        self._left = max(self._left - 1, 0.0)

    @property
    def has_change(self) -> bool:
        """Whether there is a change that is not shown yet."""
        return self._first_change is not None

    def note_change(self, now: float) -> None:
        """Note a change."""
        if self._first_change is None:
            self._first_change = now

    def wait(self, now: float) -> float:
        """Return the seconds until the next update may be sent; 0 or less if it may be sent now."""
        self._count(now)
        assert self._first_change is not None
        due = max(self._first_change + SETTLING, self._last_update + SHORTEST)
        if self._left < 1:
            due = max(due, now + (1 - self._left) * self._find_distance(now))
        return due - now

    def take_change(self) -> None:
        """Note that all changes so far are being shown."""
        self._first_change = None

    def _find_distance(self, now: float) -> float:
        return STEADY if now - self._last_use < ASLEEP_AFTER else ASLEEP

    def _count(self, now: float) -> None:
        """Refill the bucket for the time that has passed."""
        passed = max(now - self._counted, 0.0)
        self._left = min(self._left + passed / self._find_distance(now), float(BURST))
        self._counted = now


class LivePanel:
    """The panel of one notebook; all methods may be called on any thread.

    It observes the log of calls (`kernel.calls.call_log.CallLogObserver`).

    Args:
        source: Reads its state.
        display: Its output.
    """

    def __init__(self, source: StateReader, display: LiveDisplay) -> None:
        self.display = display
        """Its output, in all places of the notebook."""
        self._source = source
        self._condition = threading.Condition()
        """Guards the attributes below; the thread waits for it."""
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._rate = UpdateRate(monotonic())
        self._last: PanelState | None = None
        """The state that the thread sent last."""

    @property
    def is_shown(self) -> bool:
        """Whether there is a panel in the notebook."""
        return self._thread is not None

    def show(self) -> None:
        """Show the panel below the running cell."""
        state = self._source.read()
        self.display.show(build_panel(state, _make_stamp()))
        self._follow(state)

    def take_over(self, previous: "LivePanel") -> None:
        """Continue the panel of the extension that this one replaces."""
        if previous.is_shown:
            self.display = previous.display
            self._follow(None)

    def close(self, reason: str) -> None:
        """Show that the panel has ended, and why; harmless when called twice."""
        with self._condition:
            is_first, self._is_closed = not self._is_closed, True
            self._condition.notify_all()
        if not is_first or self._thread is None:
            return
        self._source.log.unsubscribe(self)
        if self._thread is not threading.current_thread():
            self._thread.join(_END_LIMIT)
        if not self._thread.is_alive():  # otherwise reading could hang here as well
            with contextlib.suppress(Exception):  # the notebook is being taken down
                self._last = self._source.read()
        if self._last is not None:
            state = replace(self._last, departure=reason)
            self.display.update(build_panel(state, _make_stamp()))

    def note_change(self) -> None:
        """Note that something has changed; an update follows soon."""
        with self._condition:
            if self._thread is not None and not self._rate.has_change:
                # Only once: further changes before the update must not wake the thread.
                self._rate.note_change(monotonic())
                self._condition.notify_all()

    def note_use(self) -> None:
        """Note that the user works in the notebook."""
        with self._condition:
            self._rate.note_use(monotonic())
        self.note_change()  # a call may wait for the cell

    # -- observes the log of calls -----------------------------------------------------------------

    def call_came(self, call: LoggedCall) -> None:  # noqa: ARG002 - the observer's interface
        """Show a new call."""
        self.note_change()

    def call_moved(self, call: LoggedCall) -> None:  # noqa: ARG002
        """Show a call's new state."""
        self.note_change()

    def call_ended(self, call: LoggedCall, result: Result) -> None:  # noqa: ARG002
        """Show how a call ended."""
        self.note_change()

    # -- the thread --------------------------------------------------------------------------------

    def _follow(self, state: PanelState | None) -> None:
        """Start updating the panel, which shows `state`."""
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
        """Wait until an update is due; return False when the panel is closed."""
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
        if self._is_closed:  # `close` may have sent the last update
            return
        self.display.update(bundle)
        self._last = state
        with self._condition:
            self._rate.note_update(monotonic())


def _make_stamp() -> str:
    """Return when and by which kernel something is shown."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S')}, kernel {os.getpid()}"
