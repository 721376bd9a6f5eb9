"""One column of a table that clients send: its type hint or dtype, and the check of its values.

Runs in the user's kernel: at definition, and wherever a call's tables are checked. No data library
is imported.
"""

from __future__ import annotations

import datetime as dt
import re
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal, Optional, Union, cast, get_args, get_origin

from msgspec import Struct
from pydantic import Field, TypeAdapter, WithJsonSchema
from pydantic_core import (
    InitErrorDetails,
    PydanticCustomError,
    SchemaValidator,
    ValidationError,
    core_schema,
)

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.schemas.annotations import translate_hint
from mcp_notebook.kernel.schemas.argument_rules import tighten
from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone, rewrite
from mcp_notebook.kernel.schemas.pydantic_json_schemas import SchemaGenerator, drop_infinite

_NONE = type(None)
_KINDS: tuple[tuple[str, Any], ...] = (
    ("u?int", int),
    ("float|double|halffloat", float),
    ("bool|boolean", bool),
    ("str|string|utf8|large_string", str),
    ("datetime|timestamp", dt.datetime),
    ("timedelta|duration", dt.timedelta),
    ("date", dt.date),
    ("category|categorical|enum|object|dictionary", Any),
)
"""Patterns for names of dtypes without their size, and the type of the values."""
_EXACT_KINDS = (int, bool, str, bytes, dt.date, dt.datetime, dt.timedelta, dt.time)
"""Types that every library takes without conversion."""
_SIZED_INTEGER = re.compile(r"(u?)int(8|16|32|64)(?:\[.*\])?", re.IGNORECASE)
_WORD = re.compile(r"([A-Za-z_]+?)_?\d*(?:[\[(<].*)?")
_LONG = 64
"""Bits of integers whose limits would clutter a schema."""
_NANOSECONDS = re.compile(r"[.,]\d{6}(?=\d*[1-9])\d+(?![\dDHMW])")
"""Decimals of a second beyond the six that pydantic keeps; it would drop the others."""
_ZONE_REASONS = {
    True: "it needs a time zone, '2024-12-31T23:59:00Z'",
    False: "no time zone is allowed, '2024-12-31T23:59:00'",
    None: "some values of this column have a time zone and some have none",
}
"""Messages by whether the dtype needs a time zone; None: without a dtype."""


