"""Writes a table for a model: its shape, its columns, its rows, and a link to the rest.

Runs in the user's kernel, on the thread of the call. A short table is shown whole. Of a longer one,
there is a line for each column (`summary`), which answers most of what a model would ask next, and
the first and last rows. The rows are CSV, which is shorter than Markdown. An empty cell is a
missing value (`ALONE` in a row of one cell); a text that looks like one is quoted. Length is
counted in characters, since tokens depend on the model.
"""

import sys
import weakref
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mcp_notebook.content import Text
from mcp_notebook.errors import ResourceFailed
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.originals import Original, discard_original
from mcp_notebook.kernel.results.blocks.piece import Piece, make_text_piece
from mcp_notebook.kernel.results.blocks.truncation import LINK
from mcp_notebook.kernel.results.tables.cell_text import (
    QuotedText,
    has_cut_cells,
    quote_unclear,
)
from mcp_notebook.kernel.results.tables.csv_text import format_csv_lines
from mcp_notebook.kernel.results.tables.exports import describe_array, describe_exports
from mcp_notebook.kernel.results.tables.frame import (
    CELLS,
    MAX_COLUMNS,
    Column,
    Frame,
    format_name,
    select_ends,
    select_middle,
)
from mcp_notebook.kernel.results.tables.narwhals_frame import (
    describe_lazy_frame,
    is_narwhals_table,
    wrap_narwhals_table,
)
from mcp_notebook.kernel.results.tables.pandas_frame import wrap_pandas_table
from mcp_notebook.kernel.results.tables.row_frame import wrap_array, wrap_dicts
from mcp_notebook.kernel.results.tables.summary import (
    Summary,
    summarize_array,
    summarize_columns,
    summarize_left_out,
)
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import clean_text, cut_text, safe_repr
from mcp_notebook.kernel.safe.to_json import format_json, to_json_value
from mcp_notebook.text.wording import count

GAP = "..."
ALONE = "null"
"""A missing value that is a row alone, whose line would be empty; the text "null" is quoted."""
MAX_NAMES = 1_000
"""Maximum characters of the list of columns that are left out."""
MAX_SCHEMA = 2_000
"""Maximum characters of the list of names and types."""
ROWS, MIN_ROWS = 10, 4
"""Most and fewest rows of a table that is summarized."""
SHOWN_CELLS = 150
"""Cells of its rows, about."""
ENDS = 5
"""Elements at each end of a long array of one dimension; of more dimensions, numpy's own number."""
CUT_CELLS = "A cell that ends with [+N] has N more characters."
"""Said once above a table with such cells."""
NOTE_CHARS = 300
"""Characters reserved for the notes on an incomplete table."""
_TABLES = (
    "pandas.DataFrame",
    "pandas.Series",
    "polars.LazyFrame",
)


def layout_table(
    names: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[str]]:
    """Return the header and the rows of a table as CSV; no header if no column has a name."""
    has_names = any(name or type(name) is QuotedText for name in names)
    first, *lines = format_csv_lines([names, *rows])
    return [first] if has_names else [], [line or ALONE for line in lines]


def count_fitting_rows(header: Sequence[str], rows: Sequence[str], room: int, height: int) -> int:
    """Return how many of the rows fit: at least one, if there is any.

    Rows are removed from the middle, so that the rest is half head and half tail.

    Args:
        header: The lines above the rows.
        rows: The rows; for a long table, half from its head and half from its tail.
        room: Maximum characters of the lines, and of the note on the rows that are left out.
        height: Rows of the table.
    """
    fitting = len(rows)
    chars = sum(len(line) + 1 for line in (*header, *rows))
    if fitting == height and chars <= room:
        return fitting
    chars += NOTE_CHARS + len(GAP) + 1
    while fitting > 1 and chars > room:
        at = fitting // 2 if fitting % 2 else len(rows) - fitting // 2
        chars -= len(rows[at]) + 1
        fitting -= 1
    return fitting


