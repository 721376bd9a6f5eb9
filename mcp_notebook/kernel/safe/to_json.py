"""Any Python value as JSON: bounded, without cycles, never failing on what a value is.

Runs in the user's kernel, on the thread of the call. JSON is made for two readers: a model reads
text (`to_json_value`), a program reads a result's structured content (`to_structured`). The rules,
first match first; the third column where a program gets something else:

====================================  =================================  =======================
value                                 JSON in text                       in structured content
====================================  =================================  =======================
``Enum`` member                       its value
None, ``pd.NA``, ``pd.NaT``           null
bool, int, str                        as they are (an int too long to    strings keep control
                                      print: a sentence)                 characters and ANSI codes
float                                 as it is; "NaN", "Infinity",       null for these three
                                      "-Infinity" as strings
numpy scalar                          its Python value; its text where
                                      it has none (datetime64)
date, time, datetime, ``Timestamp``   ISO 8601 text
timedelta                             ISO 8601 text ("P1DT2H")
Decimal, UUID, Path, IP address       text
bytes, bytearray                      their text if they are UTF-8,      else base64 of all
                                      else their length and beginning
pydantic model                        what ``model_dump()`` says         under its aliases
dataclass, named tuple                an object of its fields
mapping                               an object; keys become text by
                                      these same rules
list, tuple, set, deque, range, view  an array
numpy array                           nested arrays; its shortened repr  nested arrays
                                      above 1,000 elements
DataFrame, Series; polars, pyarrow    its repr (within a larger value)   an array of objects, one a
tables; structured numpy array                                           row, pandas' index among
                                                                         them unless it only counts
polars Series, pyarrow arrays         its repr                           an array
anything else                         its repr, bounded
====================================  =================================  =======================

In text, long collections keep their beginning and end, with a sentence between. Structured content
is never cut: what is too large is refused. What is nested too deep, or contains itself, becomes
"..." in text and is refused in structured content.

Where a return annotation says what a part is, `kernel.schemas.return_types` converts it by the
annotation (a named tuple is an array there, a model has its own serializers), and these rules are
for the rest. What is no JSON at all (pictures, tables) is `kernel.results.converter`' business.
"""

import base64
import json
import math
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from mcp_notebook.kernel.safe.deadline import DeadlineExceeded, run_bounded
from mcp_notebook.kernel.safe.text import (
    clean_text,
    cut_text,
    describe_slow_value,
    is_instance,
    safe_repr,
)

MAX_DEPTH = 40
MAX_ARRAY = 1_000
"""Elements of a numpy array that are written out within a larger value."""
MAX_STRUCTURED_DEPTH = 100
"""Levels of structured content; clients' readers of JSON give up at some depth."""
MIN_TEXT = 200
"""Characters of a text that are kept however much came before it."""
_written = json.JSONEncoder(ensure_ascii=False).encode
_ONE_LINE = 100
_BYTES_SHOWN = 16

_AS_TEXT = (
    *(date, time, timedelta, Decimal, UUID, PurePath),
    *(IPv4Address, IPv6Address, IPv4Network, IPv6Network),
)
_BUILT_IN = frozenset({list, tuple, dict, set, frozenset, deque})
_ARRAYS = (list, tuple, AbstractSet, deque, range, KeysView, ValuesView, ItemsView)


def is_jsonable(value: Any) -> bool:
    """Tell whether a value has JSON of its own, beyond its repr."""
    known = (str, bool, int, float, Enum, bytes, bytearray, Mapping, BaseModel, *_AS_TEXT, *_ARRAYS)
    return (
        value is None
        or isinstance(value, known)
        or _is_dataclass(value)
        or is_instance(value, "numpy.generic")
        or is_missing(value)
    )


def is_missing(value: Any) -> bool:
    """Tell whether a value is one of pandas' marks of a missing one."""
    return is_instance(value, "pandas.api.typing.NAType") or is_instance(
        value, "pandas.api.typing.NaTType"
    )


def to_json_value(value: Any, max_items: int) -> Any:
    """Turn any value into one that `json.dumps` takes.

    Args:
        value: Anything.
        max_items: Elements to convert in all collections together.
    """
    return to_json_and_rest(value, max_items)[0]


def to_json_and_rest(value: Any, max_items: int) -> tuple[Any, bool]:
    """Do the same as `to_json_value`, and tell whether something was left out.

    Args:
        value: Anything.
        max_items: Elements to convert in all collections together, and characters of all texts;
            of each text that comes after these the ends are kept.
    """
    conversion = _Conversion(max_items)
    return conversion.convert(value), conversion.left_out


def to_structured(value: Any, max_items: int) -> Any:
    """Turn any value into JSON for a program: whole, or not at all.

    Args:
        value: Anything.
        max_items: Elements to convert in all collections together.

    Raises:
        TooLarge: There are more.
        TooDeep: It contains itself, or is nested too deep.
    """
    return _Exact(max_items).convert(value)


class TooLarge(Exception):
    """A value has more elements than structured content may have."""


