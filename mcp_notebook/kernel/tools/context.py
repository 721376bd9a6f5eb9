"""``Context``: reports the progress of a running call, logs, and asks the user.

Runs in the user's kernel, on any thread of the tool. A parameter annotated with `Context` is hidden
from clients and gets the context of the call. Progress and log messages that the client did not
request are dropped.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from msgspec import Struct

from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.tools.open_questions import (
    Accepted,
    Answer,
    Elicitations,
    NotAccepted,
    Reply,
)
from mcp_notebook.kernel.tools.reporting import LogLevel, ReportingContext
from mcp_notebook.settings.settings import ErrorDetail
from mcp_notebook.text.wording import make_printable

if TYPE_CHECKING:
    from mcp_notebook.kernel.tools.question_forms import ElicitationForm


_T = TypeVar("_T")

_LOOK = 0.1
"""Seconds between two checks of whether a call that waits for an answer should stop: a waiting
thread cannot be interrupted."""
_MAX_LABEL = 100
"""Maximum length of a program's name and version together."""
Choices: TypeAlias = list[str] | tuple[str, ...] | Mapping[str, str]
"""The strings to choose from. In a mapping, the keys are the choices; the user sees the values."""
_NO_DEFAULT: Any = object()

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
"""The number of each level in Python's ``logging``."""


class Update(Struct, frozen=True):
    """The progress of a call; a field that is None leaves the earlier value."""

    done: float | None = None
    total: float | None = None
    message: str | None = None


class LogMessage(Struct, frozen=True):
    """One log message of a call."""

    level: LogLevel
    text: str
    logger: str | None = None


class ClientProgram(Struct, frozen=True):
    """The calling program, by its own account: the name can be anything."""

    name: str = ""
    version: str = ""
    is_view: bool = False
    """Whether a person called, in a live view that the program shows."""

    @property
    def label(self) -> str:
        """Name and version on one line, safe to print."""
        text = " ".join(make_printable(f"{self.name} {self.version}").split())
        return (text[:_MAX_LABEL] or "unknown client") + (" (view)" if self.is_view else "")


@lru_cache
def describe_program(program: ClientProgram | None) -> str:
    """Return a description of the program that made a call; None stands for the author."""
    return "this notebook" if program is None else program.label


UNKNOWN_PROGRAM = ClientProgram()
"""A program that does not identify itself."""


class Client(Struct, frozen=True, kw_only=True):
    """The client of a call: what it wants to receive, and what its user has agreed to."""

    report: Callable[[Update], None] | None = None
    """Receives progress; None: it is never needed."""
    sees_progress: Callable[[], bool] = lambda: True
    """Returns whether anybody sees now what `report` receives."""
    send_log: Callable[[LogMessage], None] | None = None
    """Receives log messages; None: the client does not want them."""
    elicitations: Elicitations | None = None
    """Passes on questions for the user; None: the client cannot ask one."""
    program: ClientProgram | None = UNKNOWN_PROGRAM
    """The calling program; None: the author calls, in the notebook."""
    guest: str = ""
    """Identifies a caller who is not the user."""
    errors: ErrorDetail = "full"
    """What it gets of a tool's errors, unless the tool says so itself."""
    confirmed: str | None = ""
    """The revision of the tool that a person has agreed to; "" if no person was asked; None if no
    consent is needed, because the author calls the tool."""
    shows_views: bool = False
    """Whether it shows live views of results."""
    is_trial: bool = False
    """Whether the call runs in a copy of the kernel, leaves no trace, and tells what it changed."""


NO_CLIENT = Client(program=None, confirmed=None)


