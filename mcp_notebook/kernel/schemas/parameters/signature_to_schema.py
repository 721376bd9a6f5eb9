"""A function's signature becomes a JSON Schema and a validator of arguments: start reading here.

`read_function_schema`, when the tool is declared:

1. `callables` reads parameters and type hints. `annotations` evaluates hints that are strings and
   translates those that pydantic does not know. `docstrings` provides the descriptions. It and
   `unhinted` provide the types of parameters without a hint.
2. `schema_cache` may hold the schema from an earlier start. Its validator is then built at the
   first call.
3. `pydantic_validator` makes one TypedDict of all parameters: `tables` adds the types of the data
   libraries, `argument_rules` tightens pydantic's rules, and `pydantic_json_schemas` writes the
   JSON Schema. `flatten` does the same for the fields of a model.
4. A type that no client could use is refused, in a sentence that names the parameter.

`FunctionSchema.validate`, wherever a call runs:

1. If all parameters are numbers, strings or bools, pydantic compares the arguments with exactly
   these types. Most calls end here.
2. Otherwise `sent_arguments` refuses NaN and infinity, and the validator converts the arguments
   within `comparison_limit`.
3. If that fails, JSON in strings is parsed, and step 2 repeated; then `validation_messages`
   describes the problems.

Callers pass the result to `Binding.bind` (`callables`). Runs in the user's kernel, on any thread.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache as once
from functools import cached_property
from itertools import chain, count
from typing import Any

from msgspec import structs
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator

from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.comparison_limit import TooManySteps, run_limited
from mcp_notebook.kernel.schemas.docstrings import (
    FunctionDoc,
    list_library_words,
    parse_docstring,
    read_documented_type,
    shorten_description,
)
from mcp_notebook.kernel.schemas.parameters.bound_objects import (
    describe_way,
    is_compared,
    is_object,
)
from mcp_notebook.kernel.schemas.parameters.callables import (
    NO_DEFAULT,
    Binding,
    HintedParameter,
    Omitted,
    changes_arguments,
    find_callable_namespace,
    find_docstring,
    find_name,
    find_open_keywords,
    is_library_code,
    list_fixed_parameters,
    read_binding,
    read_parameters,
    read_source,
)
from mcp_notebook.kernel.schemas.parameters.flatten import (
    find_model_parameter,
    flatten_model,
)
from mcp_notebook.kernel.schemas.parameters.pydantic_validator import (
    ArgumentSchema,
    NoSchema,
    Parameter,
    build_validator,
    check_defaults,
    check_schema,
    make_parameter,
    make_refusal,
)
from mcp_notebook.kernel.schemas.parameters.sent_arguments import (
    MAX_LAYERS,
    list_text_places,
    read_json_texts,
    refuse_infinite,
)
from mcp_notebook.kernel.schemas.parameters.unhinted import (
    BodyHint,
    find_body_hints,
    find_default_hint,
)
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.schemas.secrets import list_secrets, scrub
from mcp_notebook.kernel.schemas.validation_messages import (
    explain_arguments,
    find_many_unknown,
)
from mcp_notebook.text.wording import spell_ascii

_MAX_LISTED = 50_000
"""Problems that are explained one by one: pydantic takes seconds to list a million."""
_MAX_STEPS = 50_000
"""Steps of a validation by recursive types; a tenth of a second."""
_MAX_NAME = 64
"""Characters that models' APIs accept in a parameter's name."""
_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{_MAX_NAME}}}")
_STORED = ("description", "input_schema", "warnings", "untyped")
"""Fields of a schema that are cached for later starts."""


@dataclass(frozen=True, kw_only=True)
class FunctionSchema:
    """A function's parameters, for clients and for the call."""

    description: str
    """The docstring without its sections on parameters and results; may be empty."""
    input_schema: dict[str, Any]
    """JSON Schema 2020-12 of the arguments: an object, properties in the signature's order."""
    warnings: tuple[str, ...]
    """Hints for the author."""
    untyped: tuple[str, ...]
    """Parameters whose type nothing says."""
    parameters: Sequence[HintedParameter]
    """All parameters of the function."""
    binding: Binding
    """How the function takes its arguments."""
    _load: Callable[[], ArgumentSchema] = field(repr=False, compare=False)
    """Returns the validator; builds it at the first call if the schema was stored."""
    _defaults: Mapping[str, Any] = field(repr=False, compare=False)
    _flat: str | None = None
    """The one parameter, if clients pass the fields of its model."""

    @cached_property
    def injected(self) -> tuple[str, ...]:
        """Parameters that clients do not see, and that get the `Context` of the call."""
        return self._list_names("injected")

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Parameters that clients do not see, and that keep their default."""
        return self._list_names("hidden")

    @cached_property
    def bound(self) -> tuple[str, ...]:
        """Parameters that clients do not see, and that get the variable of their name."""
        return self._list_names("bound")

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The names that clients know, by the function's own names that they cannot use."""
        pairs = zip(self._list_names("argument"), self.input_schema["properties"], strict=False)
        changed = {own: name for own, name in pairs if own != name and not _NAME.fullmatch(own)}
        return {} if self._flat else changed

    def _list_names(self, seen_as: str) -> tuple[str, ...]:
        return tuple(item.name for item in self.parameters if item.seen_as == seen_as)

    def prepare(self) -> None:
        """Build the validator, which is done once.

        Raises:
            DefinitionError: It cannot be built.
        """
        self._load()

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function's arguments by name, defaults included.

        Raises:
            InvalidArguments: One line for each problem: the parameter, what came, what is allowed.
        """
        validator = self._load().validator
        if self.input_schema.get("additionalProperties") is False and (
            problems := find_many_unknown(arguments, self.input_schema)
        ):
            raise InvalidArguments(problems)
        values = self._check(validator, arguments, MAX_LAYERS)
        if self._flat is not None:
            return {self._flat: values}
        # A default is passed as the author wrote it, the very object, as Python does.
        return {**self._defaults, **values}

    def _check(self, validator: SchemaValidator, arguments: Mapping[str, Any], layers: int) -> Any:
        try:
            refuse_infinite(arguments)
            return run_limited(validator.validate_python, arguments, _MAX_STEPS)
        except TooManySteps as error:
            raise InvalidArguments(str(error)) from None
        except ValidationError as error:
            if error.error_count() > _MAX_LISTED:
                text = f"arguments: {error.error_count():,} of their values are not allowed."
                raise InvalidArguments(text) from None
            read = read_json_texts(arguments, list_text_places(error, arguments))
            if read is None or not layers:
                text = explain_arguments(error, arguments, self.input_schema)
                raise InvalidArguments(text) from None
        except Exception as error:
            # A validator of the author's may raise anything.
            name = _find_culprit(validator, arguments)
            text = f"{name or 'arguments'}: refused by a validator: {describe_error(error)}."
            secrets = list_secrets(self.input_schema, arguments)
            raise InvalidArguments(scrub(text, secrets)) from error
        return self._check(validator, read, layers - 1)


def _find_culprit(validator: SchemaValidator, arguments: Mapping[str, Any]) -> str | None:
    """Return the name of the argument for which the author's validator raises, if there is one."""
    for name, value in arguments.items():
        try:
            validator.validate_python({name: value})
        except ValidationError:
            continue
        except Exception:  # noqa: BLE001 - the author's code
            return name
    return None


