"""Output schemas: what a tool's results are for a program, and each result made to match.

Runs in the user's kernel: `make_output_schema` at definition on the main thread, `OutputSchema`
wherever a call ran; it is never changed, so that calls on several threads share it. Which
annotations have a schema though nobody asked for one:

- models, dataclasses, TypedDict, named tuples; lists, tuples and sets of something; dicts; numbers,
  bool, dates, Decimal, UUID; Literal and Enum; unions of these;
- not ``str`` (a model reads the text already), ``bytes``, None, Any, a bare ``list`` (of pictures,
  maybe: many clients show a model the data in place of the content), iterators, what is shown
  (figures, pictures, tables, files, content blocks, `content.Result`), what pydantic knows nothing
  of.

A root that is no object is told as the property ``result`` of one, to clients of every era. A
result that does not match is an error, never sent; so is one that is too large, which is never cut.
How annotations are read is `kernel.schemas.return_types`' business, how schemas by hand are checked
`kernel.schemas.json_schema`'s; what text says of the same value `kernel.results.converter`'.
"""

import collections.abc
import functools
import inspect
import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol, TypeVar, Union, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, ValidationError

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import DefinitionError, InvalidResult
from mcp_notebook.kernel.safe.text import describe_error, is_instance
from mcp_notebook.kernel.safe.to_json import TooDeep, TooLarge, to_structured
from mcp_notebook.kernel.schemas.metaschema import schema_problem
from mcp_notebook.kernel.schemas.output_match import (
    WRAP,
    comparison,
    load_early,
    mismatches,
    names_itself,
    rooted,
)
from mcp_notebook.kernel.schemas.return_types import ReturnType, return_type
from mcp_notebook.kernel.schemas.signatures import NO_ANNOTATION, return_annotation
from mcp_notebook.kernel.schemas.validation_messages import explain_value, format_value


class Declared(Protocol):
    """What this module reads of a tool's options."""

    @property
    def output_schema(self) -> bool | Mapping[str, Any] | None:
        """Whether a schema is asked for, or the author's own; None: as the return type says."""

    @property
    def validate_output(self) -> bool:
        """Whether values are checked against it."""


MAX_PLACES = 5
"""Places that do not match, of which the client is told."""
_TO_DO = (
    "The tool's author can correct what it returns or its {}, or declare it with "
    "`validate_output=False` (`--no-validate-output`)."
)
_LESS = "return less, or declare the tool with `output_schema=False` (`--no-output-schema`)"
_LESS_BY_HAND = "give the `Result` less as `structured`"

_SHOWN = (Result, Text, Image, Audio, Resource, ResourceLink)
_SILENT = (NO_ANNOTATION, None, type(None), Any, object, NoReturn, typing_extensions.Never)
_COLLECTIONS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Collection)
_LAZY = frozenset(
    {
        collections.abc.Iterator,
        collections.abc.Iterable,
        collections.abc.Generator,
        collections.abc.AsyncIterator,
        collections.abc.AsyncGenerator,
    }
)
_AWAITED = frozenset({collections.abc.Awaitable, collections.abc.Coroutine})


@dataclass(frozen=True)
class OutputSchema:
    """What a tool's results are for a program."""

    schema: dict[str, Any]
    """JSON Schema 2020-12, as clients are told it: its root says ``"type": "object"``."""
    wrapped: bool
    """What the function returns is the property ``result``."""
    validates: bool = True
    """Results that do not match are refused."""
    _returns: ReturnType | None = field(default=None, repr=False, compare=False)
    """The annotation; None: the schema is the author's own."""

    def convert(self, value: Any, max_chars: int) -> Any:
        """Return a result's structured content.

        Args:
            value: What the function returned.
            max_chars: Characters of JSON that it may have.

        Raises:
            InvalidResult: It does not match, is too large, or is no data.
        """
        _check_count(value, max_chars, _LESS)
        made = self._converted(value, max_chars)
        made = {WRAP: made} if self.wrapped else made
        check_size(made, max_chars, _LESS)
        if self.validates and not (self._returns is not None and self._returns.proven):
            try:
                lines = mismatches(made, self.comparison, self.schema, self.wrapped)
            except Exception as error:  # noqa: BLE001 - an author's schema may lead anywhere
                raise InvalidResult(
                    f"The result cannot be compared with the tool's output schema "
                    f"({describe_error(error)}). {self._to_do}"
                ) from None
            if lines:
                raise self._mismatch(lines)
        return made

    @functools.cached_property
    def comparison(self) -> Any:
        """What results are compared by: slow to make."""
        return comparison(self.schema)

    @property
    def can_be_none(self) -> bool:
        """Whether None may be a result."""
        try:
            self.convert(None, 1_000)
        except InvalidResult:
            return False
        return True

    def unwrap(self, structured: Any) -> Any:
        """Return what the function returned, of what `convert` made of it."""
        return structured[WRAP] if self.wrapped else structured

    def _converted(self, value: Any, max_chars: int) -> Any:
        if self._returns is None:
            return convert_plain_data(value, max_chars, _LESS)
        try:
            return self._returns.converted(value)
        except Exception as error:  # noqa: BLE001 - validators and serializers are the author's code
            if not self.validates:
                return self._about(self._returns, value, max_chars)
            if isinstance(error, ValidationError):
                schema = {**self.schema.get("properties", {}).get(WRAP, {}), **_defs(self.schema)}
                schema = schema if self.wrapped else self.schema
                raise self._mismatch(explain_value(error, value, schema, WRAP)) from None
            # What our own conversion raised within pydantic's is its cause.
            error = error.__cause__ if isinstance(error.__cause__, Exception) else error
            if isinstance(error, TooLarge):
                raise _too_large(f"more than {max_chars:,} parts", max_chars, _LESS) from None
            said = str(error) if isinstance(error, TooDeep) else describe_error(error)
            raise InvalidResult(
                f"The result cannot be sent as data: {said}. {self._to_do}"
            ) from None

    def _about(self, returns: ReturnType, value: Any, max_chars: int) -> Any:
        """Return the JSON value of one that need not match."""
        try:
            return returns.dumped(value)
        except Exception:  # noqa: BLE001 - as above
            return convert_plain_data(value, max_chars, _LESS)

    def _mismatch(self, lines: list[str]) -> InvalidResult:
        more = len(lines) - MAX_PLACES
        said = "; ".join(lines[:MAX_PLACES]) + (f"; and at {more} more places" if more > 0 else "")
        return InvalidResult(
            f"The result does not match the tool's output schema: {said}. {self._to_do}"
        )

    @property
    def _to_do(self) -> str:
        return _TO_DO.format("`output_schema`" if self._returns is None else "return annotation")


