"""Compares two JSON Schemas: which values are no longer allowed, and which are allowed in addition.

Pure. Arguments that are no longer allowed break a caller, and so do results that were not possible
before: a difference has a direction, and `tool_changes` judges it. Where the keywords themselves do
not tell (two patterns, say), a difference is taken for a break.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from mcp_notebook.schema_keywords import DEFINITIONS

Direction: TypeAlias = Literal["narrower", "wider", "both", "added", "default", "words"]
"""Which values a schema allows now: fewer, more, or others. Otherwise the same, but a property was
`added` that callers may ignore, a `default` changed, or the `words` for a reader did."""
_LOSES = frozenset({"narrower", "both"})
_GAINS = frozenset({"wider", "both"})
_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_BOUNDS = (
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties"),
)
_RULES = (
    *("pattern", "format", "contentEncoding", "contentMediaType", "contentSchema", "multipleOf"),
    *("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"),
    *("patternProperties", "unevaluatedProperties", "dependentRequired", "dependentSchemas"),
    *("dependencies", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "$dynamicRef"),
)
"""Keywords that are compared as a whole. Each allows less than none."""
_WORDS = ("title", "description", "deprecated", "x-mcp-header")
_OUTSIDE = frozenset({*_WORDS, "default", "examples", *DEFINITIONS})
"""Keywords of a union that are not of its alternatives."""
_TOGETHER = (
    frozenset({"properties", "patternProperties", "additionalProperties"}),
    frozenset({"items", "prefixItems"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)
"""Keywords whose meaning depends on one another."""
_MAX_SHOWN = 80
_MAX_DEPTH = 8
"""Unions in unions that are compared by their alternatives."""


class Difference(Struct, frozen=True):
    """One difference between two schemas."""

    direction: Direction
    text: str
    """What is different, as a sentence without a full stop: ``"`year` became required"``."""


def compare_schemas(old: Any, new: Any, subject: str) -> list[Difference]:
    """Return the differences between two schemas.

    Args:
        old: The schema as it was.
        new: The schema as it is.
        subject: What the whole schema describes: "the arguments".
    """
    return list(dict.fromkeys(_Comparison(old, new, subject).compare(old, new, "")))


def write_json(value: Any) -> str:
    """Return a value as JSON, the same text for values that are equal in JSON Schema."""
    return json.dumps(_unify(value), sort_keys=True, separators=(",", ":"))


class _Comparison:
    """One comparison; it knows both roots, for references.

    A `place` is the path of properties, ``filters.days[]``; empty at the root.
    """

    def __init__(self, old: Any, new: Any, subject: str) -> None:
        self._old, self._new, self._subject = old, new, subject
        definitions = [[each.get(key) for key in DEFINITIONS] for each in (old, new) if each]
        self._is_defined_alike = len({write_json(each) for each in definitions}) == 1
        self._open: set[tuple[str, str]] = set()
        """The pairs that are being compared: a recursive schema leads back to one of them."""

    def compare(self, old: Any, new: Any, place: str) -> Iterator[Difference]:
        """Yield the differences between two schemas at a place."""
        pair = write_json(old), write_json(new)
        is_alike = self._is_defined_alike or "$ref" not in pair[0]
        if pair in self._open or (is_alike and pair[0] == pair[1]):
            return
        self._open.add(pair)
        old, new = _resolve(old, self._old), _resolve(new, self._new)
        for key in _WORDS:
            if old.get(key) != new.get(key):
                yield Difference("words", f"the {key} of {self._name(place)} changed")
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

    def _compare_unions(
        self, before: Sequence[Any], after: Sequence[Any], place: str
    ) -> Iterator[Difference]:
        """Compare alternatives: each needs one on the other side that allows all of its values."""
        pairs = {
            (i, j): [*self.compare(old, new, place)]
            for i, old in enumerate(before)
            for j, new in enumerate(after)
        }
        lost = {i for i, _ in pairs} - {i for (i, _), each in pairs.items() if _lacks(each, _LOSES)}
        gained = {j for _, j in pairs} - {
            j for (_, j), each in pairs.items() if _lacks(each, _GAINS)
        }
        related = [
            (i, j)
            for i, j in sorted(pairs, key=lambda pair: len(pairs[pair]))
            if _find_type(before[i]) == _find_type(after[j]) is not None
        ]
        for i, j in related:  # what is different in the most similar one says most
            if i in lost or j in gained:
                yield from pairs[i, j]
                lost.discard(i)
                gained.discard(j)
            elif i == j:
                yield from (each for each in pairs[i, j] if each.direction not in _LOSES | _GAINS)
        if lost:
            words = _join(before[i] for i in sorted(lost))
            yield Difference("narrower", f"{self._name(place)} no longer allows {words}")
        if gained:
            words = _join(after[j] for j in sorted(gained))
            yield Difference("wider", f"{self._name(place)} also allows {words}")

    def _compare_one(
        self, old: dict[str, Any], new: dict[str, Any], place: str
    ) -> Iterator[Difference]:
        name = self._name(place)
        if new.get("not") == {}:  # the schema `false`
            yield Difference("narrower", f"{name} is no longer allowed")
        elif old.get("not") == {}:
            yield Difference("added" if place.endswith("*") else "wider", f"{name} is allowed now")
        elif types := [*_compare_types(old, new, name)]:
            yield from types
            if types[0].direction != "both":  # else nothing else is comparable
                yield from self._compare_keywords(old, new, place)
        else:
            yield from self._compare_keywords(old, new, place)

    def _compare_keywords(
        self, old: dict[str, Any], new: dict[str, Any], place: str
    ) -> Iterator[Difference]:
        name = self._name(place)
        yield from _compare_values(old, new, name)
        yield from _compare_bounds(old, new, name)
        yield from _compare_rules(old, new, name, is_defined_alike=self._is_defined_alike)
        others = [each.get("items", True) for each in (old, new)]
        heads = zip_longest(old.get("prefixItems", ()), new.get("prefixItems", ()))
        for index, (before, after) in enumerate(heads):
            pair = (others[0] if before is None else before, others[1] if after is None else after)
            yield from self.compare(pair[0], pair[1], f"{place}[{index}]")
        yield from self.compare(others[0], others[1], f"{place}[]")
        names = [each.get("propertyNames", True) for each in (old, new)]
        yield from self.compare(names[0], names[1], f"{place} (names)".strip())
        yield from self._compare_properties(old, new, place)

    def _compare_properties(
        self, old: dict[str, Any], new: dict[str, Any], place: str
    ) -> Iterator[Difference]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        for key in (*before, *(key for key in after if key not in before)):
            where = f"{place}.{key}" if place else key
            name, is_needed = self._name(where), key in needs and key not in needed
            if key not in after:
                yield Difference("both", f"{name} was removed")
            elif key not in before and is_needed:
                yield Difference("narrower", f"{name} was added and is required")
            elif key not in before:
                how = "with a default" if "default" in _as_dict(after[key]) else "and is optional"
                yield Difference("added", f"{name} was added {how}")
            else:
                if is_needed:
                    yield Difference("narrower", f"{name} became required")
                elif key in needed and key not in needs:
                    yield Difference("wider", f"{name} became optional")
                elif key not in needs:
                    yield from _compare_defaults(before[key], after[key], name)
                yield from self.compare(before[key], after[key], where)
        for key in sorted((needs ^ needed) - {*before, *after}):
            direction: Direction = "narrower" if key in needs else "wider"
            verb = "became required" if key in needs else "became optional"
            yield Difference(direction, f"`{key}` {verb}")
        rest = [each.get("additionalProperties", True) for each in (old, new)]
        yield from self.compare(rest[0], rest[1], f"{place}.*" if place else "*")


def _resolve(schema: Any, root: Any, seen: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a schema as an object, with what it refers to."""
    if not isinstance(schema, dict):
        return {} if schema is True else {"not": {}}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or reference in seen:
        return schema
    target = root
    for part in reference.removeprefix("#").split("/")[1:]:
        target = _as_dict(target).get(part.replace("~1", "/").replace("~0", "~"))
    target = _resolve(True if target is None else target, root, seen | {reference})
    return _merge(target, {key: value for key, value in schema.items() if key != "$ref"})


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that allows what both allow."""
    meant = one.keys() - _OUTSIDE, other.keys() - _OUTSIDE
    if any(meant[0] & group and meant[1] & group for group in _TOGETHER) or meant[0] & meant[1]:
        words = {key: value for key, value in other.items() if key in _OUTSIDE}
        rest = _drop_words(other)
        return one | words if one == one | rest else {"allOf": [one, rest], **words}
    return one | other


def _split(schema: dict[str, Any], root: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the alternatives of a union, each with what holds for all of them."""
    key = next((key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), None)
    if key is not None and depth < _MAX_DEPTH:
        rest = {name: item for name, item in _drop_words(schema).items() if name != key}
        for each in schema[key]:
            yield from _split(_merge(_resolve(each, root), rest), root, depth + 1)
    elif isinstance(types := schema.get("type"), list):
        yield from ({**_drop_words(schema), "type": each} for each in types)
    else:  # the words are of the whole
        yield _drop_words(schema) | {key: schema[key] for key in _WORDS if depth and key in schema}