@dataclass(frozen=True)
class _Signature:
    """A function's signature and docstring, before a schema is built from them."""

    name: str
    """The function's name in messages."""
    docstring: str | None
    parameters: Sequence[HintedParameter]
    fixed: Sequence[str]
    """Parameters that a partial has bound, sorted by name."""
    has_description: bool
    """Whether the author has given a description besides the docstring."""
    binding: Binding
    is_library: bool
    """Whether it belongs to an installed library, so that the tool's author cannot change it."""
    open_keywords: str | None
    """Its ``**kwargs``."""
    library_words: Mapping[str, Any]
    """Names in docstrings for types of data libraries."""
    is_tool: bool
    """Whether models' APIs get the names of its parameters."""
    bodies: Mapping[str, BodyHint]
    """What the function's body shows of parameters about which nothing else says anything."""

    @cached_property
    def doc(self) -> FunctionDoc:
        """Its docstring, parsed."""
        return parse_docstring(self.docstring)

    def list_arguments(self) -> list[HintedParameter]:
        """Return the parameters that clients see."""
        return [item for item in self.parameters if item.seen_as == "argument"]

    def make_parameters(self, texts: Mapping[str, str]) -> list[Parameter]:
        """Return the parameters that clients see.

        Args:
            texts: The docstring's description of each.
        """
        aliases = self._choose_aliases()
        return [
            make_parameter(
                item.name,
                self._find_hint(item),
                item.default,
                texts.get(item.name),
                aliases.get(item.name),
            )
            for item in self.list_arguments()
        ]

    def _choose_aliases(self) -> dict[str, str]:
        """Return names for clients of parameters whose own names models' APIs would refuse."""
        aliases: dict[str, str] = {}
        names = [item.name for item in self.list_arguments()]
        taken = set(names)
        for name in names if self.is_tool else ():
            spelled = spell_ascii(name)[:_MAX_NAME]
            if _NAME.fullmatch(name) or not _NAME.fullmatch(spelled):
                continue
            numbered = (f"{spelled[: _MAX_NAME - 4]}_{number}" for number in count(2))
            aliases[name] = next(each for each in chain([spelled], numbered) if each not in taken)
            taken.add(aliases[name])
        return aliases

    def list_untyped(self) -> tuple[str, ...]:
        """Return the parameters that take any value, as neither hint nor docstring has a type."""
        hints = {i.name: self._find_hint(i) for i in self.list_arguments() if i.hint is NO_DEFAULT}
        return tuple(
            name for name, hint in hints.items() if getattr(hint, "__origin__", hint) is Any
        )

    def bind(self, variables: Mapping[str, Any], function: Callable[..., Any]) -> "_Signature":
        """Return it with the parameters bound for which the notebook has an object.

        Args:
            variables: Those of the notebook.
            function: Its own.
        """
        parameters = [
            structs.replace(item, seen_as="bound")
            if is_object(variables.get(item.name))
            and self._needs(item, variables[item.name], function)
            else item
            for item in self.parameters
        ]
        bodies = {
            item.name: self.bodies[item.name]
            for item in parameters
            if item.seen_as == "argument" and self._is_by_body(item)
        }
        return replace(self, parameters=parameters, bodies=bodies)

    def _is_by_body(self, item: HintedParameter) -> bool:
        """Return whether only the function's body shows the type of a parameter."""
        body = self.bodies.get(item.name)
        return body is not None and self._find_hint(item) is body.hint

    def _needs(self, item: HintedParameter, value: Any, function: Callable[..., Any]) -> bool:
        """Return whether a parameter can only be such an object."""
        if item.seen_as != "argument" or item.default is not NO_DEFAULT:
            return False
        if item.hint is NO_DEFAULT:
            # The docstring's type; the body tells what the object may be as well.
            if changes_arguments(function) or is_compared(read_source(function), item.name):
                return False
            return self._is_by_body(item) or self._find_hint(item) in (Any, type(value))
        try:
            build_validator([make_parameter(item.name, item.hint, NO_DEFAULT)], self.name)
        except DefinitionError:
            return True
        return False

    def _find_hint(self, item: HintedParameter) -> Any:
        """Return a parameter's type hint, or the type that something else says."""
        if item.hint is not NO_DEFAULT:
            return item.hint
        text = self.doc.types.get(item.name, "")
        try:
            hint = read_documented_type(text, self.library_words)
            if item.default is not NO_DEFAULT:
                parameter = make_parameter(item.name, hint, item.default)
                built = build_validator([parameter], self.name)
                check_defaults({item.name: item.default}, built, self.name)
        except (ValueError, DefinitionError):
            if item.name in self.bodies:
                return self.bodies[item.name].hint
            # The author of a tool cannot give a library's function a hint that says more.
            return Any if self.is_library else find_default_hint(item.default, text)
        return hint