class Column(Struct, frozen=True, dict=True):
    """One column of a table."""

    name: str
    hint: Any
    """The type of each value."""
    dtype: Any = None
    """The library's own dtype; None: the dtype for the type hint."""

    @cached_property
    def is_optional(self) -> bool:
        """Whether values may be missing."""
        hint = _unwrap(self.hint)
        return hint is Any or type(None) in get_args(hint)

    @cached_property
    def kind(self) -> Any:
        """The type of the values that are not missing; Any if there are several types."""
        return self._option if isinstance(self._option, type) else Any

    @cached_property
    def plain_kind(self) -> Any:
        """The type of the values that `make_plain` returns."""
        if get_origin(self._option) is Literal:
            values = get_args(self._option)
        elif isinstance(self._option, type) and issubclass(self._option, Enum):
            values = tuple(member.value for member in self._option)
        else:
            return self.kind
        kinds = {type(value) for value in values if value is not None}
        return kinds.pop() if len(kinds) == 1 else Any

    @cached_property
    def _option(self) -> Any:
        hint = _unwrap(self.hint)
        is_union = get_origin(hint) in (Union, types.UnionType)
        options = [
            _unwrap(item) for item in (get_args(hint) if is_union else (hint,)) if item is not _NONE
        ]
        return options[0] if len(options) == 1 else Any

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of each value."""
        core = TypeAdapter(self.hint).core_schema
        plain = drop_infinite(SchemaGenerator(by_alias=True).generate(core))
        return dict(_inline(plain, plain.get("$defs", {})))

    @cached_property
    def _list_type(self) -> TypeAdapter[Any]:
        list_of: Any = list
        return TypeAdapter(list_of[self.hint])

    @cached_property
    def _validator(self) -> SchemaValidator:
        core = refuse_nanoseconds(self._list_type.core_schema)
        return build_alone(SchemaValidator, tighten(core))

    def check(self, values: list[Any]) -> list[Any]:
        """Return the values of a column, validated and converted.

        Raises:
            ValidationError: The location of each problem begins with its row.
        """
        checked: list[Any] = self._validator.validate_python(values)
        # Compare the lists first, which is many times faster.
        is_exact = self.kind in _EXACT_KINDS or (self.kind is float and values == checked)
        if not is_exact:
            _refuse(
                [row for row, value in enumerate(checked) if is_rounded(values[row], value)],
                values,
                "it would be rounded: floats are exact only up to 9007199254740992",
            )
        if self.kind is not dt.datetime:
            return checked
        return _align_zones(checked, values, needs_zone=self._needs_zone)

    @property
    def _needs_zone(self) -> bool | None:
        if self.dtype is None:
            return None
        name = find_dtype_name(self.dtype) or ""
        return "," in name.replace(", time_zone=None", "") or ", tz=" in name

    def make_plain(self, values: list[Any]) -> list[Any]:
        """Return checked values in their JSON types, for libraries whose columns have one type."""
        if self.kind is float or self.kind in _EXACT_KINDS:
            return values
        return list(map(_make_plain, self._list_type.dump_python(values, warnings=False)))


def read_column(name: str, kind: Any) -> Column:
    """Return the column that a type hint or a dtype describes.

    Raises:
        DefinitionError: It is neither, or JSON has no such values.
    """
    dtype_name = find_dtype_name(kind)
    if dtype_name is None:
        column = Column(name, translate_hint(kind))
    else:
        hint = _find_hint(dtype_name)
        is_moment = dtype_name in ("Timestamp", "Timedelta")  # classes of values, not dtypes
        # pandas' own dtypes (capitalised, or of Arrow) can hold missing values.
        can_miss = dtype_name[:1].isupper() or "[pyarrow]" in dtype_name
        can_miss |= dtype_name.startswith(("boolean", "string", "category", "dictionary"))
        can_miss &= not is_moment
        column = Column(
            name,
            Optional[hint] if can_miss else hint,  # noqa: UP045
            None if is_moment else kind,
        )
    try:
        _ = column.schema
    except Exception as error:
        raise DefinitionError(
            f"`Columns`: the type of `{name}`, {kind!r}, is neither a dtype nor a type hint that "
            "JSON can express: use `float`, `str | None`, `date`, `'float32'`..."
        ) from error
    return column


# -- dtypes ----------------------------------------------------------------------------------------


def find_dtype_name(kind: Any) -> str | None:
    """Return a dtype's name as its library writes it; None for anything else."""
    if isinstance(kind, str):
        numpy = find_imported("numpy")
        try:  # `f8` and `M8[ns]` are short for `float64` and `datetime64[ns]`
            return str(numpy.dtype(kind).name) if numpy is not None else kind
        except TypeError:
            return kind
    if get_library_name(kind) not in ("numpy", "pandas", "polars", "pyarrow"):
        return None
    if isinstance(kind, type):
        return kind.__name__.removesuffix("_")
    name = getattr(kind, "name", None)
    return name if isinstance(name, str) else str(kind)


def get_library_name(kind: Any) -> str:
    """Return the name of the package that defines a dtype."""
    owner = kind if isinstance(kind, type) else type(kind)
    return owner.__module__.partition(".")[0]


