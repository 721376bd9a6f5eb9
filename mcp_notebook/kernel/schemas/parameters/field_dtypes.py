"""Arrays within models, dataclasses, TypedDicts and named tuples keep the dtype of their hint.

Runs in the user's kernel, at definition. Pure. pydantic builds the schema of a class by itself, and
knows of ``NDArray[np.int8]`` only that it is an array; the class still has the hint.
"""

import sys
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.schemas.annotations import FIELD_HINTS
from mcp_notebook.kernel.schemas.pydantic_core_schemas import rewrite, walk_schemas
from mcp_notebook.kernel.schemas.tables.data_types import DTYPE, ArrayDtype, keep_dtypes

_CLASSES = frozenset({"model", "dataclass", "typed-dict", "named-tuple", "call"})
_FIELDS = frozenset({"model-fields", "dataclass-args", "typed-dict", "named-tuple", "arguments"})


def keep_field_dtypes(schema: Any) -> Any:
    """Return a core schema in which arrays in classes say the dtype of their field's hint."""
    if find_imported("numpy") is None:
        return schema
    # With Python 3.12 and numpy 2.5, `NDArray` is a type alias: fields may refer to what it is.
    references = {part.get("ref") for part in walk_schemas(schema) if _is_array(part)} - {None}
    return rewrite(schema, partial(_keep_in_class, references=references))


def _keep_in_class(
    schema: Mapping[str, Any], changed: dict[str, Any], *, references: Collection[Any]
) -> Any:
    if schema["type"] not in _CLASSES:
        return changed
    hints = _read_hints(changed)
    for name, field in _list_fields(changed):
        arrays = [part for part in walk_schemas(field) if _is_open_array(part, references)]
        dtypes = list(_list_dtypes(keep_dtypes(hints.get(name))))
        if len(dtypes) != len(arrays):  # an author's own schema, say, is in place of one
            dtypes = [None] * len(arrays)
        for array, dtype in zip(arrays, dtypes, strict=True):
            metadata = {**(array.get("metadata") or {}), DTYPE: dtype}
            part = cast("Any", array)  # `changed` is a copy, and so are its parts
            part.pop("schema_ref", None)
            part |= {"type": "is-instance", "cls": sys.modules["numpy"].ndarray}
            part["metadata"] = metadata
    return changed


def _is_array(schema: Mapping[str, Any]) -> bool:
    numpy: Any = sys.modules["numpy"]
    return schema["type"] == "is-instance" and schema.get("cls") is numpy.ndarray


def _is_open_array(schema: Mapping[str, Any], references: Collection[Any]) -> bool:
    """Tell whether this is an array whose class has not been looked at yet."""
    if schema["type"] == "definition-ref":
        return schema["schema_ref"] in references
    return _is_array(schema) and DTYPE not in (schema.get("metadata") or {})


def _read_hints(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    hints: Mapping[str, Any] | None = (schema.get("metadata") or {}).get(FIELD_HINTS)
    if hints is not None:
        return hints
    kind = schema.get("cls", schema.get("function"))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    try:
        return get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001 - hints of the author's, or names that are local to a function
        return {}


def _list_fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a class; validators may stand around them."""
    node: Any = schema
    while node is not None and node["type"] not in _FIELDS:
        if node.get("root_model"):
            yield "root", node["schema"]
            return
        node = node.get("schema", node.get("arguments_schema"))
    fields = (node or {}).get("fields", (node or {}).get("arguments_schema", ()))
    if isinstance(fields, Mapping):
        yield from fields.items()
    else:
        yield from ((field["name"], field) for field in fields)


def _list_dtypes(annotation: Any) -> Iterator[Any]:
    """Yield the dtype of each array in a type hint, in order; None for one without."""
    arguments, origin = get_args(annotation), get_origin(annotation)
    if annotation is sys.modules["numpy"].ndarray:
        yield None
    elif origin is Annotated:
        marks = [extra for extra in arguments[1:] if isinstance(extra, ArrayDtype)]
        yield from (mark.dtype for mark in marks)
        if not marks:
            yield from _list_dtypes(arguments[0])
    elif origin is not Literal:
        for argument in arguments:
            yield from _list_dtypes(argument)
