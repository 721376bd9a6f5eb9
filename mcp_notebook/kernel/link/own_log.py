"""The file for this package's own log lines and tracebacks in a kernel, out of the user's cells.

Runs in the user's kernel. Without it, what any of our threads logs would be printed below the cell
that ran last, or in a call become a part of its result.
"""

import asyncio
import functools
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAME = "kernel.log"
OUR_THREADS = "mcp-notebook"
"""How the names of this package's threads begin."""
_MAX_BYTES = 1_000_000
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"

logger = logging.getLogger("mcp_notebook")


class OwnLog:
    """Writes what the package logs to a file, from `open` to `close`; both on the main thread.

    Args:
        folder: Where the file is made when there is something to write.
    """

    def __init__(self, folder: Path) -> None:
        self._handler = _FileHandler(folder / NAME, encoding="utf-8", delay=True)
        self._handler.setFormatter(logging.Formatter(_FORMAT))

    def open(self) -> None:
        """Begin."""
        self._hook_before = threading.excepthook
        self._hook = threading.excepthook = self._make_hook(threading.excepthook)
        logger.addHandler(self._handler)
        logger.propagate = False

    def close(self) -> None:
        """End; idempotent."""
        if self._handler not in logger.handlers:
            return
        if threading.excepthook is self._hook:
            threading.excepthook = self._hook_before
        logger.removeHandler(self._handler)
        logger.propagate = True
        self._handler.close()

    @staticmethod
    def _make_hook(before: Callable[[Any], object]) -> Callable[[Any], object]:
        def hook(failure: Any) -> None:
            if failure.thread is None or not failure.thread.name.startswith(OUR_THREADS):
                before(failure)
                return
            error = failure.exc_type, failure.exc_value, failure.exc_traceback
            logger.error("the thread %s failed", failure.thread.name, exc_info=error)

        return hook


class _FileHandler(logging.FileHandler):
    """A file that never grows without end; what cannot be written to it is dropped."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
            if self.stream is not None and self.stream.tell() > _MAX_BYTES:
                self.stream.truncate(0)
        except OSError:  # the disk is full or read-only
            pass

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Do not print a traceback on stderr, as logging does."""


def log_loop_failure(_loop: asyncio.AbstractEventLoop, failure: dict[str, Any]) -> None:
    """Log what asyncio reports of a loop of ours; for ``set_exception_handler``."""
    logger.error("%s", failure["message"], exc_info=failure.get("exception"))


def log_failure(function: Callable[..., object]) -> Callable[..., None]:
    """Return a callback for IPython that logs the exceptions of a function of ours."""

    @functools.wraps(function)
    def call(*args: Any) -> None:
        try:
            function(*args)
        except Exception:
            logger.exception("%s failed", function.__qualname__)

    return call
