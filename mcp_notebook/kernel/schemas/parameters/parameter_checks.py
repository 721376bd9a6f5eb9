"""Parameters that cannot be offered to clients, refused where the tool is declared.

Runs in the user's kernel, at definition; `find_culprit` wherever a call runs. Pure, but for what
type hints and validators of the author's do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic_core import SchemaValidator

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.tabular_data import is_missing
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.annotations import read_alias
from mcp_notebook.kernel.schemas.metaschema import find_schema_problem
from mcp_notebook.kernel.schemas.parameters.markers import find_header_problem
from mcp_notebook.kernel.schemas.parameters.parameters import Parameter, build_schema
from mcp_notebook.kernel.schemas.parameters.signatures import format_hint
from mcp_notebook.kernel.schemas.schema_words import describe_schema, find_part
from mcp_notebook.kernel.schemas.validation_messages import (
    format_value,
    join_lines,
    shorten_message,
)
from mcp_notebook.text.redaction import has_secrets
from mcp_notebook.text.wording import count

MAX_LISTED = 50_000
"""Problems of arguments that are told one by one: pydantic takes seconds to list a million."""


@dataclass(frozen=True)
class CheckedSchema:
    """What `build_validator` makes of parameters."""

    schema: dict[str, Any]
    """JSON Schema of the arguments."""
    validator: SchemaValidator
    notes: tuple[str, ...] = ()
    """What the author should know."""


def build_validator(
    parameters: Sequence[Parameter], name: str, *, is_library: bool = False
) -> CheckedSchema:
    """Return the schema and the validator of parameters that can be offered to clients.

    Args:
        parameters: All that clients see.
        name: The function's, for messages.
        is_library: Whether who makes it a tool cannot change the function: a type hint that has
            no schema then counts as none.

    Raises:
        DefinitionError: Names the parameter whose type hint has no JSON Schema.
    """
    try:
        return CheckedSchema(*build_schema(parameters))
    except Exception as error:
        # A hint's own class may take part in its schema, and raise anything.
        unclear = [item for item in parameters if is_library and not _has_schema(item)]
        if not unclear:
            raise make_refusal(parameters, name, error) from error
    clear = [replace(item, annotation=Any) if item in unclear else item for item in parameters]
    notes = tuple(
        f"The type hint of `{item.name}`, {format_hint(item.annotation)}, cannot be expressed as a "
        "JSON Schema: any value is taken."
        for item in unclear
    )
    return CheckedSchema(*build_schema(clear), notes)


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
            f"`{name}`: what its type hints add to the JSON Schema of its parameters is not valid: "
            f"{problem}. Correct the `WithJsonSchema` or `json_schema_extra` that adds it."
        )
    if problem := find_header_problem(schema):
        raise DefinitionError(f"`{name}`: {problem}.")


def make_refusal(parameters: Sequence[Parameter], name: str, error: Exception) -> DefinitionError:
    """Return the error for parameters of which no schema can be built.

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
            return DefinitionError(
                f"`{name}`: the type hint of `{item.name}`, {hint}, cannot be expressed as a "
                f"JSON Schema{_describe_reason(own)}: {_describe_way_out(item.annotation)}"
            )
    return DefinitionError(
        f"`{name}`: its parameters cannot be expressed as a JSON Schema "
        f"({describe_error(error)}): simplify their type hints."
    )


def _describe_way_out(annotation: Any) -> str:
    if _takes_class(annotation):
        return (
            "a class cannot be sent. Take its name, `Literal['int', 'float']`, and find the class "
            "by it inside."
        )
    return (
        "use a type that JSON has (str, float, list, ...) and convert it inside, or say what "
        "clients send, `Annotated[..., WithJsonSchema({...})]`, with a `BeforeValidator(...)` to "
        "convert it."
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


def check_defaults(defaults: Mapping[str, Any], built: CheckedSchema, name: str) -> None:
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


def find_culprit(validator: SchemaValidator, arguments: Mapping[str, Any]) -> str | None:
    """Return the name of the argument that makes a validator of the author's raise, if one does."""
    for name, value in arguments.items():
        try:
            validator.validate_python({name: value})
        except ValidationError:
            continue
        except Exception:  # noqa: BLE001 - this is what we look for
            return name
    return None


def count_problems(
    validator: SchemaValidator, arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> str:
    """Return a line for each parameter with problems, for arguments with too many to list.

    Args:
        validator: Refuses the arguments.
        arguments: As the client sent them.
        schema: The tool's input schema.
    """
    required = set(schema.get("required", ()))
    problems = {}
    for name, value in arguments.items():
        try:
            validator.validate_python({name: value})
        except ValidationError as error:
            # Other parameters are missing; that is not this one's fault.
            if (number := error.error_count() - len(required - {name})) > 0:
                problems[name] = count(number, "problem")
    problems |= dict.fromkeys(sorted(required - arguments.keys()), "missing")
    return join_lines(
        [
            f"{name}: {text}; allowed: {describe_schema(find_part((name,), schema), schema)}."
            for name, text in problems.items()
        ]
    )
