"""Parameters become a JSON Schema and a validator, through pydantic.

Runs in the user's kernel, at definition. All parameters together are one ``TypedDict`` for
pydantic: its keys may have any name, where a model's field may not be ``schema`` or ``_x``.

Values are accepted in their JSON forms (a date as text, a set as a list, ``"5"`` and ``5.0`` for
an integer, "true" for a bool and "" for None, since models write that). `argument_rules` is
stricter than pydantic, at any depth: a bool is not a number, neither a number nor other text is a
bool, and a number is not a date.
"""

import types
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union, cast, get_args, get_origin

import typing_extensions
from msgspec import Struct, structs
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator, core_schema

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.tabular_data import is_missing
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.annotations import read_alias
from mcp_notebook.kernel.schemas.argument_rules import forbid_unknown, tighten
from mcp_notebook.kernel.schemas.metaschema import find_schema_problem
from mcp_notebook.kernel.schemas.parameters.callables import NO_DEFAULT, format_hint
from mcp_notebook.kernel.schemas.parameters.markers import find_header_problem
from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone
from mcp_notebook.kernel.schemas.pydantic_json_schemas import SchemaGenerator, clean_schema
from mcp_notebook.kernel.schemas.tables.data_types import (
    keep_dtypes,
    offer_data_types,
    refuse_classes,
    refuse_foreign_types,
)
from mcp_notebook.kernel.schemas.validation_messages import (
    format_value,
    shorten_message,
)
from mcp_notebook.text.redaction import has_secrets


class Parameter(Struct, frozen=True):
    """One parameter that clients see."""

    name: str
    annotation: Any
    """For pydantic, with its description."""
    default: Any = NO_DEFAULT
    """The author's default; `NO_DEFAULT` also if it is a sentinel for "not given"."""
    optional: bool = False
    """Whether clients may leave it out; the default may also be in the annotation's ``Field``."""


def make_parameter(
    name: str,
    annotation: Any,
    default: Any,
    documented: str | None = None,
    alias: str | None = None,
) -> Parameter:
    """Bring together what signature and docstring say about a parameter.

    Args:
        name: Its name.
        annotation: Its resolved type hint.
        default: Its default or `NO_DEFAULT`; may be a ``Field(...)``, as other frameworks have it.
        documented: Its description in the docstring.
        alias: Its name for clients, if they cannot use its own and the author gave none.
    """
    rest = _drop_sentinel(annotation, default)
    if rest is not None:
        parameter = make_parameter(name, rest, NO_DEFAULT, documented, alias)
        return structs.replace(parameter, optional=True)
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
    if alias is not None and not any(field.alias for field in fields):
        # The docstring may use its own name.
        description = f"{name}: {description}" if description else name
        full = Annotated[full, Field(alias=alias)]
    if description:
        full = Annotated[full, Field(description=description)]
    optional = default is not NO_DEFAULT or not all(field.is_required() for field in fields)
    return Parameter(name, full, default, optional)


class ArgumentSchema(Struct, frozen=True):
    """The JSON Schema of a function's arguments, and what validates them.

    The validator takes a dict and returns one with the same keys: it fills in no defaults.
    """

    schema: dict[str, Any]
    """JSON Schema of the arguments."""
    validator: SchemaValidator
    notes: tuple[str, ...] = ()
    """Hints for the author."""


