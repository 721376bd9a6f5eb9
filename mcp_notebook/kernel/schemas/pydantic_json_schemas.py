"""Generates the JSON Schemas that clients get: pydantic's, corrected and shortened.

Runs in the user's kernel, at definition. Pure.
"""

import base64
import json
import math
from collections.abc import Mapping
from enum import Enum, Flag
from functools import reduce
from operator import or_
from pathlib import PurePath
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, core_schema, to_jsonable_python

from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.moments import write_nanoseconds
from mcp_notebook.kernel.safe.stand_ins import has_names_only, read_member, read_scalar
from mcp_notebook.kernel.schemas.docstrings import shorten_text
from mcp_notebook.kernel.schemas.secrets import drop_secret_defaults, is_secret, mark_secret
from mcp_notebook.schema_keywords import rewrite_schema, walk_schema

MAX_DEFAULT = 1_000
"""Characters of JSON that a default may have to be published: every client reads it in every list
of tools."""
MAX_DESCRIPTION = 2_000
"""Characters that a parameter's or a type's description may have, for the same reason."""
_MAX_FLAGS = 6
"""Flags whose sums are listed, where a range would also allow other numbers."""
_SUMS = "x-sums"
"""Temporary keyword for the description of flags: pydantic writes descriptions last."""
_BASE64 = {"type": "string", "contentEncoding": "base64"}


