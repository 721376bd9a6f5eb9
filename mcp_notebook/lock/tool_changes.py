"""What has changed since tools were locked, and whether that breaks a caller.

Pure. Three levels:

- *breaking*: a call that worked may fail, a result may lack what its reader needs, or a call may
  do more than its caller agreed to.
- *look*: no call fails, but a model may now act otherwise: another description or default, another
  question to a person, a tool that was not there.
- *compatible*: callers need not know.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from mcp_notebook.lock.schema_changes import Direction, compare_schemas

Level: TypeAlias = Literal["breaking", "look", "compatible"]
_LEVELS = get_args(Level)
Entry: TypeAlias = Mapping[str, Any]
"""What the lock says of one tool, prompt, resource or skill; see `lock_file.describe`."""
_Verdict: TypeAlias = tuple[Level, str]
_PLAIN: Mapping[str, Level] = {
    **dict[str, Level].fromkeys(("title", "description", "text"), "look"),
    **dict[str, Level].fromkeys(("kind", "uri", "mime_type"), "breaking"),
}
"""What a change of these means, whatever they were."""
_HINTS: Mapping[tuple[str, bool], _Verdict] = {
    ("idempotentHint", True): ("compatible", "it became idempotent"),
    ("idempotentHint", False): ("breaking", "it is no longer idempotent"),
    ("openWorldHint", True): ("look", "it may reach beyond the notebook"),
    ("openWorldHint", False): ("compatible", "it no longer reaches beyond the notebook"),
    ("confirm", True): ("look", "a person is asked before each call"),
    ("confirm", False): ("look", "a person is no longer asked before each call"),
}
"""What it means that a hint now has a value."""
_EFFECTS = ("read-only", "non-destructive", "destructive")
"""What calls may do, the most harmless first; MCP's default is the last."""
_SCHEMAS: Mapping[str, tuple[Direction, str]] = {
    "input_schema": ("narrower", ""),
    "output_schema": ("wider", "result"),
}
"""Of each schema: what breaks callers, and its place."""
UNKNOWN = "unknown"
"""The type of a value in an answer that is null or empty there."""
_OF_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What an entry raises that is not as it was written: a person may have edited it."""


class Change(Struct, frozen=True):
    """One difference between a tool and the lock."""

    name: str
    """The tool's, prompt's, resource's or skill's."""
    level: Level
    text: str
    """What changed, as a sentence without a full stop."""


def compare_entries(name: str, old: Entry | None, new: Entry | None) -> list[Change]:
    """Return what is different of one tool, prompt, resource or skill; what breaks comes first.

    Args:
        name: Its name.
        old: Its entry in the lock; None if it has none.
        new: Its entry now; None if it is gone.
    """
    try:
        found = sorted(dict.fromkeys(_compare(old, new)), key=lambda each: _LEVELS.index(each[0]))
    except _OF_DAMAGE:
        found = [("breaking", "its entry in the lock is damaged")]
    return [Change(name, level, text) for level, text in found]


def _compare(old: Entry | None, new: Entry | None) -> Iterator[_Verdict]:
    if old is None:
        yield "look", "was added"
    elif new is None:
        yield "breaking", "was removed"
    else:
        for key, level in _PLAIN.items():
            if old.get(key) != new.get(key):
                yield level, f"its {key} changed"
        yield from _compare_rights(old, new)
        yield from _compare_schemas(old, new)
        seen, sees = old.get("answers", {}), new.get("answers", {})
        for example in filter(sees.get, seen):
            yield from _compare_answers(seen[example], sees[example])


def _compare_schemas(old: Entry, new: Entry) -> Iterator[_Verdict]:
    for key, (breaks, place) in _SCHEMAS.items():
        for direction, text in compare_schemas(old.get(key, {}), new.get(key, {}), place):
            is_breaking = direction in (breaks, "both")
            level: Level = "look" if direction == "words" else "compatible"
            yield "breaking" if is_breaking else level, text


def _compare_rights(old: Entry, new: Entry) -> Iterator[_Verdict]:
    """Yield what is different in what calls may do, and in who may call."""
    before, after = ({**each, **each.get("annotations", {})} for each in (old, new))
    was, now = _find_effect(before), _find_effect(after)
    if was != now:
        level: Level = "breaking" if now > was else "compatible"
        yield level, f"it became {_EFFECTS[now]} (was {_EFFECTS[was]})"
    for (key, value), verdict in _HINTS.items():
        default = key == "openWorldHint"
        if before.get(key, default) != after.get(key, default) == value:
            yield verdict
    needed, needs = (frozenset(each.get("requires", ())) for each in (old, new))
    if needed != needs:
        level = "compatible" if needs < needed else "breaking"
        yield level, f"its clients need {', '.join(sorted(needs)) or 'nothing'}"
    if old.get("task") != (task := new.get("task")):
        words = "are always" if task == "required" else "can be" if task else "cannot be"
        yield "compatible" if task == "optional" else "breaking", f"its calls {words} tasks"


def _find_effect(hints: Mapping[str, Any]) -> int:
    """Return the index of what calls may do."""
    if hints.get("readOnlyHint"):
        return 0
    return 2 if hints.get("destructiveHint", True) else 1


def _compare_answers(had: Mapping[str, str], has: Mapping[str, str]) -> Iterator[_Verdict]:
    """Yield what is different in the form of the answer to an example."""
    unknown = {name for name, kind in has.items() if kind == UNKNOWN}
    inside = tuple(f"{name}{mark}" for name in unknown for mark in ".[")
    for name, kind in had.items():
        now = has.get(name)
        if now is None and not name.startswith(inside):
            yield "breaking", f"the answer lost the {name}"
        elif UNKNOWN not in (kind, now or UNKNOWN) and kind != now:
            yield "breaking", f"the {name} is {now} (was {kind})"
    for name in has:
        if name not in had and name not in unknown:
            level: Level = "look" if name.startswith("block") else "compatible"
            yield level, f"the answer has the new {name}"
