"""pandas' tables: DataFrame, Series, Index, and what a Styler displays of one.

Runs in the user's kernel. pandas is never imported here: who has one of these has imported it.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

from typing_extensions import override

from mcp_notebook.kernel.results.tables.cell_text import cell_text
from mcp_notebook.kernel.results.tables.frame import (
    MAX_COLUMNS,
    MAX_COPY,
    SAMPLED,
    Column,
    Frame,
    ends,
)
from mcp_notebook.kernel.safe.text import clean_text, is_instance


def pandas_frame(value: Any) -> Frame | None:
    """Return pandas' own as a `Frame`, None if it is none of these."""
    if is_instance(value, "pandas.DataFrame"):
        return PandasFrame(value)
    if is_instance(value, "pandas.Series"):
        return PandasSeries(value)
    if is_instance(value, "pandas.io.formats.style.Styler"):
        return StylerFrame(value)
    return None


def index_frame(value: Any) -> Frame:
    """Return a pandas Index as a `Frame`."""
    is_multi = is_instance(value, "pandas.MultiIndex")
    return MultiIndexFrame(value) if is_multi else IndexFrame(value)


class PandasFrame(Frame):
    """A DataFrame."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self._index = table.index
        self.kind = type(table).__name__
        self.height = len(table.index)
        self.width = self._width()

    @override
    def name(self, position: int) -> Any:
        return self.table.columns[position]

    @override
    def dtype(self, position: int) -> str:
        return str(self.whole_column(position).dtype)

    @override
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        # By slice: a selection by row numbers copies all of an Arrow column.
        return list(self.whole_column(position).iloc[start:stop].tolist())

    @override
    def whole_column(self, position: int) -> Any:
        return self.table.iloc[:, position]

    @override
    def labels(self, start: int, stop: int) -> list[Column]:
        if _is_plain(self._index):
            return []
        part = self._index[start:stop]
        levels = range(part.nlevels)
        return [Column(part.names[at], list(part.get_level_values(at))) for at in levels]

    @override
    def whole_labels(self) -> list[tuple[Any, Any]]:
        index = self._index
        levels = range(0 if _is_plain(index) else index.nlevels)
        return [(index.names[at], index.get_level_values(at)) for at in levels]

    @override
    def cost(self) -> int:
        # Of a wide table the columns that are shown stand for all.
        measured = ends(self.width, MAX_COLUMNS)
        held = sum(_bytes_of(self.whole_column(at)) for at in measured)
        return int(self._index.nbytes) + held * self.width // max(len(measured), 1)

    @override
    def snapshot(self) -> Self:
        kept = type(self)(_kept(self.table, self.cost()))
        kept.is_live = kept.table is self.table
        return kept

    def _width(self) -> int:
        return len(self.table.columns)


class PandasSeries(PandasFrame):
    """A Series: a table of one column."""

    is_single = True

    @override
    def name(self, position: int) -> Any:
        name = self.table.name
        return "value" if name is None else name

    @override
    def whole_column(self, position: int) -> Any:
        return self.table

    def _width(self) -> int:
        return 1


class IndexFrame(Frame):
    """An Index; it never changes."""

    is_single = True

    def __init__(self, index: Any) -> None:
        self._index = index
        self.kind = type(index).__name__
        self.height = len(index)
        self.width = index.nlevels

    @override
    def name(self, position: int) -> Any:
        name = self._index.names[position]
        return ("value" if self.is_single else f"level {position}") if name is None else name

    @override
    def dtype(self, position: int) -> str:
        return str(self._index.dtype)

    @override
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        return list(self._index[start:stop].get_level_values(position))

    @override
    def whole_column(self, position: int) -> Any:
        return self._index.get_level_values(position)

    @override
    def cost(self) -> int:
        return int(self._index.nbytes)

    @override
    def snapshot(self) -> Self:
        return self


class MultiIndexFrame(IndexFrame):
    """A MultiIndex: a column for each level."""

    is_single = False

    @override
    def dtype(self, position: int) -> str:
        return str(self._index.levels[position].dtype)


class StylerFrame(Frame):
    """What a Styler displays: formatted values without what its author hid.

    A Styler renders from its first row on, so that the tail of a long one would cost its whole
    length. What formats a cell is looked up here instead, as pandas' own `StylerRenderer` does.
    """

    def __init__(self, styler: Any) -> None:
        self._styler = styler
        self._data = PandasFrame(styler.data)
        self._rows = _visible_rows(styler)
        hidden = set(styler.hidden_columns)
        self._columns = [at for at in range(self._data.width) if at not in hidden]
        self._levels = [at for at, hide in enumerate(styler.hide_index_) if not hide]
        self.kind = "Styler"
        self.height = sum(len(rows) for _, rows in self._rows)
        self.width = len(self._columns)

    @property
    @override
    def title(self) -> str:
        caption = self._styler.caption
        caption = caption[0] if isinstance(caption, tuple) else caption
        return super().title + (f', "{cell_text(caption)}"' if caption else "")

    @override
    def name(self, position: int) -> Any:
        at = self._columns[position]
        name = self._data.name(at)
        formats = _formats(self._styler, "_columns")
        parts = name if isinstance(name, tuple) else (name,)
        shown = [
            _displayed(formats.get((level, at)), part)
            for level, part in enumerate(parts)
            if not self._styler.hide_columns_[level]
        ]
        return tuple(shown)

    @override
    def dtype(self, position: int) -> str:
        return self._data.dtype(self._columns[position])

    @override
    def values(self, position: int, start: int, stop: int) -> list[Any]:
        at = self._columns[position]
        shown: list[Any] = []
        for styler, row in self._slice(start, stop):
            formats = _formats(styler)
            default = getattr(formats, "default_factory", None)
            display = formats.get((row, at)) or (default() if default else None)
            shown.append(_displayed(display, styler.data.iloc[row, at]))
        return shown

    @override
    def labels(self, start: int, stop: int) -> list[Column]:
        index = self._styler.index
        if _is_plain(index) and not _formats(self._styler, "_index"):
            return []
        return [Column(index.names[at], self._label(at, start, stop)) for at in self._levels]

    def _label(self, level: int, start: int, stop: int) -> list[Any]:
        shown: list[Any] = []
        for styler, row in self._slice(start, stop):
            label = styler.index[row]
            label = label[level] if isinstance(label, tuple) else label
            shown.append(_displayed(_formats(styler, "_index").get((row, level)), label))
        return shown

    def _slice(self, start: int, stop: int) -> list[tuple[Any, int]]:
        """Return the rows at these positions: of which Styler, and which of its rows."""
        found: list[tuple[Any, int]] = []
        for styler, rows in self._rows:
            found += [(styler, int(row)) for row in rows[max(start, 0) : max(stop, 0)]]
            start, stop = start - len(rows), stop - len(rows)
        return found

    @override
    def whole_column(self, position: int) -> Any:
        return self._data.whole_column(self._columns[position])

    @override
    def cost(self) -> int:
        return self._data.cost()

    @override
    def snapshot(self) -> Self:
        return self

    @property
    @override
    def whole(self) -> Frame:
        """The data as they are: without formats, with what is hidden."""
        return self._data


def _formats(styler: Any, of: str = "") -> Mapping[tuple[int, int], Any]:
    """Return what formats a Styler's cells, its labels (``_index``) or names (``_columns``)."""
    formats: Mapping[tuple[int, int], Any] = getattr(styler, f"_display_funcs{of}", {})
    return formats


