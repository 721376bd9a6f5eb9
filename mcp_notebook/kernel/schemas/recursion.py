"""Cuts the cycles of recursive input schemas, so that every client can list them.

Runs in the user's kernel, at definition. Pure. Several clients (LlamaIndex, mcp-use) replace each
reference by its target when they list tools. For a recursive type, such as a tree, that never ends,
and they list no tool at all: one parameter would hide the tools of all notebooks. So clients get
the first level of such a type; below it, only the JSON type is published. The published schema
allows everything that the author's schema allows. Calls are validated by the author's.

Cut are references to definitions, ``#/$defs/NAME``, and to the whole schema, ``#``. Others are left
as they are, and the author is told (`has_other_references`).
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias
from urllib.parse import unquote

from mcp_notebook.schema_keywords import (
    DEFINITIONS,
    LISTS,
    NAMED,
    SINGLE,
    list_subschemas,
    walk_schema,
)
from mcp_notebook.text.redaction import has_secrets

Schema: TypeAlias = dict[str, Any]
_ROOT = "#"
_CONDITIONS = frozenset({"if", "then", "else"})
_STRICTER = frozenset(
    {*_CONDITIONS, "not", "contains", "unevaluatedItems", "unevaluatedProperties", "discriminator"}
)
"""Keywords that may reject more if a schema in them, or beside them, allows more."""


def cut_cycles(schema: Schema) -> Schema:
    """Return a schema in which no reference to a definition leads back to itself.

    A schema without such references is returned unchanged. So is a schema with an ``$id`` inside,
    which changes what references are relative to.
    """
    try:
        cut = _Cut(schema)
        has_own_id = has_id({key: schema[key] for key in schema if key != "$id"})
        return schema if has_own_id or not cut.cycles else cut.run()
    except RecursionError:  # nested deeper than any client can read
        return schema


def has_other_references(schema: Schema) -> bool:
    """Return whether a schema has references that `cut_cycles` does not know."""
    schemas = [schema, *(part for _, part in _list_definitions(schema))]
    found = [each for part in schemas for each in _list_references(part)]
    known = {_ROOT, *(address for address, _ in _list_definitions(schema))}
    return any(reference not in known for reference in found)


def has_id(schema: Any) -> bool:
    """Return whether a schema or a subschema has an ``$id``: references are relative to it."""
    return any("$id" in part for part in walk_schema(schema))


def _list_definitions(root: Schema) -> Iterator[tuple[str, Any]]:
    """Yield the definitions of a schema, each after its address."""
    for keyword in DEFINITIONS:
        named = root.get(keyword)
        for name, part in named.items() if isinstance(named, dict) else ():
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield f"#/{keyword}/{escaped}", part


def _list_references(schema: Any) -> Iterator[str]:
    """Yield the references of a schema, without those of its definitions."""
    if not isinstance(schema, dict):
        return
    for keyword in ("$ref", "$dynamicRef"):
        if isinstance(schema.get(keyword), str):
            yield unquote(schema[keyword])
    for part in list_subschemas(schema):
        yield from _list_references(part)


class _Cut:
    """Writes a schema without the references that lead back."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._targets = {_ROOT: root, **dict(_list_definitions(root))}
        edges = {
            address: {each for each in _list_references(part) if each in self._targets}
            for address, part in self._targets.items()
        }
        reached = {address: _reach(address, edges) for address in edges}
        self.cycles = {
            address: frozenset(each for each in others if address in reached[each])
            for address, others in reached.items()
            if address in others
        }
        """The targets that lead back to themselves, each with those of its cycle."""
        self._looser = {
            address
            for address, others in reached.items()
            if not self.cycles.keys().isdisjoint({address, *others})
        }
        """The targets that allow more once their cycles are cut."""

    def run(self) -> Schema:
        """Return the schema, without the cut definitions that nothing refers to any more."""
        written = {
            address: self._write(part, self.cycles.get(address, frozenset()))
            for address, part in self._targets.items()
        }
        edges = {
            address: {each for each in _list_references(part) if each in written}
            for address, part in written.items()
        }
        used = _reach(_ROOT, edges)
        schema: Schema = written[_ROOT]
        for keyword in schema.keys() & {*DEFINITIONS}:
            definitions = _list_definitions({keyword: schema[keyword]})
            addresses = zip(schema[keyword], definitions, strict=True)
            schema[keyword] = {
                name: written[address]
                for name, (address, _) in addresses
                if address in used or address not in self.cycles
            }
        return schema

    def _write(self, schema: Any, cycle: frozenset[str]) -> Any:
        """Return a schema without the references to the targets of a cycle."""
        if not isinstance(schema, dict):
            return schema
        is_looser = any(each in self._looser for each in _list_references(schema))
        written: Schema = {}
        bottom: Schema = {}
        for keyword, value in schema.items():
            if keyword == "$ref" and isinstance(value, str) and unquote(value) in cycle:
                bottom = self._make_bottom(unquote(value))
            elif is_looser and keyword in _STRICTER:
                continue
            elif is_looser and keyword == "oneOf":  # more than one may match now
                written.setdefault("anyOf", [self._write(part, cycle) for part in value])
            elif keyword in NAMED and isinstance(value, dict):
                written[keyword] = {name: self._write(part, cycle) for name, part in value.items()}
            elif keyword in LISTS and isinstance(value, list):
                written[keyword] = [self._write(part, cycle) for part in value]
            else:
                written[keyword] = self._write(value, cycle) if keyword in SINGLE else value
        return {**bottom, **written}

    def _make_bottom(self, address: str) -> Schema:
        """Return the schema in place of a reference that leads back."""
        schema = self._targets[address]
        types = self._find_types(schema, {address})
        options: list[Schema] = [
            {"type": name, "items": {}} if name == "array" else {"type": name} for name in types
        ]
        bottom = options[0] if len(options) == 1 else {"anyOf": options} if options else {}
        name = address.rpartition("/")[2] if address != _ROOT else "Arguments"
        title = schema.get("title") if isinstance(schema, dict) else None
        bottom = {**bottom, "description": f"`{title or name}`, as above."}
        return {**bottom, "writeOnly": True} if has_secrets(schema, self._root) else bottom

    def _find_types(self, schema: Any, met: set[str]) -> list[str]:
        """Return the JSON types that a schema allows; [] for any type."""
        if not isinstance(schema, dict):
            return []
        if "type" in schema:
            return [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
        reference = unquote(str(schema.get("$ref")))
        if reference in self._targets and reference not in met:
            return self._find_types(self._targets[reference], met | {reference})
        found = [
            self._find_types(option, met)
            for option in schema.get("anyOf") or schema.get("oneOf") or []
        ]
        return list(dict.fromkeys(chain.from_iterable(found))) if all(found) else []


def _reach(address: str, edges: Mapping[str, set[str]]) -> set[str]:
    """Return all targets that a target leads to."""
    reached: set[str] = set()
    waiting = set(edges[address])
    while waiting:
        reached |= waiting
        waiting = {each for one in waiting for each in edges[one]} - reached
    return reached
