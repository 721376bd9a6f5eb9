"""Unrolls recursive input schemas to a fixed depth, so that every client can list them.

Runs in the user's kernel, at definition. Pure. Several clients (LlamaIndex, mcp-use) replace each
reference by its target when they list tools. For a recursive type, such as a tree, that never ends,
and they list no tool at all: one parameter would hide the tools of all notebooks. So clients get
such a type as `DEPTH` nested types; below the last, only the JSON type is published. The published
schema allows everything that the author's schema allows. Calls are validated by the author's.

A *target* is the path of a schema that something refers to: ``("$defs", "Node")``. Targets that
refer to each other form a *cycle*. In the unrolled schema, each reference within a cycle leads one
level down, so that none leads back.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias
from urllib.parse import unquote

from msgspec import Struct, structs

from mcp_notebook.schema_keywords import DEFINITIONS, LISTS, NAMED, SINGLE, VALUES
from mcp_notebook.text.redaction import has_secrets

DEPTH = 3
"""Levels to which a recursive type is unrolled."""
MAX_PLACES = 2_000
"""Subschemas that a schema may have once a client has replaced each reference by its target. The
depth is reduced until it has no more."""
_ANCHORS = ("$anchor", "$dynamicAnchor")
_MONOTONE = frozenset({"items", "additionalProperties"})
"""Keywords of `SINGLE` under which a looser schema makes the whole looser; under the others, it may
make the whole stricter."""

Schema: TypeAlias = dict[str, Any]
_Target: TypeAlias = tuple[str | int, ...]


def unroll(schema: Schema) -> Schema:
    """Return a schema in which no ``$ref`` leads back to itself.

    A schema without such references is returned unchanged. So is a schema with an ``$id`` inside,
    which changes what references are relative to; `is_recursive` finds these.
    """
    try:
        cycles = _Cycles(_Document(schema), ("$ref",))
        if not cycles.by_target or has_id({key: schema[key] for key in schema if key != "$id"}):
            return schema
        for depth in range(DEPTH, 0, -1):
            unrolled = _Unrolling(cycles, depth).run()
            if _count_places(_Document(unrolled), (), {}) <= MAX_PLACES:
                break
    except RecursionError:  # nested deeper than any client can read
        return schema
    return unrolled


def is_recursive(schema: Schema) -> bool:
    """Return whether a reference in a schema leads back to itself."""
    return bool(_Cycles(_Document(schema), ("$ref", "$dynamicRef")).by_target)


def has_id(schema: Any) -> bool:
    """Return whether a schema or a subschema has an ``$id``: references are relative to it."""
    if isinstance(schema, list):
        return any(map(has_id, schema))
    if not isinstance(schema, dict):
        return False
    if "$id" in schema:
        return True
    for keyword, value in schema.items():
        parts = (
            value.values()
            if keyword in (*NAMED, *DEFINITIONS) and isinstance(value, dict)
            else [value]
        )
        if keyword not in VALUES and any(map(has_id, parts)):
            return True
    return False


class _Document:
    """A schema whose references can be resolved."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._anchors = {
            schema[keyword]: path
            for schema, path in _list_all(root)
            for keyword in _ANCHORS
            if isinstance(schema.get(keyword), str)
        }

    def get(self, target: _Target) -> Any:
        """Return the schema at a path."""
        schema: Any = self.root
        for name in target:
            schema = schema[name]
        return schema

    def find_target(self, reference: Any) -> _Target | None:
        """Return the path of a reference's target; None if it is not in the schema."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        if reference[1:2] not in ("", "/"):
            return self._anchors.get(reference[1:])
        target: Any = self.root
        path: list[str | int] = []
        for word in reference.split("/")[1:]:
            name: str | int = unquote(word).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and str(name).isdecimal():
                name = int(name)
            try:
                target = target[name]
            except (KeyError, IndexError, TypeError):
                return None
            path.append(name)
        return tuple(path)

    def list_references(self, keywords: Sequence[str]) -> dict[_Target, list[_Target]]:
        """Return all targets reachable from the root, each with the targets it refers to."""
        found: dict[_Target, list[_Target]] = {}
        waiting = self._list_targets((), keywords)
        for target in waiting:
            if target not in found:
                found[target] = self._list_targets(target, keywords)
                waiting += found[target]
        return found

    def _list_targets(self, path: _Target, keywords: Sequence[str]) -> list[_Target]:
        targets: list[_Target] = []
        waiting = [(self.get(path), path)]
        for schema, place in waiting:
            if isinstance(schema, dict):
                found = [self.find_target(schema.get(keyword)) for keyword in keywords]
                targets += (target for target in found if target is not None)
                waiting += _list_children(schema, place)
        return targets


def _list_children(schema: Schema, path: _Target) -> Iterator[tuple[Any, _Target]]:
    """Yield the direct subschemas of a schema with their paths, without its definitions."""
    for keyword, value in schema.items():
        if keyword in NAMED and isinstance(value, dict):
            yield from ((child, (*path, keyword, name)) for name, child in value.items())
        elif keyword in LISTS and isinstance(value, list):
            yield from ((child, (*path, keyword, n)) for n, child in enumerate(value))
        elif keyword in SINGLE:
            yield value, (*path, keyword)


def _list_all(schema: Schema) -> Iterator[tuple[Schema, _Target]]:
    """Yield a schema and all its subschemas, including definitions, with their paths."""
    waiting: list[tuple[Any, _Target]] = [(schema, ())]
    for item, path in waiting:
        if isinstance(item, dict):
            yield item, path
            waiting += _list_children(item, path)
            for keyword in DEFINITIONS:
                named = item.get(keyword)
                if isinstance(named, dict):
                    waiting += ((child, (*path, keyword, name)) for name, child in named.items())


class _Cycles:
    """The targets of a schema whose references lead back to them."""

    def __init__(self, document: _Document, keywords: Sequence[str]) -> None:
        self.document = document
        edges = document.list_references(keywords)
        _drop_acyclic(edges)
        reached = {target: _reach(target, edges) for target in edges}
        self.by_target = {
            target: frozenset(other for other in reached[target] if target in reached[other])
            for target in edges
            if target in reached[target]
        }
        """All targets in cycles, each with those of its own cycle."""


def _drop_acyclic(edges: dict[_Target, list[_Target]]) -> None:
    """Remove the targets that lead into no cycle: nearly always all of them."""
    while ends := [target for target, others in edges.items() if edges.keys().isdisjoint(others)]:
        for target in ends:
            del edges[target]


def _reach(target: _Target, edges: Mapping[_Target, list[_Target]]) -> set[_Target]:
    reached: dict[_Target, None] = {}
    waiting = [target]
    for item in waiting:
        new = [other for other in edges[item] if other in edges and other not in reached]
        reached |= dict.fromkeys(new)
        waiting += dict.fromkeys(new)
    return set(reached)


class _Place(Struct, frozen=True):
    """The place of a subschema in the author's schema, and the level for which it is written."""

    path: _Target = ()
    level: int = 1
    enclosing: frozenset[_Target] = frozenset()
    """The targets in cycles that enclose it."""

    def enter(self, *names: str | int) -> "_Place":
        """Return the place of a subschema."""
        return structs.replace(self, path=(*self.path, *names))


