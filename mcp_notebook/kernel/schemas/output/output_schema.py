"""Output schemas: the structure of a tool's results, and the conversion of each result to match.

Runs in the user's kernel: `make_output_schema` at definition, on the thread that declares the tool;
`OutputSchema` wherever a call ran. It is immutable, so that calls on several threads share it.

A result that does not match becomes an error. If a result is too large, a part that matches is
sent, if there is one.
"""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from threading import Thread
from typing import Any

from msgspec import structs
from pydantic import ValidationError

from mcp_notebook.errors import DefinitionError, InvalidResult
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.safe.to_json import TooDeep, TooLarge
from mcp_notebook.kernel.schemas.metaschema import find_schema_problem
from mcp_notebook.kernel.schemas.output.data_limit import (
    MAX_WHOLE,
    Cut,
    convert_plain_data,
    count_chars,
    has_at_most,
    make_size_error,
    shorten_data,
    take_first,
)
from mcp_notebook.kernel.schemas.output.published_schema import is_at_root
from mcp_notebook.kernel.schemas.output.return_types import (
    ReturnType,
    read_return_type,
    translate_annotation,
)
from mcp_notebook.kernel.schemas.parameters.callables import (
    NO_ANNOTATION,
    read_return_annotation,
)
from mcp_notebook.kernel.schemas.recursion import has_id
from mcp_notebook.kernel.schemas.tables.columns import find_columns
from mcp_notebook.kernel.schemas.validation_messages import (
    MAX_LINES,
    describe_rule,
    explain_value,
    format_place,
    format_value,
    name_json_type,
)
from mcp_notebook.text.wording import count

_ROOT = "result"
"""The name of the value itself in error messages."""
MAX_PLACES = 5
"""Mismatches that an error message lists."""
Schema = dict[str, Any]
_TO_DO = "The tool's author can correct what it returns or its {}."


_FEW = 1_000
"""Items of a long value that are converted first; more if they are fewer characters than may be
sent."""


