"""Libraries that draw plots: each attempt in a process of its own, bounded, none repeated in vain.

Runs in the user's kernel, on the thread of the call, which waits for the process. Drawing is
foreign code that may hang (a browser that does not answer), never end (a picture that refers to
itself a million times), crash, or hold Python's lock all the while: it must not do so in the
kernel. What happens in the process is `kernel.results.plots.renderer_process`'; what is drawn by
what is `kernel.results.plots.draw`'s and `kernel.results.plots.svg`'s business.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from mcp_notebook.kernel.results.blocks.budget import NotDrawn
from mcp_notebook.kernel.safe.deadline import compute_drawing_time_left, record_drawing_time
from mcp_notebook.kernel.safe.text import clean_text, cut_text

SECONDS = 20.0
"""Seconds that one attempt to draw a plot may take; a browser takes 2 to 10 to start."""
RESULT_SECONDS = 60.0
"""Seconds that all plots of one result may take: the kernel waits for them."""
REST_SECONDS = 300.0
"""Seconds for which nothing is tried again that failed slowly."""
SLOW_SECONDS = 4.0
"""Seconds from which on a failed attempt counts as slow."""
_PROGRAM = Path(__file__).with_name("renderer_process.py")
_STEP = 0.1
_GRACE = 5
"""Seconds after which the process ends by itself, were the kernel not there any more to end it."""
_MAX_MESSAGE = 500


class ProcessRenderer:
    """Draws by others' code, and remembers what has just failed slowly; safe from any thread.

    A kernel has one, its `results.Converter`'s: what hangs does not cost each call `SECONDS`.

    Args:
        seconds: That one attempt may take.
        slow: Seconds from which on a failed attempt counts as slow.
    """

    def __init__(self, seconds: float = SECONDS, slow: float = SLOW_SECONDS) -> None:
        self.seconds = seconds
        self._slow = slow
        self._failed: dict[int, float] = {}
        """When what failed slowly. Threads may lose each other's news, which costs a try more."""

    def draw(self, library: str, source: str, **options: Any) -> bytes:
        """Draw in a process of its own.

        Args:
            library: A function of `renderer_process`.
            source: The plot.
            options: The function's.

        Returns:
            The encoded picture.

        Raises:
            NotDrawn: It failed, took too long, or has just done so before.
            KeyboardInterrupt: The call was stopped, and the drawing with it.
        """
        name = library.removesuffix("_svg").removesuffix("_vega").replace("_", "-")
        # A browser that does not answer will not draw other plots either; of the other libraries,
        # a plot that took too long says nothing about the next one.
        key = hash((library, "" if library == "kaleido" else source))
        failed_at = self._failed.get(key)
        if failed_at is not None and time.monotonic() - failed_at < REST_SECONDS:
            minutes = f"{REST_SECONDS / 60:g} minutes"
            raise NotDrawn(f"{name} failed at this a moment ago and is left alone for {minutes}")
        left = compute_drawing_time_left(RESULT_SECONDS)
        if left <= 0:
            limit = f"{RESULT_SECONDS:g} seconds"
            raise NotDrawn(
                f"the plots before it took the {limit} that those of one result may take"
            )
        started = time.monotonic()
        try:
            drawn = self._drawn(library, {"source": source, **options}, min(self.seconds, left))
        except NotDrawn as error:
            if time.monotonic() - started >= self._slow and left >= self.seconds:
                self._remember(key)
            raise NotDrawn(f"{name} {error}") from None
        finally:
            record_drawing_time(time.monotonic() - started)
        self._failed.pop(key, None)
        return drawn

    def _remember(self, key: int) -> None:
        now = time.monotonic()
        recent = {old: at for old, at in self._failed.copy().items() if now - at < REST_SECONDS}
        self._failed = recent | {key: now}

    def _drawn(self, library: str, given: Mapping[str, Any], seconds: float) -> bytes:
        # -P: a module of the same name in the notebook's folder is not the library.
        command = [sys.executable, "-P", str(_PROGRAM), library, str(math.ceil(seconds) + _GRACE)]
        try:
            # Not a pipe: what it has not taken when a step ends, Python sends no more.
            with tempfile.TemporaryFile() as file:
                file.write(json.dumps(given).encode())
                file.seek(0)
                # A session of its own: the user's interrupt of the kernel is not for it.
                process = subprocess.Popen(  # noqa: S603 - our own program
                    command,
                    stdin=file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )
        except OSError as error:
            raise NotDrawn(f"could not be started: {error}") from error
        try:
            out, err = _output(process, seconds)
        finally:
            _end(process)
        if process.returncode == 0 and out:
            return out
        said = cut_text(
            clean_text(err.decode("utf-8", "replace")).strip().rpartition("\n")[2], _MAX_MESSAGE
        )
        raise NotDrawn(f"failed: {said or f'its process ended with {process.returncode}'}")


def _output(process: "subprocess.Popen[bytes]", seconds: float) -> tuple[bytes, bytes]:
    end = time.monotonic() + seconds
    while True:
        try:
            # In steps: a call on a thread is stopped by an error raised between two instructions.
            return process.communicate(timeout=_STEP)
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise NotDrawn(f"did not draw it within {seconds:g} seconds") from None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process that still runs, and the browser that it started."""
    if process.poll() is None:
        try:
            family = psutil.Process(process.pid).children(recursive=True)
        except psutil.Error:
            family = []
        process.kill()
        for member in family:
            with suppress(psutil.Error):
                member.kill()
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
