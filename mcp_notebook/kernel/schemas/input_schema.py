"""A function's signature and docstring become a JSON Schema and a validator of arguments.

Runs in the user's kernel: schemas at definition, validation wherever a call runs; on any thread.
A schema that an earlier start stored is used in place of building it; its validator is then built
at the first call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    find_model_parameter,
    flatten_model,
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


@dataclass(frozen=True, kw_only=True)
class FunctionSchema:
    """What a function takes, for clients and for the call."""

    description: str
    """The docstring without its sections on parameters and results; may be empty."""
    input_schema: dict[str, Any]
    """JSON Schema 2020-12 of the arguments: an object, properties in the signature's order."""
    warnings: tuple[str, ...]
    """Hints for the author."""
    injected: tuple[str, ...]
    """Parameters that clients do not see, and that get a value from the call."""
    hidden: tuple[str, ...]
    """Parameters that clients do not see, and that keep their defaults."""
    _make_validator: Callable[[], SchemaValidator] = field(repr=False, compare=False)
    """Builds it at the first call, if the schema was stored."""
    _defaults: Mapping[str, Any] = field(repr=False, compare=False)
    _flat: str | None = None
    """The one parameter, if clients pass its fields."""

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function's arguments by name, defaults included.

        Raises:
            InvalidArguments: One line for each problem: the parameter, what came, what is allowed.
        """
        validator = self._make_validator()
        try:
            if self._flat is not None:
                refuse_unknown(arguments, self.input_schema)
            values = validator.validate_python(arguments)
        except ValidationError as error:
            raise InvalidArguments(explain_arguments(error, arguments, self.input_schema)) from None
        except Exception as error:
            # A validator of the author's may raise anything.
            name = _find_culprit(validator, arguments)
            raise InvalidArguments(
                f"{name or 'arguments'}: refused by a validator: {describe_error(error)}."
            ) from error
        if self._flat is not None:
            return {self._flat: values}
        # A default is passed as the author wrote it, the very object, as Python does.
        return {**self._defaults, **values}


@dataclass(frozen=True)
class _Signature:
    """What was read from a function, before anything is built from it."""

    name: str
    """What messages call the function."""
    docstring: str | None
    parameters: Sequence[HintedParameter]
    fixed: Sequence[str]
    """Parameters that a partial has given values, in order of their names."""
    has_description: bool
    """Whether its author describes it elsewhere."""

    def list_names(self, seen_as: str) -> tuple[str, ...]:
        """Return the names of the parameters that clients see, or not, for this reason."""
        return tuple(item.name for item in self.parameters if item.seen_as == seen_as)

    def make_parameters(self, texts: Mapping[str, str]) -> list[Parameter]:
        """Return the parameters that clients see.

        Args:
            texts: What the docstring says about each.
        """
        return [
            make_parameter(
                item.name,
                Any if item.hint is NO_DEFAULT else item.hint,
                item.default,
                texts.get(item.name),
            )
            for item in self.parameters
            if item.seen_as == "argument"
        ]


def read_function_schema(  # noqa: PLR0913 - each says one thing
    function: Callable[..., Any],
    *,
    name: str | None = None,
    hidden_types: tuple[type, ...] = (),
    flatten: bool = False,
    has_description: bool = False,
    cache: SchemaCache | None = None,
) -> FunctionSchema:
    """Read a function's signature and docstring.

    Args:
        function: Any callable with a signature.
        name: What messages call it; the function's own name if None.
        hidden_types: Parameters annotated with one of these are not for clients.
        flatten: Whether the fields of its one parameter, a model, are what clients pass.
        has_description: Whether its author describes it elsewhere.
        cache: Schemas of earlier starts; they are those that would be built.

    Raises:
        DefinitionError: The signature cannot be offered to clients; says which parameter and what
            to do.
    """
    name = name or find_name(function)
    signature = _Signature(
        name,
        find_docstring(function),
        read_parameters(function, name, hidden_types=hidden_types),
        sorted(list_fixed_parameters(function)),
        has_description,
    )
    if flatten:
        return _build_flat(signature)
    if cache is None or (key := _make_key(cache, signature)) is None:
        return _build(signature)
    stored = cache.get(key)
    if stored is not None:
        return _restore(stored, signature)
    schema = _build(signature)
    cache.put(
        key,
        {
            "description": schema.description,
            "input_schema": schema.input_schema,
            "warnings": schema.warnings,
        },
    )
    return schema


def _build(signature: _Signature) -> FunctionSchema:
    doc = parse_docstring(signature.docstring)
    parameters = signature.make_parameters(doc.parameters)
    schema, validator = _build_validator(parameters, signature.name)
    _check_schema(schema, signature.name)
    defaults = {item.name: item.default for item in parameters if item.default is not NO_DEFAULT}
    # A `Field(alias=...)` is what clients say.
    aliases = zip(parameters, schema["properties"], strict=True)
    published = {alias: defaults[item.name] for item, alias in aliases if item.name in defaults}
    _check_defaults(published, validator, signature.name)
    return FunctionSchema(
        description=doc.description,
        input_schema=schema,
        warnings=_list_warnings(signature, doc, doc.description),
        injected=signature.list_names("injected"),
        hidden=signature.list_names("hidden"),
        _make_validator=lambda: validator,
        _defaults=defaults,
    )


def _build_flat(signature: _Signature) -> FunctionSchema:
    doc = parse_docstring(signature.docstring)
    parameters = signature.make_parameters(doc.parameters)
    parameter = find_model_parameter(parameters, signature.name)
    try:
        flat = flatten_model(parameter, doc.parameters)
    except Exception as error:
        # A model's own code may take part in its schema, and raise anything.
        raise _make_refusal(parameters, signature.name, error) from error
    _check_schema(flat.schema, signature.name)
    description = doc.description or flat.description
    return FunctionSchema(
        description=description,
        input_schema=flat.schema,
        warnings=_list_warnings(signature, doc, description, flat.names),
        injected=signature.list_names("injected"),
        hidden=signature.list_names("hidden"),
        _make_validator=lambda: flat.validator,
        _defaults={},
        _flat=flat.name,
    )


def _restore(stored: Mapping[str, Any], signature: _Signature) -> FunctionSchema:
    @once
    def make_validator() -> SchemaValidator:
        # Without the docstring: what is said about parameters changes nothing in what they take.
        return _build_validator(signature.make_parameters({}), signature.name)[1]

    return FunctionSchema(
        description=stored["description"],
        input_schema=stored["input_schema"],
        warnings=tuple(stored["warnings"]),
        injected=signature.list_names("injected"),
        hidden=signature.list_names("hidden"),
        _make_validator=make_validator,
        _defaults={
            item.name: item.default
            for item in signature.parameters
            if item.seen_as == "argument"
            and item.default is not NO_DEFAULT
            and not isinstance(item.default, FieldInfo)
        },
    )


def _make_key(cache: SchemaCache, signature: _Signature) -> str | None:
    parts = [
        (item.name, item.seen_as, *_make_part(item.hint), *_make_part(item.default))
        if item.seen_as == "argument"
        else (item.name, item.seen_as)  # clients see nothing else of it
        for item in signature.parameters
    ]
    about = (signature.name, signature.docstring, signature.has_description, list(signature.fixed))
    return cache.key(about, parts)


def _make_part(value: Any) -> tuple[Any, ...]:
    return ("none",) if value is NO_DEFAULT else ("given", value)


def _list_warnings(
    signature: _Signature, doc: FunctionDoc, description: str, fields: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return hints for the author.

    Args:
        signature: The function's.
        doc: Its docstring.
        description: What clients read.
        fields: What clients pass, if not the function's parameters.
    """
    hints = []
    if not description and not signature.has_description:
        hints.append(f"`{signature.name}` has no docstring: say what it is for.")
    hints += [
        f"`{item.name}` has no type hint: any value is taken."
        for item in signature.parameters
        if item.hint is NO_DEFAULT
    ]
    names = {*signature.fixed, *(item.name for item in signature.parameters), *fields}
    hints += [
        f"The docstring describes `{name}`, which is not a parameter."
        for name in doc.parameters
        if name not in names
    ]
    return tuple(hints)