def _drop_words(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in schema.items() if key not in _OUTSIDE}


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _lacks(differences: Sequence[Difference], directions: frozenset[str]) -> bool:
    return all(each.direction not in directions for each in differences)


def _find_type(schema: dict[str, Any]) -> str | None:
    found = schema.get("type")
    return found if isinstance(found, str) else None


def _unify(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _unify(item) for key, item in value.items()}
    return [_unify(item) for item in value] if isinstance(value, list | tuple) else value


# -- single keywords -------------------------------------------------------------------------------


def _compare_types(old: dict[str, Any], new: dict[str, Any], name: str) -> Iterator[Difference]:
    before, after = _list_types(old), _list_types(new)
    if before != after and (_list_values(old) is None or _list_values(new) is None):
        direction: Direction = (
            "wider" if before < after else "narrower" if after < before else "both"
        )
        words = f"{name} is {_name_type(new)} (was {_name_type(old)})"
        yield Difference(direction, words)


def _list_types(schema: dict[str, Any]) -> frozenset[str]:
    """Return the types of a schema, given or those of its values."""
    given, values = _find_type(schema), _list_values(schema)
    if values is not None:
        return frozenset(map(_find_value_type, values))
    return (
        _TYPES if given is None else frozenset({given, "integer"} if given == "number" else {given})
    )