@dataclass(frozen=True)
class OutputSchema:
    """The structured results of a tool: their schema, and the conversion to it."""

    schema: dict[str, Any]
    """JSON Schema 2020-12 of the data; `published_schema` makes that which clients get."""
    _returns: ReturnType | None = field(default=None, repr=False, compare=False)
    """The return annotation; None if the author wrote the schema."""

    def convert(self, value: Any, max_chars: int) -> tuple[Any, list[Cut]]:
        """Return as much of a result's structured content as may be sent, and the cuts.

        Args:
            value: What the function returned.
            max_chars: Characters of JSON that may be sent.

        Raises:
            InvalidResult: It does not match, no part of it that may be sent does, or it cannot be
                converted.
        """
        most = max_chars * MAX_WHOLE
        items = max_chars if has_at_most(value, max_chars) else _FEW
        while True:  # each try takes a fourth of the time of the next
            part = take_first(value, items)
            if not has_at_most(part, most):
                raise make_size_error(f"more than {most:,} characters of JSON", max_chars)
            converted = self._convert_value(part, most)
            if part is value or items >= max_chars or count_chars(converted) > max_chars:
                break
            items *= 4
        structured, cuts = shorten_data(converted, max_chars)
        if part is not value and cuts and not cuts[0].path:
            cuts[0] = structs.replace(cuts[0], total=len(value))
        if cuts or self._is_compared:
            try:
                self._compare(structured)
            except InvalidResult:
                if cuts:
                    size = f"{count_chars(converted):,} characters of JSON"
                    raise make_size_error(size, max_chars) from None
                raise
        return structured, cuts

    def prepare(self) -> None:
        """Build the validator of `convert`, which is done once."""
        if self._is_compared:
            self.comparison  # noqa: B018 - a cached property

    @property
    def _is_compared(self) -> bool:
        return self._returns is None or not self._returns.is_proven

    @functools.cached_property
    def comparison(self) -> Any:
        """The validator of results; slow to build."""
        return _make_comparison(self.schema)

    @functools.cached_property
    def is_at_root(self) -> bool:
        """Whether the data stands at the root of the structured content."""
        return is_at_root(self.schema)

    @property
    def can_be_none(self) -> bool:
        """Whether None is a valid result."""
        try:
            self.convert(None, 1_000)
        except InvalidResult:
            return False
        return True

    def _convert_value(self, value: Any, max_chars: int) -> Any:
        if self._returns is None:
            return convert_plain_data(value, max_chars)
        try:
            return self._returns.convert(value)
        except Exception as error:  # noqa: BLE001 - validators and serializers are the author's code
            raise self._explain(error, value, max_chars) from None

    def _compare(self, structured: Any) -> None:
        try:
            lines = _find_mismatches(structured, self.comparison, self.schema)
        except Exception as error:  # noqa: BLE001 - an author's schema may lead anywhere
            raise InvalidResult(
                f"The result cannot be validated by the tool's output schema "
                f"({describe_error(error)}). {self._to_do}"
            ) from None
        if lines:
            raise self._make_mismatch(lines)

    def _explain(self, error: Exception, value: Any, max_chars: int) -> InvalidResult:
        """Return the error for a value that could not be converted."""
        if isinstance(error, ValidationError):
            return self._make_mismatch(explain_value(error, value, self.schema, _ROOT))
        # An error in our conversion is the cause of pydantic's error.
        error = error.__cause__ if isinstance(error.__cause__, Exception) else error
        if isinstance(error, TooLarge):
            return make_size_error(f"more than {max_chars:,} parts", max_chars)
        reason = str(error) if isinstance(error, TooDeep) else describe_error(error)
        return InvalidResult(f"The result cannot be sent as data: {reason}. {self._to_do}")

    def _make_mismatch(self, lines: list[str]) -> InvalidResult:
        more = len(lines) - MAX_PLACES
        listed = "; ".join(lines[:MAX_PLACES])
        rest = f"; and at {count(more, 'more place')}" if more > 0 else ""
        return InvalidResult(
            f"The result does not match the tool's output schema: {listed}{rest}. {self._to_do}"
        )

    @property
    def _to_do(self) -> str:
        return _TO_DO.format("`output_schema`" if self._returns is None else "return annotation")


def make_output_schema(
    function: Callable[..., Any],
    name: str,
    *,
    schema: bool | Mapping[str, Any],
) -> OutputSchema | None:
    """Return a tool's output schema, if its author asks for one.

    Args:
        function: The tool's function.
        name: The tool's name.
        schema: The author's own; True: derive it from the return annotation; False: none.

    Raises:
        DefinitionError: The author's schema is invalid, or cannot be derived.
    """
    if schema is False:
        return None
    if isinstance(schema, Mapping):
        return _read_author_schema(schema, name)
    if schema is not True:
        raise DefinitionError(
            f"`{name}`: `output_schema` is a JSON Schema (a dict), True or False, not "
            f"{format_value(schema)}."
        )
    return _derive(function, name)


def _read_author_schema(schema: Mapping[str, Any], name: str) -> OutputSchema:
    from mcp_notebook.kernel.schemas.by_hand import schema_check  # noqa: PLC0415 - slow to load

    plain = schema_check.check_schema(schema, name, "output_schema", of_arguments=False)
    for word in ("$id", "$schema"):  # all references are local, and perhaps below a root of ours
        plain.pop(word, None)
    if has_id(plain):
        raise DefinitionError(
            f"`{name}`: `output_schema` has an `$id` inside: remove it, and refer to "
            '`"$defs"` by "#/$defs/...".'
        )
    return OutputSchema(inline_root(plain))


def _derive(function: Callable[..., Any], name: str) -> OutputSchema:
    """Return the schema of the return annotation."""
    try:
        returns = _read_returns(function)
        root = inline_root({} if returns is None else returns.schema)
    except Exception as error:
        # A hint that is a string is code of the author's, and so may be a type's own schema.
        raise DefinitionError(
            f"`{name}`: its return annotation cannot be expressed as a JSON Schema "
            f"({_shorten_reason(error)}): change it, or give the schema, "
            "`output_schema={...}`."
        ) from error
    if returns is None:
        raise DefinitionError(
            f"`{name}`: `output_schema=True` needs a return annotation that describes data: write, "
            "for example, `-> dict[str, float]`, or give the schema, `output_schema={...}`."
        )
    if not returns.is_proven:
        _load_validator_early()
    return OutputSchema(root, returns)


