"""Parameters become a JSON Schema and a validator, through pydantic.

Runs in the user's kernel, at definition. All parameters together are one ``TypedDict`` for
pydantic: its keys may have any name, where a model's field may not be ``schema`` or ``_x``.

Values are taken as they come over JSON (a date as text, a set as a list, ``"5"`` and ``5.0`` for
an integer, since models write that), with these exceptions to pydantic's rules, at any depth: a
bool is not taken as a number, neither text nor a number as a bool, and a number not as a date.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Optional, TypeVar, cast, get_args, get_origin

import typing_extensions
from pydantic import Field, TypeAdapter, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import (
    PydanticKnownError,
    PydanticSerializationError,
    SchemaValidator,
    core_schema,
    to_jsonable_python,
)

_Built = TypeVar("_Built")

NO_DEFAULT: Any = object()
"""Stands for no default."""
MAX_DEFAULT = 1_000
"""Characters of JSON that a default may have to be published: every client reads it in every list
of tools."""

_NUMBERS = frozenset({"int", "float", "decimal", "timedelta"})
_MOMENTS = frozenset({"date", "datetime", "time"})
VALUE_KEYS = frozenset({"metadata", "default", "serialization", "expected", "members", "cls"})
"""Keys of a core schema that hold values, not schemas."""


@dataclass(frozen=True)
class Parameter:
    """One parameter that clients see."""

    name: str
    annotation: Any
    """For pydantic, with its description."""
    default: Any = NO_DEFAULT
    """As the author wrote it."""
    optional: bool = False
    """Whether clients may leave it out; the default may also be in the annotation's ``Field``."""


def make_parameter(
    name: str, annotation: Any, default: Any, documented: str | None = None
) -> Parameter:
    """Bring together what signature and docstring say about a parameter.

    Args:
        name: Its name.
        annotation: Its resolved type hint.
        default: Its default or `NO_DEFAULT`; may be a ``Field(...)``, as other frameworks have it.
        documented: What the docstring says about it.
    """
    base, extras = annotation, []
    if get_origin(annotation) is Annotated:
        base, *extras = get_args(annotation)
    if isinstance(default, FieldInfo):
        extras.append(default)
        default = NO_DEFAULT
    fields = [extra for extra in extras if isinstance(extra, FieldInfo)]
    descriptions = [field.description for field in fields if field.description]
    texts = [extra for extra in extras if isinstance(extra, str)]
    description = next(iter([*reversed(descriptions), *texts, documented]))
    constraints = [extra for extra in extras if not isinstance(extra, str)]
    full = _make_describable(Annotated[(base, *constraints)]) if constraints else base
    if default is None and not _is_optional(base):
        full = Optional[full]  # noqa: UP045 - `|` is not for every object: a string, a TypeVar
    if description:
        full = Annotated[full, Field(description=description)]
    optional = default is not NO_DEFAULT or not all(field.is_required() for field in fields)
    return Parameter(name, full, default, optional)


def build_schema(parameters: Sequence[Parameter]) -> tuple[dict[str, Any], SchemaValidator]:
    """Return the JSON Schema of an object with these parameters, and what validates one.

    The validator takes a dict and returns one with the same keys: defaults are the caller's.

    Raises:
        Exception: pydantic's, or whatever code of the author's pydantic runs raises.
    """
    fields = {
        item.name: typing_extensions.NotRequired[item.annotation]
        if item.optional
        else item.annotation
        for item in parameters
    }
    arguments: Any = cast("Any", typing_extensions.TypedDict)("Arguments", fields)
    schema: Any = dict(TypeAdapter(arguments).core_schema)
    root: Any = schema
    if schema["type"] == "definitions":  # what several parameters, or a tree, refer to
        root = schema["schema"] = dict(schema["schema"])
    root["extra_behavior"] = "forbid"
    validator = build_alone(SchemaValidator, _tighten(schema))
    # Only for clients: defaults are passed by Python's rules, not by pydantic's.
    root["fields"] = dict(root["fields"])
    for item in parameters:
        if item.default is not NO_DEFAULT:
            field = dict(root["fields"][item.name])
            field["schema"] = core_schema.with_default_schema(field["schema"], default=item.default)
            root["fields"][item.name] = field
    published = _clean_schema(SchemaGenerator(by_alias=True).generate(schema, mode="validation"))
    if len(published["properties"]) < len(parameters):
        raise ValueError("an alias is used twice")
    return published, validator


def model_schema(model: Any) -> tuple[dict[str, Any], SchemaValidator]:
    """Return the JSON Schema of a model as the arguments themselves, and what makes one of them.

    Raises:
        Exception: As `build_schema`.
    """
    core: Any = TypeAdapter(model).core_schema
    schema = SchemaGenerator(by_alias=True).generate(core, mode="validation")
    reference = schema.pop("$ref", None)
    if reference is not None:  # a model that contains itself
        schema = {**schema["$defs"][reference.rpartition("/")[2]], **schema}
    return _clean_schema(schema), build_alone(SchemaValidator, _tighten(core))


def _is_optional(base: Any) -> bool:
    return base in (None, type(None), Any, object) or type(None) in get_args(base)


def _make_describable(annotation: Any) -> Any:
    """Let a type that pydantic does not know pass as any value if its author says the schema."""
    extras = get_args(annotation)[1:]
    if not any(isinstance(extra, WithJsonSchema) for extra in extras):
        return annotation
    try:
        TypeAdapter(annotation).json_schema()
    except Exception:  # noqa: BLE001 - may run code of the author's; judged again by the caller
        return Annotated[(Any, *extras)]
    return annotation