def _visible_rows(styler: Any) -> list[tuple[Any, Sequence[int]]]:
    """Return the rows that a Styler and those that were concatenated to it show."""
    hidden = {int(row) for row in styler.hidden_rows}
    rows: Sequence[int] = range(len(styler.index))
    rows = [row for row in rows if row not in hidden] if hidden else rows
    found = [(styler, rows)]
    for other in styler.concatenated:
        found += _visible_rows(other)
    return found


def _displayed(display: Any, value: Any) -> Any:
    """Return what a Styler's function makes of a value; it may be the author's own."""
    if display is None:
        return value
    try:
        made = display(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - it may raise anything
        return value
    return clean_text(made) if isinstance(made, str) else made


def _is_plain(index: Any) -> bool:
    """Tell whether an index only counts the rows."""
    is_range = is_instance(index, "pandas.RangeIndex")
    return is_range and index.start == 0 and index.step == 1 and index.name is None


def _bytes_of(series: Any) -> int:
    held = int(series.nbytes)
    if series.dtype == object and len(series):
        sample = series.iloc[:SAMPLED]
        held += sum(map(sys.getsizeof, sample)) * len(series) // len(sample)
    return held


def _kept(table: Any, cost: int) -> Any:
    """Return a table that stays as it is now; the same one if that would cost too much."""
    if _copies_on_write():
        return table.copy(deep=False)
    return table.copy() if cost <= MAX_COPY else table


def _copies_on_write() -> bool:
    pandas = sys.modules["pandas"]
    major = str(pandas.__version__).partition(".")[0]
    return (major.isdigit() and int(major) >= 3) or (  # noqa: PLR2004 - since pandas 3 always
        pandas.get_option("mode.copy_on_write") is True
    )
