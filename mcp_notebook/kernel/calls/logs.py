"""What tools log with Python's ``logging`` belongs to their calls.

Runs in the user's kernel, on the threads of the calls. `LoggingPatcher` looks on while loggers hand
records to their handlers, and leaves those alone: a handler of our own on the root logger would
keep ``logging.basicConfig`` and the last resort from working in the user's cells. Whether a record
is logged at all is the user's configuration; who gets it is the capture's decision.
"""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Protocol

from mcp_notebook.kernel.tools.context import LEVELS, LogLevel, LogMessage

_FORMATTER = logging.Formatter("%(message)s")  # with the traceback, where there is one


class LogTaker(Protocol):
    """What is needed of `kernel.calls.capture.Capture`."""

    printed_chars: int
    """Characters that were printed so far."""

    @property
    def wants_logs(self) -> bool:
        """Whether anybody reads what is logged."""

    def log(self, message: LogMessage, *, is_printed: bool) -> None:
        """Take a message; `is_printed` if a handler has printed it already."""


class LoggingPatcher:
    """Lets calls hear what is logged in them, from `install` to `uninstall`.

    Args:
        current: Returns who takes the messages of the call that the caller runs in, None outside.
    """

    def __init__(self, current: Callable[[], LogTaker | None]) -> None:
        self._current = current
        self._original: Callable[[logging.Logger, logging.LogRecord], None] | None = None

    def install(self) -> None:
        """Look on, if that is not done yet."""
        if self._original is not None:
            return
        self._original = original = logging.Logger.callHandlers

        @wraps(original)
        def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
            taker = self._current()
            if taker is None or not taker.wants_logs:
                original(logger, record)
                return
            before = taker.printed_chars
            original(logger, record)
            taker.log(_read_record(record), is_printed=taker.printed_chars != before)

        self._ours = handle
        logging.Logger.callHandlers = handle  # type: ignore[method-assign, assignment]

    def uninstall(self) -> None:
        """Put back what was there, unless somebody else looks on, too, and needs ours to stay."""
        if self._original is not None and logging.Logger.callHandlers is self._ours:
            logging.Logger.callHandlers = self._original  # type: ignore[method-assign, assignment]
        self._original = None


def level_of(number: int) -> LogLevel:
    """Return MCP's level for one of Python's."""
    closest: LogLevel = "debug"
    for level, least in LEVELS.items():
        if number >= least:
            closest = level
    return closest


def _read_record(record: logging.LogRecord) -> LogMessage:
    try:
        text = _FORMATTER.format(record)
    except Exception:  # noqa: BLE001 - arguments that do not fit the format; logging tells of it
        text = str(record.msg)
    return LogMessage(level_of(record.levelno), text, record.name)
