"""Parameters become a JSON Schema and a validator, through pydantic.

Runs in the user's kernel, at definition. All parameters together are one ``TypedDict`` for
pydantic: its keys may have any name, where a model's field may not be ``schema`` or ``_x``.

Values are taken as they come over JSON (a date as text, a set as a list, ``"5"`` and ``5.0`` for
an integer, since models write that), with these exceptions to pydantic's rules, at any depth: a
bool is not taken as a number, neither text nor a number as a bool, and a number not as a date.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Optional, cast, get_args, get_origin

import typing_extensions
from pydantic import ConfigDict, Field, TypeAdapter, WithJsonSchema
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator, core_schema

from mcp_notebook.kernel.schemas.argument_rules import tighten
from mcp_notebook.kernel.schemas.parameters.field_dtypes import keep_field_dtypes
from mcp_notebook.kernel.schemas.parameters.sentinels import drop_sentinel
from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone
from mcp_notebook.kernel.schemas.pydantic_json_schemas import SchemaGenerator, clean_schema
from mcp_notebook.kernel.schemas.tables.data_types import (
    keep_dtypes,
    offer_data_types,
    refuse_classes,
    refuse_foreign_types,
)

NO_DEFAULT: Any = object()
"""Stands for no default."""


@dataclass(frozen=True)
class Parameter:
    """One parameter that clients see."""

    name: str
    annotation: Any
    """For pydantic, with its description."""
    default: Any = NO_DEFAULT
    """As the author wrote it; `NO_DEFAULT` also for one that says that nothing was given."""
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
    rest = drop_sentinel(annotation, default)
    if rest is not None:
        return replace(make_parameter(name, rest, NO_DEFAULT, documented), optional=True)
    annotation = keep_dtypes(annotation)
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
    schema: Any = dict(_make_core_schema(arguments))
    root: Any = schema
    if schema["type"] == "definitions":  # what several parameters, or a tree, refer to
        root = schema["schema"] = dict(schema["schema"])
    root["extra_behavior"] = "forbid"
    validator = build_alone(SchemaValidator, tighten(schema))
    # Only for clients: defaults are passed by Python's rules, not by pydantic's.
    root["fields"] = dict(root["fields"])
    for item in parameters:
        if item.default is not NO_DEFAULT:
            field = dict(root["fields"][item.name])
            field["schema"] = core_schema.with_default_schema(field["schema"], default=item.default)
            root["fields"][item.name] = field
    published = clean_schema(SchemaGenerator(by_alias=True).generate(schema, mode="validation"))
    if len(published["properties"]) < len(parameters):
        raise ValueError("an alias is used twice")
    return published, validator


def model_schema(model: Any) -> tuple[dict[str, Any], SchemaValidator]:
    """Return the JSON Schema of a model as the arguments themselves, and what makes one of them.

    Raises:
        Exception: As `build_schema`.
    """
    core: Any = _make_core_schema(model)
    schema = SchemaGenerator(by_alias=True).generate(core, mode="validation")
    reference = schema.pop("$ref", None)
    if reference is not None:  # a model that contains itself
        schema = {**schema["$defs"][reference.rpartition("/")[2]], **schema}
    return clean_schema(schema), build_alone(SchemaValidator, tighten(core))


def _make_core_schema(annotation: Any) -> Any:
    """Return pydantic's schema of a TypedDict or a model, with schemas for types of data libraries.

    Raises:
        Exception: As `build_schema`.
    """
    try:
        schema = offer_data_types(keep_field_dtypes(TypeAdapter(annotation).core_schema))
    except PydanticSchemaGenerationError:
        if not typing_extensions.is_typeddict(annotation):
            raise
        # pydantic then names a class that it does not know, in place of failing.
        annotation.__pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)
        schema = offer_data_types(keep_field_dtypes(TypeAdapter(annotation).core_schema))
        refuse_foreign_types(schema)
    refuse_classes(schema)
    return schema


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
