"""A function's signature and docstring become a JSON Schema and a validator.

Runs in the user's kernel: at definition, and validation wherever the call runs; on any thread. This
module reads the function and refuses what clients cannot be offered. How types become schemas and
which values they take is `kernel.schemas.parameters`' business, what a refusal of values says
`kernel.schemas.validation_messages`'; what a tool is and who calls it is
`kernel.tools.declared_tool`' and `kernel.calls.invoker`'s.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache as once
from typing import Any

from pydantic import ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator

from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.docstrings import FunctionDoc, parse_docstring
from mcp_notebook.kernel.schemas.markers import find_header_problem
from mcp_notebook.kernel.schemas.metaschema import find_schema_problem
from mcp_notebook.kernel.schemas.model_parameters import (
    FlatModel,
    flatten_model,
    is_model,
    refuse_unknown,
)
from mcp_notebook.kernel.schemas.parameters import (
    NO_DEFAULT,
    Parameter,
    build_schema,
    make_parameter,
)
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.schemas.signatures import (
    HintedParameter,
    find_docstring,
    find_name,
    format_hint,
    list_fixed_parameters,
    read_parameters,
)
from mcp_notebook.kernel.schemas.validation_messages import (
    explain_arguments,
    format_value,
    shorten_message,
)


@dataclass(frozen=True)
class FunctionSchema:
    """What a function takes, for clients and for the call."""

    description: str
    """The docstring without its sections on parameters and results; "" if there is none."""
    input_schema: dict[str, Any]
    """JSON Schema 2020-12 of the arguments: an object, properties in the signature's order."""
    warnings: tuple[str, ...]
    """What the author should know."""
    injected: tuple[str, ...]
    """Parameters that clients do not see, and the call gives a value."""
    hidden: tuple[str, ...]
    """Parameters that clients do not see, and that keep their defaults."""
    _validator: Callable[[], SchemaValidator] = field(repr=False, compare=False)
    """Builds it at the first call, if the schema came from the disk."""
    _defaults: Mapping[str, Any] = field(repr=False, compare=False)
    _flat: str | None = None
    """The one parameter, if what clients pass are its fields."""

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function's arguments by name, defaults included.

        Raises:
            InvalidArguments: One line for each problem: the parameter, what came, what is allowed.
        """
        validator = self._validator()
        try:
            if self._flat is not None:
                refuse_unknown(arguments, self.input_schema)
            given = validator.validate_python(arguments)
        except ValidationError as error:
            raise InvalidArguments(explain_arguments(error, arguments, self.input_schema)) from None
        except Exception as error:
            # A validator of the author's may raise anything.
            name = _culprit(validator, arguments)
            raise InvalidArguments(
                f"{name or 'arguments'}: refused by a validator: {describe_error(error)}."
            ) from error
        if self._flat is not None:
            return {self._flat: given}
        # A default is passed as the author wrote it, the very object, as Python does.
        return {**self._defaults, **given}


def read_function_schema(  # noqa: PLR0913 - each says one thing
    function: Callable[..., Any],
    *,
    name: str | None = None,
    hidden_types: tuple[type, ...] = (),
    flatten: bool = False,
    described: bool = False,
    cache: SchemaCache | None = None,
) -> FunctionSchema:
    """Read a function's signature and docstring.

    Args:
        function: Any callable with a signature.
        name: What messages call it; the function's own name if None.
        hidden_types: Parameters annotated with one of these are not for clients.
        flatten: The fields of its one parameter, a model, are what clients pass.
        described: Its author says elsewhere what it is for.
        cache: Schemas of earlier starts; they are those that would be built.

    Raises:
        DefinitionError: The signature cannot be offered to clients; says which parameter and what
            to do.
    """
    name = name or find_name(function)
    docstring = find_docstring(function)
    hinted = read_parameters(function, name, hidden_types=hidden_types)
    fixed = frozenset(list_fixed_parameters(function))
    key = None
    if cache is not None and not flatten:
        key = _key(cache, (name, docstring, described, sorted(fixed)), hinted)
        if key is not None and (stored := cache.get(key)) is not None:
            return _restored(stored, name, hinted)
    schema = _made(name, docstring, hinted, fixed, flatten=flatten, described=described)
    if cache is not None and key is not None:
        cache.put(
            key,
            {
                "description": schema.description,
                "input_schema": schema.input_schema,
                "warnings": schema.warnings,
            },
        )
    return schema


def _names(hinted: Sequence[HintedParameter], seen_as: str) -> tuple[str, ...]:
    return tuple(item.name for item in hinted if item.seen_as == seen_as)


def _made(  # noqa: PLR0913 - as `read_function_schema`
    name: str,
    docstring: str | None,
    hinted: Sequence[HintedParameter],
    fixed: Collection[str],
    *,
    flatten: bool,
    described: bool,
) -> FunctionSchema:
    doc = parse_docstring(docstring)
    parameters = _parameters(hinted, doc)
    flat = _flat(parameters, doc.parameters, name) if flatten else None
    description = doc.description or (flat.description if flat is not None else "")
    notes = []
    if not description and not described:
        notes.append(f"`{name}` has no docstring: say what it is for.")
    notes += [
        f"`{item.name}` has no type hint: any value is taken."
        for item in hinted
        if item.hint is NO_DEFAULT
    ]
    known = {*fixed, *(item.name for item in hinted), *(flat.names if flat is not None else ())}
    notes += [
        f"The docstring describes `{item}`, which is no parameter."
        for item in doc.parameters
        if item not in known
    ]
    schema, validator = _built(parameters, name) if flat is None else (flat.schema, flat.validator)
    if problem := find_schema_problem(schema):
        raise DefinitionError(
            f"`{name}`: what its type hints add to the JSON Schema of its parameters is none: "
            f"{problem}. Correct the `WithJsonSchema` or `json_schema_extra` that says so."
        )
    if problem := find_header_problem(schema):
        raise DefinitionError(f"`{name}`: {problem}.")
    known_to_clients = FunctionSchema(
        description,
        schema,
        tuple(notes),
        _names(hinted, "injected"),
        _names(hinted, "hidden"),
        lambda: validator,
        {},
    )
    if flat is not None:
        return replace(known_to_clients, _flat=flat.name)
    defaults = _defaults(parameters)
    # A `Field(alias=...)` is what clients say.
    published = zip(parameters, schema["properties"], strict=True)
    _check_defaults(
        {alias: defaults[item.name] for item, alias in published if item.name in defaults},
        validator,
        name,
    )
    return replace(known_to_clients, _defaults=defaults)


def _parameters(hinted: Sequence[HintedParameter], doc: FunctionDoc) -> list[Parameter]:
    return [
        make_parameter(
            item.name,
            Any if item.hint is NO_DEFAULT else item.hint,
            item.default,
            doc.parameters.get(item.name),
        )
        for item in hinted
        if item.seen_as == "argument"
    ]


def _defaults(parameters: Sequence[Parameter]) -> dict[str, Any]:
    return {item.name: item.default for item in parameters if item.default is not NO_DEFAULT}


# -- schemas of earlier starts ---------------------------------------------------------------------


def _key(
    cache: SchemaCache, said: tuple[Any, ...], hinted: Sequence[HintedParameter]
) -> str | None:
    parts = [
        (item.name, item.seen_as, *_kept(item.hint), *_kept(item.default))
        if item.seen_as == "argument"
        else (item.name, item.seen_as)  # nothing else of it is told to clients
        for item in hinted
    ]
    return cache.key(said, parts)


def _kept(value: Any) -> tuple[Any, ...]:
    return ("none",) if value is NO_DEFAULT else ("given", value)


def _restored(
    stored: Mapping[str, Any], name: str, hinted: Sequence[HintedParameter]
) -> FunctionSchema:
    @once
    def validator() -> SchemaValidator:
        # Without the docstring: what is said about parameters changes nothing in what they take.
        return _built(_parameters(hinted, FunctionDoc()), name)[1]

    defaults = {
        item.name: item.default
        for item in hinted
        if item.seen_as == "argument"
        and item.default is not NO_DEFAULT
        and not isinstance(item.default, FieldInfo)
    }
    return FunctionSchema(
        stored["description"],
        stored["input_schema"],
        tuple(stored["warnings"]),
        _names(hinted, "injected"),
        _names(hinted, "hidden"),
        validator,
        defaults,
    )


def _flat(parameters: Sequence[Parameter], documented: Mapping[str, str], name: str) -> FlatModel:
    if len(parameters) != 1:
        listed = ", ".join(f"`{item.name}`" for item in parameters) or "none"
        raise DefinitionError(
            f"`{name}`: `flatten` (`--flatten`) is for a function with one parameter for clients, "
            f"a model; here are {len(parameters)}: {listed}."
        )
    [item] = parameters
    if not is_model(item.annotation):
        raise DefinitionError(
            f"`{name}`: `flatten` (`--flatten`) needs a pydantic model, a dataclass or a TypedDict "
            f"as the type hint of `{item.name}`, not {format_hint(item.annotation)}."
        )
    if item.optional:
        raise DefinitionError(
            f"`{name}`: with `flatten` (`--flatten`) `{item.name}` cannot have a default: give "
            "the fields of its model theirs."
        )
    try:
        return flatten_model(item, documented)
    except Exception as error:
        # A model's own code may take part in its schema, and raise anything.
        raise _no_schema(parameters, name, error) from error


# -- what cannot be offered ------------------------------------------------------------------------


def _built(parameters: Sequence[Parameter], name: str) -> tuple[dict[str, Any], SchemaValidator]:
    try:
        return build_schema(parameters)
    except Exception as error:
        # A hint's own class may take part in its schema, and raise anything.
        raise _no_schema(parameters, name, error) from error


def _no_schema(parameters: Sequence[Parameter], name: str, error: Exception) -> DefinitionError:
    for item in parameters:
        try:
            build_schema([item])
        except Exception as own:  # noqa: BLE001 - as in `_built`
            hint = format_hint(item.annotation)
            return DefinitionError(
                f"`{name}`: the type hint of `{item.name}`, {hint}, cannot be told to clients as a "
                f"JSON Schema{_reason(own)}: use a type that JSON has (str, float, list, ...) and "
                "convert it inside, or say what clients send, `Annotated[..., "
                "WithJsonSchema({...})]`, with a `BeforeValidator(...)` to convert it."
            )
    return DefinitionError(
        f"`{name}`: its parameters cannot be told to clients as a JSON Schema "
        f"({describe_error(error)}): simplify their type hints."
    )


def _reason(error: Exception) -> str:
    # pydantic's advice for a type that it does not know is for authors of models.
    unknown = isinstance(error, PydanticSchemaGenerationError | PydanticInvalidForJsonSchema)
    return "" if unknown else f" ({describe_error(error)})"


def _check_defaults(defaults: Mapping[str, Any], validator: SchemaValidator, name: str) -> None:
    for item, default in defaults.items():
        try:
            validator.validate_python({item: default})
        except ValidationError as error:
            # Other parameters are missing; that is not the default's fault.
            own = [
                problem["msg"]
                for problem in error.errors(include_url=False)
                if problem["loc"][:1] == (item,)
                and not _is_missing(problem["loc"], problem["type"])
            ]
            reason = own[0] if own else None
        except Exception as error:  # noqa: BLE001 - a validator of the author's may raise anything
            reason = describe_error(error)
        else:
            continue
        if reason:
            raise DefinitionError(
                f"`{name}`: the default of `{item}`, {format_value(default)}, is not what its type "
                f"hint allows ({shorten_message(reason)}): change one of them."
            )


def _is_missing(location: tuple[int | str, ...], kind: str) -> bool:
    return kind == "missing" and len(location) == 1


def _culprit(validator: SchemaValidator, arguments: Mapping[str, Any]) -> str | None:
    """Return the argument that makes a validator of the author's raise."""
    for name, value in arguments.items():
        try:
            validator.validate_python({name: value})
        except ValidationError:
            continue
        except Exception:  # noqa: BLE001 - this is what we look for
            return name
    return None
