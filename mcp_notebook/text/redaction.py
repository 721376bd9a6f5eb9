"""Masks secrets in the arguments of a call, which are marked in the tool's input schema.

Pure, in every process: the kernel side needs it for messages, the bridge for its logs. A schema
marks a secret with ``writeOnly`` or ``format: password``, as pydantic's ``SecretStr`` does. In
doubt, a value counts as a secret: an undescribed value beside a secret may be that secret under a
misspelled name, or inside JSON text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mcp_notebook.schema_keywords import DEFINITIONS, NAMED, VALUES

MASK = "**********"
"""Replaces a secret; pydantic's mask has the same length."""
_IN_PLACE = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("if", "then", "else")
_OPEN_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_OPEN_ITEMS = ("items", "contains", "unevaluatedItems")
_MEMBERS = frozenset({"properties", "patternProperties", *_OPEN_MEMBERS})
_NOT_APPLIED = frozenset({*VALUES, *DEFINITIONS})
"""Keywords with values, or with schemas that apply only where they are referenced."""

_MAPPINGS = (dict, Mapping)
"""`dict` nearly always matches, and costs a tenth of the check for `Mapping`."""
_PLAIN = (str, int, float, type(None))

EVIDENT = (
    r"(?<=://)[^\s/:@]*:[^\s/@]+(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"
    r"|\b(?:sk-|ghp_|gho_|github_pat_|glpat-|xox[abeprs]-|hf_|AKIA)[\w-]{12,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]+"
)
"""A pattern of texts: a password in a URL, a private key, a well-known token."""
_NAMED_SECRET = re.compile(
    r"""(?isx)\b(?=\w*(?:passw|passphrase|secret|token|credential|api_?key|private_?key))
    (\w++["']?\]?(?:\s*:\s*\w+)?\s*[=:,(]+\s*[bfru]{0,2})
    (?:"{3}.*?"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
)
"""In a cell: a text that is given to a name which sounds like a secret."""
_SECRET = re.compile(rf"(?m)(^[ \t]*%(?:set_)?env\s+\w+[= ]).+$|{EVIDENT}")
"""In a cell: the value of an environment variable, or what is evidently a secret."""

Schema = Mapping[str, Any]


def mask_source(source: str) -> str:
    """Return a cell's source with `MASK` in place of texts that look like secrets."""
    source = _NAMED_SECRET.sub(rf'\1"{MASK}"', source)
    return _SECRET.sub(lambda found: (found[1] or "") + MASK, source)


def redact_arguments(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call with `MASK` in place of secrets.

    Args:
        schema: The tool's input schema.
        arguments: The arguments as the client sent them, valid or not; they are not changed.
    """
    try:
        answer: Any = _Redaction(schema).redact(dict(arguments), [schema])
    except RecursionError:
        answer = MASK
    return dict.fromkeys(arguments, MASK) if answer == MASK else answer


def has_secrets(part: Any, root: Schema) -> bool:
    """Return whether a schema marks anything as a secret, at any depth.

    Args:
        part: The schema, or a part of it.
        root: The whole schema, for its ``$defs``.
    """
    waiting, references = [part], set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, _MAPPINGS):
            if _is_marked(item):
                return True
            reference = item.get("$ref")
            if isinstance(reference, str) and reference not in references:
                references.add(reference)
                waiting.append(_find_target(reference, root))
            for key, child in item.items():
                if key in NAMED and isinstance(child, _MAPPINGS):
                    waiting += child.values()
                elif key not in _NOT_APPLIED and not isinstance(child, _PLAIN):
                    waiting.append(child)
    return False


def _is_marked(schema: Schema) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _find_target(reference: str, root: Schema) -> Any:
    """Return the target of a local reference; {} if there is none."""
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or key not in target:
            return {}
        target = target[key]
    return target


class _Redaction:
    """Redacts one value; its options are all the schemas that may apply to it."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._answers: dict[int, bool] = {}
        """Whether a part of the schema has secrets, by its `id`: a list may have a million
        items."""

    def redact(self, value: Any, options: Sequence[Any]) -> Any:
        schemas = list(self._list_schemas(options))
        if any(map(_is_marked, schemas)):
            return MASK
        if not self._have_secrets(schemas):
            return value
        if isinstance(value, Mapping):
            names = [schema.get("propertyNames", True) for schema in schemas]
            if self._have_secrets(names) or not any(map(_describes_object, schemas)):
                return MASK  # also the names
            return {
                key: self._redact_child(item, list(_list_members(key, schemas)))
                for key, item in value.items()
            }
        if isinstance(value, list):
            return self._redact_items(value, schemas)
        return value if value is None or isinstance(value, bool) else MASK

    def _redact_items(self, items: list[Any], schemas: Sequence[Schema]) -> list[Any]:
        size = max((len(schema.get("prefixItems", ())) for schema in schemas), default=0)
        head = [
            self._redact_child(item, list(_list_items(index, schemas)))
            for index, item in enumerate(items[:size])
        ]
        options = list(_list_items(size, schemas))
        if options and not self._have_secrets(options):
            return head + items[size:]
        return head + [self._redact_child(item, options) for item in items[size:]]

    def _redact_child(self, value: Any, options: Sequence[Any]) -> Any:
        return self.redact(value, options) if options else MASK

    def _have_secrets(self, parts: Iterable[Any]) -> bool:
        for part in parts:
            if id(part) not in self._answers:
                self._answers[id(part)] = has_secrets(part, self._root)
            if self._answers[id(part)]:
                return True
        return False

    def _list_schemas(self, options: Iterable[Any]) -> Iterator[Schema]:
        """Yield schemas, and all schemas that they apply to the same value."""
        waiting, references = list(options), set()
        while waiting:
            item = waiting.pop()
            if not isinstance(item, _MAPPINGS):
                continue
            yield item
            reference = item.get("$ref")
            if isinstance(reference, str) and reference not in references:
                references.add(reference)
                waiting.append(_find_target(reference, self._root))
            for key in _IN_PLACE:
                waiting += item.get(key, ())
            waiting += [item[key] for key in _CONDITIONS if key in item]
            waiting += item.get("dependentSchemas", {}).values()


def _describes_object(schema: Schema) -> bool:
    return "object" in schema.get("type", ()) or not _MEMBERS.isdisjoint(schema)


def _list_members(key: str, schemas: Iterable[Schema]) -> Iterator[Any]:
    """Yield the schemas of an object's member; none if the member is not described."""
    for schema in schemas:
        properties = schema.get("properties", {})
        if key in properties:
            yield properties[key]
        # Patterns are not matched, so a schema may count for more members than it describes.
        yield from schema.get("patternProperties", {}).values()
        yield from (schema[word] for word in _OPEN_MEMBERS if isinstance(schema.get(word), Mapping))


def _list_items(index: int, schemas: Iterable[Schema]) -> Iterator[Any]:
    """Yield the schemas of an item; none if the item is not described."""
    for schema in schemas:
        yield from schema.get("prefixItems", [])[index : index + 1]
        yield from (schema[word] for word in _OPEN_ITEMS if isinstance(schema.get(word), Mapping))