def make_output_schema(
    function: Callable[..., Any], options: Declared, name: str
) -> tuple[OutputSchema | None, tuple[str, ...]]:
    """Return a tool's output schema, if it has one, and what its author should know.

    Args:
        function: The tool's function.
        options: What the author says about the tool.
        name: The tool's name.

    Raises:
        DefinitionError: The author asks for a schema that cannot be.
    """
    given = options.output_schema
    if given is False:
        return None, ()
    if isinstance(given, Mapping):
        return _by_hand(given, options, name), ()
    if given is not None and given is not True:
        raise DefinitionError(
            f"`{name}`: `output_schema` is a JSON Schema (a dict), True or False, not "
            f"{format_value(given)}."
        )
    return _by_annotation(function, options, name)


def convert_plain_data(value: Any, max_chars: int, to_do: str = _LESS_BY_HAND) -> Any:
    """Return the JSON value of what has no annotation.

    Args:
        value: Anything.
        max_chars: Characters of JSON that it may have.
        to_do: What is to be done if it has more.

    Raises:
        InvalidResult: It is too large or contains itself.
    """
    try:
        return to_structured(value, max_chars)
    except TooLarge:
        raise _too_large(f"more than {max_chars:,} parts", max_chars, to_do) from None
    except TooDeep as error:
        raise InvalidResult(f"The result cannot be sent as data: {error}.") from None


