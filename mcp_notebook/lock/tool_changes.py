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

from mcp_notebook.lock.schema_changes import Difference, compare_schemas

Level: TypeAlias = Literal["breaking", "look", "compatible"]
LEVELS: tuple[Level, ...] = get_args(Level)
Entry: TypeAlias = Mapping[str, Any]
"""What the lock says of one tool, prompt, resource or skill; see `lock_file.describe`."""
_ARGUMENTS: Mapping[str, Level] = {
    "narrower": "breaking",
    "both": "breaking",
    "default": "look",
    "words": "look",
}
_RESULTS: Mapping[str, Level] = {"wider": "breaking", "both": "breaking", "words": "look"}
UNKNOWN = "unknown"
"""The type of a value in an answer that is null or empty there."""
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


def compare_entries(kind: str, name: str, old: Entry | None, new: Entry | None) -> list[Change]:
    """Return what is different of one tool, prompt, resource or skill.

    Args:
        kind: What it is.
        name: Its name.
        old: Its entry in the lock; None if it has none.
        new: Its entry now; None if it is gone.
    """
    pairs: Iterator[tuple[Level, str]]
    if old is None or new is None:
        pairs = iter([("look", "was added") if old is None else ("breaking", "was removed")])
    else:
        pairs = _compare(old, new)
    return [Change(kind, name, level, text) for level, text in dict.fromkeys(pairs)]


def _compare(old: Entry, new: Entry) -> Iterator[tuple[Level, str]]:
    for key in ("title", "description", "text"):
        if old.get(key) != new.get(key):
            yield "look", f"its {key} changed"
    for key, word in (("uri", "URI"), ("mimeType", "MIME type")):
        if old.get(key) != new.get(key):
            yield "breaking", f"its {word} is {new.get(key)} (was {old.get(key)})"
    yield from _compare_rights(old, new)
    schemas = old.get("inputSchema", {}), new.get("inputSchema", {})
    yield from _judge(compare_schemas(*schemas, "the arguments"), _ARGUMENTS)
    yield from _compare_results(old, new)


def _compare_rights(old: Entry, new: Entry) -> Iterator[tuple[Level, str]]:
    """Yield what is different in what calls may do, and in who may call."""
    before, after = (each.get("annotations", {}) for each in (old, new))
    effects = _find_effect(before), _find_effect(after)
    if effects[0] != effects[1]:
        yield (
            "breaking" if effects[1] > effects[0] else "compatible",
            f"it became {_EFFECTS[effects[1]]} (was {_EFFECTS[effects[0]]})",
        )
    if before.get("idempotentHint", False) != after.get("idempotentHint", False):
        is_lost = bool(before.get("idempotentHint"))
        word = "is no longer" if is_lost else "became"
        yield "breaking" if is_lost else "compatible", f"it {word} idempotent"
    is_open = before.get("openWorldHint", True), after.get("openWorldHint", True)
    if is_open[0] != is_open[1]:
        word = "may reach" if is_open[1] else "no longer reaches"
        yield "look" if is_open[1] else "compatible", f"it {word} beyond the notebook"
    if old.get("confirm", False) != new.get("confirm", False):
        word = "is asked" if new.get("confirm") else "is no longer asked"
        yield "look", f"a person {word} before each call"
    needed, needs = (frozenset(each.get("requires", ())) for each in (old, new))
    if needs - needed:
        yield "breaking", f"its clients need {', '.join(sorted(needs - needed))}"
    if needed - needs:
        yield "compatible", f"its clients no longer need {', '.join(sorted(needed - needs))}"
    if old.get("task") != new.get("task"):
        is_needed = new.get("task") == "required"
        text = "can become tasks" if new.get("task") else "are no tasks"
        yield (
            "breaking" if is_needed else "compatible",
            "its calls are always tasks" if is_needed else f"its calls {text}",
        )


def _find_effect(hints: Mapping[str, Any]) -> int:
    """Return the index of what calls may do."""
    if hints.get("readOnlyHint"):
        return 0
    destructive = hints.get("destructiveHint")
    return 2 if destructive is None else 3 if destructive else 1


def _compare_results(old: Entry, new: Entry) -> Iterator[tuple[Level, str]]:
    before, after = old.get("outputSchema"), new.get("outputSchema")
    if before is None or after is None:
        if before is not None:
            yield "breaking", "its results lost their schema"
        if after is not None:
            yield "compatible", "its results have a schema"
    else:
        for level, text in _judge(compare_schemas(before, after, "the result"), _RESULTS):
            yield level, f"in the result, {text}"
    examples = old.get("answers", {}), new.get("answers", {})
    for example in examples[0]:
        if example in examples[1]:
            yield from _compare_answers(examples[0][example], examples[1][example])


def _compare_answers(old: Entry, new: Entry) -> Iterator[tuple[Level, str]]:
    """Yield what is different in the form of the answer to an example."""
    lost = [block for block in old["blocks"] if block not in new["blocks"]]
    gained = [block for block in new["blocks"] if block not in old["blocks"]]
    if lost:
        yield "breaking", f"the answer has no {', '.join(lost)} any more"
    if gained:
        yield "look", f"the answer also has {', '.join(gained)}"
    for key, noun, whole in (("columns", "column", "a table"), ("data", "value", "data")):
        if key in old and key not in new:
            yield "breaking", f"the answer is no longer {whole}"
        elif key in old:
            yield from _compare_types(old[key], new[key], noun)


def _compare_types(
    old: Mapping[str, str], new: Mapping[str, str], noun: str
) -> Iterator[tuple[Level, str]]:
    """Yield what is different in named values and their types."""
    unknown = tuple(name for name, word in new.items() if word == UNKNOWN)
    for name, word in old.items():
        if name not in new and not name.startswith(unknown):
            yield "breaking", f"the answer lost the {noun} `{name}`"
        elif UNKNOWN not in (word, new.get(name, word)) and new.get(name, word) != word:
            yield "breaking", f"the {noun} `{name}` is {new[name]} (was {word})"
    for name in sorted(new.keys() - old.keys() - {*unknown}):
        yield "compatible", f"the answer has the new {noun} `{name}`"


def _judge(
    differences: list[Difference], levels: Mapping[str, Level]
) -> Iterator[tuple[Level, str]]:
    for each in differences:
        yield levels.get(each.direction, "compatible"), each.text
