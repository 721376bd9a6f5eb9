"""Core schemas for types of the data libraries; the conversion of numpy's arrays and numbers.

Runs in the user's kernel: schemas at definition, conversions wherever a call runs. No library is
imported. For an unknown class, pydantic's schema requires an instance. If the class is a table, a
series, an array, a timestamp or a number of a data library, it is replaced by a schema with a JSON
form.
"""

import math
import sys
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import GetCoreSchemaHandler, WithJsonSchema
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import (
    CoreSchema,
    InitErrorDetails,
    PydanticCustomError,
    PydanticKnownError,
    SchemaValidator,
    ValidationError,
    core_schema,
)

from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.argument_rules import tighten
from mcp_notebook.kernel.schemas.pydantic_core_schemas import (
    VALUE_KEYS,
    build_alone,
    rewrite,
    walk_schemas,
)
from mcp_notebook.kernel.schemas.tables.column_types import (
    describe_long_integer,
    is_rounded,
    refuse_nanoseconds,
    refuse_zone,
)
from mcp_notebook.kernel.schemas.tables.columns import (
    Columns,
    make_series_schema,
    make_table_schema,
)
from mcp_notebook.kernel.schemas.tables.table_libraries import find_library

_UNIONS = (Union, types.UnionType)
_ANY_ELEMENT: tuple[Any, ...] = (
    core_schema.bool_schema(),
    core_schema.int_schema(),
    core_schema.float_schema(),
    core_schema.str_schema(),
)
_MAX_DEPTH = 32
"""Dimensions that every version of numpy supports."""


def offer_data_types(schema: Any) -> Any:
    """Return a core schema with schemas for the data libraries' types, at any depth."""
    return rewrite(schema, _offer_part)


def refuse_foreign_types(schema: Any) -> None:
    """Refuse a core schema with instances of classes that clients cannot send.

    Raises:
        PydanticSchemaGenerationError: A class belongs neither to Python nor to pydantic.
    """
    for part in walk_schemas(schema):
        kind = part.get("cls") if part["type"] == "is-instance" else None
        module = str(getattr(kind, "__module__", "builtins")).partition(".")[0]
        if module not in sys.stdlib_module_names | {"pydantic"} or module == "__main__":
            raise PydanticSchemaGenerationError(f"{kind} has no schema")


def refuse_classes(schema: Any) -> None:
    """Refuse a core schema that requires a class as a value, unless the author's code makes it.

    Raises:
        PydanticSchemaGenerationError: It would refuse every value that a client can send.
    """
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if item.get("type") == "is-subclass":
                raise PydanticSchemaGenerationError("a class cannot be sent")
            if item.get("type") not in ("function-before", "function-wrap"):
                waiting += [part for key, part in item.items() if key not in VALUE_KEYS]
        elif isinstance(item, (list, tuple)):
            waiting += item


def _offer_part(_schema: Mapping[str, Any], changed: dict[str, Any]) -> Any:
    if changed["type"] != "is-instance" or not isinstance(changed.get("cls"), type):
        return changed
    offered = make_data_schema(changed["cls"])
    if offered is None:
        return changed
    if "ref" in changed:
        offered = {**offered, "ref": changed["ref"]}
    if metadata := changed.get("metadata"):
        offered = {**offered, "metadata": {**offered.get("metadata", {}), **metadata}}
    return offered


def make_data_schema(kind: type, dtype: Any = None) -> Any:
    """Return the core schema of a data library's class; None for any other class.

    Args:
        kind: The class.
        dtype: The type of an array's elements, if the type hint has one.
    """
    library = find_library(kind)
    if library is not None:
        return make_series_schema(kind) if library.make_table is None else make_table_schema(kind)
    module = kind.__module__.partition(".")[0]
    if module == "pandas":
        return _make_moment_schema(kind)
    numpy = find_imported("numpy")
    if module != "numpy" or numpy is None:
        return None
    if kind is numpy.ndarray:
        return _make_array_schema(numpy, dtype)
    if not issubclass(kind, numpy.generic):
        return None
    element = _make_element_schema(numpy, kind)
    return None if element is None else _convert_after(_choose_kind(numpy, kind), element)


# -- type hints ------------------------------------------------------------------------------------


