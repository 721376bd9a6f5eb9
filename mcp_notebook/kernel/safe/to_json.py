"""Converts any Python value to JSON, of limited size and without cycles, and never fails.

Runs in the user's kernel, on the thread of the call. JSON is made for two readers: a model reads
text (`to_json_value`), a program reads a result's structured content (`to_structured`). The first
matching rule applies; the third column is for structured content that differs:

====================================  =================================  =======================
value                                 JSON in text                       in structured content
====================================  =================================  =======================
``Enum`` member                       its value; its name if the values
                                      only count, as ``auto()`` does
None, ``pd.NA``, ``pd.NaT``,          null
``np.ma.masked``
bool, int, str                        as they are (an int too long to    strings keep control
                                      print: a sentence)                 characters and ANSI codes
float                                 as it is; "NaN", "Infinity",       null for these three
                                      "-Infinity" as strings
numpy scalar                          its Python value, with the digits of
                                      its own type (0.1); an object of its
                                      fields if it is structured
date, time, datetime, ``Timestamp``   ISO 8601 text, with all
timedelta                             nanoseconds ("P1DT2H")
Decimal, UUID, Path, IP address       text
pandas' ``Period``, ``Interval``      text ("2020-01", "(0, 1]")
bytes, bytearray                      their text if they are UTF-8,      else base64 of all
                                      else their length and beginning;
                                      in a file base64 of all
pydantic model                        what ``model_dump()`` says,        under its aliases
                                      without fields with ``repr=False``
record: dataclass, named tuple,       an object of its fields, without
attrs class, msgspec struct,          those with ``repr=False``; the text
                                      that its class wrote, if any of
                                      them is private
object of a class of the notebook     an object of its public attributes
that would be shown as an address
row of SQLite or SQLAlchemy, object   an object of its columns
that SQLAlchemy maps
mapping                               an object; keys become text by
                                      these same rules; of a ``Counter``
                                      the most common first
list, tuple, deque, range, view of a  an array
dict, array of ``array``
set                                   an array, sorted
numpy array                           nested arrays; its shortened repr  nested arrays
                                      above 1,000 elements
DataFrame, Series; polars, pyarrow    its repr (within a larger value)   an array of objects, one a
tables; structured numpy array;                                          row, pandas' index among
DuckDB relation                                                          them unless it only counts
pl.Series; arrays of Arrow, pandas    its repr                           an array
other objects that                    what the table says: WKT, a row,
`safe.stand_ins` knows                the source of an ``HTML``...
anything else                         its repr, without addresses, and
                                      with the notes of an exception; its
                                      str if only that was written, or the
                                      repr is an address; bounded
====================================  =================================  =======================

In text, long collections keep their beginning and end, with a note between. For structured content,
a value is converted whole, or refused as too large. A value that is nested too deep or contains
itself becomes "..." in text, and is refused in structured content.

Parts with a return annotation are converted by `kernel.schemas.output.return_types` (there a named
tuple is an array, and a model has its own serializers); these rules apply to all others.
"""

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from typing import Any, TypeAlias
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded, guard
from mcp_notebook.kernel.safe.libraries import claims_class, is_instance
from mcp_notebook.kernel.safe.moments import format_nanoseconds
from mcp_notebook.kernel.safe.sequences import (
    is_mapping,
    is_sequence,
    list_keys,
    order_items,
    take_ends,
)
from mcp_notebook.kernel.safe.stand_ins import (
    Reader,
    dump_model,
    find_reader,
    has_stand_in,
    is_record,
    list_fields,
    prints_itself,
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
)
from mcp_notebook.kernel.safe.text import (
    MAX_HEX,
    clean_text,
    cut_text,
    decode_text,
    describe_beginning,
    describe_binary,
    describe_slow_value,
    encode_bytes,
    replace_surrogates,
    safe_repr,
)

