"""What every table can do, of whichever library: tell its shape, show some rows, be kept whole.

Runs in the user's kernel: on the thread of the call, and on a thread of the store's when a client
reads the whole table. A `Frame` touches the rows it is asked for and no others, and copies none:
ten million rows cost no more than fifty. The kinds are in `kernel.results.tables.pandas_frame`,
`kernel.results.tables.narwhals_frame` and `kernel.results.tables.row_frame`; what is shown of one
is `kernel.results.tables.render`' business, its files are `kernel.results.tables.exports`'.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from mcp_notebook.kernel.results.tables.cell_text import cell_text

MAX_COLUMNS = 30
"""Columns of a table; wider ones show their first and last, and name the others."""
MAX_COPY = 16 * 2**20
"""Bytes of a table that is copied to be kept, where its library has no cheaper way."""
ABSENT: Any = object()
"""Among a column's values: a row has none."""
SAMPLED = 50
"""Rows whose objects are measured to estimate the size of all."""


@dataclass(frozen=True)
class Column:
    """Some rows of one column."""

    name: Any
    values: list[Any]


class Frame(ABC):
    """A table with rows and columns, by position.

    Rows and columns count from 0; names may be anything, and may come twice. Labels are what a
    table has before its columns: the levels of pandas' index.
    """

    kind: str
    """What it is, as its user would call it."""
    height: int
    width: int
    is_single: bool = False
    """It is one column of its own: a Series."""
    has_names: bool = True
    """Its columns have names; where they have not, numbers would look like one row more."""
    is_live: bool = False
    """What `snapshot` returned changes when the user changes the table."""

    @abstractmethod
    def name(self, position: int) -> Any:
        """Return a column's name."""

    @abstractmethod
    def dtype(self, position: int) -> str:
        """Return a column's type as its library writes it."""

    @abstractmethod
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        """Return some rows of a column as Python values."""

    @abstractmethod
    def whole_column(self, position: int) -> Any:
        """Return all of a column as something that ``pyarrow.array`` may take."""

    @abstractmethod
    def cost(self) -> int:
        """Return the bytes of memory that it holds, about; found in no time."""

    @abstractmethod
    def snapshot(self) -> Self:
        """Return what can be read later, see `is_live`."""

    def labels(self, start: int, stop: int) -> list[Column]:  # noqa: ARG002 - most have none
        """Return some rows of the labels that say something."""
        return []

    def whole_labels(self) -> list[tuple[Any, Any]]:
        """Return names and all values of these labels, as `whole_column`."""
        return []

    def text(self, value: Any) -> str:
        """Return what is shown for a value."""
        return cell_text(value)

    @property
    def title(self) -> str:
        """What it is and how large, on one line."""
        return f"{self.kind}: {self.size}"

    @property
    def size(self) -> str:
        """Its rows and columns in words."""
        rows = count(self.height, "row")
        return rows if self.is_single else f"{rows} x {count(self.width, 'column')}"

    @property
    def types(self) -> str:
        """What `title` leaves open: names and types of the columns that are shown."""
        shown = ends(self.width, MAX_COLUMNS)
        return ", ".join(f"{name_text(self.name(at))} {self.dtype(at)}" for at in shown)

    @property
    def whole(self) -> "Frame":
        """The table whose files hold the whole of this one."""
        return self


def ends(size: int, limit: int) -> Sequence[int]:
    """Return the positions that are shown of so many: half from the head, half from the tail."""
    if size <= limit:
        return range(size)
    return [*range(limit - limit // 2), *range(size - limit // 2, size)]


def between(size: int, limit: int) -> Sequence[int]:
    """Return the positions that `ends` leaves out."""
    return range(limit - limit // 2, size - limit // 2)


def count(number: int, what: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def name_text(name: Any) -> str:
    """Return a column's name as text: the levels of a MultiIndex joined."""
    parts = name if isinstance(name, tuple) else (name,)
    return " / ".join(text for part in parts if (text := cell_text(part)))