class _Unrolling:
    """Unrolls a schema to one depth."""

    def __init__(self, cycles: _Cycles, depth: int) -> None:
        self._document = cycles.document
        self._cycles = cycles
        self._depth = depth
        self._names: dict[tuple[_Target, int], str] = {}
        """The names of the types below the first level."""
        self._waiting: list[tuple[_Target, int]] = []
        self._cuts = 0

    def run(self) -> Schema:
        """Return the unrolled schema; the types of the first level stay where they are."""
        schema: Schema = self._write(self._document.root, _Place())[0]
        copies: Schema = {}
        for target, level in self._waiting:
            copied = self._write(self._document.get(target), _Place(target, level))[0]
            for keyword in (*DEFINITIONS, *_ANCHORS, "$id", "$schema"):
                copied.pop(keyword, None)
            copies[self._names[target, level]] = copied
        if copies:
            schema["$defs"] = {**schema.get("$defs", {}), **copies}
        return self._drop_unused(schema)

    def _drop_unused(self, schema: Schema) -> Schema:
        """Remove the definitions that are no longer referred to."""
        used = {target[:2] for target in _Document(schema).list_references(("$ref",))}
        written = {target[:2] for target in self._cycles.by_target}
        written |= {("$defs", name) for name in self._names.values()}
        for keyword in schema.keys() & {*DEFINITIONS}:
            schema[keyword] = {
                name: part
                for name, part in schema[keyword].items()
                if (keyword, name) in used or (keyword, name) not in written
            }
        return schema

    def _write(self, schema: Any, place: _Place) -> tuple[Any, bool]:
        """Return a subschema, and whether it allows more than the author's does."""
        if not isinstance(schema, dict):
            return schema, False
        if place.path in self._cycles.by_target:
            place = structs.replace(place, enclosing=place.enclosing | {place.path})
        written: Schema = {}
        bottom: Schema = {}
        is_looser = False
        for keyword, value in schema.items():
            if keyword == "$ref":
                bottom = self._write_reference(value, place, written)
            elif keyword != "discriminator" or not self._is_moved(value):
                is_looser |= self._write_keyword(keyword, value, place, written)
        if is_looser or bottom:
            _loosen(written)
        if "if" in schema and "if" not in written:
            written.pop("then", None)
            written.pop("else", None)
        return {**bottom, **written}, bool(is_looser or bottom)

    def _write_keyword(self, keyword: str, value: Any, place: _Place, written: Schema) -> bool:
        """Write one keyword, and return whether the schema now allows more values."""
        cuts = self._cuts
        if keyword in DEFINITIONS and isinstance(value, dict):
            place = _Place(
                place.path, place.level
            )  # these apply only where something refers to them
        if keyword in (*NAMED, *DEFINITIONS) and isinstance(value, dict):
            written[keyword] = {
                name: self._write(child, place.enter(keyword, name))[0]
                for name, child in value.items()
            }
        elif keyword in LISTS and isinstance(value, list):
            parts = [self._write(child, place.enter(keyword, n)) for n, child in enumerate(value)]
            written[keyword] = [part for part, _ in parts]
            return keyword != "prefixItems" and any(is_looser for _, is_looser in parts)
        elif keyword in SINGLE:
            part = self._write(value, place.enter(keyword))[0]
            if keyword in _MONOTONE or cuts == self._cuts:
                written[keyword] = part
        else:
            written[keyword] = value
        return False

    def _write_reference(self, reference: Any, place: _Place, written: Schema) -> Schema:
        """Write a reference, or return the schema that replaces it below the last level."""
        target = self._document.find_target(reference)
        if target is not None and target in self._cycles.by_target:
            is_inside = not place.enclosing.isdisjoint(self._cycles.by_target[target])
            level = place.level + 1 if is_inside else 1
            if level > self._depth:
                self._cuts += 1
                return self._make_bottom(target)
            if level > 1:
                reference = f"#/$defs/{self._name(target, level)}"
        written["$ref"] = reference
        return {}

    def _is_moved(self, discriminator: Any) -> bool:
        """Return whether a ``discriminator`` names types that are unrolled."""
        mapping = discriminator.get("mapping") if isinstance(discriminator, dict) else None
        references = mapping.values() if isinstance(mapping, dict) else ()
        targets = map(self._document.find_target, references)
        return any(target in self._cycles.by_target for target in targets)

    def _name(self, target: _Target, level: int) -> str:
        if (target, level) not in self._names:
            name = f"{_get_name(target)}_{level}"
            while name in self._document.root.get("$defs", {}) or name in self._names.values():
                name += "_"
            self._names[target, level] = name
            self._waiting.append((target, level))
        return self._names[target, level]

    def _make_bottom(self, target: _Target) -> Schema:
        """Return the schema that replaces a target below the last level."""
        schema = self._document.get(target)
        types = self._find_types(schema, set())
        options: list[Schema] = [
            {"type": name, "items": {}} if name == "array" else {"type": name} for name in types
        ]
        bottom: Schema = {"anyOf": options} if options else {}
        if len(options) == 1:
            (bottom,) = options
        name = schema.get("title") if isinstance(schema, dict) else None
        bottom = {**bottom, "description": f"`{name or _get_name(target)}`, as above."}
        if has_secrets(schema, self._document.root):
            bottom["writeOnly"] = True
        return bottom

    def _find_types(self, schema: Any, met: set[_Target]) -> list[str]:
        """Return the JSON types that a schema allows; [] for any type."""
        if not isinstance(schema, dict):
            return []
        if "type" in schema:
            return [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
        target = self._document.find_target(schema.get("$ref"))
        if target is not None and target not in met:
            return self._find_types(self._document.get(target), met | {target})
        options = schema.get("anyOf") or schema.get("oneOf") or []
        found = [self._find_types(option, met) for option in options]
        return list(dict.fromkeys(chain.from_iterable(found))) if all(found) else []


def _get_name(target: _Target) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", str(target[-1])) if target else "Arguments"


def _loosen(schema: Schema) -> None:
    """Remove keywords that could reject a value because a subschema now allows more."""
    for keyword in ("unevaluatedItems", "unevaluatedProperties", "discriminator"):
        schema.pop(keyword, None)
    options = schema.pop("oneOf", None)  # more than one may match now
    if options is not None:
        schema.setdefault("anyOf", options)


def _count_places(document: _Document, path: _Target, counts: dict[_Target, int]) -> int:
    """Return how many subschemas a schema has once each reference is replaced by its target."""
    waiting = [(document.get(path), path)]
    count = 0
    for schema, place in waiting:
        count += 1
        if isinstance(schema, dict):
            waiting += _list_children(schema, place)
            target = document.find_target(schema.get("$ref"))
            if target is not None:
                if target not in counts:
                    counts[target] = _count_places(document, target, counts)
                count += counts[target]
    return count
