"""Compares two JSON Schemas: which values are no longer allowed, and which are allowed in addition.

Pure. Arguments that are no longer allowed break a caller, and so do results that were not possible
before: a difference has a direction, and `tool_changes` judges it. Keywords are compared one by
one: `_FITS` has those with an order. A change of any other, or of a union with further keywords, is
taken for a break, and a person compares by hand.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import eq, ge, le
from typing import Any, Literal, TypeAlias

from mcp_notebook.schema_keywords import DEFINITIONS
from mcp_notebook.text.wording import shorten

Direction: TypeAlias = Literal["narrower", "wider", "both", "added", "words"]
"""Which values a schema allows now: fewer, more, or others. Otherwise the same, but a property was
`added` that callers may ignore, or a default or the words for a reader changed."""
Difference: TypeAlias = tuple[Direction, str]
"""One difference between two schemas, and a sentence about it without a full stop: ``"`year` became
required"``."""
_FITS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": lambda one, other: (one, other) == ("integer", "number"),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), ge),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), le),
    **dict.fromkeys(("enum", "pattern", "format", "uniqueItems"), eq),
    "multipleOf": lambda one, other: one % other == 0,
}
"""Keywords that allow less than none, whatever else a schema has, and whether all values that are
allowed with one of two are allowed with the other."""
_WORDS = ("title", "description", "deprecated", "x-mcp-header")
_IGNORED = frozenset({*_WORDS, *DEFINITIONS, "default", "examples", "discriminator", "writeOnly"})
"""Keywords that allow no more and no less; defaults are compared with their properties."""
_PARTS = {"items": "[]", "additionalProperties": ".*"}
"""Keywords with one schema, and what its place ends with."""
_APART = frozenset({"properties", "required", *_PARTS})
_NOTHING = {"not": dict[str, Any]()}
"""The schema `false`."""
_MAX_SHOWN = 80
_MAX_PAIRS = 5_000
"""Pairs of schemas in one comparison: definitions that refer to each other make ever more of them,
and bridges and kernels wait."""
_Schema: TypeAlias = dict[str, Any]
_Found: TypeAlias = Iterator[Difference]


def compare_schemas(old: Any, new: Any, place: str = "") -> list[Difference]:
    """Return the differences between two schemas.

    Args:
        old: The schema as it was.
        new: The schema as it is.
        place: What the names of properties begin with; empty: they are arguments.
    """
    try:
        return list(dict.fromkeys(_Comparison(old, new).compare(old, new, place)))
    except _TooManyPairs:
        return [("both", f"{_name(place)} changed, in too many places to compare them")]