def keep_dtypes(annotation: Any) -> Any:
    """Return a type hint with the dtype of ``NDArray[...]`` kept, which pydantic would drop."""
    numpy = find_imported("numpy")
    if numpy is not None and hasattr(get_origin(annotation), "__value__"):
        # numpy 1 does not load `numpy.typing`, but code that uses its alias has.
        alias = getattr(find_imported("numpy.typing"), "NDArray", None)
        annotation = _expand_alias(annotation, alias)
    arguments, origin = get_args(annotation), get_origin(annotation)
    if not arguments:
        return annotation
    if numpy is not None and origin is numpy.ndarray:
        [dtype] = get_args(arguments[-1]) or [None]
        usable = isinstance(dtype, type) and issubclass(dtype, numpy.generic)
        return Annotated[numpy.ndarray, ArrayDtype(dtype)] if usable else numpy.ndarray
    if origin is Annotated:
        base, *extras = arguments
        has_schema = any(isinstance(extra, WithJsonSchema | Columns) for extra in extras)
        return annotation if has_schema else Annotated[(keep_dtypes(base), *extras)]
    parts = tuple(map(keep_dtypes, arguments)) if origin is not Literal else arguments
    if all(part is argument for part, argument in zip(parts, arguments, strict=True)):
        return annotation
    if origin in _UNIONS:
        return Union[parts]  # noqa: UP007 - not all have `|`
    return origin[parts[0] if len(parts) == 1 else parts]


def _expand_alias(annotation: Any, alias: Any) -> Any:
    # From Python 3.12 on, numpy 2.5 writes `type NDArray[...] = ...`.
    origin = get_origin(annotation)
    return origin.__value__[get_args(annotation)] if origin is alias else annotation


class ArrayDtype:
    """Gives pydantic the dtype of an array, within ``Annotated``."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __repr__(self) -> str:
        return str(self.dtype.__name__)

    def __get_pydantic_core_schema__(
        self, source: Any, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of an array of this dtype."""
        schema: CoreSchema = make_data_schema(source, self.dtype)
        return schema


# -- timestamps and numbers ------------------------------------------------------------------------


def _make_moment_schema(kind: Any) -> Any:
    pandas = find_imported("pandas")
    if kind is getattr(pandas, "Timestamp", None):
        return _convert_after(kind, refuse_nanoseconds(core_schema.datetime_schema()))
    if kind is getattr(pandas, "Timedelta", None):
        return _convert_after(kind, refuse_nanoseconds(core_schema.timedelta_schema()))
    return None


def _convert_after(kind: Any, element: Any) -> Any:
    """Return a core schema that converts another schema's values to a class."""
    numpy: Any = find_imported("numpy")  # pandas has loaded it

    def convert(value: Any, validate: Any) -> Any:
        if isinstance(value, kind):  # a default
            return value
        plain = validate(value)
        try:
            with numpy.errstate(over="ignore"):  # it is refused below
                made = kind(plain)
        except Exception as error:  # noqa: BLE001 - a library's: out of bounds, ragged...
            raise _make_failure(error) from None
        if type(plain) is float:
            _refuse_changed(value, float(made))
        return made

    return core_schema.no_info_wrap_validator_function(convert, element)


def _make_naive_schema() -> Any:
    """Return the core schema of timestamps without a time zone, since numpy has none."""
    return core_schema.no_info_after_validator_function(
        refuse_zone, refuse_nanoseconds(core_schema.datetime_schema())
    )


def _make_element_schema(numpy: Any, kind: Any) -> Any:
    """Return the core schema of a numpy scalar's JSON form; None for void."""
    kind = _choose_kind(numpy, kind)
    makers = (
        (
            numpy.timedelta64,
            lambda: refuse_nanoseconds(core_schema.timedelta_schema()),
        ),  # a signed integer to numpy
        (numpy.integer, lambda: _make_integer_schema(numpy.iinfo(kind))),
        (numpy.floating, core_schema.float_schema),
        (numpy.complexfloating, _make_complex_schema),
        (numpy.bool_, core_schema.bool_schema),
        (numpy.bytes_, core_schema.bytes_schema),
        (numpy.object_, core_schema.any_schema),
        (numpy.str_, core_schema.str_schema),
        (numpy.datetime64, _make_naive_schema),
    )
    return next((make() for base, make in makers if issubclass(kind, base)), None)


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


def _make_integer_schema(limits: Any) -> Any:
    low, high = int(limits.min), int(limits.max)
    published = describe_long_integer(low, limits.bits)
    if published is None:
        return core_schema.int_schema(ge=low, le=high)
    return core_schema.int_schema(
        ge=low, le=high, metadata={"pydantic_js_functions": [lambda _core, _handler: published]}
    )


def _make_complex_schema() -> Any:
    published = {"anyOf": [{"type": "number"}, {"type": "string"}]}
    return core_schema.complex_schema(
        metadata={"pydantic_js_functions": [lambda _core, _handler: published]}
    )


# -- arrays ----------------------------------------------------------------------------------------


