"""Tables made of rows as frames: numpy arrays, lists of dicts, of records and of tuples.

Runs in the user's kernel, on the threads of `Frame`. numpy is never imported here. The cells of a
list of dicts are written as JSON, as other lists of dicts are.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from types import NoneType
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import override

from mcp_notebook.kernel.results.tables.cell_text import ABSENT, find_missing, format_column
from mcp_notebook.kernel.results.tables.column_facts import Facts, find_array_facts
from mcp_notebook.kernel.results.tables.frame import MAX_COLUMNS, MAX_COPY, Frame
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.sequences import is_mapping
from mcp_notebook.kernel.safe.stand_ins import dump_model, is_scalar_class, name_parts
from mcp_notebook.kernel.safe.tabular_data import find_free_name, list_elements
from mcp_notebook.kernel.safe.to_json import to_json_value

MIN_RECORDS = 2
MIN_FILLED = 0.5
"""Minimum share of cells with a value for a list of dicts to be a table."""
_WHOLE = 2**24
"""Maximum characters of a value that are read before its cell is cut."""
_VALUE_BYTES = 100
"""Estimated size of a value in a dict."""
MAX_RECORDS = 100_000
"""Records that are read as the rows of a table; of dicts there may be any number."""
MAX_ITEMS = 12
"""Items of the longest tuples that are read as rows."""
MAX_NAMES = 1_000
"""Names of the fields of rows."""
_SHOWN_WHOLE = 1_000
"""Values of wide rows that are shown as they are: as a table, some columns would be left out."""
_MAX_LEVELS = 4
"""Levels of fields within fields that are named."""
_SCALARS = (str, int, float, type(None), date, time, timedelta, Decimal, UUID)


def wrap_array(value: Any) -> Frame | None:
    """Return the frame of a numpy array that has rows; None for other values."""
    if not is_instance(value, "numpy.ndarray"):
        return None
    if is_instance(value, "numpy.matrix"):
        value = value.A  # the columns of a matrix are matrices too
    if value.ndim == 1 and value.dtype.names:
        return RecordsFrame(value)
    return ArrayFrame(value) if value.ndim == 2 and not value.dtype.names else None  # noqa: PLR2004


def wrap_dicts(value: Any) -> Frame | None:
    """Return the frame of a list of dicts or records that are the rows of one table, or None.

    Such dicts have mostly the same keys, and scalar values.
    """
    if not isinstance(value, (list, tuple)) or len(value) < MIN_RECORDS:
        return None
    kind = type(value[0])
    if kind is dict:
        frame = _wrap_rows(value)
    elif len(value) <= MAX_RECORDS:
        frame = _wrap_rows(_read_records(value, kind), f"list of {kind.__name__}")
    else:
        return None
    return frame if frame is not None and frame.is_scalar else None


def wrap_records(items: Sequence[Any]) -> "DictsFrame | None":
    """Return the frame of dicts, records or tuples, to summarize it; None for other items.

    A dict or a record in a field counts as fields of its own: ``place.city``. The items of tuples
    of one length are named by their places: ``[0]``.
    """
    if not items:
        return None
    if all(map(_is_short_array, items)):
        items = [list_elements(item) for item in items]
    if all(type(item) in (list, tuple) for item in items):
        lengths = set(map(len, items))
        if len(lengths) > 1 or not 0 < max(lengths) <= MAX_ITEMS:
            return None
        names = [f"[{place}]" for place in range(max(lengths))]
        items = [dict(zip(names, item, strict=True)) for item in items]
    return _wrap_rows([_flatten(item) for item in _read_records(items)])


def _read_records(items: Sequence[Any], kind: type | None = None) -> list[dict[Any, Any]]:
    """Return dicts, other mappings and records as dicts; an empty list if there are other items.

    Args:
        items: The items.
        kind: The class that each must be of, if it matters.
    """
    rows = []
    for item in items:
        row = item if type(item) is dict else _read_record(item)
        if row is None or (kind is not None and type(item) is not kind):
            return []
        rows.append(row)
    return rows


def _read_record(item: Any) -> dict[Any, Any] | None:
    if isinstance(item, BaseModel):
        return dump_model(item)
    return dict(item) if is_mapping(item) else name_parts(item)


def _is_short_array(item: Any) -> bool:
    is_array = is_instance(item, "numpy.ndarray") and item.ndim == 1 and not item.dtype.names
    return is_array and item.size <= MAX_ITEMS


def _flatten(row: Mapping[Any, Any], level: int = 1) -> dict[Any, Any]:
    flat: dict[Any, Any] = {}
    for name, value in row.items():
        nested = None if _is_scalar(type(value)) or level == _MAX_LEVELS else _read_record(value)
        if nested and all(type(key) is str for key in nested):
            for key, item in _flatten(nested, level + 1).items():
                flat[find_free_name(f"{name}.{key}", flat)] = item
        else:
            flat[name] = value
    return flat


def _wrap_rows(rows: Sequence[Any], kind: str = "list of dicts") -> "DictsFrame | None":
    """Return the frame of dicts that have mostly the same keys, all of them names."""
    if not rows or set(map(type, rows)) != {dict} or not all(rows):
        return None
    names = dict.fromkeys(chain.from_iterable(rows))
    filled = sum(map(len, rows))
    if len(names) > MAX_NAMES or not all(type(name) is str and name for name in names):
        return None
    if len(names) > MAX_COLUMNS and filled <= _SHOWN_WHOLE:
        return None
    if filled < MIN_FILLED * len(rows) * len(names):
        return None
    is_full = filled == len(rows) * len(names)
    types = {name: set(map(type, _read_column(rows, name, is_full=is_full))) for name in names}
    return DictsFrame(rows, types, kind)


def _read_column(rows: Sequence[Any], name: str, *, is_full: bool) -> Iterable[Any]:
    return map(itemgetter(name), rows) if is_full else (row[name] for row in rows if name in row)


class ArrayFrame(Frame):
    """A two-dimensional array, whose columns have no names."""

    has_names = False
    nan_is_missing = False

    def __init__(self, array: Any) -> None:
        self.array = array
        self.kind = "array"
        self.height, self.width = array.shape

    @property
    @override
    def title(self) -> str:
        return f"array of shape {self.array.shape}, {self.array.dtype}"

    @override
    def column_name(self, position: int) -> Any:
        return position

    @override
    def column_type(self, position: int) -> str:
        return str(self.array.dtype)

    @override
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        return _to_list(self.array[start:stop, position : position + 1].ravel())

    @override
    def format_column(self, values: Sequence[Any]) -> list[str]:
        texts = super().format_column(values)
        if not values or not is_instance(values[0], "numpy.datetime64"):
            return texts
        return [text.removesuffix(".000000000") for text in texts]

    @override
    def column_data(self, position: int) -> Any:
        return self.array[:, position]

    @override
    def find_facts(self, position: int) -> Facts | None:
        return find_array_facts(self.column_data(position))

    @override
    def estimate_bytes(self) -> int:
        return int(self.array.nbytes)

    @override
    def snapshot(self) -> Self:
        snapshot = copy(self)
        snapshot.is_live = self.estimate_bytes() > MAX_COPY
        snapshot.array = self.array if snapshot.is_live else self.array.copy()
        return snapshot

    @override
    def take(self, positions: Any) -> Self:
        taken = copy(self)
        taken.array = self.array[positions]
        taken.height = len(positions)
        return taken


class RecordsFrame(ArrayFrame):
    """A structured array, whose fields are the columns."""

    has_names = True

    def __init__(self, array: Any) -> None:
        self.array = array
        self.kind = "structured array"
        self.height, self.width = len(array), len(array.dtype.names)

    @property
    @override
    def title(self) -> str:
        return f"{self.kind}: {self.shape_text}"

    @override
    def column_name(self, position: int) -> Any:
        return self.array.dtype.names[position]

    @override
    def column_type(self, position: int) -> str:
        return str(self.array.dtype[position])

    @override
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        return _to_list(self.column_data(position)[start:stop])

    @override
    def column_data(self, position: int) -> Any:
        return self.array[self.column_name(position)]


class DictsFrame(Frame):
    """A list of dicts, whose keys are the columns; values are written as in JSON."""

    nan_is_missing = False

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], types: Mapping[str, set[type]], kind: str
    ) -> None:
        self.rows = rows
        self._names = list(types)
        self._types = types
        self.kind = kind
        self.height = len(rows)
        self.width = len(types)

    @property
    def is_scalar(self) -> bool:
        """Whether no cell has parts."""
        return all(_is_scalar(kind) for kinds in self._types.values() for kind in kinds)

    @override
    def column_name(self, position: int) -> str:
        return self._names[position]

    @override
    def column_type(self, position: int) -> str:
        types = self._types[self._names[position]]
        names = {"null" if kind is type(None) else kind.__name__ for kind in types}
        return " or ".join(sorted(names))

    @override
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        name = self._names[position]
        return [row.get(name, ABSENT) for row in self.rows[start:stop]]

    @override
    def column_data(self, position: int) -> Any:
        name = self._names[position]
        return [row.get(name) for row in self.rows]

    @override
    def format_column(self, values: Sequence[Any]) -> list[str]:
        return format_json_cells(values)

    @override
    def estimate_bytes(self) -> int:
        return _VALUE_BYTES * self.height * self.width

    @override
    def snapshot(self) -> Self:
        snapshot = copy(self)
        snapshot.is_live = self.estimate_bytes() > MAX_COPY
        snapshot.rows = self.rows if snapshot.is_live else [dict(row) for row in self.rows]
        return snapshot

    @override
    def renew(self) -> Self:
        renewed = copy(self)
        renewed.height = len(self.rows)
        return renewed if self.is_live else self

    @override
    def take(self, positions: Any) -> Self:
        taken = copy(self)
        taken.rows = [self.rows[position] for position in positions]
        taken.height = len(positions)
        return taken


def format_json_cells(values: Sequence[Any]) -> list[str]:
    """Return the strings of the cells of a column, written as in JSON; only strings are quoted."""
    kinds = set(map(type, values)) - {NoneType, object}
    if kinds in ({str}, {float}):
        return format_column(values, nan_is_missing=False)
    are_missing = find_missing(values, nan_is_missing=False)
    cells = list(zip(values, are_missing, strict=True))
    plain = ["" if no else _write_json(value) for value, no in cells]
    written = format_column(plain, nan_is_missing=False)
    return [
        "" if no else text if type(value) is str else str(text)
        for text, (value, no) in zip(written, cells, strict=True)
    ]


def _write_json(value: Any) -> str:
    if type(value) is str:
        return value
    jsonable = to_json_value(value, _WHOLE)
    return jsonable if isinstance(jsonable, str) else json.dumps(jsonable)


def _is_scalar(kind: type) -> bool:
    return issubclass(kind, _SCALARS) or is_scalar_class(kind)


def _to_list(values: Any) -> list[Any]:
    # `tolist` turns nanoseconds into ints.
    return list(values) if values.dtype.kind in "mM" else list(list_elements(values))