def _read_returns(function: Callable[..., Any]) -> ReturnType | None:
    """Read the return annotation; None if it is missing.

    Raises:
        Exception: It cannot be read, or is not a JSON Schema.
    """
    annotation = read_return_annotation(function)
    if (columns := find_columns(annotation)) is not None:
        annotation = list[columns.make_row_type()]  # type: ignore[misc]
    annotation = translate_annotation(annotation)
    if annotation is NO_ANNOTATION:
        return None
    returns = read_return_type(annotation)
    if problem := find_schema_problem(returns.schema):
        raise ValueError(problem)
    return returns


def _shorten_reason(error: Exception) -> str:
    return describe_error(error).partition("\n")[0].partition(". Set `arbitrary")[0]


# -- mismatches, a line for each place -------------------------------------------------------------


_VALIDATOR = "mcp_notebook.kernel.schemas.by_hand.jsonschema_validator"


def _load_validator_early() -> None:
    """Import the validator in a thread, so that the first result need not wait for it."""
    if _VALIDATOR not in sys.modules:
        Thread(target=import_module, args=(_VALIDATOR,), daemon=True).start()


def _make_comparison(schema: Schema) -> Any:
    """Return the validator for `_find_mismatches`; threads can share it.

    Args:
        schema: As published. Unsupported patterns are left out: pydantic has checked them, or the
            author.
    """
    from mcp_notebook.kernel.schemas.by_hand import jsonschema_validator  # noqa: PLC0415 - slow to load

    return jsonschema_validator.make_validator(jsonschema_validator.drop_unusable_patterns(schema))


def _find_mismatches(value: Any, comparison: Any, schema: Schema) -> list[str]:
    """Return a line for each place where a JSON value does not match.

    Args:
        value: As it would be sent.
        comparison: From `_make_comparison`.
        schema: As published.

    Raises:
        Exception: The schema cannot be evaluated, for example because of endless references.
    """
    from mcp_notebook.kernel.schemas.by_hand import jsonschema_validator  # noqa: PLC0415 - slow to load

    lines: dict[str, None] = {}
    for error in jsonschema_validator.find_errors(comparison, value):
        for deepest in _find_deepest(error):
            lines[_describe_mismatch(deepest, list(deepest.absolute_path), schema)] = None
        if len(lines) > MAX_LINES:
            break
    return list(lines)


def _find_deepest(error: Any) -> Sequence[Any]:
    """Return the error, or the errors of the alternative that the value comes closest to."""
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return [error]
    branches: dict[Any, list[Any]] = {}
    for cause in error.context:
        branches.setdefault(cause.schema_path[0], []).append(cause)
    # If all errors of an alternative are below the value, the value itself has the right type.
    deep = [causes for causes in branches.values() if all(cause.path for cause in causes)]
    if len(deep) != 1:
        return [error]
    return [deepest for cause in deep[0] for deepest in _find_deepest(cause)]


def _describe_mismatch(error: Any, path: list[str | int], root: Schema) -> str:
    name = format_place(_ROOT, path)
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        listed = ", ".join(map(repr, missing[:MAX_LINES]))
        return f"{name}: {listed} missing"
    came = f"got {format_value(error.instance)} ({name_json_type(error.instance)})"
    return f"{name}: {came}; {describe_rule(error, root)}"


# -- the root --------------------------------------------------------------------------------------


def inline_root(schema: Schema) -> Schema:
    """Return a schema whose root is not only a reference, as that of a recursive model is."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    target = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    if not isinstance(target, dict) or set(schema) - {"$ref", "$defs", "title", "description"}:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**target, **beside}