def is_table(value: Any) -> bool:
    """Return whether a value is a table of a known library."""
    return any(is_instance(value, path) for path in _TABLES) or is_narwhals_table(value)


def render_table(value: Any, budget: Budget) -> list[Piece]:
    """Render a table as text, followed by links to the whole of it if anything is left out.

    Args:
        value: A value for which `is_table` is true, or an Index of pandas.
        budget: Limits rows and characters; half of the rows are from the head, half from the tail.
            It also keeps the whole table.
    """
    lazy_frame = describe_lazy_frame(value)
    if lazy_frame is not None:
        return [make_text_piece(lazy_frame)]
    frame = wrap_pandas_table(value) or wrap_narwhals_table(value)
    if frame is None:
        raise TypeError(f"a {type(value).__name__} is not a table")
    return _render_frame(frame, budget)


def render_array(value: Any, budget: Budget) -> list[Piece]:
    """Render a numpy array as a table if it has rows, otherwise as numpy abbreviates it."""
    frame = wrap_array(value)
    most = CELLS * budget.table_rows
    if frame is not None and (value.dtype.names or value.size <= most or not value.size):
        return _render_frame(frame, budget)
    is_partial = value.size > most
    original = None
    if value.size > 1:
        original = describe_array(value) if frame is None else describe_table(frame)
    whole = count(value.size, "element") if is_partial else ""
    text = format_array(value, most)
    return [Piece(Text(text), original, is_partial=is_partial, whole=whole)]


def render_dicts(value: Any, budget: Budget) -> list[Piece] | None:
    """Render a list of dicts as a table; return None if its JSON is more complete or as short."""
    frame = wrap_dicts(value)
    if frame is None:
        return None
    preview = _make_preview(frame, budget)
    if preview.is_summarized:
        return _render_frame(frame, budget, preview)
    if preview.has_cut_cells:
        return None
    if frame.height <= budget.table_rows:
        text, _ = _write_preview(preview, budget.chars)
        if len(text) >= len(format_json(to_json_value(value, budget.chars))):
            return None
    return _render_frame(frame, budget, preview)


def format_array(value: Any, most: int) -> str:
    """Return a numpy array as numpy abbreviates it, under a line that summarizes it.

    Args:
        value: The array.
        most: Elements of the largest array that is shown whole.
    """
    numpy = sys.modules["numpy"]
    numbers, formatter = value, None
    if is_instance(value, "numpy.ma.MaskedArray"):
        # numpy's own text omits elements of long axes without saying so.
        elements = value.ravel()
        numbers = numpy.arange(value.size).reshape(value.shape)
        formatter = {"int": lambda position: _format_element(elements[position])}
    ends = ENDS if value.ndim == 1 else None
    text = numpy.array2string(
        numbers, threshold=most, max_line_width=100, formatter=formatter, edgeitems=ends
    )
    facts = summarize_array(value) if value.size > most else ""
    title = f"array of shape {value.shape}, {value.dtype}{facts and f': {facts}'}"
    return f"{title}\n{clean_text(text)}"


def _format_element(element: Any) -> str:
    """Return the text of an element of a masked array: ``--`` if it is masked."""
    return safe_repr(str(element)) if isinstance(element, str) else str(element)


