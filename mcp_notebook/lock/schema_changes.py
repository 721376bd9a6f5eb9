"""Compares two JSON Schemas: which values are no longer allowed, and which are allowed in addition.

Pure. Arguments that are no longer allowed break a caller, and so do results that were not possible
before: a difference has a direction, and `tool_changes` judges it. Where the keywords themselves do
not tell (two patterns, say), a difference is taken for a break.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from math import floor, inf
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

from mcp_notebook.schema_keywords import DEFINITIONS, LISTS, NAMED, SINGLE
from mcp_notebook.text.wording import shorten

Direction: TypeAlias = Literal["narrower", "wider", "both", "added", "words"]
"""Which values a schema allows now: fewer, more, or others. Otherwise the same, but a property was
`added` that callers may ignore, or a default or the words for a reader changed."""
Difference: TypeAlias = tuple[Direction, str]
"""One difference between two schemas, and a sentence about it without a full stop: ``"`year` became
required"``."""
_TYPES: dict[Any, frozenset[str]] = {
    None: frozenset({"null", "boolean", "integer", "number", "string", "array", "object"}),
    "number": frozenset({"integer", "number"}),
}
"""The types of values that a schema allows, by its own type."""
_ENDS = ("min", "max")
_BOUNDS = [f"{end}{noun}" for noun in ("imum", "Length", "Items", "Properties") for end in _ENDS]
_RULES = (
    *("pattern", "format", "contentEncoding", "contentMediaType", "contentSchema", "multipleOf"),
    *("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems", "dependencies"),
    *("patternProperties", "unevaluatedProperties", "dependentRequired", "dependentSchemas", "not"),
    *("if", "then", "else", "allOf", "anyOf", "oneOf", "$ref", "$dynamicRef"),
)
"""Keywords that are compared as a whole. Each allows less than none."""
_WORDS = ("title", "description", "deprecated", "x-mcp-header")
_OUTSIDE = frozenset({*_WORDS, "default", "examples", *DEFINITIONS})
"""Keywords of a union that are not of its alternatives."""
_NESTED = SINGLE | LISTS | NAMED | {"minContains", "maxContains"}
"""Keywords whose meaning may depend on others."""
_INSIDE = {"items": "[]", "propertyNames": " (names)", "additionalProperties": ".*"}
"""Keywords with one schema, and what a place in it ends with."""
_REFERENCE = re.compile(r'"\$(ref|dynamicRef)": "')
_MAX_SHOWN = 80
_MAX_DEPTH = 8
"""Unions in unions that are compared by their alternatives."""
_Schema: TypeAlias = dict[str, Any]
_Found: TypeAlias = Iterator[Difference]


def compare_schemas(old: Any, new: Any, subject: str) -> list[Difference]:
    """Return the differences between two schemas.

    Args:
        old: The schema as it was.
        new: The schema as it is.
        subject: What the whole schema describes: "the arguments".
    """
    return list(dict.fromkeys(_Comparison(old, new, subject).compare(old, new, "")))


def write_json(value: Any) -> str:
    """Return a value as JSON, the same text for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


class _Comparison:
    """One comparison; it knows both roots, for references.

    A `place` is the path of properties, ``filters.days[]``; empty at the root.
    """

    def __init__(self, old: Any, new: Any, subject: str) -> None:
        self._old, self._new, self._subject = old, new, subject
        self._open: set[tuple[str, str]] = set()
        """The pairs that are being compared: a recursive schema leads back to one of them."""

    def compare(self, old: Any, new: Any, place: str) -> _Found:
        """Yield the differences between two schemas at a place."""
        pair = _write(old, self._old), _write(new, self._new)
        if pair[0] == pair[1] or pair in self._open:
            return
        self._open.add(pair)
        old, new = _resolve(old, self._old), _resolve(new, self._new)
        for key in _WORDS:
            if old.get(key) != new.get(key):
                yield "words", f"the {key} of {self._name(place)} changed"
        before, after = [*_split(old, self._old)], [*_split(new, self._new)]
        if len(before) == len(after) == 1:
            yield from self._compare_one(before[0], after[0], place)
        else:
            yield from self._compare_unions(before, after, place)
        self._open.discard(pair)

    def _name(self, place: str) -> str:
        """Return a place in words."""
        if place.endswith(".*") or place == "*":
            return f"any other property of {self._name(place[:-2])}"
        return f"`{place}`" if place else self._subject

    def _compare_unions(self, before: list[_Schema], after: list[_Schema], place: str) -> _Found:
        """Compare alternatives: each needs one on the other side that allows all of its values."""
        table = [[[*self.compare(old, new, place)] for new in after] for old in before]
        pairs = [(len(each), i, j) for i, row in enumerate(table) for j, each in enumerate(row)]
        olds, news = dict(enumerate(before)), dict(enumerate(after))
        for _, i, j in sorted(pairs):  # what is different in the most similar one says most
            if i in olds and j in news and olds[i].get("type") == news[j].get("type"):
                del olds[i], news[j]
                yield from table[i][j]
        lost = [old for i, old in olds.items() if all(_has(each, "narrower") for each in table[i])]
        gained = [new for j, new in news.items() if all(_has(row[j], "wider") for row in table)]
        if lost:
            yield "narrower", f"{self._name(place)} no longer allows {_describe(*lost)}"
        if gained:
            yield "wider", f"{self._name(place)} also allows {_describe(*gained)}"

    def _compare_one(self, old: _Schema, new: _Schema, place: str) -> _Found:
        name, types = self._name(place), (_list_types(old), _list_types(new))
        if new.get("not") == {}:  # the schema `false`
            yield "narrower", f"{name} is no longer allowed"
            return
        if old.get("not") == {}:
            yield "added" if place.endswith("*") else "wider", f"{name} is allowed now"
            return
        if types[0] != types[1] and not ("enum" in old and "enum" in new):
            is_narrower, is_wider = types[1] < types[0], types[0] < types[1]
            direction: Direction = "narrower" if is_narrower else "wider" if is_wider else "both"
            yield direction, f"{name} is {_describe(new)} (was {_describe(old)})"
            if direction == "both":  # nothing else is comparable
                return
        yield from _compare_values(old, new, name)
        yield from _compare_bounds(old, new, name)
        yield from self._compare_rules(old, new, name)
        others = old.get("items", True), new.get("items", True)
        heads = zip_longest(old.get("prefixItems", ()), new.get("prefixItems", ()))
        for index, (before, after) in enumerate(heads):
            pair = (others[0] if before is None else before, others[1] if after is None else after)
            yield from self.compare(*pair, f"{place}[{index}]")
        yield from self._compare_properties(old, new, place)
        for key, mark in _INSIDE.items():
            where = f"{place}{mark}".lstrip(" .")
            yield from self.compare(old.get(key, True), new.get(key, True), where)

    def _compare_rules(self, old: _Schema, new: _Schema, name: str) -> _Found:
        for key in [key for key in _RULES if key in old or key in new]:
            # `false`, `[]` and `{}` allow everything; `not` alone forbids it.
            before: Any = old.get(key) or None
            after: Any = new.get(key) or None
            if _write({key: before}, self._old) == _write({key: after}, self._new):
                continue
            is_narrower, is_wider = before is None, after is None
            if key == "multipleOf" and before and after:
                is_narrower, is_wider = not after % before, not before % after
            direction: Direction = "narrower" if is_narrower else "wider" if is_wider else "both"
            now, was = ("none" if each is None else _show(each) for each in (after, before))
            yield direction, f"`{key}` of {name} is {now} (was {was})"

    def _compare_properties(self, old: _Schema, new: _Schema, place: str) -> _Found:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        for key in dict.fromkeys((*before, *after, *sorted(needed | needs))):
            where = f"{place}.{key}" if place else key
            name = self._name(where)
            if key in before and key not in after:
                yield "both", f"{name} was removed"
            elif key in after and key not in before:
                how = "with a default" if "default" in _as_dict(after[key]) else "and is optional"
                how = "and is required" if key in needs else how
                yield "narrower" if key in needs else "added", f"{name} was added {how}"
            else:
                if key in needs - needed:
                    yield "narrower", f"{name} became required"
                elif key in needed - needs:
                    yield "wider", f"{name} became optional"
                elif key not in needs:
                    yield from _compare_defaults(before[key], after[key], name)
                yield from self.compare(before.get(key), after.get(key), where)


def _write(value: Any, root: Any) -> str:
    """Return a value as JSON, with what it may refer to."""
    text = write_json(value)
    known = [root.get(key) for key in DEFINITIONS] if _REFERENCE.search(text) else ""
    return f"{text}{known}"


def _resolve(schema: Any, root: Any, seen: frozenset[str] = frozenset()) -> _Schema:
    """Return a schema as an object, with what it refers to."""
    if not isinstance(schema, dict):
        return {"not": {}} if schema is False else {}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or reference in seen or reference.split("/")[0] != "#":
        return schema  # with an anchor or a URL, it is compared as a rule
    target = root
    for part in unquote(reference).removeprefix("#").split("/")[1:]:
        target = _as_dict(target).get(part.replace("~1", "/").replace("~0", "~"))
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return _merge(_resolve(target, root, seen | {reference}), rest)


def _merge(one: _Schema, other: _Schema) -> _Schema:
    """Return a schema that allows what both allow."""
    rest, keys = _drop_words(other), _drop_words(one).keys()
    is_apart = keys.isdisjoint(rest) and (_NESTED.isdisjoint(keys) or _NESTED.isdisjoint(rest))
    if is_apart or one == one | rest:
        return one | other
    return {"allOf": [one, rest]} | {key: other[key] for key in other if key in _OUTSIDE}


def _split(schema: _Schema, root: Any, depth: int = 0) -> Iterator[_Schema]:
    """Yield the alternatives of a union, each with what holds for all of them."""
    rest = _drop_words(schema)
    key = next((key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), None)
    if key is not None and depth < _MAX_DEPTH:
        del rest[key]
        for each in schema[key]:
            yield from _split(_merge(_resolve(each, root), rest), root, depth + 1)
        return
    if depth:  # else the words are of the whole
        rest |= {key: schema[key] for key in _WORDS if key in schema}
    if "const" in rest:
        rest["enum"] = [rest.pop("const")]
    given = rest.pop("type", None)
    for each in given if isinstance(given, list) else [given]:
        one = rest if each is None else {**rest, "type": each}
        if "enum" in rest:
            types = _list_types({"type": each})
            one = {**one, "enum": [item for item in rest["enum"] if _find_type(item) in types]}
        yield one


def _drop_words(schema: _Schema) -> _Schema:
    return {key: item for key, item in schema.items() if key not in _OUTSIDE}


def _as_dict(value: Any) -> _Schema:
    return value if isinstance(value, dict) else {}


def _has(differences: Iterable[Difference], direction: Direction) -> bool:
    return any(each in (direction, "both") for each, _ in differences)


# -- single keywords -------------------------------------------------------------------------------


def _list_types(schema: _Schema) -> frozenset[str]:
    """Return the types of a schema, given or those of its values."""
    if "enum" in schema:
        return frozenset(map(_find_type, schema["enum"]))
    given: Any = schema.get("type")
    return _TYPES.get(given, frozenset({given}))


def _find_type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def _describe(*alternatives: _Schema) -> str:
    """Return alternatives in words: ``null and "EU", "US"``."""
    return " and ".join(
        _show(*each["enum"]) if "enum" in each else each.get("type", "of any type")
        for each in alternatives
    )


def _compare_values(old: _Schema, new: _Schema, name: str) -> _Found:
    had, has = ({write_json(v): v for v in each.get("enum", ())} for each in (old, new))
    if "enum" not in old and "enum" in new:
        yield "narrower", f"{name} only allows {_show(*new['enum'])}"
    elif "enum" in old and "enum" not in new:
        yield "wider", f"{name} is no longer limited to {_show(*old['enum'])}"
    else:
        if lost := [had[key] for key in had if key not in has]:
            yield "narrower", f"{name} lost {_show(*lost)}"
        if gained := [has[key] for key in has if key not in had]:
            yield "wider", f"{name} also allows {_show(*gained)}"


def _compare_bounds(old: _Schema, new: _Schema, name: str) -> _Found:
    for key in _BOUNDS:
        sign = 1 if key.startswith("min") else -1
        before, after = (_find_limit(each, key, sign) for each in (old, new))
        if before != after:
            now, was = (
                f"{_show(limit * sign)}{' (exclusive)' * is_strict}" if abs(limit) < inf else "none"
                for limit, is_strict in (after, before)
            )
            direction: Direction = "narrower" if after > before else "wider"
            yield direction, f"`{key}` of {name} is {now} (was {was})"


def _find_limit(schema: _Schema, key: str, sign: int) -> tuple[float, bool]:
    """Return a bound times its sign, so that greater is narrower, and whether it is exclusive."""
    least = 0 if sign > 0 and key != "minimum" else -inf
    loose = schema[key] * sign if key in schema else least
    strict = schema.get(f"exclusive{key.capitalize()}", -inf * sign) * sign
    if schema.get("type") == "integer" and strict > -inf:
        return max(loose, floor(strict) + 1), False
    return max((loose, False), (strict, strict > -inf))


def _compare_defaults(old: Any, new: Any, name: str) -> _Found:
    pair = [_as_dict(each) for each in (new, old)]
    texts = [write_json(each["default"]) if "default" in each else "none" for each in pair]
    if texts[0] != texts[1]:
        now, was = (shorten(text, _MAX_SHOWN) for text in texts)
        yield "words", f"the default of {name} is {now} (was {was})"


def _show(*values: Any) -> str:
    return shorten(", ".join(map(write_json, values)), _MAX_SHOWN)
