"""The open questions of a call to its client's user (MCP's elicitations), and their answers.

Runs in the user's kernel. A tool asks and waits on its own thread or event loop; answers arrive on
the link's thread. They share `Elicitations`, under its lock.
"""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from mcp_notebook.errors import CallError, CannotElicit

_T = TypeVar("_T")

MAX_MESSAGE = 10_000
"""Maximum characters of a question; a dialog cannot show more."""
MAX_OPEN = 50
"""Maximum number of open questions of one call; a client shows a dialog for each."""


class _NoTruthValue:
    """An answer that cannot be used as a condition: `if answer:` would also be true for a "no"."""

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "The user's answer is neither true nor false: ask for `answer.accepted`, and then for "
            "`answer.data`."
        )


@dataclass(frozen=True)
class Accepted(_NoTruthValue, Generic[_T]):
    """The user has answered."""

    data: _T
    """The value that the user entered; None if the question only asked for consent."""
    accepted: Literal[True] = field(default=True, init=False, repr=False)
    """Whether the user has answered."""
    action: Literal["accept"] = field(default="accept", init=False, repr=False)
    """The user's action, in MCP's terms."""


@dataclass(frozen=True)
class NotAccepted(_NoTruthValue):
    """The user has not answered."""

    action: Literal["decline", "cancel"]
    """Whether the user said no, or closed the question without an answer."""
    data: None = field(default=None, init=False, repr=False)
    """Nothing."""
    accepted: Literal[False] = field(default=False, init=False, repr=False)
    """Whether the user has answered."""


Answer: TypeAlias = Accepted[_T] | NotAccepted
"""The outcome of a question."""


class Elicitation(msgspec.Struct, frozen=True):
    """A question on its way to the user."""

    number: int
    """Its number among the call's questions, from 1."""
    key: str
    """Its name, unique among the call's open questions."""
    message: str
    schema: dict[str, Any]
    """The form: an object in MCP's subset of JSON Schema."""


class Withdrawal(msgspec.Struct, frozen=True):
    """A question that was withdrawn."""

    number: int


class Reply(msgspec.Struct, frozen=True):
    """The user's reply to a question."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = msgspec.field(default_factory=dict)


Ask: TypeAlias = Callable[[Elicitation | Withdrawal], None]
"""Sends a question to the client, or withdraws it; from any thread."""


class Elicitations:
    """The questions of one call; safe to use from any thread.

    Args:
        ask: Sends a question; None: the client cannot ask its user.
        refusal: Makes the error for a question if `ask` is None.
    """

    def __init__(
        self, ask: Ask | None = None, refusal: Callable[[str], CallError] | None = None
    ) -> None:
        self._ask = ask
        self._refusal = refusal or _refuse_without_client
        self._waits: Callable[[bool], None] = _ignore
        self._lock = threading.Lock()
        self._count = 0
        self._open: dict[int, tuple[Elicitation, Future[Reply]]] = {}
        self._closed: CallError | None = None
        self.is_used = False
        """Whether the tool asked, or checked whether it can: its result is only for this client."""

    def set_waiting_callback(self, waits: Callable[[bool], None]) -> None:
        """Set a function to call with True when the call begins to wait, and with False after.

        It is called under this object's lock. Set it before the call runs.
        """
        self._waits = waits

    @property
    def is_possible(self) -> bool:
        """Whether the client can ask its user."""
        self.is_used = True
        return self._ask is not None and self._closed is None

    def check_possible(self, message: str) -> None:
        """Raise an error if the client cannot ask its user.

        Raises:
            CallError: It cannot.
        """
        self.is_used = True
        if self._closed is not None:
            raise self._closed
        if self._ask is None:
            raise self._refusal(message)

    def ask(
        self, message: str, schema: dict[str, Any], key: str | None
    ) -> tuple[int, Future[Reply]]:
        """Send a question; return its number and the future of its reply.

        Raises:
            CallError: The client cannot ask its user.
            TypeError: The message or the key is not a string.
            ValueError: The message is too long, or another open question has that key.
        """
        _check_texts(message, key)
        self.check_possible(message)
        assert self._ask is not None
        future: Future[Reply] = Future()
        with self._lock:
            number = self._count + 1
            name = f"question-{number}" if key is None else key
            if any(name == other.key for other, _ in self._open.values()):
                raise ValueError(f"elicit: a question with the key {name!r} has no answer yet")
            if len(self._open) >= MAX_OPEN:
                raise CannotElicit(
                    f"The tool has asked {MAX_OPEN} questions that have no answer yet: wait for "
                    "answers before asking more, or ask several things in one form."
                )
            self._count = number
            if not self._open:
                self._waits(True)
            question = Elicitation(number, name, message, schema)
            self._open[number] = question, future
        self._ask(question)
        if self._closed is not None:  # in the meantime
            self.close(self._closed)
        return number, future

    @property
    def open_questions(self) -> list[Elicitation]:
        """The questions that have no answer yet, oldest first."""
        with self._lock:
            return [question for question, _ in self._open.values()]

    def withdraw(self, number: int) -> None:
        """Withdraw a question; does nothing if it is answered."""
        if self._take(number) is not None and self._ask is not None:
            self._ask(Withdrawal(number))

    def answer(self, number: int, reply: Reply | CallError) -> None:
        """Deliver the reply to a question, or raise an error where it was asked."""
        future = self._take(number)
        if future is not None:
            _settle(future, reply)

    def close(self, error: CallError) -> None:
        """Raise an error for all open questions, and for those asked from now on."""
        with self._lock:
            self._closed = error
            waiting = [future for _, future in self._open.values()]
            self._open.clear()
            if self._count:
                self._waits(False)
            self._waits = _ignore  # breaks a reference cycle with the call
        for future in waiting:
            _settle(future, error)

    def _take(self, number: int) -> Future[Reply] | None:
        with self._lock:
            _, future = self._open.pop(number, (None, None))
            if future is not None and not self._open:
                self._waits(False)
        return future


def _ignore(_waits: bool) -> None:  # noqa: FBT001 - as it is called
    """Ignore whether the call waits."""


def _check_texts(message: object, key: object) -> None:
    if not isinstance(message, str):
        raise TypeError(f"elicit: the message must be a string, not a {type(message).__name__}")
    if key is not None and not isinstance(key, str):
        raise TypeError(f"elicit: the key must be a string, not a {type(key).__name__}")
    if len(message) > MAX_MESSAGE:
        raise ValueError(
            f"elicit: the message has {len(message)} characters, but a dialog can show at most "
            f"{MAX_MESSAGE}: return the long part as a result, and ask about it"
        )


def refuse_undeclared(tool: str) -> Callable[[str], CallError]:
    """Return a function that makes the error for a client that cannot ask its user."""

    def refusal(message: str) -> CallError:
        return CannotElicit(
            f"The tool {tool!r} has a question for the user, {message!r}, but this client cannot "
            "ask: it has not declared MCP's elicitation. If the tool has a parameter for the "
            "answer, ask the user yourself; otherwise call it from a client that can ask.",
            undeclared=True,
        )

    return refusal


def _refuse_without_client(message: str) -> CallError:
    return CannotElicit(
        f"The tool's question {message!r} cannot be asked: the call was made in the notebook, and "
        "only an MCP client has a user to ask. Call it from one, or give the tool a parameter for "
        "the answer."
    )


def _settle(future: Future[Reply], reply: Reply | CallError) -> None:
    with contextlib.suppress(InvalidStateError):  # the waiting tool was cancelled
        if isinstance(reply, CallError):
            future.set_exception(reply)
        else:
            future.set_result(reply)