class Context(ReportingContext):
    """The running call of a tool: progress, log messages, questions, whether it should stop.

    Give a tool a parameter annotated with this class, and it gets the context of each call::

        def train(epochs: int, ctx: Context) -> str:
            for epoch in ctx.track(range(epochs)):
                ...

    ``Context()`` belongs to no call. Use it to call the function yourself, in a cell or a test.

    Args:
        tool: Name of the tool.
        report: Receives progress; None: it is not needed.
        sees_progress: Returns whether anybody sees now what `report` receives.
        send_log: Receives log messages; None: the client does not want them.
        stopped: Returns why the call should stop, None if it should continue.
        elicitations: Passes on the tool's questions; None: the client cannot ask its user.
    """

    def __init__(  # noqa: PLR0913 - one for each thing that it can do
        self,
        tool: str = "",
        *,
        report: Callable[[Update], None] | None = None,
        sees_progress: Callable[[], bool] = lambda: True,
        send_log: Callable[[LogMessage], None] | None = None,
        stopped: Callable[[], str | None] = lambda: None,
        elicitations: Elicitations | None = None,
    ) -> None:
        super().__init__(
            tool,
            send_progress=report and (lambda *progress: report(Update(*progress))),
            send_log=send_log and (lambda level, text: send_log(LogMessage(level, text))),
            find_stop=lambda: None if (reason := stopped()) is None else Cancelled(reason),
        )
        self._sees_progress = sees_progress
        self._elicitations = Elicitations() if elicitations is None else elicitations

    @property
    def wants_progress(self) -> bool:
        """Whether progress is shown: the client asked for it, or a side panel is open."""
        return super().wants_progress and self._sees_progress()

    @property
    def can_elicit(self) -> bool:
        """Whether the client's user can be asked."""
        return self._elicitations.is_possible

    @overload
    def elicit(self, message: str, *, key: str | None = None) -> Answer[None]: ...
    @overload
    def elicit(
        self, message: str, kind: type[_T], *, default: _T = ..., key: str | None = None
    ) -> Answer[_T]: ...
    @overload
    def elicit(
        self, message: str, kind: Choices, *, default: str = ..., key: str | None = None
    ) -> Answer[str]: ...
    @overload
    def elicit(
        self, message: str, kind: object, *, default: Any = ..., key: str | None = None
    ) -> Answer[Any]: ...
    def elicit(
        self,
        message: str,
        kind: object = None,
        *,
        default: Any = _NO_DEFAULT,
        key: str | None = None,
    ) -> Answer[Any]:
        """Ask the client's user, and wait for the answer.

        ::

            answer = ctx.elicit("Which region?", ["EU", "US"])
            if answer.accepted:
                plot(answer.data)

        A tool on the main thread blocks it while it waits: no cell runs until the user answers.

        Args:
            message: The question, for a person.
            kind: What to ask for: a type (``str``, ``int``, ``Literal["a", "b"]``, an ``Enum``,
                ``Annotated[int, Field(ge=1)]``...), a list or dict of strings to choose one from,
                or a pydantic model, dataclass or ``TypedDict`` of such fields. None: ask only
                whether the user agrees.
            default: The initial value in the form.
            key: A name for the question, for clients that can answer in advance.

        Returns:
            `Accepted`, with the value as `data`, or `NotAccepted`; check `accepted`.

        Raises:
            CannotElicit: The client cannot ask its user; check `can_elicit` first.
            InvalidAnswer: The answer does not match `kind`.
            Cancelled: The call should stop.
            TypeError: MCP's forms cannot ask for `kind`, because it is nested, for instance.
            ValueError: The default does not fit `kind`, the message is too long, or another open
                question has the same key.
        """
        self._elicitations.check_possible(message)
        _refuse_coroutine()
        answered: SimpleQueue[object] = SimpleQueue()
        # An interrupt within a future's own code could leave its lock held, and so block the thread
        # that delivers the answer.
        with Shield() as shield:
            form, number, reply = self._ask(message, kind, default, key)
            try:
                reply.add_done_callback(answered.put)
                while not reply.done():
                    self.raise_if_cancelled()
                    with suppress(Empty):
                        shield.run(answered.get, True, _LOOK)
                return _read_answer(form, reply.result())
            finally:
                self._elicitations.withdraw(number)

    @overload
    async def elicit_async(self, message: str, *, key: str | None = None) -> Answer[None]: ...
    @overload
    async def elicit_async(
        self, message: str, kind: type[_T], *, default: _T = ..., key: str | None = None
    ) -> Answer[_T]: ...
    @overload
    async def elicit_async(
        self, message: str, kind: Choices, *, default: str = ..., key: str | None = None
    ) -> Answer[str]: ...
    @overload
    async def elicit_async(
        self, message: str, kind: object, *, default: Any = ..., key: str | None = None
    ) -> Answer[Any]: ...
    async def elicit_async(
        self,
        message: str,
        kind: object = None,
        *,
        default: Any = _NO_DEFAULT,
        key: str | None = None,
    ) -> Answer[Any]:
        """Like `elicit`, for coroutines: other calls and cells run in the meantime."""
        self._elicitations.check_possible(message)
        number = None
        try:
            with Shield():
                form, number, reply = self._ask(message, kind, default, key)
                answer = asyncio.wrap_future(reply)
            return _read_answer(form, await answer)
        finally:
            if number is not None:
                with Shield():
                    self._elicitations.withdraw(number)

    def _ask(
        self, message: str, kind: object, default: Any, key: str | None
    ) -> tuple["ElicitationForm", int, Future[Reply]]:
        """Send the question; return its form, its number, and the reply to wait for."""
        form = _make_form(kind, default)
        self.raise_if_cancelled()
        return (form, *self._elicitations.ask(message, form.title(message), key))


def _refuse_coroutine() -> None:
    try:
        is_coroutine = asyncio.current_task() is not None
    except RuntimeError:  # no loop runs in this thread
        is_coroutine = False
    if is_coroutine:
        raise RuntimeError(
            "elicit: this would block the event loop; in a coroutine, write "
            "`await ctx.elicit_async(...)`"
        )


def _make_form(kind: object, default: Any) -> "ElicitationForm":
    # Imported late: it loads pydantic, which most tools' contexts do not need.
    from mcp_notebook.kernel.tools.question_forms import make_form  # noqa: PLC0415

    return make_form(kind) if default is _NO_DEFAULT else make_form(kind, default)


def _read_answer(form: "ElicitationForm", reply: Reply) -> Answer[Any]:
    if reply.action == "accept":
        return Accepted(form.read(reply.content))
    return NotAccepted(reply.action)
