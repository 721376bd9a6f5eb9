"""Gives the classes of the data libraries their core schemas, wherever they stand in a type hint.

Runs in the user's kernel, at definition. For an unknown class, pydantic's schema requires an
instance. If the class is a table, a series, an array, a timestamp or a number of a data library, it
is replaced by a schema with a JSON form.
"""

import sys
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import WithJsonSchema
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import core_schema

from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.schemas.pydantic_core_schemas import VALUE_KEYS, rewrite, walk_schemas
from mcp_notebook.kernel.schemas.tables.arrays import (
    ElementType,
    convert_after,
    make_array_schema,
    make_number_schema,
)
from mcp_notebook.kernel.schemas.tables.columns import Columns, make_data_schema

_UNIONS = (Union, types.UnionType)


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
        return Annotated[numpy.ndarray, ElementType(dtype)] if usable else numpy.ndarray
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


def _offer_part(_schema: Mapping[str, Any], changed: dict[str, Any]) -> Any:
    if changed["type"] != "is-instance" or not isinstance(changed.get("cls"), type):
        return changed
    offered = _make_schema(changed["cls"])
    if offered is None:
        return changed
    if "ref" in changed:
        offered = {**offered, "ref": changed["ref"]}
    if metadata := changed.get("metadata"):
        offered = {**offered, "metadata": {**offered.get("metadata", {}), **metadata}}
    return offered


def _make_schema(kind: type) -> Any:
    """Return the core schema of a data library's class; None for any other class."""
    pandas, numpy = find_imported("pandas"), find_imported("numpy")
    if pandas is not None and kind is pandas.Timestamp:
        return convert_after(kind, core_schema.datetime_schema())
    if pandas is not None and kind is pandas.Timedelta:
        return convert_after(kind, core_schema.timedelta_schema())
    if numpy is not None and kind is numpy.ndarray:
        return make_array_schema(numpy, None)
    if numpy is not None and issubclass(kind, numpy.generic):
        return make_number_schema(numpy, kind)
    return make_data_schema(kind)