def read_function_schema(  # noqa: PLR0913 - each says one thing
    function: Callable[..., Any],
    *,
    name: str | None = None,
    hidden_types: tuple[type, ...] = (),
    variables: Mapping[str, Any] | None = None,
    flatten: bool = False,
    has_description: bool = False,
    is_tool: bool = True,
    cache: SchemaCache | None = None,
) -> FunctionSchema:
    """Read a function's signature and docstring.

    Args:
        function: Any callable with a signature.
        name: What messages call it; the function's own name if None.
        hidden_types: Parameters annotated with one of these are not for clients.
        variables: The notebook's, whose objects parameters of their names get.
        flatten: Whether clients pass the fields of its one parameter, a model.
        has_description: Whether the author has given a description besides the docstring.
        is_tool: Whether models' APIs get the names of its parameters.
        cache: Schemas of earlier starts.

    Raises:
        DefinitionError: The signature cannot be offered to clients; says which parameter and what
            to do.
    """
    name = name or find_name(function)
    parameters = read_parameters(function, name, hidden_types=hidden_types)
    is_library = is_library_code(function)
    words = list_library_words(find_callable_namespace(function))
    unknown = [
        item.name
        for item in parameters
        if item.hint is NO_DEFAULT and (item.default is NO_DEFAULT or item.default is None)
    ]
    signature = _Signature(
        name,
        find_docstring(function),
        parameters,
        sorted(list_fixed_parameters(function)),
        has_description,
        read_binding(function),
        is_library,
        find_open_keywords(function),
        words,
        is_tool,
        find_body_hints(function, [] if is_library else unknown, words),
    ).bind(variables or {}, function)
    if flatten:
        return _build_flat(signature)
    if cache is None or (key := _make_key(cache, signature)) is None:
        return _build(signature)
    stored = cache.get(key)
    if stored is not None:
        return _restore(stored, signature)
    schema = _build(signature)
    cache.put(key, {name: getattr(schema, name) for name in _STORED})
    return schema


