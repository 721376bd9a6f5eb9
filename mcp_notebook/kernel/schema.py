"""A function's signature and docstring become a JSON Schema and a validator.

Runs in the user's kernel: at definition on the main thread, validation wherever the call runs. The
schema is JSON Schema 2020-12 as pydantic makes it, with an object at its root; arguments are taken
as they come over JSON (a date as text, a set as a list, ``"5"`` for an integer, since models write
that), but a bool is no number and no text is a bool. What a tool is and who calls it is
`kernel.tools`' and `kernel.invoke`'s business.
"""

import difflib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Optional, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError
from pydantic import create_model as pydantic_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, PydanticJsonSchemaWarning
from pydantic_core import ErrorDetails, PydanticCustomError

from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.annotations import portable
from mcp_notebook.kernel.docstrings import function_doc

MAX_SHOWN = 80
"""Characters of a wrong value that a message repeats."""
_MISSING = inspect.Parameter.empty


@dataclass(frozen=True)
class FunctionSchema:
    """What a function takes, for clients and for the call."""

    description: str
    """The docstring's text without its sections; "" if there is none."""
    input_schema: dict[str, Any]
    """JSON Schema 2020-12 of the arguments, an object."""
    warnings: tuple[str, ...]
    """What the author should know."""
    injected: tuple[str, ...]
    """Parameters that clients do not see."""
    _model: type[BaseModel]
    _defaults: Mapping[str, Any]

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function's arguments by name, defaults included.

        Raises:
            InvalidArguments: One line for each problem: the parameter, what came, what is allowed.
        """
        try:
            valid = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise InvalidArguments(self._explain(error)) from None
        except Exception as error:
            # A validator of the author's may raise anything.
            raise InvalidArguments(
                f"The arguments were refused: {type(error).__name__}: {error}."
            ) from error
        given = {
            field.alias: getattr(valid, name)
            for name, field in type(valid).model_fields.items()
            if name in valid.model_fields_set and field.alias
        }
        # A default is passed as the author wrote it, the very object, as Python does.
        return {**self._defaults, **given}

    def _explain(self, error: ValidationError) -> str:
        properties = self.input_schema.get("properties", {})
        lines: dict[str, None] = {}
        for problem in error.errors(include_url=False):
            name = str(problem["loc"][0]) if problem["loc"] else ""
            lines[_problem_line(problem, name, properties, self.input_schema)] = None
        return "\n".join(lines)


def function_schema(
    function: Callable[..., Any], *, hidden_types: tuple[type, ...] = ()
) -> FunctionSchema:
    """Read a function's signature and docstring.

    Args:
        function: Any callable with a signature.
        hidden_types: Parameters annotated with one of these are not for clients.

    Raises:
        DefinitionError: The signature cannot be offered to clients; says which parameter and what
            to do.
    """
    name = getattr(function, "__name__", None) or type(function).__name__
    parameters = _parameters(function, name)
    hints = _hints(function, name)
    doc = function_doc(_plain(function))
    notes = [] if doc.description else [f"`{name}` has no docstring: say what it is for."]
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    injected = []
    for position, parameter in enumerate(parameters):
        annotation = portable(hints.get(parameter.name, _MISSING))
        if isinstance(annotation, type) and issubclass(annotation, hidden_types):
            injected.append(parameter.name)
            continue
        if annotation is _MISSING:
            annotation = Any
            notes.append(f"`{parameter.name}` has no type hint: any value is taken.")
        if parameter.default is not _MISSING:
            defaults[parameter.name] = parameter.default
        fields[f"arg{position}"] = _field(
            parameter, annotation, doc.parameters.get(parameter.name), name
        )
    model = _build(name, fields)
    unknown = set(doc.parameters) - {parameter.name for parameter in parameters}
    notes += [
        f"The docstring describes `{item}`, which is no parameter." for item in sorted(unknown)
    ]
    schema = _json_schema(model, name)
    return FunctionSchema(doc.description, schema, tuple(notes), tuple(injected), model, defaults)


def allowed_values(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Say in a few words what a JSON Schema allows.

    Args:
        schema: The schema, or a part of one.
        root: The whole schema, for its ``$defs``.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = root.get("$defs", {}).get(name, {})
        return allowed_values(target, root) if "enum" in target else name
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return " | ".join(repr(value) for value in schema["enum"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return " | ".join(allowed_values(option, root) for option in options)
    kind = str(schema.get("format") or schema.get("type") or "any value")
    if kind == "array" and isinstance(schema.get("items"), dict) and schema["items"]:
        kind = f"array of {allowed_values(schema['items'], root)}"
    return kind + _bounds(schema)


# -- the signature ---------------------------------------------------------------------------------


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function behind partials, methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not inspect.isroutine(function) and not inspect.isclass(function):
            function = type(function).__call__
        else:
            return function


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise DefinitionError(
            f"`{name}` does not tell its parameters (it is not written in Python). Wrap it in a "
            "function: `def my_tool(...): return ...`."
        ) from None
    bound = function.keywords if isinstance(function, functools.partial) else {}
    found = []
    for parameter in signature.parameters.values():
        if parameter.name in bound:
            continue  # fixed by the partial
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise DefinitionError(
                f"`{name}`: the parameter `{parameter.name}` is positional-only, but clients pass "
                "arguments by name. Remove the `/` from the signature."
            )
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise DefinitionError(
                f"`{name}`: clients cannot be told what `{stars}{parameter.name}` takes. Give each "
                "argument a parameter of its own, or take one `dict` or `list`."
            )
        found.append(parameter)
    return found


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    plain = _plain(function)
    try:
        return get_type_hints(plain, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"`{name}`: a type hint names `{error.name}`, which is not defined (yet). Run the cell "
            "that defines or imports it first."
        ) from None
    except (TypeError, SyntaxError, AttributeError) as error:
        raise DefinitionError(f"`{name}`: a type hint cannot be read: {error}.") from None


def _field(
    parameter: inspect.Parameter, annotation: Any, documented: str | None, function: str
) -> tuple[Any, Any]:
    """Return the pydantic field of a parameter; its name is an alias, so any name will do."""
    base, extras = annotation, []
    if get_origin(annotation) is Annotated:
        base, *extras = get_args(annotation)
    texts = [extra for extra in extras if isinstance(extra, str)]
    described = any(isinstance(extra, FieldInfo) and extra.description for extra in extras)
    field = Field(alias=parameter.name)
    if not described and (texts or documented):
        field = Field(alias=parameter.name, description=texts[0] if texts else documented)
    default = parameter.default
    if default is None and not _takes_none(base):
        base = Optional[base]  # what the author means, and type checkers used to take  # noqa: UP045
    kept = [extra for extra in extras if not isinstance(extra, str)]
    full: Any = Annotated[(base, *kept, *_checks(base), field)]
    if default is _MISSING:
        return full, ...
    _check_default(default, full, parameter.name, function)
    return full, default


def _takes_none(annotation: Any) -> bool:
    return annotation in (None, type(None), Any) or type(None) in get_args(annotation)


def _checks(base: Any) -> list[Any]:
    options = get_args(base) if get_args(base) and type(None) in get_args(base) else (base,)
    if bool in options:
        return [Strict()] if base is bool else []
    if int in options or float in options:
        return [BeforeValidator(_no_bool)]
    return []


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "a bool is no number")
    return value


def _check_default(default: Any, annotation: Any, parameter: str, function: str) -> None:
    model = _build(function, {"value": (annotation, ...)})
    try:
        model.model_validate({parameter: default})
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise DefinitionError(
            f"`{function}`: the default of `{parameter}`, {_shown(default)}, is not what its type "
            f"hint allows: {reason}. Change one of them."
        ) from None


def _build(function: str, fields: dict[str, Any]) -> type[BaseModel]:
    try:
        return pydantic_model(
            "Arguments",
            __config__=ConfigDict(extra="forbid", protected_namespaces=()),
            **fields,
        )
    except (PydanticUserError, TypeError, ValueError) as error:
        raise _no_schema(function, fields, error) from None


def _no_schema(function: str, fields: dict[str, Any], error: Exception) -> DefinitionError:
    culprit = ""
    for annotation, _ in fields.values():
        try:
            pydantic_model("Probe", value=(annotation, ...)).model_json_schema()
        except (PydanticUserError, TypeError, ValueError):
            extras = get_args(annotation)
            alias = next(
                extra.alias for extra in extras if isinstance(extra, FieldInfo) and extra.alias
            )
            shown = getattr(extras[0], "__name__", str(extras[0]))
            culprit = f" of `{alias}`, `{shown}`,"
            break
    reason = str(error).splitlines()[0].rstrip(".")
    return DefinitionError(
        f"`{function}`: the type hint{culprit} cannot be told to clients as a JSON Schema "
        f"({reason}). Use a plain type (str, float, list...) and convert inside, or say the "
        "schema: `Annotated[..., WithJsonSchema({...})]`."
    )


# -- the schema ------------------------------------------------------------------------------------


class _Generator(GenerateJsonSchema):
    """pydantic's schemas without the titles that only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def _json_schema(model: type[BaseModel], function: str) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            # A default without a JSON form is left out of the schema; it works all the same.
            warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
            schema = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    except (PydanticUserError, ValueError, TypeError) as error:
        fields = {
            name: (Annotated[(field.annotation, *field.metadata, field)], ...)
            for name, field in model.model_fields.items()
        }
        raise _no_schema(function, fields, error) from None
    schema.pop("title", None)
    return {"type": "object", "properties": {}, **schema}


