"""Whether a message about a wrong call is enough for a rule to correct the call.

The rule stands in for a model that knows what it means, but learns only from the message where the
call is wrong and what is allowed there. It corrects a place if the message names it and says one of
these: there is no such parameter, one is missing, the choices, the type, a bound or a form. What
the message repeats of the call counts for nothing. The rule is the same for all servers.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from wrong_calls import WrongCall

Path: TypeAlias = tuple[str | int, ...]
Difference: TypeAlias = Literal["unknown", "missing", "wrong"]
MAX_MESSAGES = 3
"""Messages that a model reads before it gives up."""
_REPEATED = re.compile(r"\bgot .*?(?=; )|\[type=.*?\]|https?://\S+")
"""What a message repeats of the call, and addresses."""
_UNKNOWN = re.compile(r"unexpected|unknown|no such|not permitted|not allowed|extra", re.IGNORECASE)
_MISSING = re.compile(r"missing|required", re.IGNORECASE)
_FORM = re.compile(r"pattern|matching|date|characters?\b|time|number|decimal", re.IGNORECASE)
_TYPES = {
    bool: r"boolean|bool",
    int: r"integer|int",
    float: r"number|float|integer",
    str: r"string|text",
    list: r"array|list",
    dict: r"object|dict|dictionary",
    type(None): r"null|none",
}


@dataclass
class Outcome:
    """What became of a wrong call."""

    wrong: WrongCall
    messages: list[str] = field(default_factory=list)
    """The messages that were read, in order."""
    is_understood: bool = False
    """Whether the function was called with what was meant in the end."""
    is_misunderstood: bool = False
    """Whether it was called with something else."""


@dataclass(frozen=True)
class Reply:
    """What a server said to a call."""

    text: str
    received: dict[str, Any] | None
    """What the function was called with; None if it was not called."""


async def repair(wrong: WrongCall, call: Callable[[str, dict[str, Any]], Any]) -> Outcome:
    """Send a wrong call, and correct it by what the messages say.

    Args:
        wrong: The call.
        call: Sends a tool's name and arguments, and returns a `Reply`.
    """
    outcome = Outcome(wrong)
    sent: Any = wrong.sent
    while True:
        reply = await call(wrong.tool, sent)
        if reply.received is not None:
            received = {name: reply.received.get(name) for name in wrong.meant}
            outcome.is_understood = received == wrong.meant
            outcome.is_misunderstood = not outcome.is_understood
            return outcome
        outcome.messages.append(reply.text)
        corrected = correct(sent, wrong.meant, reply.text)
        if corrected == sent or len(outcome.messages) == MAX_MESSAGES:
            return outcome
        sent = corrected


def correct(sent: Any, meant: Any, text: str) -> Any:
    """Return arguments with what was meant in the places that a message explains."""
    said = _REPEATED.sub("", text)
    for path, kind in list(_compare(sent, meant)):
        if _names(path, text) and _explains(kind, _get(sent, path), _get(meant, path), said):
            sent = _put(sent, path, meant)
    return sent


def _compare(sent: Any, meant: Any, path: Path = ()) -> Iterator[tuple[Path, Difference]]:
    """Yield the places in which two values differ."""
    if isinstance(sent, dict) and isinstance(meant, dict):
        for name in dict.fromkeys((*sent, *meant)):
            if name not in meant:
                yield (*path, name), "unknown"
            elif name not in sent:
                yield (*path, name), "missing"
            else:
                yield from _compare(sent[name], meant[name], (*path, name))
    elif isinstance(sent, list) and isinstance(meant, list) and len(sent) == len(meant):
        for number, pair in enumerate(zip(sent, meant, strict=True)):
            yield from _compare(*pair, (*path, number))
    elif sent != meant or type(sent) is not type(meant):
        yield path, "wrong"


def _names(path: Path, text: str) -> bool:
    names = [part for part in path if isinstance(part, str)]
    return all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def _explains(kind: Difference, sent: Any, meant: Any, said: str) -> bool:
    """Return whether a message says what is wrong with a place that it names."""
    if kind == "unknown":
        return bool(_UNKNOWN.search(said))
    if kind == "missing":  # or a name that the message proposes in place of an unknown one
        return bool(_MISSING.search(said) or _UNKNOWN.search(said))
    if isinstance(meant, str | int | float) and re.search(rf"(?<!\w){meant!r}(?!\w)", said):
        return True
    is_number = isinstance(sent, int | float) and isinstance(meant, int | float)
    if is_number or (isinstance(sent, list) and isinstance(meant, list)):
        return bool(re.search(r"\d", said))
    if isinstance(sent, str) and isinstance(meant, str):
        return bool(_FORM.search(said))
    return bool(re.search(rf"\b(?:{_TYPES[type(meant)]})\b", said, re.IGNORECASE))


def _get(value: Any, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _put(value: Any, path: Path, meant: Any) -> Any:
    """Return a copy of a value in which one place is as it was meant."""
    head, *rest = path
    if isinstance(value, list):
        return [
            (_put(item, tuple(rest), meant[number]) if rest else meant[number])
            if number == head
            else item
            for number, item in enumerate(value)
        ]
    if rest:
        return value | {head: _put(value[head], tuple(rest), meant[head])}
    others = {name: item for name, item in value.items() if name != head}
    return others | ({head: meant[head]} if head in meant else {})