def check_parameter_names(schema: Mapping[str, Any], name: str) -> None:
    """Refuse a tool with a parameter whose name models' APIs would not accept.

    Raises:
        DefinitionError: Names the parameter.
    """
    for parameter in schema.get("properties", {}):
        if not _NAME.fullmatch(parameter):
            raise DefinitionError(
                f"`{name}`: {parameter!r} cannot be a parameter's name: models' APIs accept 1 to "
                f"{_MAX_NAME} ASCII letters, digits, `_`, `.` and `-`, and reject all tools if one "
                "name is invalid. Rename it, or name it for clients: "
                "`Annotated[..., Field(alias='english_name')]`."
            )


def _build(signature: _Signature) -> FunctionSchema:
    doc = signature.doc
    parameters = signature.make_parameters(doc.parameters)
    try:
        built = build_validator(parameters, signature.name, is_library=signature.is_library)
    except NoSchema as error:
        way = describe_way(signature.name, signature.parameters, [error.parameter])
        raise DefinitionError(f"{error} Is it an object of the notebook? {way}") from error
    check_schema(built.schema, signature.name)
    defaults = {item.name: item.default for item in parameters if item.default is not NO_DEFAULT}
    # A `Field(alias=...)` is what clients say.
    names = [item.name for item in parameters]
    aliases = dict(zip(names, built.schema["properties"], strict=True))
    published = {aliases[name]: default for name, default in defaults.items()}
    if not signature.is_library:
        check_defaults(published, built, signature.name)
    return FunctionSchema(
        description=shorten_description(doc.description)[0],
        input_schema=built.schema,
        warnings=(*_list_warnings(signature, doc.description), *built.notes),
        untyped=signature.list_untyped(),
        parameters=signature.parameters,
        binding=signature.binding,
        _load=lambda: built,
        _defaults=defaults,
    )