def _find_hint(name: str) -> Any:
    """Return the type hint of a dtype's values; NotImplemented if JSON has none."""
    if size := _SIZED_INTEGER.fullmatch(name):
        bits = int(size[2])
        low, high = (0, 2**bits - 1) if size[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        checked = Annotated[int, Field(ge=low, le=high)]
        published = describe_long_integer(low, bits)
        return checked if published is None else Annotated[checked, WithJsonSchema(published)]
    word = _WORD.fullmatch(name)
    for pattern, hint in _KINDS:
        if word is not None and re.fullmatch(pattern, word[1], re.IGNORECASE):
            return hint
    return NotImplemented  # pydantic has no schema for it


def describe_long_integer(low: int, bits: int) -> dict[str, Any] | None:
    """Return the JSON Schema of 64-bit integers, without their limits; None for smaller ones.

    Args:
        low: The smallest integer.
        bits: The size of an integer.
    """
    if bits < _LONG:
        return None
    return {"type": "integer"} | ({} if low else {"minimum": 0})


# -- values that a conversion would change ---------------------------------------------------------


def is_rounded(sent: Any, value: Any) -> bool:
    """Return whether a whole number, also in a string or a list, was rounded to a float."""
    if type(value) is float and type(sent) in (int, str):
        with suppress(ValueError):  # a string with decimals
            return value != int(sent)
    if type(value) is list and type(sent) is list:
        return any(map(is_rounded, sent, value))
    return False


def refuse_nanoseconds(schema: Any) -> Any:
    """Return a core schema that refuses timestamps and durations finer than microseconds."""

    def change(original: Mapping[str, Any], changed: dict[str, Any]) -> Any:
        if original["type"] not in ("datetime", "timedelta", "time"):
            return changed
        reference = changed.pop("ref", None)
        core = cast("core_schema.CoreSchema", changed)
        return core_schema.no_info_before_validator_function(_refuse_digits, core, ref=reference)

    return rewrite(schema, change)


def _refuse_digits(value: Any) -> Any:
    if isinstance(value, str) and _NANOSECONDS.search(value):
        raise PydanticCustomError("fraction", "the smallest unit is the microsecond")
    return value


def refuse_zone(moment: dt.datetime) -> dt.datetime:
    """Return a timestamp, which must not have a time zone.

    Raises:
        PydanticCustomError: It has one.
    """
    if moment.tzinfo is not None:
        raise PydanticCustomError("time_zone", "{reason}", {"reason": _ZONE_REASONS[False]})
    return moment


def _align_zones(
    moments: Sequence[Any], cells: Sequence[Any], *, needs_zone: bool | None
) -> list[Any]:
    """Return the timestamps of a column, all in UTC or all without a time zone.

    Args:
        moments: Each a datetime or None.
        cells: The values as sent.
        needs_zone: Whether the column's dtype has a time zone; None: as the first timestamp.

    Raises:
        ValidationError: Names the rows that differ.
    """
    has_zones = [None if item is None else item.tzinfo is not None for item in moments]
    first = next((has_zone for has_zone in has_zones if has_zone is not None), False)
    is_aware = first if needs_zone is None else needs_zone
    rows = [row for row, has_zone in enumerate(has_zones) if has_zone is (not is_aware)]
    _refuse(rows, cells, _ZONE_REASONS[needs_zone])
    if not is_aware:
        return list(moments)
    aligned = list(map(_move_to_utc, moments))
    rows = [row for row, item in enumerate(aligned) if item is NotImplemented]
    _refuse(rows, cells, "in UTC it is outside the years 1 to 9999")
    return aligned


def _move_to_utc(moment: Any) -> Any:
    try:
        return None if moment is None else moment.astimezone(dt.UTC)
    except OverflowError:
        return NotImplemented


def _refuse(rows: Sequence[int], cells: Sequence[Any], reason: str) -> None:
    if rows:
        error = PydanticCustomError("column", "{reason}", {"reason": reason})
        raise ValidationError.from_exception_data(
            "column", [InitErrorDetails(type=error, loc=(row,), input=cells[row]) for row in rows]
        )


def _make_plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    is_several = isinstance(value, (list, tuple, set, frozenset))
    return list(map(_make_plain, value)) if is_several else value


# -- the schema of a column ------------------------------------------------------------------------


def _inline(schema: Any, definitions: Mapping[str, Any], around: tuple[str, ...] = ()) -> Any:
    """Return a schema with its references inlined, since a column has no place for definitions."""
    if isinstance(schema, list):
        return [_inline(item, definitions, around) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" not in schema:
        return {
            key: _inline(item, definitions, around)
            for key, item in schema.items()
            if key != "$defs"
        }
    name = schema["$ref"].rpartition("/")[2]
    if name in around:  # a recursive model
        return {}
    return _inline(definitions[name], definitions, (*around, name))


def _unwrap(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
