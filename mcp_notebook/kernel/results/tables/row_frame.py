"""Tables that no table library made: numpy arrays of rows, and lists of dicts.

Runs in the user's kernel. numpy is never imported here. What a list of dicts is otherwise is JSON
text (`kernel.safe.to_json`), and so are its values here.
"""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

from typing_extensions import override

from mcp_notebook.kernel.results.tables.cell_text import MAX_CELL, cell_text
from mcp_notebook.kernel.results.tables.frame import ABSENT, MAX_COLUMNS, MAX_COPY, Frame
from mcp_notebook.kernel.safe.text import is_instance
from mcp_notebook.kernel.safe.to_json import to_json_value

MIN_RECORDS = 2
FILLED = 0.5
"""Share of the cells that a table of dicts must have a value for."""
_RECORD_BYTES = 100
"""Bytes that a value in a dict takes, about."""
_SCALARS = (str, int, float, type(None), date, time, timedelta, Decimal, UUID)


def array_frame(value: Any) -> Frame | None:
    """Return a numpy array of rows as a `Frame`, None if it is another."""
    if not is_instance(value, "numpy.ndarray"):
        return None
    if is_instance(value, "numpy.matrix"):
        value = value.A  # a matrix's columns are matrices again
    if value.ndim == 1 and value.dtype.names:
        return RecordsFrame(value)
    return ArrayFrame(value) if value.ndim == 2 and not value.dtype.names else None  # noqa: PLR2004


def dicts_frame(value: Any) -> Frame | None:
    """Return a list of dicts that are rows of one table as a `Frame`, None if it is none.

    They have the same keys, more or less, and values that fit into a cell.
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
    scalar = all(_is_scalar(kind) for kinds in types.values() for kind in kinds)
    named = all(type(key) is str and key for key in types)
    similar = filled >= FILLED * len(value) * len(types)
    return DictsFrame(value, types) if scalar and named and similar else None


class ArrayFrame(Frame):
    """A two-dimensional array; its columns have numbers."""

    has_names = False

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
    def types(self) -> str:
        """All are of one type, which the title says."""
        return ""

    @override
    def name(self, position: int) -> Any:
        return position

    @override
    def dtype(self, position: int) -> str:
        return str(self.array.dtype)

    @override
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        return _plain(self.array[start:stop, position : position + 1].ravel())

    @override
    def text(self, value: Any) -> str:
        text = super().text(value)
        is_time = is_instance(value, "numpy.datetime64")
        return text.removesuffix(".000000000") if is_time else text

    @override
    def whole_column(self, position: int) -> Any:
        return self.array[:, position]

    @override
    def cost(self) -> int:
        return int(self.array.nbytes)

    @override
    def snapshot(self) -> Self:
        kept = copy(self)
        kept.is_live = self.cost() > MAX_COPY
        kept.array = self.array if kept.is_live else self.array.copy()
        return kept


class RecordsFrame(ArrayFrame):
    """A structured array: its fields are the columns."""

    has_names = True

    def __init__(self, array: Any) -> None:
        self.array = array
        self.kind = "structured array"
        self.height, self.width = len(array), len(array.dtype.names)

    @property
    @override
    def title(self) -> str:
        return f"{self.kind}: {self.size}"

    @property
    @override
    def types(self) -> str:
        """As any table's: each field has its own."""
        return super(ArrayFrame, self).types

    @override
    def name(self, position: int) -> Any:
        return self.array.dtype.names[position]

    @override
    def dtype(self, position: int) -> str:
        return str(self.array.dtype[position])

    @override
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        return _plain(self.whole_column(position)[start:stop])

    @override
    def whole_column(self, position: int) -> Any:
        return self.array[self.name(position)]


class DictsFrame(Frame):
    """A list of dicts; the keys are the columns, values are written as in JSON."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], types: Mapping[str, set[type]]) -> None:
        self.rows = rows
        self._names = list(types)
        self._types = types
        self.kind = "list of dicts"
        self.height = len(rows)
        self.width = len(types)

    @override
    def name(self, position: int) -> str:
        return self._names[position]

    @override
    def dtype(self, position: int) -> str:
        names = {"null" if t is type(None) else t.__name__ for t in self._of(position)}
        return " or ".join(sorted(names))

    def _of(self, position: int) -> set[type]:
        return self._types[self._names[position]]

    @override
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        name = self._names[position]
        return [row.get(name, ABSENT) for row in self.rows[start:stop]]

    @override
    def whole_column(self, position: int) -> Any:
        name = self._names[position]
        return [row.get(name) for row in self.rows]

    @override
    def text(self, value: Any) -> str:
        if value is ABSENT:
            return ""
        if type(value) is str:
            return cell_text(value)
        made = to_json_value(value, MAX_CELL)
        return cell_text(made if isinstance(made, str) else json.dumps(made))

    @override
    def cost(self) -> int:
        return _RECORD_BYTES * self.height * self.width

    @override
    def snapshot(self) -> Self:
        kept = copy(self)
        kept.is_live = self.cost() > MAX_COPY
        kept.rows = self.rows if kept.is_live else [dict(row) for row in self.rows]
        return kept


def _is_scalar(kind: type) -> bool:
    if issubclass(kind, _SCALARS):
        return True
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__)


def _plain(part: Any) -> list[Any]:
    # `tolist` makes bare ints of nanoseconds.
    return list(part) if part.dtype.kind in "mM" else list(part.tolist())