def build_schema(parameters: Sequence[Parameter]) -> ArgumentSchema:
    """Return the JSON Schema of an object with these parameters, and what validates one.

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
    if schema["type"] == "definitions":  # types that several parameters share, or recursive types
        root = schema["schema"] = dict(schema["schema"])
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
    return ArgumentSchema(published, validator)


def model_schema(model: Any) -> tuple[dict[str, Any], SchemaValidator]:
    """Return the JSON Schema of a model as the arguments themselves, and what makes one of them.

    Raises:
        Exception: As `build_schema`.
    """
    core: Any = _make_core_schema(model)
    schema = SchemaGenerator(by_alias=True).generate(core, mode="validation")
    reference = schema.pop("$ref", None)
    if reference is not None:  # a recursive model
        schema = {**schema["$defs"][reference.rpartition("/")[2]], **schema}
    return clean_schema(schema), build_alone(SchemaValidator, tighten(core))


def _make_core_schema(annotation: Any) -> Any:
    """Return pydantic's schema of a TypedDict or a model, with schemas for types of data libraries.

    Raises:
        Exception: As `build_schema`.
    """
    try:
        schema = offer_data_types(TypeAdapter(annotation).core_schema)
    except PydanticSchemaGenerationError:
        if not typing_extensions.is_typeddict(annotation):
            raise
        # pydantic then names an unknown class instead of failing.
        annotation.__pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)
        schema = offer_data_types(TypeAdapter(annotation).core_schema)
        refuse_foreign_types(schema)
    refuse_classes(schema)
    return forbid_unknown(schema)


def _is_optional(base: Any) -> bool:
    return base in (None, type(None), Any, object) or type(None) in get_args(base)


def _make_describable(annotation: Any) -> Any:
    """Replace a type unknown to pydantic by `Any` if the author gives its schema."""
    extras = get_args(annotation)[1:]
    if not any(isinstance(extra, WithJsonSchema) for extra in extras):
        return annotation
    try:
        TypeAdapter(annotation).json_schema()
    except Exception:  # noqa: BLE001 - may run code of the author's; judged again by the caller
        return Annotated[(Any, *extras)]
    return annotation


# -- what cannot be offered to clients -------------------------------------------------------------


class NoSchema(DefinitionError):
    """No JSON Schema stands for the type hint of a required parameter."""

    def __init__(self, text: str, parameter: str) -> None:
        super().__init__(text)
        self.parameter = parameter


def build_validator(
    parameters: Sequence[Parameter], name: str, *, is_library: bool = False
) -> ArgumentSchema:
    """Return the schema and the validator of parameters that can be offered to clients.

    Args:
        parameters: All that clients see.
        name: The function's, for messages.
        is_library: Whether the function belongs to an installed library, so that the tool's author
            cannot change it: then any value is accepted where a type hint has no schema.

    Raises:
        DefinitionError: Names the parameter whose type hint has no JSON Schema.
    """
    try:
        return build_schema(parameters)
    except Exception as error:
        # A hint's own class may take part in its schema, and raise anything.
        unclear = [item for item in parameters if is_library and not _has_schema(item)]
        if not unclear:
            raise make_refusal(parameters, name, error) from error
    clear = [
        structs.replace(item, annotation=Any) if item in unclear else item for item in parameters
    ]
    notes = tuple(
        f"The type hint of `{item.name}`, {format_hint(item.annotation)}, cannot be expressed as a "
        "JSON Schema: any value is accepted."
        for item in unclear
    )
    return structs.replace(build_schema(clear), notes=notes)


def _has_schema(parameter: Parameter) -> bool:
    try:
        build_schema([parameter])
    except Exception:  # noqa: BLE001 - as in `build_validator`
        return False
    return True


def check_schema(schema: dict[str, Any], name: str) -> None:
    """Refuse a schema that clients would refuse.

    Raises:
        DefinitionError: Says what is wrong with it.
    """
    if problem := find_schema_problem(schema):
        raise DefinitionError(
            f"`{name}`: its type hints make the JSON Schema of its parameters invalid: {problem}. "
            "Correct the `WithJsonSchema` or `json_schema_extra` that causes it."
        )
    if problem := find_header_problem(schema):
        raise DefinitionError(f"`{name}`: {problem}.")


def make_refusal(parameters: Sequence[Parameter], name: str, error: Exception) -> DefinitionError:
    """Return the error for parameters that have no schema.

    Args:
        parameters: All that clients see.
        name: The function's, for messages.
        error: What building raised.
    """
    for item in parameters:
        try:
            build_schema([item])
        except DefinitionError as own:  # our own words for it
            return DefinitionError(f"`{name}`: {own}")
        except Exception as own:  # noqa: BLE001 - as in `build_validator`
            hint = format_hint(item.annotation)
            text = (
                f"`{name}`: the type hint of `{item.name}`, {hint}, cannot be expressed as a "
                f"JSON Schema{_describe_reason(own)}: {_describe_way_out(item.annotation)}"
            )
            return DefinitionError(text) if item.optional else NoSchema(text, item.name)
    return DefinitionError(
        f"`{name}`: its parameters cannot be expressed as a JSON Schema "
        f"({describe_error(error)}): simplify their type hints."
    )


def _describe_way_out(annotation: Any) -> str:
    if _takes_class(annotation):
        return (
            "a class cannot be sent. Take its name, `Literal['int', 'float']`, and look up the "
            "class inside."
        )
    return (
        "use a type that JSON has (str, float, list, ...) and convert it inside, or give the "
        "schema, `Annotated[..., WithJsonSchema({...})]`, with a `BeforeValidator(...)` to convert "
        "it."
    )


def _takes_class(annotation: Any) -> bool:
    waiting: list[Any] = [annotation]
    seen: list[Any] = []
    while waiting:
        hint = waiting.pop()
        if any(hint is other for other in seen):  # an alias may name itself
            continue
        seen.append(hint)
        origin = get_origin(hint)
        if type in (hint, origin):
            return True
        waiting += [read_alias(hint), read_alias(origin)]
        if origin is not Literal:
            waiting += get_args(hint)
    return False


def _describe_reason(error: Exception) -> str:
    # pydantic's advice for a type that it does not know is for authors of models.
    unknown = isinstance(error, PydanticSchemaGenerationError | PydanticInvalidForJsonSchema)
    return "" if unknown else f" ({describe_error(error)})"


def check_defaults(defaults: Mapping[str, Any], built: ArgumentSchema, name: str) -> None:
    """Refuse defaults that their own type hints refuse.

    Args:
        defaults: By the names that clients use.
        built: Of all parameters.
        name: The function's, for messages.

    Raises:
        DefinitionError: Names the parameter.
    """
    for item, default in defaults.items():
        if is_missing(default):  # as None, it may stand for no value of any type
            continue
        try:
            built.validator.validate_python({item: default})
        except ValidationError as error:
            # Other parameters are missing; that is not the default's fault.
            reasons = [
                problem["msg"]
                for problem in error.errors(include_url=False)
                if problem["loc"][:1] == (item,)
                and not _is_missing(problem["loc"], problem["type"])
            ]
            reason = reasons[0] if reasons else None
        except Exception as error:  # noqa: BLE001 - a validator of the author's may raise anything
            reason = describe_error(error)
        else:
            continue
        if reason:
            value, why = f", {format_value(default)},", f" ({shorten_message(reason)})"
            if has_secrets(built.schema["properties"][item], built.schema):
                value = why = ""
            raise DefinitionError(
                f"`{name}`: the default of `{item}`{value} is not what its type hint allows{why}: "
                "change one of them."
            )


def _is_missing(location: tuple[int | str, ...], kind: str) -> bool:
    return kind == "missing" and len(location) == 1


# -- defaults that stand for "nothing was given" ---------------------------------------------------


def _drop_sentinel(annotation: Any, default: Any) -> Any:
    """Return a type hint without the sentinel that is the parameter's default.

    A sentinel is the only member of its enumeration, in a hint that also allows other types.

    Args:
        annotation: The resolved type hint.
        default: The parameter's.

    Returns:
        The hint without it; None unless the default is a sentinel.
    """
    if not isinstance(default, Enum) or len(type(default).__members__) > 1:
        return None
    return _drop_option(annotation, default)


def _drop_option(annotation: Any, sentinel: Enum) -> Any:
    """Return the rest of a type hint; None if nothing is left."""
    arguments, origin = get_args(annotation), get_origin(annotation)
    if annotation is type(sentinel):
        return None
    if origin is Literal:
        values = tuple(value for value in arguments if value is not sentinel)
        return Literal[values] if values else None
    if origin is Annotated:
        rest = _drop_option(arguments[0], sentinel)
        return None if rest is None else Annotated[(rest, *arguments[1:])]
    if origin in (Union, types.UnionType):
        options = [_drop_option(option, sentinel) for option in arguments]
        others = tuple(option for option in options if option is not None)
        return Union[others] if others else None  # noqa: UP007 - as many as there are
    return annotation