# -- messages --------------------------------------------------------------------------------------


def _problem_line(
    problem: ErrorDetails, name: str, properties: Mapping[str, Any], root: Mapping[str, Any]
) -> str:
    path = ".".join(str(part) for part in problem["loc"] if not _is_branch(part))
    if problem["type"] == "extra_forbidden" and name not in properties:
        close = difflib.get_close_matches(name, properties, 1)
        known = f"Did you mean `{close[0]}`?" if close else f"Known: {_listed(properties)}."
        return f"{path}: there is no such parameter. {known}"
    allowed = allowed_values(properties.get(name, {}), root)
    if problem["type"] == "missing":
        return f"{path}: is missing. Allowed: {allowed}."
    came = f"got {_shown(problem['input'])} ({_json_type(problem['input'])})"
    message = problem["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{path}: {came}; {message}. Allowed: {allowed}."


def _is_branch(part: int | str) -> bool:
    """Tell whether a part of a location is pydantic's name for a branch of a union."""
    return isinstance(part, str) and ("[" in part or part in ("int", "float", "str", "bool"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none, the tool takes no arguments"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _json_type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def _bounds(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
        "multipleOf": "a multiple of",
        "minLength": "length at least",
        "maxLength": "length at most",
        "minItems": "items at least",
        "maxItems": "items at most",
        "pattern": "matching",
    }
    said = [f"{words[key]} {value}" for key, value in schema.items() if key in words]
    return f" ({', '.join(said)})" if said else ""
