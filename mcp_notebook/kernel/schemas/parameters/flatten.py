"""A model whose fields are a tool's arguments (``flatten=True``).

Runs in the user's kernel, at definition. Pure. The model defines names, descriptions and
constraints; values are validated by the same rules as parameters.
"""

import inspect
import typing
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Annotated, Any, get_args, get_origin

import typing_extensions
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.parameters.callables import format_hint
from mcp_notebook.kernel.schemas.parameters.pydantic_validator import (
    ArgumentSchema,
    Parameter,
    model_schema,
)


def find_model_parameter(parameters: Sequence[Parameter], name: str) -> Parameter:
    """Return the one parameter that clients see, whose type has fields.

    Args:
        parameters: All that clients see.
        name: The function's, for messages.

    Raises:
        DefinitionError: There are more or fewer, or it cannot be flattened.
    """
    if len(parameters) != 1:
        listed = ", ".join(f"`{item.name}`" for item in parameters) or "none"
        raise DefinitionError(
            f"`{name}`: `flatten` (`--flatten`) needs exactly one parameter for clients, a model; "
            f"the function has {len(parameters)}: {listed}."
        )
    [item] = parameters
    if not _is_model(item.annotation):
        raise DefinitionError(
            f"`{name}`: `flatten` (`--flatten`) needs a pydantic model, a dataclass or a TypedDict "
            f"as the type hint of `{item.name}`, not {format_hint(item.annotation)}."
        )
    if item.optional:
        raise DefinitionError(
            f"`{name}`: with `flatten` (`--flatten`), `{item.name}` cannot have a default: give "
            "defaults to the fields of its model."
        )
    return item


def flatten_model(item: Parameter, texts: Mapping[str, str]) -> tuple[ArgumentSchema, str]:
    """Flatten a parameter whose type is a model.

    Args:
        item: The parameter.
        texts: Descriptions in the function's docstring, by the name of the field.

    Raises:
        Exception: pydantic's, or whatever code of the author's pydantic runs raises.
    """
    model = _unwrap(item.annotation)
    schema, validator = model_schema(model)
    # A ``Field`` describes the parameter, which clients do not see.
    extras = [extra for extra in _list_extras(item.annotation) if not isinstance(extra, FieldInfo)]
    if extras:
        validator = model_schema(Annotated[(model, *extras)])[1]
    for name, field in schema["properties"].items():
        if name in texts and isinstance(field, dict):
            field.setdefault("description", texts[name])
    return ArgumentSchema(schema, validator), _read_description(model)


def _is_model(annotation: Any) -> bool:
    """Return whether a type hint is a type with fields: a model, a dataclass, a TypedDict."""
    kind = _unwrap(annotation)
    kind = get_origin(kind) or kind
    return (
        (inspect.isclass(kind) and issubclass(kind, BaseModel) and not _is_root_model(kind))
        or (isinstance(kind, type) and is_dataclass(kind))
        or typing.is_typeddict(kind)
        or typing_extensions.is_typeddict(kind)
    )


def _unwrap(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _list_extras(annotation: Any) -> list[Any]:
    if get_origin(annotation) is not Annotated:
        return []
    base, *extras = get_args(annotation)
    return [*_list_extras(base), *extras]


def _is_root_model(model: type[BaseModel]) -> bool:
    return bool(getattr(model, "__pydantic_root_model__", False))


def _read_description(model: Any) -> str:
    kind = get_origin(model) or model
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    # Without a docstring, `dataclass` writes the signature.
    return "" if text.startswith(f"{kind.__name__}(") else text