class SchemaGenerator(GenerateJsonSchema):
    """pydantic's schemas without titles that repeat names, and with defaults that are JSON."""

    def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
        """Return a schema with shortened descriptions and with the bounds of JSON Schema."""
        plain = super().generate(schema, mode)
        drop_secret_defaults(plain)
        _settle(plain, is_input=mode == "validation")
        return plain

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """Write no titles."""
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Ignore warnings: a default without a JSON form is left out of the schema, but works."""

    def encode_default(self, dft: Any) -> Any:
        """Publish a default only if it has a short JSON form."""
        mode: Any = "base64" if self.mode == "validation" else "utf8"
        plain = _encode_default(dft, is_input=self.mode == "validation")
        try:
            encoded = to_jsonable_python(
                write_nanoseconds(plain), bytes_mode=mode, fallback=_read_scalar
            )
            if len(json.dumps(encoded, allow_nan=False)) <= MAX_DEFAULT:
                return encoded
        except (TypeError, ValueError):  # NaT, say
            pass
        raise PydanticSerializationError("no JSON, or too long")

    def json_or_python_schema(self, schema: core_schema.JsonOrPythonSchema) -> dict[str, Any]:
        """Mark a secret; in results, a secret of any type is a string of asterisks."""
        plain = super().json_or_python_schema(schema)
        if self.mode == "serialization":
            return {"type": "string"} if is_secret(schema) else plain
        return mark_secret(schema, plain)

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> dict[str, Any]:
        """Publish `anyOf` if a function chooses the type: a value may suit several."""
        plain = super().tagged_union_schema(schema)
        return {"anyOf": plain["oneOf"]} if callable(schema["discriminator"]) else plain

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """Say if it refuses unknown keys; pydantic reads that from the class."""
        return _note_refusal(schema, super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> dict[str, Any]:
        """Say if it refuses unknown keys, as for models."""
        return _note_refusal(schema, super().dataclass_schema(schema))

    def enum_schema(self, schema: core_schema.EnumSchema) -> dict[str, Any]:
        """List each value once, without its aliases; describe flags as numbers to add up.

        A member of an enumeration whose values only count is its name.
        """
        plain = super().enum_schema(schema)
        if issubclass(schema["cls"], Flag):
            return _describe_flags(plain, schema["members"])
        if has_names_only(schema["cls"]):
            names = [item.name for item in schema["members"]]
            return {**plain, "type": "string", "enum": _drop_repeated(names)}
        return {**plain, "enum": _drop_repeated(plain["enum"])}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> dict[str, Any]:
        """List each value once: an enumeration's member may have the value of a literal text."""
        plain = super().literal_schema(schema)
        return {**plain, "enum": _drop_repeated(plain["enum"])} if "enum" in plain else plain

    def bytes_schema(self, schema: core_schema.BytesSchema) -> dict[str, Any]:
        """Describe bytes as base64 text with its length; `return_types` describes results."""
        if self.mode != "validation":
            return super().bytes_schema(schema)
        lengths = (("minLength", schema.get("min_length")), ("maxLength", schema.get("max_length")))
        # Three bytes are four characters.
        return _BASE64 | {key: -(-size // 3) * 4 for key, size in lengths if size is not None}


def _note_refusal(schema: Any, plain: dict[str, Any]) -> dict[str, Any]:
    if schema.get("config", {}).get("extra_fields_behavior") == "forbid":
        plain.setdefault("additionalProperties", False)
    return plain


def _encode_default(value: Any, *, is_input: bool) -> Any:
    """Return a default as a client sends it: bytes as base64 in the standard alphabet, names.

    Paths have `/` on Windows, too: the schema is the same on each machine.
    """
    if isinstance(value, Enum) and not isinstance(value, Flag):
        return read_member(value)
    if isinstance(value, PurePath):
        return value.as_posix()
    if is_input and type(value) in (bytes, bytearray):
        return base64.b64encode(value).decode()
    if type(value) in (set, frozenset):
        value = sorted(value, key=repr)  # the order of texts changes with each start
    if type(value) in (list, tuple):
        return [_encode_default(item, is_input=is_input) for item in value]
    if type(value) is dict:
        return {key: _encode_default(item, is_input=is_input) for key, item in value.items()}
    return value


def _read_scalar(value: Any) -> Any:
    """Return a number, timestamp or duration of numpy as Python's."""
    if is_instance(value, "numpy.generic"):
        return write_nanoseconds(read_scalar(value))
    raise PydanticSerializationError("no JSON")


def _drop_repeated(values: list[Any]) -> list[Any]:
    # 1, 1.0 and True are equal in Python, but True is a different value in JSON.
    by_json = {(isinstance(value, bool), json.dumps(value)): value for value in values}
    return list(by_json.values())


def _describe_flags(plain: dict[str, Any], members: list[Any]) -> dict[str, Any]:
    values = {member.name: member.value for member in members}
    mask = reduce(or_, values.values(), 0)
    sums = ", ".join(f"{name} = {value}" for name, value in values.items())
    flags = {key: value for key, value in plain.items() if key != "enum"} | {
        "type": "integer",
        _SUMS: f"Any sum of {sums}.",
    }
    if mask < 0:  # a member with an inverted mask: no range describes it
        return flags
    if mask & (mask + 1) and mask.bit_count() <= _MAX_FLAGS:
        return {**flags, "enum": [n for n in range(mask + 1) if not n & ~mask]}
    return {**flags, "minimum": 0, "maximum": mask}


def clean_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of all arguments as plain JSON."""
    for noise in ("title", "description"):
        schema.pop(noise, None)
    # Through JSON and back: an author's `json_schema_extra` may hold anything.
    plain = json.loads(json.dumps(drop_infinite(schema), allow_nan=False))
    return {"type": "object", "properties": {}, **_write_out_lone(plain)}


def _write_out_lone(root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with each definition that is used once in the place that uses it.

    A model reads fewer tokens, and fewer clients lose the way: some resolve no references.
    """
    definitions = root.get("$defs", {})
    users: dict[str, list[dict[str, Any]]] = {}
    for item in walk_schema(root):
        for part in item.values():
            if isinstance(part, str) and part.startswith("#/$defs/"):
                users.setdefault(part, []).append(item)
    lone = {}
    for name, definition in definitions.items():
        address = f"#/$defs/{name}"
        match users.get(address):
            # Otherwise, another keyword such as `discriminator` has the address.
            case [{"$ref": str(reference)} as item] if reference == address:
                if item.keys() & definition.keys() <= {"description"}:
                    lone[address] = definition
    if not lone:
        return root
    kept = {key: part for key, part in root.items() if key != "$defs"}
    rest = {name: part for name, part in definitions.items() if f"#/$defs/{name}" not in lone}
    return dict(_replace(kept | ({"$defs": rest} if rest else {}), lone))


def _replace(schema: Any, lone: Mapping[str, dict[str, Any]]) -> Any:
    return rewrite_schema(schema, lambda part: _write_out(part, lone))


def _write_out(written: dict[str, Any], lone: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a schema with its definition in place of the reference, if only it uses that."""
    address = written.get("$ref")
    if not isinstance(address, str) or address not in lone:
        return written
    del written["$ref"]
    definition: dict[str, Any] = _replace(lone[address], lone)
    if definition.get("title") == address.rpartition("/")[2]:
        del definition["title"]
    texts = dict.fromkeys(
        part["description"] for part in (written, definition) if "description" in part
    )
    return definition | written | ({"description": " ".join(texts)} if texts else {})


def _settle(root: Any, *, is_input: bool) -> None:
    """Shorten descriptions and translate bounds to JSON Schema's keywords, at any depth.

    Args:
        root: The schema.
        is_input: Whether it is of parameters, which models' APIs must take.
    """
    for item in walk_schema(root):
        _settle_description(item)
        _settle_bounds(item)
        if is_input:
            _settle_tuple(item)


def _settle_description(schema: dict[str, Any]) -> None:
    if sums := schema.pop(_SUMS, None):
        schema["description"] = " ".join(filter(None, [schema.get("description"), sums]))
    text = schema.get("description")
    if isinstance(text, str) and len(text) > MAX_DESCRIPTION:
        schema["description"] = shorten_text(text, MAX_DESCRIPTION)


def _settle_tuple(schema: dict[str, Any]) -> None:
    """Say what the items of a tuple are in ``items``, too: OpenAI's API requires it."""
    items = schema.get("prefixItems")
    if schema.get("type") != "array" or "items" in schema or not isinstance(items, list):
        return
    kinds = [item for number, item in enumerate(items) if item not in items[:number]]
    if len(kinds) == 1:
        del schema["prefixItems"]
    schema["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def drop_infinite(value: Any) -> Any:
    """Drop infinite bounds, which have no effect and are not JSON."""
    if isinstance(value, dict):
        return {key: drop_infinite(item) for key, item in value.items() if not _is_infinite(item)}
    if isinstance(value, (list, tuple)):
        return [drop_infinite(item) for item in value if not _is_infinite(item)]
    return value


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


# -- bounds that pydantic writes with Python's names -----------------------------------------------


_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "array": {"minLength": "minItems", "maxLength": "maxItems"},
    "object": {"minLength": "minProperties", "maxLength": "maxProperties"},
}


def _settle_bounds(schema: dict[str, Any]) -> None:
    # For types unknown to pydantic, such as those of the data libraries, it writes `ge`, and treats
    # every length as that of a string. Bounds without a keyword in JSON Schema are left out.
    options = [option for option in schema.get("anyOf", ()) if isinstance(option, dict)]
    options = options or [schema]
    for key, name in _NUMBERS.items():
        # If a property has this name, the value is a schema.
        if not isinstance(schema.get(key, {}), (dict, bool)):
            value = schema.pop(key)
            for option in options:
                if option.get("type") in ("integer", "number"):
                    _bound(option, name, value)
    for key in ("minLength", "maxLength"):
        is_bound = type(schema.get(key)) is int and schema.get("type", "array") != "string"
        value = schema.pop(key) if is_bound else None
        for option in options if is_bound else ():
            if (length := _find_length(option, key)) is not None:
                _bound(option, length, value)


def _find_length(option: Mapping[str, Any], key: str) -> str | None:
    """Return the keyword for the length of an option's values; None if they have no length."""
    if option.get("type") == "string":
        return key
    # A table as an object of columns: its length is not the number of columns.
    if option.get("type") == "object" and option.keys() & {"properties", "additionalProperties"}:
        return None
    return _LENGTHS.get(str(option.get("type")), {}).get(key)


def _bound(option: dict[str, Any], name: str, value: Any) -> None:
    """Write a bound unless the dtype's own is narrower."""
    narrower = max if name.startswith(("min", "exclusiveMin")) else min
    option[name] = narrower(option[name], value) if name in option else value
