"""One column of a table that clients send: a type hint or a dtype, and the check of its values.

Runs in the user's kernel: at definition, and where a call's tables are checked. No library of
tables is imported.
"""

from __future__ import annotations

import datetime as dt
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Optional, Union, get_args, get_origin

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.annotations import translate_hint
from mcp_notebook.kernel.schemas.argument_rules import tighten
from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone
from mcp_notebook.kernel.schemas.pydantic_json_schemas import SchemaGenerator, drop_infinite
from mcp_notebook.kernel.schemas.tables.column_shapes import Shape, read_shape
from mcp_notebook.kernel.schemas.tables.dtypes import (
    find_dtype_name,
    find_hint,
    find_unit,
    has_zone,
    refuse_rounding,
)
from mcp_notebook.kernel.schemas.tables.exact_moments import keep_digits
from mcp_notebook.kernel.schemas.tables.time_zones import align_zones

_NONE = type(None)


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    hint: Any
    """The type of each value."""
    dtype: Any = None
    """The library's own; None: the one that fits the type."""
    unit: str = "us"
    """What moments and durations are counted in: ``s``, ``ms``, ``us`` or ``ns``."""

    @cached_property
    def is_optional(self) -> bool:
        """Whether values may be missing."""
        hint = _unwrap(self.hint)
        return hint is Any or type(None) in get_args(hint)

    @cached_property
    def kind(self) -> Any:
        """The type of values that are not missing; Any if there are several."""
        hint = _unwrap(self.hint)
        is_union = get_origin(hint) in (Union, types.UnionType)
        options = [
            _unwrap(item) for item in (get_args(hint) if is_union else (hint,)) if item is not _NONE
        ]
        return options[0] if len(options) == 1 and isinstance(options[0], type) else Any

    @property
    def is_time(self) -> bool:
        """Whether its values are moments or durations."""
        return self.kind is dt.datetime or self.kind is dt.timedelta

    @cached_property
    def shape(self) -> Shape:
        """What its values are like where no library has a dtype by the name of their type."""
        return read_shape(self.hint)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of each value."""
        plain = drop_infinite(SchemaGenerator(by_alias=True).generate(self._adapter.core_schema))
        return dict(_inline(plain, plain.get("$defs", {})))

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.hint)

    @cached_property
    def _validator(self) -> SchemaValidator:
        core: Any = {
            "type": "list",
            "items_schema": refuse_rounding(keep_digits(self._adapter.core_schema, self.unit)),
        }
        return build_alone(SchemaValidator, tighten(core))

    def check(self, values: list[Any]) -> list[Any]:
        """Return the values of a column in their types.

        Raises:
            ValidationError: The location of each problem begins with its row.
        """
        checked: list[Any] = self._validator.validate_python(values)
        if self.kind is not dt.datetime:
            return checked
        name = None if self.dtype is None else find_dtype_name(self.dtype)
        return align_zones(checked, values, needs_zone=None if name is None else has_zone(name))


def read_column(name: str, kind: Any) -> Column:
    """Return the column that a type hint or a dtype describes.

    Raises:
        DefinitionError: It is neither.
    """
    dtype_name = find_dtype_name(kind)
    if dtype_name is None:
        column = Column(name, translate_hint(kind))
    else:
        hint = find_hint(dtype_name)
        # pandas' own dtypes begin with a capital, or are of Arrow: they have missing values.
        is_nullable = dtype_name in ("boolean", "string", "category") or "[pyarrow]" in dtype_name
        can_miss = dtype_name[:1].isupper() or is_nullable
        is_moment = dtype_name in ("Timestamp", "Timedelta")  # values, no dtypes
        can_miss = can_miss and not is_moment
        column = Column(
            name,
            Optional[hint] if can_miss else hint,  # noqa: UP045
            None if is_moment else kind,
            "ns" if is_moment else find_unit(dtype_name),
        )
    try:
        _ = column.schema
    except Exception as error:
        raise DefinitionError(
            f"`Columns`: the type of `{name}`, {kind!r}, is neither a type hint that JSON has "
            "values for nor a dtype: use `float`, `str | None`, `date`, `'float32'`..."
        ) from error
    return column


def _inline(schema: Any, definitions: Mapping[str, Any], around: tuple[str, ...] = ()) -> Any:
    """Return a schema with its definitions in their places, which tables have no room for."""
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
    if name in around:  # a model that contains itself
        return {}
    return _inline(definitions[name], definitions, (*around, name))


def _unwrap(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