def _build_flat(signature: _Signature) -> FunctionSchema:
    doc = signature.doc
    parameters = signature.make_parameters(doc.parameters)
    parameter = find_model_parameter(parameters, signature.name)
    try:
        built, model_doc = flatten_model(parameter, doc.parameters)
    except Exception as error:
        # A model's own code may take part in its schema, and raise anything.
        raise make_refusal(parameters, signature.name, error) from error
    check_schema(built.schema, signature.name)
    description = doc.description or model_doc
    return FunctionSchema(
        description=shorten_description(description)[0],
        input_schema=built.schema,
        warnings=_list_warnings(signature, description, built.schema["properties"]),
        untyped=signature.list_untyped(),
        parameters=signature.parameters,
        binding=signature.binding,
        _load=lambda: built,
        _defaults={},
        _flat=parameter.name,
    )


def _restore(stored: Mapping[str, Any], signature: _Signature) -> FunctionSchema:
    @once
    def build() -> ArgumentSchema:
        # Without the docstring: descriptions change nothing about what parameters take.
        parameters = signature.make_parameters({})
        return build_validator(parameters, signature.name, is_library=signature.is_library)

    return FunctionSchema(
        description=stored["description"],
        input_schema=stored["input_schema"],
        warnings=tuple(stored["warnings"]),
        untyped=tuple(stored["untyped"]),
        parameters=signature.parameters,
        binding=signature.binding,
        _load=build,
        _defaults={
            item.name: item.default
            for item in signature.list_arguments()
            if item.default is not NO_DEFAULT and not isinstance(item.default, FieldInfo | Omitted)
        },
    )


def _make_key(cache: SchemaCache, signature: _Signature) -> str | None:
    parts = [
        (item.name, item.seen_as, *_make_part(item.hint), *_make_part(item.default))
        if item.seen_as == "argument"
        else (item.name, item.seen_as)  # clients see nothing else of it
        for item in signature.parameters
    ]
    about = (
        *(signature.name, signature.docstring, signature.has_description, list(signature.fixed)),
        *(signature.is_library, signature.open_keywords, signature.is_tool),
        _list_meanings(signature),
    )
    return cache.key(about, parts)


def _list_meanings(signature: _Signature) -> list[str]:
    """Return what stands for type hints: the body, and words whose meaning depends on imports."""
    if all(item.hint is not NO_DEFAULT for item in signature.parameters):
        return []
    shown = [f"{name}: {body.becomes}, {body.seen}" for name, body in signature.bodies.items()]
    return sorted([*(f"{word}: {kind}" for word, kind in signature.library_words.items()), *shown])


def _make_part(value: Any) -> tuple[Any, ...]:
    return ("none",) if value is NO_DEFAULT else ("given", value)


def _describe_unknown_names(parameters: Iterable[HintedParameter]) -> Iterator[str]:
    """Yield one warning about type hints with names that the function's module does not define."""
    unknown = [item for item in parameters if item.unknown_names]
    if unknown:
        names = dict.fromkeys(name for item in unknown for name in item.unknown_names)
        yield (
            f"Its module does not define {', '.join(f'`{name}`' for name in names)}: any value is "
            "accepted where a type hint uses them "
            f"(of {', '.join(f'`{item.name}`' for item in unknown)})."
        )


def _list_warnings(
    signature: _Signature, description: str, fields: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return hints for the author.

    Args:
        signature: The function's.
        description: What clients read.
        fields: What clients pass, if not the function's parameters.
    """
    hints = []
    if not description and not signature.has_description:
        hints.append(f"`{signature.name}` has no docstring: say what it is for.")
    hints += shorten_description(description)[1]
    hints += [
        f"`{name}` has no type hint: lists become {body.becomes}, as the body has `{body.seen}`."
        for name, body in signature.bodies.items()
    ]
    hints += _describe_unknown_names(signature.parameters)
    if signature.open_keywords:
        hints.append(
            f"Clients do not see `**{signature.open_keywords}` and cannot use it: declare a "
            "parameter for each argument that they should be able to pass."
        )
    parameters = (item.name for item in signature.parameters)
    names = {signature.open_keywords, *signature.fixed, *parameters, *fields}
    hints += [
        f"The docstring describes `{name}`, which is not a parameter."
        for name in signature.doc.parameters
        if name not in names
    ]
    return tuple(hints)
