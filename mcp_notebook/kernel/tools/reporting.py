"""How a tool's ``Context`` reports progress and logs, in the kernel and on an executor's worker.

Pure, for any thread. An executor's worker, which need not have this package, gets this module by
value (`kernel.executors.job`): it imports nothing of this package.
"""

import operator
from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Literal, TypeAlias, TypeVar, get_args

_T = TypeVar("_T")

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""MCP's log levels (those of syslog), from the least to the most severe."""
_LEVELS: tuple[str, ...] = get_args(LogLevel)


# Not an ABC: each job to a worker carries this class by value, and must stay small.
class ReportingContext:
    """What the context of a call does wherever the tool's function runs.

    Args:
        tool: Name of the tool.
        wants_progress: Whether the client asked for progress.
    """

    def __init__(self, tool: str, *, wants_progress: bool) -> None:
        self.tool = tool
        self._wants_progress = wants_progress

    def __repr__(self) -> str:
        return f"<Context of a call of {self.tool!r}>" if self.tool else "<Context of no call>"

    @property
    def wants_progress(self) -> bool:
        """Whether the client asked for progress."""
        return self._wants_progress

    def raise_if_cancelled(self) -> None:
        """Raise an exception if the call should stop."""
        raise NotImplementedError

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is; cheap, so call it as often as you like.

        Args:
            done: How much is done, in any unit.
            total: How much there is to do, in the same unit, if that is known.
            message: What is being done, for a person.

        Raises:
            TypeError: `done` or `total` is not a number.
        """
        for name, value in (("done", done), ("total", 0 if total is None else total)):
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"progress: {name} must be a number, not {value!r}")
        if self._wants_progress:
            number = None if total is None else float(total)
            self._take_progress(float(done), number, None if message is None else str(message))

    def track(
        self, items: Iterable[_T], total: float | None = None, message: str | None = None
    ) -> Iterator[_T]:
        """Yield the items, and tell the client how many are done.

        Args:
            items: The items to loop over.
            total: How many there are. By default, their length, if they have one.
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

        At most 100 messages a second are sent for each call, and as many warnings and errors. The
        client is told how many were left out.

        Args:
            message: The text; of any other object, its ``str``.
            level: How severe it is.

        Raises:
            ValueError: The level does not exist.
        """
        if level not in _LEVELS:
            raise ValueError(f"log: level must be one of {', '.join(_LEVELS)}, not {level!r}")
        self._take_log(level, message)

    def _take_progress(self, done: float, total: float | None, message: str | None) -> None:
        raise NotImplementedError

    def _take_log(self, level: LogLevel, message: object) -> None:
        raise NotImplementedError
