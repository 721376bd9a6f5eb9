"""`Frame`: the same view of tables of all libraries.

Runs in the user's kernel: on the thread of the call, and on a thread of the resource store when a
client reads an export. A frame reads only the rows that it is asked for, without copying, so that
a preview of ten million rows costs no more than one of fifty.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from msgspec import Struct

from mcp_notebook.kernel.results.tables.cell_text import (
    find_missing,
    format_cell,
    format_column,
    quote_unclear,
)
from mcp_notebook.kernel.results.tables.column_facts import Facts
from mcp_notebook.text.wording import count

MAX_COLUMNS = 30
"""Maximum columns of a preview. Wider tables show the first and last ones and list the rest."""
CELLS = 6
"""Cells that a table may have to be shown whole, for each row that it may have."""
MAX_COPY = 16 * 2**20
"""Bytes of the largest table that is copied for a snapshot, if its library has no cheaper way."""
SAMPLE_ROWS = 50
"""Rows that are measured to estimate the size of all."""


class Column(Struct, frozen=True):
    """Some rows of one column."""

    name: Any
    values: list[Any]


class Frame(ABC):
    """A table whose rows and columns are addressed by position, from 0.

    Column names may be of any type and may repeat. Labels are columns in front of the data: the
    levels of a pandas index.
    """

    kind: str
    """The name of its type for users: ``"DataFrame"``."""
    height: int
    """Number of rows."""
    width: int
    """Number of columns, without labels."""
    is_single: bool = False
    """Whether it is a single column rather than a table: a Series."""
    has_names: bool = True
    """Whether its columns have names. Numbers in their place would look like one more row."""
    nan_is_missing: bool = True
    """Whether a float NaN is a missing value, as in pandas."""
    is_live: bool = False
    """Whether this snapshot changes with the user's table."""

    @abstractmethod
    def column_name(self, position: int) -> Any:
        """Return the name of a column."""

    @abstractmethod
    def column_type(self, position: int) -> str:
        """Return the type of a column in its library's notation."""

    @abstractmethod
    def column_values(self, position: int, start: int, stop: int) -> list[Any]:
        """Return some rows of a column as Python values."""

    @abstractmethod
    def column_data(self, position: int) -> Any:
        """Return a whole column as an object that ``pyarrow.array`` may accept."""

    @abstractmethod
    def estimate_bytes(self) -> int:
        """Estimate, without reading the rows, how much memory the table holds."""

    @abstractmethod
    def snapshot(self) -> Self:
        """Return a frame to read later; see `is_live`."""

    def renew(self) -> "Frame":
        """Return a frame of the table as it is now: this one, unless it `is_live`."""
        return self

    @abstractmethod
    def take(self, positions: Any) -> "Frame":
        """Return a frame of some rows, in this order.

        Args:
            positions: An array of numpy, or another sequence of ints.
        """

    def find_facts(self, position: int) -> Facts | None:  # noqa: ARG002 - most have no arrays
        """Return what is in a column of numbers, times or bools; None for any other column."""
        return None

    def count_missing(self, position: int) -> int | None:  # noqa: ARG002 - as above
        """Return how many cells of a column are missing, if its library counts them quickly."""
        return None

    def labels(self, start: int, stop: int) -> list[Column]:  # noqa: ARG002 - most have none
        """Return some rows of the labels, unless they only count rows."""
        return []

    def label_data(self) -> list[tuple[Any, Any]]:
        """Return the names of these labels and their whole columns, as from `column_data`."""
        return []

    def format_column(self, values: Sequence[Any]) -> list[str]:
        """Return the strings of the cells of a column with these values."""
        return format_column(values, nan_is_missing=self.nan_is_missing)

    def find_missing(self, values: Sequence[Any]) -> list[bool]:
        """Return for each value of a column whether it is a missing value."""
        return find_missing(values, nan_is_missing=self.nan_is_missing)

    @property
    def title(self) -> str:
        """The kind and shape of the table, on one line."""
        return f"{self.kind}: {self.shape_text}"

    @property
    def shape_text(self) -> str:
        """The number of rows and columns, in words."""
        rows = count(self.height, "row")
        return rows if self.is_single else f"{rows} x {count(self.width, 'column')}"

    @property
    def schema_text(self) -> str:
        """The names and types of the columns in the preview; empty if they have no names."""
        positions = select_ends(self.width, MAX_COLUMNS) if self.has_names else ()
        return ", ".join(
            f"{quote_unclear(format_name(self.column_name(p)))} {self.column_type(p)}"
            for p in positions
        )


def select_ends(size: int, limit: int) -> Sequence[int]:
    """Return the positions to show, half from the head and half from the tail."""
    if size <= limit:
        return range(size)
    return [*range(limit - limit // 2), *range(size - limit // 2, size)]


def select_middle(size: int, limit: int) -> Sequence[int]:
    """Return the positions that `select_ends` leaves out."""
    return range(limit - limit // 2, size - limit // 2)


def format_name(name: Any) -> str:
    """Return the text of a column name, with the levels of a MultiIndex joined."""
    if not isinstance(name, tuple):
        return format_cell(name)
    return " / ".join(text for level in name if (text := format_cell(level)))
