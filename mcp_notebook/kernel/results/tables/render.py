"""A table as a model can read it: its shape, its types, its head and tail; the whole as a resource.

Runs in the user's kernel, on the thread of the call. The libraries' tables are read through
`kernel.results.tables.frame`, so that only the rows that are shown are touched. The text is
Markdown or CSV, see `Settings.table_format`; "auto" is the one of them that shows more, then the
shorter: characters stand for tokens, which depend on the model. Files of the whole are
`kernel.results.tables.exports`' business.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_notebook.content import ContentBlock, Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.originals import Original, discard_original
from mcp_notebook.kernel.results.blocks.truncation import LINK, Draft
from mcp_notebook.kernel.results.tables.cell_text import CUT, MAX_CELL, without_midnights
from mcp_notebook.kernel.results.tables.exports import table_forms
from mcp_notebook.kernel.results.tables.frame import (
    MAX_COLUMNS,
    Column,
    Frame,
    between,
    count,
    ends,
    name_text,
)
from mcp_notebook.kernel.results.tables.layouts import LAYOUTS, Lines
from mcp_notebook.kernel.results.tables.narwhals_frame import (
    column_frame,
    is_column_frame,
    lazy_text,
)
from mcp_notebook.kernel.results.tables.pandas_frame import index_frame, pandas_frame
from mcp_notebook.kernel.results.tables.row_frame import array_frame, dicts_frame
from mcp_notebook.kernel.safe.text import clean_text, cut_text, is_instance
from mcp_notebook.kernel.safe.to_json import format_json, to_json_value

MAX_NAMES = 1_000
"""Characters of the list of columns that are left out."""
MAX_TYPES = 2_000
"""Characters of the list of types."""
NOTES = 300
"""Characters that are left free for what is said of a table that is shown in part."""


def is_table(value: Any) -> bool:
    """Tell whether a value is a table of some library, shown as one wherever it comes."""
    pandas = ("pandas.DataFrame", "pandas.Series", "pandas.io.formats.style.Styler")
    return (
        any(is_instance(value, path) for path in pandas)
        or is_column_frame(value)
        or is_instance(value, "polars.LazyFrame")
    )


def render_table(value: Any, budget: Budget) -> list[ContentBlock]:
    """Show a table: a text, and links to the whole if anything is left out.

    Args:
        value: What `is_table` says to be one.
        budget: How many rows to show, of a longer table half from its head, half from its tail;
            how many characters: fewer rows are shown if need be; and who keeps the whole.
    """
    lazy = lazy_text(value)
    if lazy is not None:
        return [Text(cut_text(clean_text(lazy), budget.chars))]
    frame = pandas_frame(value) or column_frame(value)
    if frame is None:
        raise TypeError(f"a {type(value).__name__} is no table")
    return _blocks(frame, budget)


def render_array(value: Any, budget: Budget) -> list[ContentBlock]:
    """Show a numpy array: as a table if it is one, else as numpy itself abbreviates it."""
    frame = array_frame(value)
    return [Text(format_array(value))] if frame is None else _blocks(frame, budget)


def render_index(value: Any, budget: Budget) -> list[ContentBlock]:
    """Show a pandas Index."""
    return _blocks(index_frame(value), budget)


def render_dicts(value: Any, budget: Budget) -> list[ContentBlock] | None:
    """Show a list of dicts as a table; None if its JSON says more, or as much in less room."""
    frame = dicts_frame(value)
    if frame is None:
        return None
    preview = _preview(frame, budget)
    if preview.has_cuts:
        return None
    if frame.height <= budget.table_rows:
        shown = _shown(preview, budget, budget.chars)
        if len(shown.text) >= len(format_json(to_json_value(value, budget.chars))):
            return None
    return _blocks(frame, budget, preview)


def format_array(value: Any) -> str:
    """Show a numpy array as numpy itself abbreviates it, under a line of its shape and type."""
    numpy = sys.modules["numpy"]
    text = numpy.array2string(value, threshold=1_000, max_line_width=100)
    return f"array of shape {value.shape}, {value.dtype}\n{clean_text(text)}"


# -- what is shown of a table ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Preview:
    """What may be shown of a table: some rows and columns, as texts."""

    notes: list[str]
    names: list[str]
    rows: list[tuple[str, ...]]
    """Of a longer table half from its head, half from its tail."""
    height: int
    """Rows of the table."""
    misses_columns: bool
    has_cuts: bool
    """Cells are cut."""


@dataclass(frozen=True)
class _Shown:
    text: str
    rows: int


def _blocks(frame: Frame, budget: Budget, preview: _Preview | None = None) -> list[ContentBlock]:
    preview = preview or _preview(frame, budget)
    shown = _shown(preview, budget, budget.chars)
    whole = shown.rows == preview.height and not preview.misses_columns and not preview.has_cuts
    if whole and len(shown.text) <= budget.chars:
        return [Text(shown.text)]
    original = _original(frame.whole)
    links = budget.keep(original)
    said = _about_the_whole(original, bool(links), budget)
    room = max(budget.chars - LINK * len(links), budget.chars // 2)
    if said:
        shown = _shown(preview, budget, room - len(said) - 1, said)
    return [Draft(cut_text(shown.text, room), linked=True), *links]


def _preview(frame: Frame, budget: Budget) -> _Preview:
    positions = ends(frame.width, MAX_COLUMNS)
    # A row takes two characters at least: more of them than that could never be shown.
    limit = min(budget.table_rows, max(budget.chars // 2, 1))
    slices = _slices(frame.height, limit)
    columns = _columns(frame, positions, slices) if frame.width else []
    types = frame.types
    said = f"{', ' if frame.is_single else '; '}{cut_text(types, MAX_TYPES)}" if types else ""
    notes = [clean_text(frame.title + said)]
    if frame.width > len(positions):
        notes.append(_columns_left_out(frame))
    texts = [_texts(frame, column) for column in columns]
    return _Preview(
        notes,
        [
            name_text(column.name) if frame.has_names and column.name is not None else ""
            for column in columns
        ],
        list(zip(*texts, strict=True)),
        frame.height if columns else 0,
        frame.width > len(positions),
        any(len(text) == MAX_CELL and text.endswith(CUT) for column in texts for text in column),
    )


def _slices(height: int, limit: int) -> list[tuple[int, int]]:
    if height <= limit:
        return [(0, height)]
    return [(0, limit - limit // 2), (height - limit // 2, height)]


def _columns(
    frame: Frame, positions: Sequence[int], slices: Sequence[tuple[int, int]]
) -> list[Column]:
    parts = [frame.labels(start, stop) for start, stop in slices]
    labels = [
        Column(same[0].name, [value for part in same for value in part.values])
        for same in zip(*parts, strict=True)
    ]
    data = [
        Column(frame.name(at), [v for start, stop in slices for v in frame.values(at, start, stop)])
        for at in positions
    ]
    return [*labels, *data]


def _texts(frame: Frame, column: Column) -> list[str]:
    return without_midnights(column.values, [frame.text(value) for value in column.values])


def _columns_left_out(frame: Frame) -> str:
    left_out = between(frame.width, MAX_COLUMNS)
    names: list[str] = []
    size = 0
    for position in left_out:
        if size > MAX_NAMES:
            names.append(f"and {len(left_out) - len(names):,} more")
            break
        names.append(name_text(frame.name(position)))
        size += len(names[-1])
    return f"{count(len(left_out), 'column')} left out: {', '.join(names)}"


# -- its text --------------------------------------------------------------------------------------


def _shown(preview: _Preview, budget: Budget, room: int, said: str = "") -> _Shown:
    """Write a preview within so much room, in the format that the budget asks for."""
    if not preview.names:
        return _Shown("\n".join([*preview.notes, said]).rstrip(), 0)
    names = LAYOUTS if budget.table_format == "auto" else (budget.table_format,)
    made = [_written(LAYOUTS[name](preview.names, preview.rows), preview, room) for name in names]
    rows, gap, text = min(made, key=lambda one: (-one[0], len(one[2])))
    notes = [line for line in (*preview.notes, gap, said) if line]
    return _Shown("\n".join([*notes, "", text]), rows)


def _written(lines: Lines, preview: _Preview, room: int) -> tuple[int, str, str]:
    """Return how many rows of a layout are shown, what is said of the others, and the text."""
    taken = sum(map(len, preview.notes)) + len(preview.notes) + 1
    shown = lines.fitting(room - taken, preview.height, NOTES)
    head, tail = shown - shown // 2, shown // 2
    if shown == preview.height:
        return shown, "", "\n".join([*lines.header, *lines.rows])
    said = f"Only the first {head:,}" + (f" and last {tail:,}" if tail else "")
    left_out = f"{preview.height - shown:,} between them are left out"
    kept = [*lines.rows[:head], lines.gap, *(lines.rows[-tail:] if tail else [])]
    return shown, f"{said} rows are shown; {left_out}.", "\n".join([*lines.header, *kept])


# -- the whole -------------------------------------------------------------------------------------


def _original(frame: Frame) -> Original:
    kept = frame.snapshot()
    title = f"The whole table: {kept.size}"
    return Original(
        name="table",
        title=title + (", as it is when it is read" if kept.is_live else ""),
        formats=table_forms(kept),
        cost=kept.cost(),
    )


def _about_the_whole(original: Original, is_kept: bool, budget: Budget) -> str:  # noqa: FBT001
    if is_kept:
        names = " and ".join(f"{original.name}{form.extension}" for form in original.formats)
        return f"The whole table can be read as a resource: {names}."
    if budget.keep is discard_original:
        return ""
    return (
        f"The whole table cannot be read as a resource: it takes {original.cost / 2**20:,.0f} MiB, "
        "more than MCP_NOTEBOOK_MAX_RESOURCE_BYTES allows."
    )