def check_size(made: Any, max_chars: int, to_do: str = _LESS_BY_HAND) -> None:
    """Refuse a JSON value that is too large.

    Raises:
        InvalidResult: Says how large it is and what is to be done.
    """
    try:
        size = len(json.dumps(made, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidResult(
            f"The result cannot be sent as data: {describe_error(error)}."
        ) from None
    if size > max_chars:
        raise _too_large(f"{size:,} characters of JSON", max_chars, to_do)


# -- schemas ---------------------------------------------------------------------------------------


def _by_hand(given: Mapping[str, Any], options: Declared, name: str) -> OutputSchema:
    from mcp_notebook.kernel.schemas import json_schema  # noqa: PLC0415 - slow to load

    plain = json_schema.checked(given, name, "output_schema", of_arguments=False)
    for word in ("$id", "$schema"):  # all references are local, and below a root of ours
        plain.pop(word, None)
    if names_itself(plain):
        raise DefinitionError(
            f"`{name}`: `output_schema` has an `$id` within: leave it out, and refer to "
            '`"$defs"` by "#/$defs/...".'
        )
    schema, wrapped = rooted(plain)
    return OutputSchema(schema, wrapped, options.validate_output)


def _by_annotation(
    function: Callable[..., Any], options: Declared, name: str
) -> tuple[OutputSchema | None, tuple[str, ...]]:
    asked = options.output_schema is True
    try:
        annotation = return_annotation(function)
        told = _asked_for(annotation) if asked else annotation
        if told is NO_ANNOTATION or (not asked and _is_for_reading(told)):
            made = None
        else:
            made = return_type(told)
            schema, wrapped = rooted(_checked(made.schema))
    except Exception as error:
        # A hint that is a string is code of the author's, and so may be a type's own schema.
        if asked:
            raise DefinitionError(
                f"`{name}`: its return annotation cannot be told to clients as a JSON Schema "
                f"({_why(error)}): change it, or give the schema, `output_schema={{...}}`."
            ) from error
        if isinstance(error, NameError):
            note = f"The return annotation uses `{error.name}`, which is not defined: results "
            return None, (f"{note}have no output schema.",)
        return None, ()
    if made is not None:
        if options.validate_output and not made.proven:
            load_early()
        return OutputSchema(schema, wrapped, options.validate_output, made), ()
    if asked:
        raise DefinitionError(
            f"`{name}`: `output_schema` is asked for, but the function does not say what it "
            "returns: write `-> dict[str, float]`, say, or give the schema, `output_schema={...}`."
        )
    return None, ()


def _checked(schema: dict[str, Any]) -> dict[str, Any]:
    if problem := schema_problem(schema):
        raise ValueError(problem)
    return schema


def _why(error: Exception) -> str:
    return describe_error(error).partition("\n")[0].partition(". Set `arbitrary")[0]


def _is_for_reading(annotation: Any) -> bool:
    """Tell whether an annotation says nothing that a program could use."""
    annotation = _bare(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return all(map(_is_for_reading, arguments)) or _holds_shown(annotation)
    if any(annotation is silent for silent in _SILENT) or isinstance(annotation, TypeVar):
        return True
    if (origin or annotation) in _COLLECTIONS and all(
        argument in (Any, object, ...) for argument in arguments
    ):
        return True
    if inspect.isclass(annotation) and issubclass(annotation, Path):
        return True
    if inspect.isclass(annotation) and issubclass(annotation, (str, bytes, bytearray)):
        return not issubclass(annotation, Enum)
    return annotation in _LAZY or origin in _LAZY or _holds_shown(annotation)


def _holds_shown(annotation: Any) -> bool:
    if inspect.isclass(annotation) and issubclass(annotation, _SHOWN):
        return True
    if get_origin(annotation) is not None and str(get_origin(annotation)) == "typing.Literal":
        return False
    return any(map(_holds_shown, get_args(annotation)))


def _asked_for(annotation: Any) -> Any:
    """Return an annotation as pydantic knows it, of what has another name for a list or dict."""
    bare = _bare(annotation)
    kind = get_origin(bare) or bare
    if _holds_shown(bare):
        raise TypeError("it is made by hand and says nothing of the data")
    if kind in _LAZY:
        return list[get_args(bare)[0]] if get_args(bare) else list  # type: ignore[misc]
    known = {
        ("pandas", "DataFrame"): list[dict[str, Any]],
        ("polars", "DataFrame"): list[dict[str, Any]],
        ("pyarrow", "Table"): list[dict[str, Any]],
        ("pyarrow", "RecordBatch"): list[dict[str, Any]],
        ("polars", "Series"): list,
        ("pandas", "Series"): dict[str, Any],
        ("numpy", "ndarray"): list,
    }
    module = str(getattr(kind, "__module__", "")).partition(".")[0]
    return known.get((module, getattr(kind, "__name__", "")), annotation)


def _bare(annotation: Any) -> Any:
    """Return what an annotation is about, without a name, an extra or an ``await`` around it."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in _AWAITED and get_args(annotation):
            annotation = get_args(annotation)[-1]
        elif is_instance(annotation, "typing.TypeAliasType") or isinstance(
            annotation, typing_extensions.TypeAliasType
        ):
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation


# -- sizes -----------------------------------------------------------------------------------------


def _too_large(size: str, max_chars: int, to_do: str) -> InvalidResult:
    return InvalidResult(
        f"The result is too large to be sent as data: {size}, at most {max_chars:,} characters "
        f"are allowed (MCP_NOTEBOOK_MAX_STRUCTURED_CHARS): {to_do}."
    )


def _check_count(value: Any, max_chars: int, to_do: str) -> None:
    """Refuse what cannot but be too large before it is converted, at the cost of what is not."""
    left = max_chars
    seen: set[int] = set()
    waiting = [value]
    while waiting and left >= 0:
        item = waiting.pop()
        if isinstance(item, str):
            left -= len(item)
            continue
        size, inner = _parts(item)
        left -= size
        if left >= 0 and inner and id(item) not in seen:
            seen.add(id(item))
            waiting += inner
    if left < 0:
        raise _too_large(f"more than {max_chars:,} characters of JSON", max_chars, to_do)


def _parts(item: Any) -> tuple[int, Any]:
    """Return how many parts a value has, and these where they may have parts in turn."""
    if type(item) in (list, tuple, set, frozenset, collections.deque):
        return len(item), item
    if type(item) is dict:
        return len(item), item.values()
    if isinstance(item, BaseModel) or (is_dataclass(item) and not isinstance(item, type)):
        values = getattr(item, "__dict__", {}).values()
        return len(values), values
    if isinstance(item, (collections.abc.Sized, bytes, bytearray)):
        shape = getattr(item, "shape", None)
        try:
            return math.prod(shape) if isinstance(shape, tuple) else len(item), ()
        except Exception:  # noqa: BLE001 - a proxy that is not bound may raise anything
            return 1, ()
    return 1, ()


def _defs(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"$defs": schema["$defs"]} if "$defs" in schema else {}