MAX_DEPTH = 40
MAX_ARRAY = 1_000
"""Elements of the largest numpy array that is written out within a larger value."""
MAX_STRUCTURED_DEPTH = 100
"""Maximum nesting of structured content, since JSON parsers of clients have a limit."""
MIN_TEXT = 200
"""Characters of a string that are always kept."""
LENGTHS = (20, 10, 6, 4)
"""Items of each list that are kept of a value with many parts, from the most."""
Summarize: TypeAlias = Callable[[Iterable[Any], int], str]
"""Says what is in the items of a list or mapping, of which there are so many; "" for nothing."""
_ONE_LINE = 100
_MAX_BYTES_PER_CHARACTER = 4
_GAP = re.compile(r"\.\.\.|…|(?<!\S)\.\.(?!\S)")
"""Marks left-out elements in the repr of an array or a table. pandas writes two dots in a narrow
column."""
_CUT = " left out"
"""Marks a repr that `cut_text` or `safe_repr` shortened."""

_AS_TEXT = (
    *(date, time, timedelta, Decimal, UUID, PurePath),
    *(IPv4Address, IPv6Address, IPv4Network, IPv6Network),
)
_SECONDS = ("[W]", "[D]", "[h]", "[m]", "[s]", "[ms]", "[us]", "[ns]")
"""Units of numpy's durations that have a length; those of months and years have none. Of moments,
weeks and days are dates without a time."""
_BUILT_IN = frozenset({list, tuple, dict, set, frozenset, deque})
_JSONABLE = (str, bool, int, float, Enum, bytes, bytearray, BaseModel, *_AS_TEXT)

