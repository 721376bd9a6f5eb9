"""The part of a tool's ``Context`` that works both in the kernel and on an executor's worker.

Pure, for any thread. `kernel.executors.job` sends this module to workers by value, because they may
not have this package: so it must not import the package, and must stay small.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from typing import Literal, TypeAlias, TypeVar, get_args

_T = TypeVar("_T")

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""MCP's log levels (those of syslog), from the least to the most severe."""
_LEVELS: tuple[str, ...] = get_args(LogLevel)


class ReportingContext:
    """The part of a call's context that works wherever the tool's function runs.

    Args:
        tool: Name of the tool.
        send_progress: Called with the amount done, the total and a message; None: the client does
            not want progress.
        send_log: Called with a level and a text; None: log messages are not wanted.
        find_stop: Returns the exception to raise if the call should stop, else None.
    """

    def __init__(
        self,
        tool: str,
        *,
        send_progress: Callable[[float, float | None, str | None], object] | None,
        send_log: Callable[[LogLevel, str], object] | None,
        find_stop: Callable[[], Exception | None],
    ) -> None:
        self.tool = tool
        self._send_progress = send_progress
        self._send_log = send_log
        self._find_stop = find_stop

    def __repr__(self) -> str:
        return f"<Context of a call of {self.tool!r}>" if self.tool else "<Context of no call>"

    @property
    def wants_progress(self) -> bool:
        """Whether the client asked for progress."""
        return self._send_progress is not None

    @property
    def cancelled(self) -> bool:
        """Whether the call should stop: the client or the user cancelled it, or its time is up.

        Only tools with ``run="thread"`` that spend a long time outside of Python code need to check
        this; all others are stopped automatically.
        """
        return self._find_stop() is not None

    def raise_if_cancelled(self) -> None:
        """Raise an exception if the call should stop."""
        error = self._find_stop()
        if error is not None:
            raise error

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the client. Cheap: call it as often as you like.

        Args:
            done: The amount of work done, in any unit.
            total: The total amount of work in the same unit, if known.
            message: What is being done, for a person.

        Raises:
            TypeError: `done` or `total` is not a number.
        """
        for name, value in (("done", done), ("total", 0 if total is None else total)):
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"progress: {name} must be a number, not {value!r}")
        if self._send_progress is not None:
            number = None if total is None else float(total)
            self._send_progress(float(done), number, None if message is None else str(message))

    def track(
        self, items: Iterable[_T], total: float | None = None, message: str | None = None
    ) -> Iterator[_T]:
        """Yield the items, and report to the client how many are done.

        Args:
            items: The items to loop over.
            total: The number of items. By default, their length, if they have one.
            message: What is being done, for a person.
        """
        if total is None:
            total = operator.length_hint(items, -1)
            total = None if total < 0 else total
        self.progress(0, total, message)
        for done, item in enumerate(items, 1):
            self.raise_if_cancelled()
            yield item
            self.progress(done, total, message)

    def log(self, message: object, level: LogLevel = "info") -> None:
        """Send a log message to the client, if it asked for messages of that level.

        For each call, at most 100 messages a second are sent, plus at most 100 warnings and errors.
        The client is told how many were dropped.

        Args:
            message: The message, converted by ``str``.
            level: Its severity.

        Raises:
            ValueError: The level does not exist.
        """
        if level not in _LEVELS:
            raise ValueError(f"log: level must be one of {', '.join(_LEVELS)}, not {level!r}")
        if self._send_log is not None:
            self._send_log(level, str(message))
