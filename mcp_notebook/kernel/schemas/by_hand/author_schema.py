"""Validates a tool's arguments by a JSON Schema that its author wrote.

Runs in the user's kernel: at definition, validation wherever a call runs. Replaces the schema that
`signature_to_schema` makes from a signature. The author's schema is published as given (but see
`recursion`), and the function gets the arguments as sent, by keyword, without conversion. A
``default`` in the schema is only an annotation, as in JSON Schema: an omitted argument gets the
function's default.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from pydantic_core import ValidationError

from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.by_hand import jsonschema_validator, schema_check
from mcp_notebook.kernel.schemas.comparison_limit import TooManySteps, run_limited
from mcp_notebook.kernel.schemas.docstrings import parse_docstring, shorten_description
from mcp_notebook.kernel.schemas.parameters.callables import (
    NO_DEFAULT,
    Binding,
    HintedParameter,
    find_docstring,
    read_binding,
    read_handler,
)
from mcp_notebook.kernel.schemas.parameters.markers import find_header_problem
from mcp_notebook.kernel.schemas.parameters.sent_arguments import (
    MAX_LAYERS,
    list_schema_text_places,
    misses_container,
    read_json_texts,
    refuse_infinite,
)
from mcp_notebook.kernel.schemas.schema_words import describe_schema, find_part
from mcp_notebook.kernel.schemas.secrets import list_secrets, scrub
from mcp_notebook.kernel.schemas.validation_messages import (
    MAX_LINES,
    describe_rule,
    describe_sent,
    explain_arguments,
    explain_unknown,
    find_json_error,
    format_path,
    format_value,
    get_part,
    shorten_message,
)
from mcp_notebook.text.redaction import MASK, redact_arguments

_EXTRA = frozenset({"additionalProperties", "unevaluatedProperties"})
_COMBINED = frozenset({"allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "dependentSchemas"})
_REASONS: Mapping[str | None, str] = {
    "injected": "is the handler's parameter for the `Context`",
    "hidden": "is `Hidden`",
    None: "the handler has no parameter for",
}
"""Why a schema cannot offer a parameter, by what it is to clients."""
_MAX_STEPS = 10_000
"""References that a validation follows; half a second."""
_MAX_ERRORS = 10 * MAX_LINES
"""Errors that are examined: several may be one problem."""
_MAX_BRANCHES = 5
"""Alternatives that a message explains."""


@dataclass(frozen=True)
class AuthorSchema:
    """A tool's arguments by its author's schema; has the interface of `FunctionSchema`."""

    description: str
    """The docstring of the function."""
    input_schema: dict[str, Any]
    """The input schema as the author wrote it."""
    injected: tuple[str, ...]
    """Parameters of the function that get the `Context`."""
    hidden: tuple[str, ...]
    """Parameters of the function that clients cannot set."""
    warnings: tuple[str, ...]
    """Hints for the author."""
    binding: Binding
    """How the function takes its arguments."""
    _argument_names: frozenset[str] | None = field(repr=False, compare=False)
    _validator: Any = field(repr=False, compare=False)
    bound: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[HintedParameter, ...] = ()
    """These four, of `FunctionSchema`, are empty: the schema says what each parameter gets."""

    def prepare(self) -> None:
        """Do nothing: the validator was built at definition."""

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function's arguments by name, as sent.

        JSON within a string is parsed where the schema allows no text.

        Raises:
            InvalidArguments: One line for each problem: the parameter, its value, what is allowed.
        """
        try:
            arguments, errors = run_limited(self._find_errors, dict(arguments), _MAX_STEPS)
            lines = self._explain(errors, arguments)
            extra = {*self.hidden} & arguments.keys()
            if self._argument_names is not None:
                extra |= arguments.keys() - self._argument_names
            if not lines:
                # The schema allows other names, but the function does not.
                names = heapq.nsmallest(MAX_LINES + 1, extra)
                lines = [explain_unknown((name,), self.input_schema) for name in names]
        except ValidationError as error:
            raise InvalidArguments(explain_arguments(error, arguments, self.input_schema)) from None
        except TooManySteps as error:
            lines = [str(error)]
        except RecursionError:
            lines = ["arguments: nested too deeply; send less deeply nested values."]
        except Exception as error:
            # For example, a number beyond the range of floats.
            raise InvalidArguments(
                f"arguments: cannot be validated by the schema ({type(error).__name__}: "
                f"{shorten_message(str(error))})."
            ) from error
        if len(lines) > MAX_LINES:
            lines[MAX_LINES:] = ["... and more problems."]
        if lines:
            raise InvalidArguments("\n".join(lines))
        return dict(arguments)

    def _explain(self, errors: list[Any], arguments: dict[str, Any]) -> list[str]:
        """Return a line for each problem, at most `MAX_LINES` + 1."""
        if not errors:
            return []
        visible = redact_arguments(self.input_schema, arguments)
        every = chain.from_iterable(_explain_error(e, self.input_schema, visible) for e in errors)
        secrets = list_secrets(self.input_schema, arguments)
        lines = dict.fromkeys(islice(every, _MAX_ERRORS))
        return [scrub(line, secrets) for line in islice(lines, MAX_LINES + 1)]

    def _find_errors(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """Return the arguments, with JSON in strings parsed if necessary, and the other errors."""
        errors: list[Any] = []
        for _ in range(MAX_LAYERS):
            refuse_infinite(arguments)
            every = jsonschema_validator.find_errors(self._validator, arguments)
            errors = list(islice(every, _MAX_ERRORS))
            read = read_json_texts(arguments, list_schema_text_places(errors))
            if read is None:
                break
            arguments = read
        return arguments, errors


def read_author_schema(
    function: Callable[..., Any],
    schema: Any,
    tool: str,
    *,
    hidden_types: tuple[type, ...] = (),
) -> AuthorSchema:
    """Check a schema, and that the function takes the arguments that it describes.

    Args:
        function: The tool's function.
        schema: As the author wrote it.
        tool: Name of the tool, for messages.
        hidden_types: Parameters annotated with one of these are not for clients.

    Raises:
        DefinitionError: The schema cannot be used, or the function does not take its arguments.
    """
    plain = schema_check.check_schema(schema, tool, "input_schema")
    if problem := find_header_problem(plain):
        raise DefinitionError(f"`{tool}`: {problem}.")
    parameters, is_open = read_handler(function, tool, hidden_types=hidden_types)
    _check_fit(parameters, plain, tool, is_open=is_open)
    doc = parse_docstring(find_docstring(function))
    description, notes = shorten_description(doc.description)
    seen = {item.name: item.seen_as for item in parameters}
    return AuthorSchema(
        description,
        plain,
        tuple(name for name in seen if seen[name] == "injected"),
        tuple(name for name in seen if seen[name] == "hidden"),
        notes,
        read_binding(function, offers_rest=False),
        None if is_open else frozenset(name for name in seen if seen[name] == "argument"),
        jsonschema_validator.make_validator(plain),
    )


def _check_fit(
    parameters: Sequence[HintedParameter], schema: Mapping[str, Any], tool: str, *, is_open: bool
) -> None:
    seen = {item.name: item.seen_as for item in parameters}
    for name, item in schema.get("properties", {}).items():
        reason = _REASONS.get(seen.get(name))
        if item is False or reason is None or (is_open and name not in seen):
            continue
        raise DefinitionError(
            f"`{tool}`: `input_schema` offers `{name}`, which {reason}: change one of them."
        )
    if _COMBINED & schema.keys():
        return  # these may require it
    for item in parameters:
        is_required = item.default is NO_DEFAULT and item.seen_as != "injected"
        if is_required and item.name not in schema.get("required", ()):
            raise DefinitionError(
                f"`{tool}`: the handler requires `{item.name}`, but `input_schema` makes it "
                f'optional: add it to `"required"`, or give the parameter a default.'
            )


# -- messages --------------------------------------------------------------------------------------


def _explain_error(error: Any, root: Mapping[str, Any], shown: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about an error; `shown` are the arguments without secrets."""
    path, keyword, value = tuple(error.absolute_path), error.validator, error.instance
    visible = get_part(shown, path)
    came = f"{format_path(path)}: {describe_sent(visible, value)}"
    if "propertyNames" in error.absolute_schema_path:
        name = MASK if visible == MASK else format_value(value)
        came = f"{format_path(path)}: got the key {name}"
    if misses_container(error) and visible != MASK and (broken := find_json_error(value)):
        came = f"{came}; {broken}"
    if error.schema is False:
        extra = set(list(error.absolute_schema_path)[-1:]) & _EXTRA
        yield explain_unknown(path, root) if extra else f"{came}; not allowed here."
    elif keyword == "required":
        for name in error.validator_value:
            if name not in value:
                missing = (*path, name)
                allowed = describe_schema(find_part(missing, root), root)
                yield f"{format_path(missing)}: missing; allowed: {allowed}."
    elif keyword in ("anyOf", "oneOf"):
        reason = _describe_branches(error, root, shown)
        yield f"{came}; {reason}." if path else f"arguments: {reason}."
    else:
        yield f"{came}; {describe_rule(error, root)}."


def _describe_branches(error: Any, root: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Return the alternatives, or why none of them matches."""
    options = error.schema[error.validator]
    if not error.context:
        return f"it matches several of the {len(options)} alternatives, but may match only one"
    if all(isinstance(option, dict) and _is_plain(option) for option in options):
        return f"allowed: {describe_schema({'anyOf': options}, root)}"
    first = {cause.schema_path[0]: cause for cause in reversed(error.context) if cause.schema_path}
    lines = {next(_explain_error(cause, root, shown)): None for _, cause in sorted(first.items())}
    listed = [line.removesuffix(".") for line in lines]
    rest = "; or ..." if len(listed) > _MAX_BRANCHES else ""
    return f"correct one of these: {'; or '.join(listed[:_MAX_BRANCHES])}{rest}"


def _is_plain(schema: Mapping[str, Any]) -> bool:
    return bool({"type", "const", "enum"} & schema.keys()) and schema.get("type") != "object"
