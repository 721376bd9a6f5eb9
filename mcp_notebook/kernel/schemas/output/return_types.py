"""A return annotation becomes a JSON Schema, and results become JSON that matches it, by pydantic.

Runs in the user's kernel: schemas at definition, conversions wherever the call ran. A `ReturnType`
is immutable, so that calls on several threads share it.

More is accepted than by pydantic: scalars of numpy and pandas, arrays as lists, a Series as a list
or a dict, a table as a list of rows, keys that are not text. NaN and infinity become null, and the
schema of each number allows null: the mean of an empty column is a valid result. Parts annotated
with ``Any`` are converted by `kernel.safe.to_json`. Fields with ``repr=False`` are left out.
"""

import collections.abc
import inspect
import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Flag
from pathlib import PurePath
from typing import Annotated, Any, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticCustomError, SchemaSerializer, SchemaValidator, core_schema
from typing_extensions import is_typeddict

from mcp_notebook.content import Audio, Image, Message, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.moments import format_nanoseconds
from mcp_notebook.kernel.safe.stand_ins import (
    find_hidden_names,
    has_names_only,
    is_record,
    name_parts,
    read_member,
    read_scalar,
)
from mcp_notebook.kernel.safe.tabular_data import (
    is_missing,
    is_pandas_text,
    is_plain_series,
    is_plain_table,
    list_elements,
    list_records,
    shorten_floats,
)
from mcp_notebook.kernel.safe.text import encode_bytes, replace_surrogates, safe_repr
from mcp_notebook.kernel.safe.to_json import to_structured
from mcp_notebook.kernel.schemas.annotations import is_alias
from mcp_notebook.kernel.schemas.pydantic_core_schemas import build_alone, rewrite, walk_schemas
from mcp_notebook.kernel.schemas.pydantic_json_schemas import SchemaGenerator, drop_infinite

MAX_ITEMS = 1_000_000
"""Elements of one part annotated with ``Any``; the limit for a whole result is far lower."""
_SCALARS = frozenset(
    {"int", "bool", "date", "datetime", "time", "timedelta", "decimal", "uuid", "literal", "enum"}
)
_MOMENTS = frozenset({"date", "datetime", "time", "timedelta"})
_PLAIN = frozenset({int, float, bool, str})
_LISTS = frozenset({"list", "tuple", "set", "frozenset", "generator"})
_CUSTOM_SCHEMA = ("pydantic_js_annotation_functions", "pydantic_js_extra", "pydantic_js_updates")
_INSTANCES = frozenset({"model", "dataclass"})
"""Types whose instances pydantic does not validate again, though their fields may have changed."""
_NOT_REBUILT = ("validation_alias", "serialization_exclude", "init_only")
"""Marks of fields that an instance has under another name, with any value, or not at all."""
_DEFAULT_SCHEMA: Any = BaseModel.__get_pydantic_json_schema__


@dataclass(frozen=True)
class ReturnType:
    """The type of a function's results, by its return annotation."""

    schema: dict[str, Any]
    """JSON Schema 2020-12, as published; the root may be of any type."""
    is_proven: bool
    """Whether results of `convert` always match `schema`, so that no check is needed."""
    _validator: SchemaValidator = field(repr=False, compare=False)
    _serializer: SchemaSerializer = field(repr=False, compare=False)

    def convert(self, value: Any) -> Any:
        """Return the JSON value.

        Raises:
            ValidationError: The value is of another type.
            Exception: Whatever a validator or serializer of the author's raises.
        """
        return self.dump(self._validator.validate_python(value, by_alias=True, by_name=True))

    def dump(self, value: Any) -> Any:
        """Return the JSON value of a value that was validated.

        Raises:
            Exception: Whatever a serializer of the author's raises; it contains itself.
        """
        plain = self._serializer.to_python(
            value, mode="json", by_alias=True, warnings=False, fallback=_to_structured
        )
        return _make_plain(plain)