def _find_value_type(value: Any) -> str:
    value = _unify(value)
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def _name_type(schema: dict[str, Any]) -> str:
    types = _list_types(schema)
    given = _find_type(schema) or " or ".join(sorted(types))
    return "of any type" if types == _TYPES else given


def _list_values(schema: dict[str, Any]) -> list[Any] | None:
    """Return the values of a schema that only allows some; None if it allows others."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list):
        return None
    given = _find_type(schema)
    types = {"integer", "number"} if given == "number" else {given}
    return [each for each in values if given is None or _find_value_type(each) in types]


def _compare_values(old: dict[str, Any], new: dict[str, Any], name: str) -> Iterator[Difference]:
    before, after = _list_values(old), _list_values(new)
    if before is None and after is not None:
        yield Difference("narrower", f"{name} only allows {_show_all(after)}")
    elif before is not None and after is None:
        yield Difference("wider", f"{name} is no longer limited to {_show_all(before)}")
    elif before is not None and after is not None:
        had, has = ({write_json(each) for each in values} for values in (before, after))
        if lost := [each for each in before if write_json(each) not in has]:
            yield Difference("narrower", f"{name} lost {_show_all(lost)}")
        if gained := [each for each in after if write_json(each) not in had]:
            yield Difference("wider", f"{name} also allows {_show_all(gained)}")


def _compare_bounds(old: dict[str, Any], new: dict[str, Any], name: str) -> Iterator[Difference]:
    for key in _BOUNDS:
        sign = 1 if key.startswith("min") else -1  # 1: a greater bound is narrower
        before, after = (_find_limit(each, key, sign) for each in (old, new))
        if before != after:
            # Of two equal bounds, the exclusive one is narrower.
            is_narrower = (after[0] * sign, after[1]) > (before[0] * sign, before[1])
            texts = map(_write_limit, (after, before))
            text = "`{}` of {} is {} (was {})".format(key, name, *texts)
            yield Difference("narrower" if is_narrower else "wider", text)


def _find_limit(schema: dict[str, Any], key: str, sign: int) -> tuple[float, bool]:
    """Return a bound, and whether it is exclusive."""
    least = 0 if sign > 0 and key != "minimum" else None
    loose, strict = (
        value if isinstance(value, int | float) else -sign * math.inf
        for value in (schema.get(key, least), schema.get(f"exclusive{key.capitalize()}"))
    )
    if math.isfinite(strict) and _find_type(schema) == "integer" and float(strict).is_integer():
        loose, strict = max(loose * sign, strict * sign + 1) * sign, -sign * math.inf
    is_strict = math.isfinite(strict) and strict * sign >= loose * sign
    return (strict if is_strict else loose), is_strict


def _write_limit(limit: tuple[float, bool]) -> str:
    if not math.isfinite(limit[0]):
        return "none"
    return f"{write_json(limit[0])} (exclusive)" if limit[1] else write_json(limit[0])


def _compare_rules(
    old: dict[str, Any], new: dict[str, Any], name: str, *, is_defined_alike: bool
) -> Iterator[Difference]:
    for key in _RULES:
        # `false`, `[]` and `{}` allow everything; `not` alone forbids it.
        before, after = (each.get(key) or None for each in (old, new))
        text = write_json(before)
        if text == write_json(after):
            if "$ref" in text and not is_defined_alike:
                yield Difference("both", f"what `{key}` of {name} refers to changed")
            continue
        direction: Direction = "narrower" if before is None else "both" if after else "wider"
        if key == "multipleOf" and direction == "both":
            is_narrower, is_wider = _is_multiple(after, before), _is_multiple(before, after)
            direction = "narrower" if is_narrower else "wider" if is_wider else "both"
        texts = ("none" if each is None else _show(each) for each in (after, before))
        yield Difference(direction, "`{}` of {} is {} (was {})".format(key, name, *texts))


def _is_multiple(one: Any, other: Any) -> bool:
    try:
        return float(one / other).is_integer()
    except (TypeError, ZeroDivisionError, OverflowError):
        return False


def _compare_defaults(old: Any, new: Any, name: str) -> Iterator[Difference]:
    before, after = _as_dict(old), _as_dict(new)
    texts = [_show(each["default"]) if "default" in each else "none" for each in (before, after)]
    if texts[0] != texts[1] and write_json(before.get("default")) != write_json(
        after.get("default")
    ):
        yield Difference("default", f"the default of {name} is {texts[1]} (was {texts[0]})")


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _show_all(values: Sequence[Any]) -> str:
    text = ", ".join(map(_show, values))
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _join(schemas: Iterable[dict[str, Any]]) -> str:
    """Return alternatives in words: ``null and "EU"``."""
    words = []
    for schema in schemas:
        values = _list_values(schema)
        words.append(_name_type(schema) if values is None else _show_all(values))
    return " and ".join(dict.fromkeys(words))
