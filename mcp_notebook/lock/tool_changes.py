"""What has changed since tools were locked, and whether that breaks a caller.

Pure. Three levels:

- *breaking*: a call that worked may fail, a result may lack what its reader needs, or a call may
  do more than its caller agreed to.
- *look*: no call fails, but a model may now act otherwise: another description or default, another
  question to a person, a tool that was not there.
- *compatible*: callers need not know.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from mcp_notebook.lock.schema_changes import Direction, compare_schemas

Level: TypeAlias = Literal["breaking", "look", "compatible"]
LEVELS: tuple[Level, ...] = get_args(Level)
Entry: TypeAlias = Mapping[str, Any]
"""What the lock says of one tool, prompt, resource or skill; see `lock_file.describe`."""
_Verdict: TypeAlias = tuple[Level, str]
_SCHEMAS: Sequence[tuple[str, Direction, str, str]] = (
    ("inputSchema", "narrower", "the arguments", ""),
    ("outputSchema", "wider", "the result", "in the result, "),
)
"""For each schema of a tool: what breaks its callers, its name, and what a change begins with."""
UNKNOWN = "unknown"
"""The type of a value in an answer that is null or empty there."""
_OF_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What an entry raises that is not as it was written: a person may have edited it."""
_EFFECTS = ("read-only", "non-destructive", "undeclared in its effect", "destructive")
"""What calls may do, the most harmless first."""


class Change(Struct, frozen=True):
    """One difference between a tool and the lock."""

    kind: str
    """``tool``, ``prompt``, ``resource`` or ``skill``."""
    name: str
    level: Level
    text: str
    """What changed, as a sentence without a full stop."""


def compare_entries(name: str, old: Entry | None, new: Entry | None) -> list[Change]:
    """Return what is different of one tool, prompt, resource or skill.

    Args:
        name: Its name.
        old: Its entry in the lock; None if it has none.
        new: Its entry now; None if it is gone.
    """
    kind = str((new or old or {}).get("kind"))
    found: Iterable[_Verdict]
    if old is None or new is None:
        found = [("look", "was added") if old is None else ("breaking", "was removed")]
    else:
        try:
            found = dict.fromkeys(_compare(old, new))
        except _OF_DAMAGE:
            found = [("breaking", "its entry in the lock is damaged")]
    return [Change(kind, name, level, text) for level, text in found]


def _compare(old: Entry, new: Entry) -> Iterator[_Verdict]:
    for key in ("title", "description", "text"):
        if old.get(key) != new.get(key):
            yield "look", f"its {key} changed"
    for key, word in (("kind", "kind"), ("uri", "URI"), ("mimeType", "MIME type")):
        if old.get(key) != new.get(key):
            yield "breaking", f"its {word} is {new.get(key)} (was {old.get(key)})"
    yield from _compare_rights(old, new)
    yield from _compare_schemas(old, new)
    examples = old.get("answers", {}), new.get("answers", {})
    for example in examples[0].keys() & examples[1]:
        yield from _compare_answers(examples[0][example], examples[1][example])


def _compare_schemas(old: Entry, new: Entry) -> Iterator[_Verdict]:
    for key, breaks, subject, where in _SCHEMAS:
        schemas = old.get(key), new.get(key)
        if key == "outputSchema" and schemas[0] is None is not schemas[1]:
            yield "compatible", "its results have a schema"
        elif key == "outputSchema" and schemas[1] is None is not schemas[0]:
            yield "breaking", "its results lost their schema"
        else:
            for direction, text in compare_schemas(*schemas, subject):
                is_breaking = direction in (breaks, "both")
                level: Level = "look" if direction == "words" else "compatible"
                yield "breaking" if is_breaking else level, f"{where}{text}"


def _compare_rights(old: Entry, new: Entry) -> Iterator[_Verdict]:
    """Yield what is different in what calls may do, and in who may call."""
    before, after = ({**each, **each.get("annotations", {})} for each in (old, new))
    was, now = _find_effect(before), _find_effect(after)
    level: Level
    if was != now:
        level = "breaking" if now > was else "compatible"
        yield level, f"it became {_EFFECTS[now]} (was {_EFFECTS[was]})"
    was_same, is_same = (each.get("idempotentHint", False) for each in (before, after))
    if was_same != is_same:
        level = "compatible" if is_same else "breaking"
        yield level, f"it {'became' if is_same else 'is no longer'} idempotent"
    was_open, is_open = (each.get("openWorldHint", True) for each in (before, after))
    if was_open != is_open:
        word = "may reach" if is_open else "no longer reaches"
        yield "look" if is_open else "compatible", f"it {word} beyond the notebook"
    if old.get("confirm", False) != new.get("confirm", False):
        word = "is" if new.get("confirm") else "is no longer"
        yield "look", f"a person {word} asked before each call"
    needed, needs = (frozenset(each.get("requires", ())) for each in (old, new))
    if needs - needed:
        yield "breaking", f"its clients need {', '.join(sorted(needs - needed))}"
    if needed - needs:
        yield "compatible", f"its clients no longer need {', '.join(sorted(needed - needs))}"
    if old.get("task") != (task := new.get("task")):
        words = "are always" if task == "required" else "can be" if task else "cannot be"
        yield "compatible" if task == "optional" else "breaking", f"its calls {words} tasks"


def _find_effect(hints: Mapping[str, Any]) -> int:
    """Return the index of what calls may do."""
    if hints.get("readOnlyHint"):
        return 0
    destructive = hints.get("destructiveHint")
    return 2 if destructive is None else 3 if destructive else 1


def _compare_answers(old: Entry, new: Entry) -> Iterator[_Verdict]:
    """Yield what is different in the form of the answer to an example."""
    for noun in ("block", "column", "value"):
        had, has = old.get(f"{noun}s", {}), new.get(f"{noun}s", {})
        unknown = {name for name, kind in has.items() if kind == UNKNOWN}
        inside = tuple(f"{name}{mark}" for name in unknown for mark in ".[")
        for name, kind in had.items():
            now = has.get(name)
            if now is None and not name.startswith(inside):
                yield "breaking", f"the answer lost the {noun} `{name}`"
            elif UNKNOWN not in (kind, now or UNKNOWN) and kind != now:
                yield "breaking", f"the {noun} `{name}` is {now} (was {kind})"
        for name in sorted(has.keys() - had.keys() - unknown):
            level: Level = "look" if noun == "block" else "compatible"
            yield level, f"the answer has the new {noun} `{name}`"