def read_return_type(annotation: Any) -> ReturnType:
    """Read a resolved return annotation.

    Raises:
        Exception: pydantic has no schema for it, or whatever code of the author's raises.
    """
    core: Any = _leave_out_hidden(TypeAdapter(annotation).core_schema)
    schema = _ReturnSchema(by_alias=True).generate(core, mode="serialization")
    schema.pop("title", None)
    proven = not any(map(_is_custom, walk_schemas(core)))
    looser = _revalidate_instances(_loosen(core)) if proven else _loosen(core)
    validator = build_alone(SchemaValidator, looser)
    serializer = build_alone(SchemaSerializer, looser)
    # Through JSON and back: an author's `json_schema_extra` may hold anything.
    plain = json.loads(json.dumps(drop_infinite(schema), allow_nan=False))
    return ReturnType(plain, proven, validator, serializer)


class _ReturnSchema(SchemaGenerator):
    def float_schema(self, schema: core_schema.FloatSchema) -> dict[str, Any]:
        plain = super().float_schema(schema)
        return (
            plain if schema.get("allow_inf_nan") is False else {**plain, "type": ["number", "null"]}
        )


# -- values accepted in addition to pydantic's -----------------------------------------------------


def _leave_out_hidden(schema: Any) -> Any:
    """Return a core schema without the fields that their class keeps out of its repr."""

    def change(original: Mapping[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
        hidden = find_hidden_names(original["cls"]) if original["type"] in _INSTANCES else ()
        if not hidden:
            return changed
        part = changed["schema"]
        while "fields" not in part and isinstance(part.get("schema"), dict):
            part = part["schema"]  # below the validators of the whole
        fields = part.get("fields", {})
        named = fields.items() if isinstance(fields, dict) else [(f["name"], f) for f in fields]
        for name, item in named:
            if name in hidden:
                item["serialization_exclude"] = True
        return changed

    return rewrite(schema, change)


def _loosen(schema: Any) -> Any:
    """Return a core schema that accepts the values in the module's docstring, at any depth."""
    return rewrite(schema, _loosen_part)


def _loosen_part(schema: Mapping[str, Any], changed: dict[str, Any]) -> Any:
    kind = schema["type"]
    serializer = _choose_serializer(kind, schema)
    if serializer is not None:
        changed.setdefault("serialization", serializer)
    if kind == "dict" and not _is_bare(schema):
        if schema.get("keys_schema", {}).get("type") in ("str", "any"):
            changed["keys_schema"] = _run_before(_convert_key, changed["keys_schema"])
        reference = changed.pop("ref", None)
        return core_schema.no_info_wrap_validator_function(
            _convert_whole_mapping, cast("core_schema.CoreSchema", changed), ref=reference
        )
    check = _choose_check(kind)
    return changed if check is None else _run_before(check, changed)


def _revalidate_instances(schema: Any) -> Any:
    """Return a core schema that validates instances again: their fields may have changed."""

    def change(original: Mapping[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
        if original["type"] in _INSTANCES:
            changed["revalidate_instances"] = "always"
        return changed

    return rewrite(schema, change)


def _run_before(function: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    schema = dict(schema)
    reference = schema.pop("ref", None)
    core = cast("core_schema.CoreSchema", schema)
    return core_schema.no_info_before_validator_function(function, core, ref=reference)


def _choose_serializer(kind: str, schema: Mapping[str, Any]) -> Any:
    if kind == "any" or (kind == "dict" and _is_bare(schema)):
        return core_schema.plain_serializer_function_ser_schema(_to_structured)
    if kind == "bytes":
        return core_schema.plain_serializer_function_ser_schema(_write_bytes)
    if kind == "enum" and not issubclass(schema["cls"], Flag) and has_names_only(schema["cls"]):
        return core_schema.plain_serializer_function_ser_schema(read_member)
    if kind in _MOMENTS:
        return core_schema.wrap_serializer_function_ser_schema(_write_moment)
    return None


def _is_bare(schema: Mapping[str, Any]) -> bool:
    parts = (schema.get("keys_schema", {}), schema.get("values_schema", {}))
    return all(part.get("type", "any") == "any" for part in parts)


def _choose_check(kind: str) -> Callable[[Any], Any] | None:
    """Return the conversion that runs before the schema of this type."""
    if kind in _SCALARS:
        return _convert_scalar
    if kind in _LISTS:
        return _convert_list
    # The keys of a bare dict become text only on serialization.
    checks = {
        "nullable": _convert_missing,
        "float": _convert_float,
        "str": _convert_text,
        "dict": _convert_mapping,
        "typed-dict": _convert_mapping,
        "model": _convert_row,
        "dataclass": _convert_row,
    }
    return checks.get(kind)


def _to_structured(value: Any) -> Any:
    return to_structured(value, MAX_ITEMS)


def _write_bytes(value: Any) -> Any:
    return (
        encode_bytes(bytes(value))
        if isinstance(value, (bytes, bytearray))
        else _to_structured(value)
    )


def _write_moment(value: Any, write: Callable[[Any], Any]) -> Any:
    return None if is_missing(value) else format_nanoseconds(value) or write(value)


def _convert_scalar(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if is_missing(value):
        return None
    return read_scalar(value) if is_instance(value, "numpy.generic") else value


def _convert_missing(value: Any) -> Any:
    return None if is_missing(value) else value


def _convert_float(value: Any) -> Any:
    return math.nan if is_missing(value) else _convert_scalar(value)


def _convert_text(value: Any) -> Any:
    is_text = isinstance(value, (PurePath, UUID)) or is_pandas_text(value)
    return str(value) if is_text else value


def _convert_key(key: Any) -> Any:
    if isinstance(key, str):
        return str.__str__(key)
    if type(key) is int:  # as below, in a hundredth of the time
        return str(key)
    [name] = _to_structured({key: None})
    return name


def _convert_list(value: Any) -> Any:
    if is_instance(value, "pandas.DataFrame") or is_plain_table(value):
        return list_records(value)
    if is_instance(value, "numpy.ndarray") or is_plain_series(value):
        return list_elements(value)
    is_series = is_instance(value, "pandas.Series")
    return shorten_floats(value.tolist(), value.dtype) if is_series else value


def _convert_mapping(value: Any) -> Any:
    """Return a record, a database row or a Series as a dict; refuse repeated labels."""
    if type(value) is dict:
        return value
    if not is_instance(value, "pandas.Series"):
        named = name_parts(value)
        return value if named is None else named
    if not value.index.is_unique:
        message = (
            "the Series has the label {label} more than once, but keys are unique: combine "
            "its rows, or return all rows (`.reset_index()`, `-> list[dict]`)"
        )
        label = safe_repr(value.index[value.index.duplicated()][0])
        raise PydanticCustomError("same_labels", message, {"label": label})
    return value.to_dict()


def _convert_row(value: Any) -> Any:
    """Return a database row as a dict, for a model to be made from."""
    named = None if isinstance(value, Mapping) or is_record(value) else name_parts(value)
    return value if named is None else named


def _convert_whole_mapping(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Refuse keys that are the same in JSON, such as 1 and "1"."""
    value = _convert_mapping(value)
    converted = validate(value)
    names = converted if len(set(map(type, converted))) < 2 else set(map(_convert_key, converted))  # noqa: PLR2004
    lost = len(value) - len(names)
    if lost > 0:
        raise PydanticCustomError(
            "same_keys", "{count} of its keys are the same in JSON", {"count": lost + 1}
        )
    return converted


# -- proofs and JSON -------------------------------------------------------------------------------


def _is_custom(schema: Mapping[str, Any]) -> bool:
    """Return whether this part may be serialized unchecked, or by the author's code."""
    kind = schema["type"]
    # pydantic serializes the result of a function unchecked.
    if kind.startswith("function-") or kind == "computed-field":
        return True
    if kind == "enum" and issubclass(
        schema["cls"], Flag
    ):  # combinations of members are members too
        return True
    if schema.get("init") is False:  # set by the dataclass's own code
        return True
    if kind in _INSTANCES and not _can_be_rebuilt(schema):
        return True
    # The author's code may define the serialization or the schema.
    if "serialization" in schema or any(schema.get(key) for key in _NOT_REBUILT):
        return True
    metadata = schema.get("metadata") or {}
    return isinstance(metadata, dict) and any(metadata.get(key) for key in _CUSTOM_SCHEMA)


def _can_be_rebuilt(schema: Mapping[str, Any]) -> bool:
    """Return whether an instance rebuilt from its fields is equal, with the default schema."""
    kind = schema["cls"]
    schema_method = getattr(kind, "__get_pydantic_json_schema__", None)
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    return (
        getattr(schema_method, "__func__", None) is getattr(_DEFAULT_SCHEMA, "__func__", None)
        if issubclass(kind, BaseModel)
        else schema_method is None
    ) and not (
        schema.get("post_init")
        or schema.get("custom_init")
        # Cached properties in the instance's dict would count as extra fields.
        or schema.get("config", {}).get("extra_fields_behavior", "ignore") != "ignore"
        or config.get("json_schema_extra")
    )


def _make_plain(value: Any) -> Any:
    """Return pydantic's output without NaN, infinity and lone surrogates."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {replace_surrogates(key): _make_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_make_plain(item) for item in value]
    return value


# -- annotations of tables and plots ---------------------------------------------------------------


_DISPLAYED = (Result, Message, Text, Image, Audio, Resource, ResourceLink)
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
_LIBRARY_TYPES: dict[tuple[str, str], Any] = {
    ("pandas", "DataFrame"): list[dict[str, Any]],
    ("polars", "DataFrame"): list[dict[str, Any]],
    ("pyarrow", "Table"): list[dict[str, Any]],
    ("pyarrow", "RecordBatch"): list[dict[str, Any]],
    ("duckdb", "DuckDBPyRelation"): list[dict[str, Any]],
    ("_duckdb", "DuckDBPyRelation"): list[dict[str, Any]],
    ("polars", "Series"): list,
    ("pandas", "Series"): dict[str, Any],
    ("numpy", "ndarray"): list,
}
"""Types of the data libraries, with the type of their JSON."""
_PLOTTING = frozenset({"plotly", "altair", "bokeh"})
"""Libraries whose types are plots."""


def describes_view(annotation: Any) -> bool:
    """Return whether a live view can show what a return annotation describes.

    That is a table of a data library, a list of dicts, or a plot of plotly, altair or bokeh.
    """
    annotation = _unwrap(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(map(describes_view, arguments))
    kind = origin or annotation
    if kind is list:
        item = get_origin(arguments[0]) or arguments[0] if arguments else None
        return item is dict or is_typeddict(item)
    module = str(getattr(kind, "__module__", "")).partition(".")[0]
    return module in _PLOTTING or (module, getattr(kind, "__name__", "")) in _LIBRARY_TYPES


def translate_annotation(annotation: Any) -> Any:
    """Return an annotation with a data library's table replaced by a list of dicts.

    Raises:
        TypeError: It is a content block or `Result`, which the author builds.
    """
    bare = _unwrap(annotation)
    kind = get_origin(bare) or bare
    if _contains_displayed(bare):
        raise TypeError("it is built by hand and does not describe the data")
    if kind in _LAZY:
        return list[get_args(bare)[0]] if get_args(bare) else list  # type: ignore[misc]
    module = str(getattr(kind, "__module__", "")).partition(".")[0]
    return _LIBRARY_TYPES.get((module, getattr(kind, "__name__", "")), annotation)


def _contains_displayed(annotation: Any) -> bool:
    if inspect.isclass(annotation) and issubclass(annotation, _DISPLAYED):
        return True
    if get_origin(annotation) is not None and str(get_origin(annotation)) == "typing.Literal":
        return False
    return any(map(_contains_displayed, get_args(annotation)))


def _unwrap(annotation: Any) -> Any:
    """Return an annotation without aliases, ``Annotated`` and awaitables around it."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in _AWAITED and get_args(annotation):
            annotation = get_args(annotation)[-1]
        elif is_alias(annotation):
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation
