"""Core schemas for numpy's arrays and numbers, and for pandas' timestamps.

Runs in the user's kernel: schemas at definition, conversions wherever a call runs. Values are
checked as JSON, and the library makes its own values of them. No library is imported.
"""

from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import (
    CoreSchema,
    PydanticCustomError,
    PydanticKnownError,
    SchemaValidator,
    core_schema,
)

from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.schemas.argument_rules import tighten
from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone

_ANY_ELEMENT: tuple[Any, ...] = (
    core_schema.bool_schema(),
    core_schema.int_schema(),
    core_schema.float_schema(),
    core_schema.str_schema(),
)
_MAX_DEPTH = 32
"""Dimensions that every version of numpy supports."""
_LONG = 64
"""Bits of integers whose limits would clutter a schema; numpy refuses what exceeds them."""


class ElementType:
    """Gives pydantic the type of an array's elements or of a column's values, in ``Annotated``."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return str(self.kind.__name__)

    def __get_pydantic_core_schema__(
        self, source: Any, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of an array of such elements, or else of one of them."""
        numpy: Any = find_imported("numpy")
        is_array = source is numpy.ndarray
        schema: CoreSchema = (make_array_schema if is_array else _make_element)(numpy, self.kind)
        return schema


def make_number_schema(numpy: Any, kind: Any) -> Any:
    """Return the core schema of a class of numpy's scalars."""
    return convert_after(_choose_kind(numpy, kind), _make_element(numpy, kind))


def convert_after(kind: Any, element: Any) -> Any:
    """Return a core schema that converts another schema's values to a class."""

    def convert(value: Any, validate: Any) -> Any:
        if isinstance(value, kind):  # a default
            return value
        plain = validate(value)
        try:
            return kind(plain)
        except Exception as error:  # noqa: BLE001 - a library's: out of bounds...
            raise make_failure(error) from None

    return core_schema.no_info_wrap_validator_function(convert, element)


def make_array_schema(numpy: Any, dtype: Any) -> Any:
    """Return the core schema of an array.

    Args:
        numpy: The library.
        dtype: The type of its elements, if the type hint has one.
    """
    element: Any = core_schema.union_schema(list(_ANY_ELEMENT))
    if dtype is numpy.number:
        element = core_schema.union_schema([core_schema.int_schema(), core_schema.float_schema()])
    elif dtype not in (None, numpy.generic):
        element = _make_element(numpy, dtype)
        if issubclass(dtype, numpy.inexact):  # None stands for NaN, as in results
            element = core_schema.nullable_schema(element)
    is_free = dtype in (None, numpy.generic, numpy.number)
    chosen = None if is_free else _choose_kind(numpy, dtype)

    def convert(value: Any) -> Any:
        if isinstance(value, numpy.ndarray):
            return value
        if not isinstance(value, list):
            raise PydanticKnownError("list_type")
        elements = _nest(element, value).validate_python(value)
        try:
            if is_free:
                _refuse_mixture(numpy.array(elements, dtype=object))
            return numpy.array(elements, dtype=chosen)
        except Exception as error:  # noqa: BLE001 - a library's: out of bounds, ragged...
            raise make_failure(error) from None

    def describe(_core: Any, handler: Any) -> dict[str, Any]:
        plain = handler(element)
        nested = {"type": "array", "items": {}}  # OpenAI's API requires `items`
        return {"type": "array", "items": {"anyOf": [*plain.get("anyOf", [plain]), nested]}}

    return core_schema.no_info_plain_validator_function(
        convert, metadata={"pydantic_js_functions": [describe]}
    )


def make_failure(error: Exception) -> PydanticCustomError:
    """Return the error for a value that a library does not take, with the library's reason."""
    if isinstance(error, PydanticCustomError):
        return error
    reason = str(error).strip().partition("\n")[0] or type(error).__name__  # the rest is advice
    return PydanticCustomError("data", "{reason}", {"reason": reason})


def _make_element(numpy: Any, kind: Any) -> Any:
    """Return the core schema of a numpy scalar's JSON form.

    Raises:
        PydanticSchemaGenerationError: It has none.
    """
    makers = (
        (numpy.timedelta64, core_schema.timedelta_schema),  # a signed integer to numpy
        (numpy.integer, lambda: _make_integer(numpy.iinfo(_choose_kind(numpy, kind)))),
        (numpy.floating, core_schema.float_schema),
        (numpy.complexfloating, core_schema.complex_schema),
        (numpy.inexact, core_schema.float_schema),
        (numpy.bool_, core_schema.bool_schema),
        (numpy.bytes_, core_schema.bytes_schema),
        (numpy.object_, core_schema.any_schema),
        (numpy.character, core_schema.str_schema),
        (numpy.datetime64, lambda: core_schema.datetime_schema(tz_constraint="naive")),
    )
    for base, make in makers:
        if issubclass(kind, base):
            return make()
    raise PydanticSchemaGenerationError(f"{kind} has no schema")


def _make_integer(limits: Any) -> Any:
    low, high = int(limits.min), int(limits.max)
    if limits.bits == _LONG:
        return core_schema.int_schema() if low else core_schema.int_schema(ge=0)
    return core_schema.int_schema(ge=low, le=high)


def _choose_kind(numpy: Any, kind: Any) -> Any:
    """Return the concrete scalar type for an abstract one; others unchanged."""
    concrete = {
        numpy.integer: numpy.int64,
        numpy.signedinteger: numpy.int64,
        numpy.unsignedinteger: numpy.uint64,
        numpy.floating: numpy.float64,
        numpy.inexact: numpy.float64,
        numpy.complexfloating: numpy.complex128,
        numpy.character: numpy.str_,
    }
    return concrete.get(kind, kind)


def _nest(element: Any, value: Any) -> SchemaValidator:
    """Return the validator of a list that is nested as deeply as the first items of a value."""
    schema, depth = element, 0
    while isinstance(value, list) and depth < _MAX_DEPTH:
        schema, depth = core_schema.list_schema(schema), depth + 1
        value = next((item for item in value if item is not None), None)
    return build_alone(SchemaValidator, tighten(schema))


def _refuse_mixture(objects: Any) -> None:
    """Refuse values of several types, which numpy would convert to one: 1 and "a" to strings."""
    kinds = set(map(type, objects.ravel().tolist()))
    if len(kinds) > 1 and kinds != {int, float}:
        raise PydanticCustomError("mixture", "its values are of several types")