_dump_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Writes no spaces: `{"n": 1}` has a third more tokens than `{"n":1}`."""


class TooLarge(Exception):
    """A value has more elements than structured content may have."""


class TooDeep(ValueError):
    """A value contains itself, or is nested too deep."""


def is_jsonable(value: Any) -> bool:
    """Return whether a value has a JSON form besides its repr."""
    return (
        value is None
        or isinstance(value, _JSONABLE)
        or is_mapping(value)
        or is_sequence(value)
        or is_record(value)
        or is_instance(value, "numpy.generic")
        or is_missing(value)
        or is_pandas_text(value)
        or has_stand_in(value)
    )


def to_json_value(value: Any, max_items: int) -> Any:
    """Convert any value to one that `json.dumps` accepts.

    Args:
        value: Anything.
        max_items: Maximum elements of all collections together.
    """
    return to_bounded_json(value, max_items)[0]


def to_bounded_json(value: Any, max_items: int) -> tuple[Any, bool]:
    """Like `to_json_value`; also return whether something was left out.

    Args:
        value: Anything.
        max_items: Maximum elements of all collections, and characters of all strings; later strings
            keep only their ends.
    """
    conversion = Conversion(max_items)
    return conversion.convert(value), conversion.is_partial


def to_short_json(value: Any, max_items: int, most: int, summarize: Summarize) -> tuple[Any, bool]:
    """Like `to_bounded_json`; of a value with many parts, long lists and mappings are shortened.

    Args:
        value: Anything.
        max_items: As for `to_bounded_json`.
        most: Values in all lists and mappings together that are written whole.
        summarize: Says what is in a list that is shortened.
    """
    for length in (None, *LENGTHS[:-1]):
        conversion = Conversion(max_items, length=length, most=most, summarize=summarize)
        with suppress(TooLarge):
            return conversion.convert(value), conversion.is_partial
    conversion = Conversion(max_items, length=LENGTHS[-1], summarize=summarize)
    return conversion.convert(value), conversion.is_partial


def to_structured(value: Any, max_items: int) -> Any:
    """Convert any value to structured content: whole or not at all.

    Args:
        value: Anything.
        max_items: Maximum elements of all collections together.

    Raises:
        TooLarge: There are more.
        TooDeep: It contains itself, or is nested too deep.
    """
    return _ExactConversion(max_items).convert(value)


def to_whole_json(value: Any, max_items: int) -> Any:
    """Convert any value to JSON for a file: as `to_structured`, with "NaN" and "Infinity".

    Args:
        value: Anything.
        max_items: Maximum elements of all collections, and characters of all strings.

    Raises:
        TooLarge: There are more.
        TooDeep: It contains itself, or is nested too deep.
    """
    return _WholeConversion(max_items).convert(value)


def format_json(value: Any) -> str:
    """Write a JSON value for a model: on one line, which costs the fewest tokens."""
    return _dump_json(value)


def format_json_lines(value: Any) -> str:
    """Write a JSON value for a file, which is read in pages: each item has its own line."""
    line = _dump_json(value)
    if len(line) <= _ONE_LINE or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        items = [f" {_dump_json(key)}: {_dump_json(item)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    return "[\n" + ",\n".join(f" {_dump_json(item)}" for item in value) + "\n]"


class Conversion:
    """The state of one conversion: the enclosing values and the remaining budget.

    Args:
        max_items: As for `to_bounded_json`.
        length: Items of each list that are kept, and half of those of each mapping; None: all.
        most: Values in all lists and mappings together, of which more are refused.
        summarize: Says what is in a list that is shortened.
    """

    _max_depth = MAX_DEPTH

    def __init__(
        self,
        max_items: int,
        *,
        length: int | None = None,
        most: int | None = None,
        summarize: Summarize = lambda _items, _size: "",
    ) -> None:
        self.is_partial = False
        """Whether something of the value is left out."""
        self._length = length
        self._keys = None if length is None else 2 * length
        self._values_left = most
        self._summarize = summarize
        self._is_item = False
        """Whether the value is an item of a list, which is summarized as a whole."""
        self._items_left = max_items
        self._chars_left = max_items
        self._ancestors: set[int] = set()
        self._readers: dict[type, Reader | None] = {}
        """Cache of the readers by class."""
        self._proxies: dict[type, bool] = {}
        """Cache of `claims_class`."""

    def convert(self, value: Any) -> Any:
        """Return the JSON of a value."""
        # No `guard` around all: this runs for each element of each value.
        try:
            kind = type(value)
            if kind not in _BUILT_IN and self._is_proxy(kind):
                return guard(self._convert_scalar, value)
            return self._convert_scalar(value)
        except (KeyboardInterrupt, TooLarge, TooDeep):
            raise
        except DeadlineExceeded as error:
            return describe_slow_value(value, error)
        except BaseException:  # noqa: BLE001 - the value's own methods may raise anything
            return safe_repr(value)

    def _is_proxy(self, kind: type) -> bool:
        found = self._proxies.get(kind)
        if found is None:
            found = self._proxies[kind] = claims_class(kind)
        return found

    # -- overridden by the conversion for programs --

    def _convert_text(self, value: str) -> str:
        room = max(self._chars_left, MIN_TEXT)
        text = cut_text(str.__str__(value), room, is_clean=False)
        self.is_partial = self.is_partial or str.__len__(value) > room
        self._chars_left -= len(text)
        return text

    def _convert_float(self, value: float) -> Any:
        return _write_float(value)

    def _convert_bytes(self, value: bytes | bytearray) -> str:
        room = max(self._chars_left, MIN_TEXT)
        if len(value) > _MAX_BYTES_PER_CHARACTER * room:  # too long, whatever it is: not decoded
            self.is_partial = True
            return describe_beginning(value, room)
        text = decode_text(value)
        self.is_partial = self.is_partial or (text is None and len(value) > MAX_HEX)
        return describe_binary(value) if text is None else self._convert_text(text)

    def _dump_model(self, value: BaseModel) -> Any:
        return dump_model(value)

    def _convert_too_deep(self, value: Any) -> Any:
        if id(value) not in self._ancestors:  # a cycle is complete as it is
            self.is_partial = True
        return "..."

    def _convert_large(self, value: Any) -> Any:
        """Convert an array, or a table within a larger value."""
        text = safe_repr(value)
        self.is_partial = self.is_partial or _GAP.search(text) is not None
        return text

    def _convert_repr(self, value: Any) -> str:
        text = safe_repr(value)
        self.is_partial = self.is_partial or _CUT in text
        return text

    def _convert_in_time(self, value: Any) -> Any:
        if type(value) in _BUILT_IN:
            return self._convert_container(value)
        return guard(self._convert_container, value)

    def _take_items(self, size: int, most: int | None = None) -> tuple[int, int]:
        """Return how many items of a collection to convert, and how many to leave out."""
        count = min(size if most is None else min(size, most), max(self._items_left, 0))
        self._count_values(count)
        self.is_partial = self.is_partial or count < size
        self._items_left -= count
        return count, size - count

    def _count_values(self, parts: int) -> None:
        """Count the parts of a value in its place."""
        if self._values_left is not None:
            self._values_left -= max(parts, 1) - 1
            if self._values_left <= 0:
                raise TooLarge

    # -- the table --

    def _convert_scalar(self, value: Any) -> Any:  # noqa: PLR0911 - the table above, in its order
        if isinstance(value, Enum):
            return self.convert(read_member(value))
        if value is None or is_missing(value):
            return None
        if isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._convert_text(value)
        if isinstance(value, int):
            return _convert_integer(value)
        if isinstance(value, float):
            return self._convert_float(value)
        if is_instance(value, "numpy.generic"):
            return self._convert_numpy_scalar(value)
        if isinstance(value, _AS_TEXT) or is_pandas_text(value):
            text = format_nanoseconds(value)
            return text or clean_text(str(to_jsonable_python(value, fallback=str)))
        if isinstance(value, (bytes, bytearray)):
            is_plain = type(value) in {bytes, bytearray}
            return self._convert_bytes(value if is_plain else bytes(value))
        return self._convert_nested(value)

    def _convert_numpy_scalar(self, value: Any) -> Any:
        if value.dtype.names:
            return self._convert_pairs([(name, value[name]) for name in value.dtype.names])
        if value.dtype.kind == "c":
            return str(value)
        if value.dtype.kind in "mM":  # item() would be nanoseconds as an int
            return self._convert_numpy_time(value)
        item = read_scalar(value)
        return str(value) if type(item) is type(value) else self.convert(item)

    def _convert_numpy_time(self, value: Any) -> Any:
        if value != value:  # noqa: PLR0124 - only NaT differs from itself
            return None
        if value.dtype.str.endswith(_SECONDS if value.dtype.kind == "m" else _SECONDS[2:]):
            return self.convert(list_elements(value.reshape(1))[0])
        return str(value)

    def _convert_nested(self, value: Any) -> Any:
        if id(value) in self._ancestors or len(self._ancestors) >= self._max_depth:
            return self._convert_too_deep(value)
        self._ancestors.add(id(value))
        try:
            return self._convert_in_time(value)
        finally:
            self._ancestors.discard(id(value))

    def _convert_container(self, value: Any) -> Any:  # noqa: PLR0911 - as `_convert_scalar`
        if type(value) in _BUILT_IN:
            is_dict = type(value) is dict
            return self._convert_mapping(value) if is_dict else self._convert_array(value)
        reader = self._find_reader(value)
        if reader is not None:
            return self.convert(reader(value))
        if isinstance(value, BaseModel):
            return self.convert(self._dump_model(value))
        if is_mapping(value):
            return self._convert_mapping(value)
        named = list_fields(value)
        if named is not None:
            self._count_values(len(named))
            return self._convert_pairs(named)
        if is_sequence(value):
            return self._convert_array(value)
        return self._convert_object(value)

    def _convert_object(self, value: Any) -> Any:
        is_array = is_instance(value, "numpy.ndarray") and not prints_itself(value)
        is_many = self._length is not None or self._values_left is not None
        if is_array and is_many and value.ndim == 1 and not value.dtype.names:
            return self._convert_array(value)
        if is_array and value.size <= MAX_ARRAY:
            if value.dtype.names:  # a structured array has named fields
                return self.convert(list(value) if value.ndim else value[()])
            return self.convert(list_elements(value))
        if _is_array_or_table(value):
            return self._convert_large(value)
        return self._convert_repr(value)

    def _find_reader(self, value: Any) -> Reader | None:
        kind = type(value)
        if value.__class__ is not kind:  # a proxy may have another class each time
            return find_reader(value)
        if kind not in self._readers:
            self._readers[kind] = find_reader(value)
        return self._readers[kind]

    def _convert_mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        size, left_out = self._take_items(len(value), self._keys)
        pairs: list[tuple[Any, Any]] = []
        for key in list_keys(value, size):  # no copy: it may be huge
            if len(pairs) == size:
                break
            pairs.append((key, value[key]))
        result = self._convert_pairs(pairs)
        if left_out:
            facts = self._summarize(value.values(), len(value))
            result["..."] = f"{left_out:,} more of {len(value):,} items{facts}"
        return result

    def _convert_pairs(self, pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
        outer, self._is_item = self._is_item, False
        result: dict[str, Any] = {}
        for key, item in pairs:
            name = self._convert_key(key)
            # 1 and "1" are different keys in Python: rather a repr as a name than a lost item.
            result[name if name not in result else safe_repr(key)] = self.convert(item)
        self._is_item = outer
        return result

    def _convert_key(self, key: Any) -> str:
        if isinstance(key, tuple):
            return ", ".join(self._convert_key(part) for part in key)
        name = self.convert(key)
        return name if isinstance(name, str) else _dump_json(name)

    def _convert_array(self, value: Any) -> list[Any]:
        length = self._length
        # One item takes no more room than the note on it.
        most = None if length is None or len(value) <= length + 1 else length
        size, left_out = self._take_items(len(value), most)
        items = order_items(value)
        facts = "" if self._is_item or not left_out else self._summarize(items, len(value))
        outer, self._is_item = self._is_item, True
        first, last = take_ends(items, size - size // 2, size // 2) if left_out else (items, [])
        converted = [*map(self.convert, first)]
        if left_out:
            converted.append(f"... {left_out:,} of {len(value):,} items left out{facts} ...")
        converted += map(self.convert, last)
        self._is_item = outer
        return converted


class _ExactConversion(Conversion):
    """The conversion for programs: a value that does not fit whole is refused."""

    _max_depth = MAX_STRUCTURED_DEPTH

    def _convert_text(self, value: str) -> str:
        return replace_surrogates(value)

    def _convert_float(self, value: float) -> Any:
        plain = float(value)
        return plain if math.isfinite(plain) else None

    def _convert_bytes(self, value: bytes | bytearray) -> str:
        return encode_bytes(value)

    def _dump_model(self, value: BaseModel) -> Any:
        return dump_model(value, by_alias=True)

    def _convert_too_deep(self, value: Any) -> Any:
        why = "contains itself" if id(value) in self._ancestors else "is nested too deep"
        raise TooDeep(f"a {type(value).__name__} in it {why}")

    def _convert_in_time(self, value: Any) -> Any:
        # No time limit and no notes: a program would take a note for data.
        return self._convert_container(value)

    def _convert_container(self, value: Any) -> Any:
        if type(value) in _BUILT_IN:
            return super()._convert_container(value)
        if is_instance(value, "numpy.ndarray") and not value.dtype.names:
            if value.size > self._items_left:
                raise TooLarge
            return self.convert(list_elements(value))
        if is_instance(value, "pandas.DataFrame") or is_instance(value, "pandas.Series"):
            self._take_items(value.size)
            return self._convert_records(value)
        if is_plain_table(value):
            self._take_items(math.prod(value.shape))
            return self._convert_records(value)
        if is_plain_series(value):
            self._take_items(len(value))
            return [self.convert(item) for item in list_elements(value)]
        return super()._convert_container(value)

    def _convert_records(self, table: Any) -> list[dict[str, Any]]:
        return [self._convert_pairs(list(row.items())) for row in list_records(table)]

    def _take_items(self, size: int, most: int | None = None) -> tuple[int, int]:
        count, left_out = super()._take_items(size, most)
        if left_out:
            raise TooLarge
        return count, left_out


class _WholeConversion(_ExactConversion):
    """The conversion for files, which limits the characters, too."""

    def _convert_float(self, value: float) -> Any:
        return _write_float(value)

    def _convert_text(self, value: str) -> str:
        self._chars_left -= len(value)
        if self._chars_left < 0:
            raise TooLarge
        return super()._convert_text(value)

    def _convert_bytes(self, value: bytes | bytearray) -> str:
        return self._convert_text(super()._convert_bytes(value))

    def _convert_repr(self, value: Any) -> str:
        return self._convert_text(safe_repr(value, max(self._chars_left, MIN_TEXT)))


def _write_float(value: float) -> float | str:
    plain = float(value)
    if math.isnan(plain):
        return "NaN"
    if math.isinf(plain):
        return "Infinity" if plain > 0 else "-Infinity"
    return plain


def _convert_integer(value: int) -> int | str:
    plain = int(value)
    try:
        str(plain)
    except ValueError:  # more digits than sys.get_int_max_str_digits()
        return f"<an int of {plain.bit_length():,} bits, too long to print>"
    return plain


def _is_array_or_table(value: Any) -> bool:
    """Return whether a value has elements that its repr may leave out."""
    paths = ("numpy.ndarray", "pandas.DataFrame", "pandas.Series")
    return (
        any(is_instance(value, path) for path in paths)
        or is_plain_table(value)
        or is_plain_series(value)
    )
