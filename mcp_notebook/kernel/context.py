"""``Context``: what a tool can say and ask while it runs.

Runs in the user's kernel, on whichever thread the tool uses it from. A parameter annotated with
`Context` is not for clients: `kernel.invoke` passes the context of the call. What becomes of an
`Update` or a log message is the endpoint's business; it is thrown away when nobody asked for it.
"""

import logging
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeAlias, TypeVar

from mcp_notebook.errors import Cancelled

_T = TypeVar("_T")

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""MCP's log levels (those of syslog), from the least to the most severe."""
LEVELS: dict[LogLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": 25,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": 60,
    "emergency": 70,
}
"""What each level is in Python's ``logging``."""


@dataclass(frozen=True)
class Update:
    """How far a call is; what is None stays as it was."""

    done: float | None = None
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True)
class LogMessage:
    """One log message of a call."""

    level: LogLevel
    text: str
    logger: str | None = None


class Context:
    """The call that a tool runs in: progress, log messages, whether it should stop.

    Give a tool a parameter annotated with this class, and it gets the context of each call::

        def train(epochs: int, ctx: Context) -> str:
            for epoch in ctx.track(range(epochs)):
                ...

    ``Context()`` belongs to no call: for calling the function oneself, in a cell or a test.

    Args:
        tool: Name of the tool.
        report: Takes updates; None: nobody asked for progress.
        send_log: Takes log messages.
        stopped: Returns why the call shall stop, None if it shall not.
    """

    def __init__(
        self,
        tool: str = "",
        *,
        report: Callable[[Update], None] | None = None,
        send_log: Callable[[LogMessage], None] | None = None,
        stopped: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.tool = tool
        self._report = report
        self._send_log = send_log
        self._stopped = stopped

    def __repr__(self) -> str:
        return f"<Context of a call of {self.tool!r}>" if self.tool else "<Context of no call>"

    @property
    def wants_progress(self) -> bool:
        """Whether the client asked to be told how far the call is."""
        return self._report is not None

    @property
    def cancelled(self) -> bool:
        """Whether the call shall stop: the client or the user cancelled it, or its time is up.

        For tools with ``run="thread"`` whose code is long outside of Python; all others are stopped
        without asking.
        """
        return self._stopped() is not None

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if the call shall stop."""
        reason = self._stopped()
        if reason is not None:
            raise Cancelled(reason)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is; cheap, call it as often as you like.

        Args:
            done: How much is done, in any unit.
            total: How much there is to do, in the same unit, if that is known.
            message: What is being done, for a person.

        Raises:
            TypeError: `done` or `total` is no number.
        """
        for name, value in (("done", done), ("total", 0 if total is None else total)):
            if not isinstance(value, Real) or isinstance(value, bool):
                raise TypeError(f"progress: {name} must be a number, not {value!r}")
        if self._report is not None:
            number = None if total is None else float(total)
            self._report(Update(float(done), number, None if message is None else str(message)))

    def track(
        self, items: Iterable[_T], total: float | None = None, message: str | None = None
    ) -> Iterator[_T]:
        """Yield the items, and tell the client how many are done.

        Args:
            items: What a loop goes through.
            total: How many there are; their length, where they have one.
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

        Args:
            message: The text; of anything else its ``str``.
            level: How severe it is.

        Raises:
            ValueError: There is no such level.
        """
        if level not in LEVELS:
            raise ValueError(f"log: there is no level {level!r}; there are {', '.join(LEVELS)}")
        if self._send_log is not None:
            self._send_log(LogMessage(level, str(message)))
