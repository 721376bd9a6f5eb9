"""Tables made of rows as frames: numpy arrays and lists of dicts.

Runs in the user's kernel, on the threads of `Frame`. numpy is never imported here. The cells of a
list of dicts are written as JSON, as other lists of dicts are.
"""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import date, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Self
from uuid import UUID

from typing_extensions import override

from mcp_notebook.kernel.results.tables.cell_text import ABSENT
from mcp_notebook.kernel.results.tables.column_facts import Facts, find_array_facts
from mcp_notebook.kernel.results.tables.frame import MAX_COLUMNS, MAX_COPY, Frame
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.tabular_data import list_elements
from mcp_notebook.kernel.safe.to_json import to_json_value

MIN_RECORDS = 2
MIN_FILLED = 0.5
"""Minimum share of cells with a value for a list of dicts to be a table."""
_WHOLE = 2**24
"""Maximum characters of a value that are read before its cell is cut."""
_VALUE_BYTES = 100
"""Estimated size of a value in a dict."""
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
    """Return the frame of a list of dicts that are the rows of one table; None for other values.

    Such dicts have mostly the same keys, and scalar values.
    """
    if not isinstance(value, (list, tuple)) or len(value) < MIN_RECORDS:
        return None
    types: dict[str, set[type]] = {}
    filled = 0
    for row in value:
        if type(row) is not dict or not row:
            return None
        filled += len(row)
        for key, item in row.items():
            types.setdefault(key, set()).add(type(item))
        if len(types) > MAX_COLUMNS:
            return None
    are_scalar = all(_is_scalar(kind) for kinds in types.values() for kind in kinds)
    are_named = all(type(key) is str and key for key in types)
    are_similar = filled >= MIN_FILLED * len(value) * len(types)
    return DictsFrame(value, types) if are_scalar and are_named and are_similar else None


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

    @property
    @override
    def schema_text(self) -> str:
        """Empty: the title names the one type of all columns."""
        return ""

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

    @property
    @override
    def schema_text(self) -> str:
        """The names and types of the fields."""
        return super(ArrayFrame, self).schema_text

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

    def __init__(self, rows: Sequence[Mapping[str, Any]], types: Mapping[str, set[type]]) -> None:
        self.rows = rows
        self._names = list(types)
        self._types = types
        self.kind = "list of dicts"
        self.height = len(rows)
        self.width = len(types)

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
        kinds = set(map(type, values)) - {NoneType, object}
        if kinds in ({str}, {float}):
            return super().format_column(values)
        are_missing = self.find_missing(values)
        cells = list(zip(values, are_missing, strict=True))
        written = super().format_column(["" if no else _write_json(value) for value, no in cells])
        return [  # only strings are quoted
            "" if no else text if type(value) is str else str(text)
            for text, (value, no) in zip(written, cells, strict=True)
        ]

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


def _write_json(value: Any) -> str:
    if type(value) is str:
        return value
    jsonable = to_json_value(value, _WHOLE)
    return jsonable if isinstance(jsonable, str) else json.dumps(jsonable)


def _is_scalar(kind: type) -> bool:
    if issubclass(kind, _SCALARS):
        return True
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__)


def _to_list(values: Any) -> list[Any]:
    # `tolist` turns nanoseconds into ints.
    return list(values) if values.dtype.kind in "mM" else list(list_elements(values))
