"""Programs and libraries that draw plots: each attempt bounded in time, none repeated in vain.

Runs in the user's kernel. Drawing is foreign code that may hang (a browser that does not answer) or
never end (a picture that refers to itself a million times): it runs on a thread of its own, and the
thread of the call waits for it, not for longer than `SECONDS`. What draws what is `kernel.plots`'
and `kernel.svg`'s business.
"""

import threading
import time
from collections.abc import Callable

from mcp_notebook.kernel.interrupts import raise_in
from mcp_notebook.kernel.texts import safe_message

SECONDS = 15.0
"""Seconds that one attempt to draw a plot may take."""
REST_SECONDS = 300.0
"""Seconds for which a renderer is left alone after an attempt that failed slowly."""
SLOW_SECONDS = 3.0
"""Seconds from which on a failed attempt counts as slow."""
_STEP = 0.1


class NotDrawn(Exception):
    """A plot could not be drawn; the message says why, and what to do."""


class Renderers:
    """Draws by others' code, and remembers who has just failed slowly; safe from any thread.

    A kernel has one, its `results.Converter`'s: what hangs does not cost each call `SECONDS`.

    Args:
        seconds: That one attempt may take.
        slow: Seconds from which on a failed attempt counts as slow.
    """

    def __init__(self, seconds: float = SECONDS, slow: float = SLOW_SECONDS) -> None:
        self.seconds = seconds
        self._slow = slow
        self._failed: dict[str, float] = {}
        """When a renderer failed slowly, by its name; single items are read and written only."""

    def draw(self, name: str, work: Callable[[], bytes]) -> bytes:
        """Draw on a thread of its own.

        Args:
            name: The renderer's, as its users know it.
            work: Draws, and returns the encoded picture.

        Raises:
            NotDrawn: It failed, took too long, or has just done so before.
            KeyboardInterrupt: The call was stopped; the drawing is given up.
        """
        failed_at = self._failed.get(name)
        if failed_at is not None and time.monotonic() - failed_at < REST_SECONDS:
            raise NotDrawn(
                f"{name} failed a moment ago and is left alone for {REST_SECONDS / 60:.0f} minutes"
            )
        started = time.monotonic()
        attempt = _Attempt(work)
        try:
            drawn = attempt.wait(self.seconds)
        except NotDrawn as error:
            if time.monotonic() - started >= self._slow:
                self._failed[name] = time.monotonic()
            raise NotDrawn(f"{name} {error}") from error
        self._failed.pop(name, None)
        return drawn


class _Attempt:
    """One drawing on its thread; made and waited for on the thread of the call."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        self._work = work
        self._done = threading.Event()
        self._ending = threading.Lock()
        self._drawn: bytes | None = None
        self._error: BaseException | None = None
        # A daemon: what cannot be stopped must not keep the kernel from ending.
        self._thread = threading.Thread(target=self._run, name="mcp-notebook-draw", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bytes:
        try:
            end = time.monotonic() + seconds
            # In steps: a call on a thread is stopped by an error raised between two instructions.
            while not self._done.wait(_STEP) and time.monotonic() < end:
                pass
        finally:
            self._give_up()
        if isinstance(self._error, NotDrawn):
            raise self._error
        if self._error is not None:
            raise NotDrawn(f"could not draw it: {safe_message(self._error)}") from self._error
        if self._drawn is None:
            raise NotDrawn(f"did not draw it within {seconds:g} seconds")
        return self._drawn

    def _run(self) -> None:
        try:
            self._drawn = bytes(self._work())
        except BaseException as error:  # noqa: BLE001 - others' code, on a thread that ends here
            self._error = error
        finally:
            with self._ending:
                self._done.set()

    def _give_up(self) -> None:
        # The number of a thread that has ended may already be another's.
        with self._ending:
            if not self._done.is_set() and self._thread.ident is not None:
                raise_in(self._thread.ident, SystemExit)