def format_json(value: Any) -> str:
    """Write a JSON value compactly: on one line if short, else a line for each of its items."""
    line = _written(value)
    if len(line) <= _ONE_LINE:
        return line
    if isinstance(value, dict):
        items = [f" {_written(key)}: {_written(item)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + ",\n".join(f" {_written(i)}" for i in value) + "\n]"
    return line


class _Conversion:
    """One conversion: what is open (to see cycles) and how much may still be written."""

    _most_open = MAX_DEPTH

    def __init__(self, max_items: int) -> None:
        self.left_out = False
        """Something of the value is not said."""
        self._left = max_items
        self._room = max_items
        self._open: set[int] = set()

    def convert(self, value: Any) -> Any:
        try:
            return self._scalar(value)
        except (KeyboardInterrupt, TooLarge, TooDeep):
            raise
        except DeadlineExceeded as error:
            return describe_slow_value(value, error)
        except BaseException:  # noqa: BLE001 - the value's own methods may raise anything
            return safe_repr(value)

    def _endless(self, _value: Any) -> Any:
        return "..."

    def _text(self, value: str) -> str:
        shown = cut_text(str.__str__(value), max(self._room, MIN_TEXT), cleaned=False)
        self.left_out = self.left_out or str.__len__(value) > max(self._room, MIN_TEXT)
        self._room -= len(shown)
        return shown

    def _number(self, value: float) -> Any:
        return _number(value)

    def _bytes(self, value: bytes) -> str:
        return describe_bytes(value)

    def _scalar(self, value: Any) -> Any:  # noqa: PLR0911 - the table above, in its order
        if isinstance(value, Enum):
            return self.convert(value.value)
        if value is None or is_missing(value):
            return None
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return _integer(value)
        if isinstance(value, float):
            return self._number(value)
        if is_instance(value, "numpy.generic"):
            return self._numpy_scalar(value)
        if isinstance(value, _AS_TEXT):
            return clean_text(str(to_jsonable_python(value, fallback=str)))
        if isinstance(value, (bytes, bytearray)):
            return self._bytes(bytes(value))
        return self._nested(value)

    def _numpy_scalar(self, value: Any) -> Any:
        if is_instance(value, "numpy.datetime64") or is_instance(value, "numpy.timedelta64"):
            return str(value)  # item() would be nanoseconds as an int
        item = value.item()
        return str(value) if type(item) is type(value) else self.convert(item)

    def _nested(self, value: Any) -> Any:
        if id(value) in self._open or len(self._open) >= self._most_open:
            return self._endless(value)
        self._open.add(id(value))
        try:
            return self._opened(value)
        finally:
            self._open.discard(id(value))

    def _opened(self, value: Any) -> Any:
        if type(value) in _BUILT_IN:
            return self._container(value)
        return run_bounded(self._container, value)

    def _container(self, value: Any) -> Any:  # noqa: PLR0911 - as `_scalar`
        if isinstance(value, BaseModel):
            return self.convert(value.model_dump())
        if _is_dataclass(value):
            return self._object([(item.name, getattr(value, item.name)) for item in fields(value)])
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._object(list(zip(value._fields, value, strict=False)))
        if isinstance(value, _ARRAYS):
            return self._array(value)
        if is_instance(value, "numpy.ndarray") and value.size <= MAX_ARRAY:
            return self.convert(list_elements(value))
        return safe_repr(value)

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        shown, left_out = self._share(len(value))
        pairs: list[tuple[Any, Any]] = []
        for key in value:  # without a copy: it may be huge
            if len(pairs) == shown:
                break
            pairs.append((key, value[key]))
        result = self._object(pairs)
        if left_out:
            result["..."] = f"{left_out:,} more of {len(value):,} items"
        return result

    def _object(self, pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in pairs:
            name = self._key(key)
            # 1 and "1" are two keys in Python: losing one would be worse than a repr as a name.
            result[name if name not in result else safe_repr(key)] = self.convert(item)
        return result

    def _key(self, key: Any) -> str:
        if isinstance(key, tuple):
            return ", ".join(self._key(part) for part in key)
        name = self.convert(key)
        return name if isinstance(name, str) else _written(name)

    def _array(self, value: Any) -> list[Any]:
        shown, left_out = self._share(len(value))
        if not left_out:
            return [self.convert(item) for item in value]
        note = f"... {left_out:,} of {len(value):,} items left out ..."
        if not isinstance(value, Sequence):
            head = [self.convert(item) for item, _ in zip(value, range(shown), strict=False)]
            return [*head, note]
        tail = shown // 2
        first = [self.convert(value[index]) for index in range(shown - tail)]
        last = [self.convert(value[index]) for index in range(len(value) - tail, len(value))]
        return [*first, note, *last]

    def _share(self, size: int) -> tuple[int, int]:
        shown = min(size, max(self._left, 0))
        self.left_out = self.left_out or shown < size
        self._left -= shown
        return shown, size - shown


class TooDeep(ValueError):
    """A value contains itself, or is nested too deep."""


class _Exact(_Conversion):
    """The conversion for programs: what it cannot say whole it refuses."""

    _most_open = MAX_STRUCTURED_DEPTH

    def _text(self, value: str) -> str:
        return replace_surrogates(value)

    def _number(self, value: float) -> Any:
        plain = float(value)
        return plain if math.isfinite(plain) else None

    def _bytes(self, value: bytes) -> str:
        return encode_bytes(value)

    def _endless(self, value: Any) -> Any:
        why = "contains itself" if id(value) in self._open else "is nested too deep"
        raise TooDeep(f"a {type(value).__name__} in it {why}")

    def _opened(self, value: Any) -> Any:
        # For a program a part is said whole, however long that takes: not in place of it that it
        # took too long.
        return self._container(value)

    def _container(self, value: Any) -> Any:
        if isinstance(value, BaseModel):
            return self.convert(value.model_dump(by_alias=True))
        if is_instance(value, "numpy.ndarray") and not value.dtype.names:
            if value.size > self._left:
                raise TooLarge
            return self.convert(list_elements(value))
        if is_instance(value, "pandas.DataFrame") or is_instance(value, "pandas.Series"):
            self._share(value.size)
            return [self._object(list(row.items())) for row in list_records(value)]
        if is_table(value):
            self._share(math.prod(value.shape))
            return [self._object(list(row.items())) for row in list_records(value)]
        if is_series(value):
            self._share(len(value))
            return [self.convert(item) for item in list_elements(value)]
        return super()._container(value)

    def _share(self, size: int) -> tuple[int, int]:
        shown, left_out = super()._share(size)
        if left_out:
            raise TooLarge
        return shown, left_out


def is_table(value: Any) -> bool:
    """Tell whether a value is a table without an index, of which `list_records` makes rows."""
    paths = ("polars.DataFrame", "pyarrow.Table", "pyarrow.RecordBatch")
    is_structured = is_instance(value, "numpy.ndarray") and value.ndim == 1 and value.dtype.names
    return bool(is_structured) or any(is_instance(value, path) for path in paths)


def is_series(value: Any) -> bool:
    """Tell whether a value is a series without an index, of which `list_elements` makes a list."""
    paths = ("polars.Series", "pyarrow.Array", "pyarrow.ChunkedArray")
    return any(is_instance(value, path) for path in paths)


def list_elements(array: Any) -> Any:
    """Return the nested lists of an array or series; numpy's own would have bare ints for times."""
    if is_series(array):
        return array.to_list() if hasattr(array, "to_list") else array.to_pylist()
    kind = array.dtype.kind
    return (array.astype(f"{kind}8[us]") if kind in "mM" else array).tolist()


def list_records(table: Any) -> list[dict[Any, Any]]:
    """Return the rows of a table, pandas' index among their fields unless it counts.

    A name that comes a second time gets a number, so that no field is lost.
    """
    columns = _columns(table) if is_table(table) else _pandas_columns(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _columns(table: Any) -> dict[Any, list[Any]]:
    columns: dict[Any, list[Any]] = {}
    if is_instance(table, "numpy.ndarray"):
        return {name: list_elements(table[name]) for name in table.dtype.names}
    names = table.columns if is_instance(table, "polars.DataFrame") else table.schema.names
    for position, name in enumerate(names):
        columns[find_free_name(name, columns)] = list_elements(
            table.to_series(position)
            if is_instance(table, "polars.DataFrame")
            else table.column(position)
        )
    return columns


def _pandas_columns(table: Any) -> dict[Any, list[Any]]:
    frame = table
    if is_instance(table, "pandas.Series"):
        frame = table.to_frame("value" if table.name is None else table.name)
    columns: dict[Any, list[Any]] = {}
    if not is_instance(frame.index, "pandas.RangeIndex"):
        levels = range(frame.index.nlevels)
        for level in levels:
            name = frame.index.names[level]
            name = ("index" if len(levels) == 1 else f"level_{level}") if name is None else name
            columns[find_free_name(name, columns)] = list(frame.index.get_level_values(level))
    for position in range(frame.shape[1]):
        columns[find_free_name(frame.columns[position], columns)] = frame.iloc[:, position].tolist()
    return columns


def find_free_name(name: Any, taken: Mapping[Any, Any]) -> Any:
    """Return a name, with a number if there is one of that name already."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def replace_surrogates(value: str) -> str:
    """Return a text with nothing replaced but lone surrogates, which cannot be sent."""
    plain = str.__str__(value)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encode_bytes(data: bytes) -> str:
    """Return bytes as text where they are UTF-8, else as base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii")


def describe_bytes(data: bytes) -> str:
    """Return bytes as text where they are text, else their length and beginning."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and clean_text(text) == text:
        return text
    more = " ..." if len(data) > _BYTES_SHOWN else ""
    return f"<{len(data):,} bytes: {data[:_BYTES_SHOWN].hex(' ')}{more}>"


def _integer(value: int) -> int | str:
    plain = int(value)
    try:
        str(plain)
    except ValueError:  # more digits than sys.get_int_max_str_digits()
        return f"<an int of {plain.bit_length():,} bits, too long to print>"
    return plain


def _number(value: float) -> float | str:
    plain = float(value)
    if math.isnan(plain):
        return "NaN"
    if math.isinf(plain):
        return "Infinity" if plain > 0 else "-Infinity"
    return plain


def _is_dataclass(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