# -- what cannot be offered ------------------------------------------------------------------------


def _build_validator(
    parameters: Sequence[Parameter], name: str
) -> tuple[dict[str, Any], SchemaValidator]:
    try:
        return build_schema(parameters)
    except Exception as error:
        # A hint's own class may take part in its schema, and raise anything.
        raise _make_refusal(parameters, name, error) from error


def _check_schema(schema: dict[str, Any], name: str) -> None:
    if problem := find_schema_problem(schema):
        raise DefinitionError(
            f"`{name}`: what its type hints add to the JSON Schema of its parameters is not valid: "
            f"{problem}. Correct the `WithJsonSchema` or `json_schema_extra` that adds it."
        )
    if problem := find_header_problem(schema):
        raise DefinitionError(f"`{name}`: {problem}.")


def _make_refusal(parameters: Sequence[Parameter], name: str, error: Exception) -> DefinitionError:
    for item in parameters:
        try:
            build_schema([item])
        except Exception as own:  # noqa: BLE001 - as in `_build_validator`
            hint = format_hint(item.annotation)
            return DefinitionError(
                f"`{name}`: the type hint of `{item.name}`, {hint}, cannot be told to clients as a "
                f"JSON Schema{_describe_reason(own)}: use a type that JSON has (str, float, list, "
                "...) and convert it inside, or say what clients send, `Annotated[..., "
                "WithJsonSchema({...})]`, with a `BeforeValidator(...)` to convert it."
            )
    return DefinitionError(
        f"`{name}`: its parameters cannot be told to clients as a JSON Schema "
        f"({describe_error(error)}): simplify their type hints."
    )


def _describe_reason(error: Exception) -> str:
    # pydantic's advice for a type that it does not know is for authors of models.
    unknown = isinstance(error, PydanticSchemaGenerationError | PydanticInvalidForJsonSchema)
    return "" if unknown else f" ({describe_error(error)})"


def _check_defaults(defaults: Mapping[str, Any], validator: SchemaValidator, name: str) -> None:
    for item, default in defaults.items():
        try:
            validator.validate_python({item: default})
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
            raise DefinitionError(
                f"`{name}`: the default of `{item}`, {format_value(default)}, is not what its type "
                f"hint allows ({shorten_message(reason)}): change one of them."
            )


def _is_missing(location: tuple[int | str, ...], kind: str) -> bool:
    return kind == "missing" and len(location) == 1


def _find_culprit(validator: SchemaValidator, arguments: Mapping[str, Any]) -> str | None:
    """Return the argument that makes a validator of the author's raise."""
    for name, value in arguments.items():
        try:
            validator.validate_python({name: value})
        except ValidationError:
            continue
        except Exception:  # noqa: BLE001 - this is what we look for
            return name
    return None