def _make_array_schema(numpy: Any, dtype: Any) -> Any:
    element = _choose_element(numpy, dtype)
    if dtype in (numpy.generic, numpy.number):
        dtype = None
    checks: dict[int, Any] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, numpy.ndarray):
            return value
        if not isinstance(value, list):
            raise PydanticKnownError("list_type")
        depth = _measure_depth(value)
        if depth not in checks:
            checks[depth] = _nest(element, depth)
        elements = _validate_elements(checks[depth], value, depth)
        try:
            with numpy.errstate(over="ignore"):  # it is refused below
                array = _make_array(numpy, elements, dtype)
        except Exception as error:  # noqa: BLE001 - a library's: out of bounds, ragged...
            raise _make_failure(error) from None
        if array.dtype.kind == "f":
            _refuse_changed(value, array.tolist())
        return array

    return core_schema.no_info_plain_validator_function(
        convert,
        metadata={
            "pydantic_js_functions": [
                lambda _core, handler: _describe(_describe_element(element, handler))
            ]
        },
    )


def _choose_element(numpy: Any, dtype: Any) -> Any:
    """Return the core schema of the elements of an array.

    Raises:
        PydanticSchemaGenerationError: They have no JSON form.
    """
    if dtype in (None, numpy.generic):
        return core_schema.union_schema(list(_ANY_ELEMENT))
    if dtype is numpy.number:
        return core_schema.union_schema([core_schema.int_schema(), core_schema.float_schema()])
    element = _make_element_schema(numpy, dtype)
    if element is None:
        raise PydanticSchemaGenerationError(f"{dtype} has no schema")
    # None stands for NaN, as in results.
    return core_schema.nullable_schema(element) if issubclass(dtype, numpy.inexact) else element


def _make_array(numpy: Any, elements: Any, dtype: Any) -> Any:
    if dtype is not None:
        return numpy.array(elements, dtype=_choose_kind(numpy, dtype))
    objects = numpy.array(elements, dtype=object)
    _refuse_mixture(objects)
    array = numpy.array(elements)
    has_rounded = array.dtype.kind == "f" and is_rounded(elements, array.tolist())
    return objects if has_rounded else array  # as a Series has them


def _refuse_changed(sent: Any, stored: Any) -> None:
    """Refuse a number, or an array with a number, that the dtype rounds or makes infinite.

    Raises:
        ValidationError: Names the first such number.
    """
    if sent == stored:  # many times faster
        return
    if (found := _find_changed(sent, stored, ())) is not None:
        place, number, other = found
        error = PydanticCustomError(
            "changed", "its dtype would change it to {other}", {"other": other}
        )
        raise ValidationError.from_exception_data(
            "array", [InitErrorDetails(type=error, loc=place, input=number)]
        )


def _find_changed(
    sent: Any, stored: Any, place: tuple[int | str, ...]
) -> tuple[tuple[int | str, ...], Any, str] | None:
    if type(sent) is list:
        found = (
            _find_changed(item, other, (*place, number))
            for number, (item, other) in enumerate(zip(sent, stored, strict=True))
        )
        return next((item for item in found if item is not None), None)
    is_changed = (type(sent) is int and sent != stored) or (
        type(sent) is float and math.isinf(sent) != math.isinf(stored)
    )
    return (place, sent, repr(stored)) if is_changed else None


def _refuse_mixture(array: Any) -> None:
    """Refuse values of several types, which numpy would convert to one: 1 and "a" to strings."""
    kinds = set(map(type, array.ravel().tolist()))
    if len(kinds) > 1 and kinds != {int, float}:
        raise PydanticCustomError("mixture", "its values are of several types")


def _describe(element: dict[str, Any]) -> dict[str, Any]:
    nested = {"type": "array", "items": {}}  # OpenAI's API requires `items`
    options = element.get("anyOf", [element])
    return {"type": "array", "items": {"anyOf": [*options, nested]}}


def _describe_element(element: Any, handler: Any) -> Any:
    # pydantic ignores the JSON Schema function of an inner schema.
    functions = element.get("metadata", {}).get("pydantic_js_functions", [])
    return functions[0](element, handler) if functions else handler(element)


def _measure_depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list) and depth < _MAX_DEPTH:
        depth += 1
        value = next((item for item in value if item is not None), None)
    return depth


def _validate_elements(check: Any, value: Any, depth: int) -> Any:
    try:
        return check.validate_python(value)
    except ValidationError:
        if not _is_even(value, depth):
            raise PydanticCustomError("depths", "its rows are nested to different depths") from None
        raise


def _is_even(value: Any, depth: int) -> bool:
    if depth == 0 or not isinstance(value, list):
        return depth == 0 and not isinstance(value, list)
    return all(_is_even(item, depth - 1) for item in value)


def _nest(element: Any, depth: int) -> Any:
    schema = element
    for _ in range(depth):
        schema = core_schema.list_schema(schema)
    return build_alone(SchemaValidator, tighten(schema))


def _make_failure(error: Exception) -> PydanticCustomError:
    if isinstance(error, PydanticCustomError):
        return error
    reason = describe_error(error).partition("\n")[0]
    if "inhomogeneous" in reason:
        reason = "its rows have different lengths"
    return PydanticCustomError("data", "{reason}", {"reason": reason})