# -- stricter than pydantic ------------------------------------------------------------------------


def build_alone(make: Callable[..., _Built], schema: Any) -> _Built:
    """Return pydantic's validator or serializer for a core schema, by that schema alone.

    A model's own would be used in place of the part of the schema, with its rules.
    """
    try:
        return make(schema, _use_prebuilt=False)
    except TypeError:  # it is pydantic's private option: without it tools still work, less strictly
        return make(schema)


def rewrite(schema: Any, change: Callable[[Mapping[str, Any], dict[str, Any]], Any]) -> Any:
    """Return a core schema with each schema in it changed, at any depth.

    Args:
        schema: The core schema, or several.
        change: Takes a schema as it was and a copy with changed parts; returns what it becomes.
    """
    if isinstance(schema, (list, tuple)):
        return type(schema)(rewrite(item, change) for item in schema)
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Any] = {}
    for key, value in schema.items():
        if key in VALUE_KEYS:
            copy[key] = value
        elif _is_named(key, value):
            copy[key] = {name: rewrite(item, change) for name, item in value.items()}
        else:
            copy[key] = rewrite(value, change)
    return change(schema, copy) if isinstance(schema.get("type"), str) else copy


def walk_schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each schema in a core schema, at any depth."""
    if isinstance(schema, (list, tuple)):
        for item in schema:
            yield from walk_schemas(item)
    elif isinstance(schema, dict):
        if isinstance(schema.get("type"), str):
            yield schema
        for key, value in schema.items():
            if key not in VALUE_KEYS:
                yield from walk_schemas(list(value.values()) if _is_named(key, value) else value)


def _is_named(key: str, value: Any) -> bool:
    # The keys of these are the author's names, which may be "default".
    return key in ("fields", "choices") and isinstance(value, dict)


def _tighten(schema: Any) -> Any:
    """Return a core schema with this module's exceptions to pydantic's rules, at any depth."""
    return rewrite(schema, _tighten_part)


def _tighten_part(schema: Mapping[str, Any], changed: dict[str, Any]) -> Any:
    if schema["type"] == "bool":
        return {**changed, "strict": True}
    check = _choose_check(schema)
    if check is None:
        return changed
    reference = changed.pop("ref", None)
    core = cast("core_schema.CoreSchema", changed)
    return core_schema.no_info_before_validator_function(check, core, ref=reference)


def _choose_check(schema: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """Return what must look at a value before the schema of this type does."""
    kind = schema["type"]
    if kind in _NUMBERS:
        return _refuse_bool
    if kind in _MOMENTS:
        return _refuse_number
    if kind == "literal":
        return None if any(isinstance(item, bool) for item in schema["expected"]) else _refuse_bool
    if kind == "enum":
        return _make_enum_check([(member.value, member) for member in schema["members"]])
    return None


def _refuse_bool(value: Any) -> Any:
    if value is True or value is False:
        raise PydanticKnownError("int_type")
    return value


def _refuse_number(value: Any) -> Any:
    """Refuse what pydantic would take as seconds since 1970: a year, mostly."""
    if isinstance(value, (int, float)) or (isinstance(value, str) and _is_number(value)):
        raise PydanticKnownError("datetime_type")
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _make_enum_check(members: list[tuple[Any, Any]]) -> Callable[[Any], Any] | None:
    """Return a check for an enumeration whose values JSON has no type for (tuples, dates)."""
    if any(isinstance(value, bool) for value, _ in members):
        return None
    if all(isinstance(value, (str, int, float, type(None))) for value, _ in members):
        return _refuse_bool
    by_json = {json.dumps(to_jsonable_python(value)): member for value, member in members}

    def check(value: Any) -> Any:
        try:
            return by_json.get(json.dumps(value), value)
        except (TypeError, ValueError):  # a member already, in a default
            return value

    return check


# -- what clients see ------------------------------------------------------------------------------


class SchemaGenerator(GenerateJsonSchema):
    """pydantic's schemas without titles that repeat names, and with defaults that are JSON."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """Write no titles."""
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Say nothing: a default without a JSON form is left out, and works all the same."""

    def encode_default(self, dft: Any) -> Any:
        """Publish a default only if it has a short JSON form."""
        encoded = to_jsonable_python(dft)
        try:
            if len(json.dumps(encoded, allow_nan=False)) <= MAX_DEFAULT:
                return encoded
        except (TypeError, ValueError):
            pass
        raise PydanticSerializationError("no JSON, or too long")


def _clean_schema(schema: dict[str, Any]) -> dict[str, Any]:
    for noise in ("title", "description"):
        schema.pop(noise, None)
    # Through JSON and back: an author's `json_schema_extra` may hold anything.
    plain = json.loads(json.dumps(drop_infinite(schema), allow_nan=False))
    return {"type": "object", "properties": {}, **plain}


def drop_infinite(value: Any) -> Any:
    """Drop bounds of infinity, which bound nothing and are no JSON."""
    if isinstance(value, dict):
        return {key: drop_infinite(item) for key, item in value.items() if not _is_infinite(item)}
    if isinstance(value, (list, tuple)):
        return [drop_infinite(item) for item in value if not _is_infinite(item)]
    return value


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