def _render_frame(frame: Frame, budget: Budget, preview: "_Preview | None" = None) -> list[Piece]:
    preview = preview or _make_preview(frame, budget)
    text, rows = _write_preview(preview, budget.chars)
    is_whole = rows == preview.height and not preview.misses_columns and not preview.has_cut_cells
    if is_whole and len(text) <= budget.chars:
        budget.note_table(frame)
        return [Piece(Text(text))]
    original = describe_table(frame)
    links = budget.keep(original)
    note = _describe_availability(original, bool(links), budget)
    room = max(budget.chars - LINK * len(links), budget.chars // 2)
    if note:
        text, _ = _write_preview(preview, room - len(note) - 1, note)
    return [Piece(Text(cut_text(text, room)), has_links=True), *map(Piece, links)]


# -- what a preview shows --------------------------------------------------------------------------


class _Preview(Struct, frozen=True):
    """Some rows and columns of a table, as strings."""

    notes: list[str]
    names: list[str]
    rows: list[tuple[str, ...]]
    """The rows; for a long table, half from its head and half from its tail."""
    height: int
    """Rows of the table."""
    misses_columns: bool
    has_cut_cells: bool
    is_summarized: bool
    """Whether the notes say what is in each column, since not all rows are shown."""


def _make_preview(frame: Frame, budget: Budget) -> _Preview:
    positions = select_ends(frame.width, MAX_COLUMNS)
    shown = _count_shown_rows(frame, budget, len(positions))
    is_summarized = shown < frame.height and bool(positions)
    # A row takes at least two characters, so no more rows than that fit.
    slices = _slice_rows(frame.height, min(shown, max(budget.chars // 2, 1)))
    columns = _read_columns(frame, positions, slices) if frame.width else []
    schema = frame.schema_text
    notes = _summarize(frame, positions, budget) if is_summarized else []
    is_summarized = bool(notes)
    if is_summarized:
        schema = ""
    notes.insert(0, _describe_frame(frame, schema))
    if frame.width > len(positions):
        notes += _describe_left_out(frame, budget)
    texts = [frame.format_column(column.values) for column in columns]
    names = [
        format_name(column.name) if frame.has_names and column.name is not None else ""
        for column in columns
    ]
    is_cut = any(map(has_cut_cells, (names, *texts)))
    if is_cut:
        notes.append(CUT_CELLS)
    misses_columns = frame.width > len(positions) or len(schema) > MAX_SCHEMA
    return _Preview(
        notes,
        names,
        list(zip(*texts, strict=True)),
        frame.height if columns else 0,
        misses_columns,
        is_cut,
        is_summarized,
    )


def _count_shown_rows(frame: Frame, budget: Budget, width: int) -> int:
    """Return how many rows to show: all of a small table, or a few of a larger one."""
    rows, cells = budget.table_rows, CELLS * budget.table_rows
    is_small = frame.height <= rows and frame.height * width <= cells
    if is_small or not width:
        return frame.height
    return min(frame.height, rows, ROWS, max(SHOWN_CELLS // width, MIN_ROWS))


def _summarize(frame: Frame, positions: Sequence[int], budget: Budget) -> list[str]:
    """Return the lines that summarize a table; none if that fails or takes too much room."""
    summary = guard(lambda: summarize_columns(frame, positions), recover=lambda _error: Summary([]))
    lines = [*summary.lines, *([summary.note] if summary.note else [])]
    return lines if sum(map(len, lines)) <= budget.chars // 2 else []


def _describe_frame(frame: Frame, schema: str) -> str:
    separator = ", " if frame.is_single else "; "
    return clean_text(
        frame.title + (f"{separator}{cut_text(schema, MAX_SCHEMA)}" if schema else "")
    )


def _slice_rows(height: int, limit: int) -> list[tuple[int, int]]:
    if height <= limit:
        return [(0, height)]
    return [(0, limit - limit // 2), (height - limit // 2, height)]


def _read_columns(
    frame: Frame, positions: Sequence[int], slices: Sequence[tuple[int, int]]
) -> list[Column]:
    label_parts = [frame.labels(start, stop) for start, stop in slices]
    labels = [
        Column(parts[0].name, [value for part in parts for value in part.values])
        for parts in zip(*label_parts, strict=True)
    ]
    data = [
        Column(
            frame.column_name(position),
            [v for start, stop in slices for v in frame.column_values(position, start, stop)],
        )
        for position in positions
    ]
    return [*labels, *data]


def _describe_left_out(frame: Frame, budget: Budget) -> list[str]:
    """Return the line that names the columns left out, and those that summarize them."""
    positions = select_middle(frame.width, MAX_COLUMNS)
    names: list[str] = []
    chars = 0
    for position in positions:
        if chars > MAX_NAMES:
            names.append(f"and {len(positions) - len(names):,} more")
            break
        names.append(quote_unclear(format_name(frame.column_name(position))))
        chars += len(names[-1])
    lines = [f"{count(len(positions), 'column')} left out: {', '.join(names)}"]
    if frame.height:
        room = budget.chars // 4
        for line in guard(lambda: summarize_left_out(frame, positions), recover=lambda _error: []):
            room -= len(line)
            if room > 0:
                lines.append(line)
    return lines


# -- the text of a preview -------------------------------------------------------------------------


def _write_preview(preview: _Preview, room: int, note: str = "") -> tuple[str, int]:
    """Write a preview within `room` characters.

    Returns:
        The text, and how many rows it shows.
    """
    if not preview.names:
        return "\n".join([*preview.notes, note]).rstrip(), 0
    header, lines = layout_table(preview.names, preview.rows)
    room -= sum(map(len, preview.notes)) + len(preview.notes) + 1
    rows = count_fitting_rows(header, lines, room, preview.height)
    gap_note, visible = "", lines
    if rows < preview.height:
        head, tail = rows - rows // 2, rows // 2
        ends = f"Only the first {head:,}" + (f" and last {tail:,}" if tail else "")
        left_out = preview.height - rows
        gap_note = f"{ends} rows are shown; {left_out:,} between them are left out."
        visible = [*lines[:head], GAP, *(lines[-tail:] if tail else [])]
    notes = [line for line in (*preview.notes, gap_note, note) if line]
    return "\n".join([*notes, "", *header, *visible]), rows


# -- the whole table -------------------------------------------------------------------------------


def find_frame(value: Any) -> Frame | None:
    """Return the frame of a value that is a table: of a library, an array, or rows of dicts."""
    if is_table(value):
        return wrap_pandas_table(value) or wrap_narwhals_table(value)
    return wrap_array(value) or wrap_dicts(value)


def describe_table(frame: Frame) -> Original:
    """Describe a whole table: as files, and as a live view."""
    snapshot = frame.snapshot()
    title = f"The whole table: {snapshot.shape_text}"
    return Original(
        name="table",
        title=title + (", as of when it is read" if snapshot.is_live else ""),
        formats=describe_exports(snapshot),
        cost=snapshot.estimate_bytes(),
        kind="table",
        read_table=snapshot.renew,
    )


def describe_table_in_use(value: Any, frame: Frame) -> Original:
    """Describe a table too large to keep, for a live view while the notebook has it.

    It is held weakly, so that it costs no memory, and has no files.

    Args:
        value: The table, as the function returned it.
        frame: Its frame.

    Raises:
        TypeError: Such a value cannot be held weakly.
    """
    reference = weakref.ref(value)
    size = f"{frame.estimate_bytes() / 2**20:,.0f} MiB"

    def read_table() -> Frame:
        found = find_frame(reference())
        if found is None:
            raise ResourceFailed(
                f"The notebook no longer has this table. It took {size}, more than "
                "max_resource_bytes allows, so it was not kept for its view. To see the whole "
                "table, have the tool return a variable of the notebook, or raise "
                "max_resource_bytes."
            )
        found.is_live = True
        return found

    return Original("table", frame.title, (), cost=0, kind="table", read_table=read_table)


def _describe_availability(original: Original, is_kept: bool, budget: Budget) -> str:  # noqa: FBT001
    if is_kept or budget.keep is discard_original:  # the links say so, or no client could read it
        return ""
    return (
        f"The whole table cannot be read: it takes {original.cost / 2**20:,.0f} MiB, "
        "more than max_resource_bytes allows."
    )