def write_json(value: Any) -> str:
    """Return a value as JSON, the same text for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


class _TooManyPairs(Exception):
    """There are more than `_MAX_PAIRS`."""


class _Comparison:
    """One comparison; it knows both roots, for references.

    A `place` is the path of properties, ``filters.days[]``.
    """

    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new
        self._open: set[tuple[str, str]] = set()
        """The pairs that are being compared: a recursive schema leads back to one of them."""
        self._count = 0

    def compare(self, old: Any, new: Any, place: str) -> _Found:
        """Yield the differences between two schemas at a place."""
        pair = _write(old, self._old), _write(new, self._new)
        if pair[0] == pair[1] or pair in self._open:
            return
        self._count += 1
        if self._count > _MAX_PAIRS:
            raise _TooManyPairs
        self._open.add(pair)
        old, new = _resolve(old, self._old), _resolve(new, self._new)
        for key in _WORDS:
            if old.get(key) != new.get(key):
                yield "words", f"the {key} of {_name(place)} changed"
        before = [*_split(_drop_words(old), self._old)]
        after = [*_split(_drop_words(new), self._new)]
        if len(before) == len(after) == 1:
            yield from self._compare_one(before[0], after[0], place)
        else:
            yield from self._compare_unions(before, after, place)
        self._open.discard(pair)

    def _compare_unions(self, before: list[_Schema], after: list[_Schema], place: str) -> _Found:
        """Compare alternatives: each needs one on the other side that allows all of its values."""
        olds, news = dict(enumerate(before)), dict(enumerate(after))
        table = {(i, j): [*self.compare(olds[i], news[j], place)] for i in olds for j in news}
        lost = [i for i in olds if all(_has(table[i, j], "narrower") for j in news)]
        gained = [j for j in news if all(_has(table[i, j], "wider") for i in olds)]
        # What is different in the most similar one says most.
        for i, j in sorted(table, key=lambda each: len(table[each])):
            if i in olds and j in news and olds[i].get("type") == news[j].get("type"):
                del olds[i], news[j]
                yield from table[i, j]
        if fewer := [olds[i] for i in lost if i in olds]:
            yield "narrower", f"{_name(place)} no longer allows {_describe(fewer)}"
        if more := [news[j] for j in gained if j in news]:
            yield "wider", f"{_name(place)} also allows {_describe(more)}"

    def _compare_one(self, old: _Schema, new: _Schema, place: str) -> _Found:
        name = _name(place)
        if new == _NOTHING:
            yield "narrower", f"{name} is no longer allowed"
        elif old == _NOTHING:
            yield "wider", f"{name} is allowed now"
        else:
            yield from self._compare_keywords(old, new, name)
            yield from self._compare_properties(old, new, place)
            for key, mark in _PARTS.items():
                yield from self.compare(old.get(key, True), new.get(key, True), f"{place}{mark}")

    def _compare_keywords(self, old: _Schema, new: _Schema, name: str) -> _Found:
        for key in dict.fromkeys((*old, *new)):
            was, now = old.get(key), new.get(key)
            if key in _IGNORED or key in _APART:
                continue
            if key == "enum" and was is not None is not now:
                yield from _compare_choices(was, now, name)
            elif _write({key: was}, self._old) != _write({key: now}, self._new):
                what = name if key == "type" else f"`{key}` of {name}"
                yield _judge(key, was, now), f"{what} is {_show(now)} (was {_show(was)})"

    def _compare_properties(self, old: _Schema, new: _Schema, place: str) -> _Found:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        for key in dict.fromkeys((*before, *after, *sorted(needed | needs))):
            where = f"{place}.{key}".lstrip(".")
            name = _name(where)
            if key in before and key not in after:
                yield "both", f"{name} was removed"
            elif key in after and key not in before:
                is_needed = key in needs
                how = "is required" if is_needed else "is optional"
                yield "narrower" if is_needed else "added", f"{name} was added and {how}"
            else:
                if key in needs - needed:
                    yield "narrower", f"{name} became required"
                elif key in needed - needs:
                    yield "wider", f"{name} became optional"
                elif key not in needs:
                    was = _resolve(before[key], self._old).get("default")
                    now = _resolve(after[key], self._new).get("default")
                    if was != now:
                        yield "words", f"the default of {name} is {_show(now)} (was {_show(was)})"
                yield from self.compare(before.get(key), after.get(key), where)


def _name(place: str) -> str:
    """Return a place in words."""
    if place.endswith("*"):
        return f"any other property of {_name(place[:-2])}"
    return f"`{place}`" if place else "the arguments"


def _write(value: Any, root: Any) -> str:
    """Return a value as JSON, with what it may refer to."""
    text = write_json(value)
    return f"{text}{[root.get(key) for key in DEFINITIONS]}" if '"$' in text else text


def _resolve(schema: Any, root: Any) -> _Schema:
    """Return a schema as an object, with the definition that it refers to."""
    if not isinstance(schema, dict):
        return _NOTHING if schema is False else {}
    if "const" in schema:
        rest = {key: item for key, item in schema.items() if key != "const"}
        return {**rest, "enum": [schema["const"]]}
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    definitions = root.get("$defs", {})
    if name not in definitions or schema.keys() - _IGNORED != {"$ref"}:
        return schema
    target = _resolve(definitions[name], root)
    return {**target, **{key: item for key, item in schema.items() if key in _IGNORED}}


def _split(schema: Any, root: Any) -> Iterator[_Schema]:
    """Yield the alternatives of a union, or the schema if it is none."""
    schema = _resolve(schema, root)
    rest, given = _drop_words(schema), schema.get("type")
    union = rest.get("anyOf", rest.get("oneOf"))
    if union and len(rest) == 1:
        for each in union:
            yield from _split(each, root)
    elif isinstance(given, list):
        for each in given:
            yield {**schema, "type": each}
    else:
        yield schema


def _drop_words(schema: _Schema) -> _Schema:
    return {key: item for key, item in schema.items() if key not in _IGNORED}


def _judge(key: str, old: Any, new: Any) -> Direction:
    """Return what the change of a keyword means for the values that are allowed."""
    fits = _FITS.get(key)
    if fits is None:
        return "both"
    if old is None or (new is not None and fits(new, old)):
        return "narrower"
    return "wider" if new is None or fits(old, new) else "both"


def _has(differences: Sequence[Difference], direction: Direction) -> bool:
    """Return whether an alternative is not the other one's, strictly: `added` is a difference."""
    return any(each in (direction, "both", "added") for each, _ in differences)


def _compare_choices(old: Sequence[Any], new: Sequence[Any], name: str) -> _Found:
    had, has = (dict.fromkeys(map(write_json, each)) for each in (old, new))
    if lost := [each for each in had if each not in has]:
        yield "narrower", f"{name} lost {shorten(', '.join(lost), _MAX_SHOWN)}"
    if gained := [each for each in has if each not in had]:
        yield "wider", f"{name} also allows {shorten(', '.join(gained), _MAX_SHOWN)}"


def _describe(alternatives: Sequence[_Schema]) -> str:
    """Return alternatives in words: ``null and ["EU", "US"]``."""
    return " and ".join(
        _show(each["enum"]) if "enum" in each else each.get("type", "other values")
        for each in alternatives
    )


def _show(value: Any) -> str:
    return "none" if value is None else shorten(write_json(value), _MAX_SHOWN)
