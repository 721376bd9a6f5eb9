"""Renders data as JSON: long lists and dicts keep their ends, and say what is between.

Runs in the user's kernel, on the thread of the call. `safe.to_json` shortens; here is what a list
of many values or records says of them. Texts are not shortened here: somebody wants to read them.
"""

import sys
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.author_blocks import describe_size, describe_whole_json
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.tables.cell_text import find_missing
from mcp_notebook.kernel.results.tables.column_facts import find_list_facts
from mcp_notebook.kernel.results.tables.frame import CELLS
from mcp_notebook.kernel.results.tables.row_frame import format_json_cells, wrap_records
from mcp_notebook.kernel.results.tables.summary import (
    Summary,
    summarize_columns,
    write_facts,
)
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.sequences import is_mapping, is_sequence
from mcp_notebook.kernel.safe.stand_ins import is_record
from mcp_notebook.kernel.safe.to_json import (
    format_json,
    format_json_lines,
    to_bounded_json,
    to_short_json,
)

MAX_READ = 50_000
"""Items of a list that are summarized."""
MAX_FIELDS = 12
"""Fields of records that are summarized."""
_LARGE = 10**15
"""Larger integers may have more digits than Python converts to text."""


def render_json(value: Any, budget: Budget) -> Piece:
    """Render a value as JSON, with its long lists and mappings shortened.

    Args:
        value: Anything.
        budget: The limits of the result.
    """
    if type(value) is bool or (type(value) is int and -_LARGE < value < _LARGE):
        return Piece(Text(str(value).lower()))  # too short for an original
    most = CELLS * budget.table_rows
    json_value, is_partial = to_short_json(value, budget.chars, most, summarize_items)
    text = json_value if isinstance(json_value, str) else format_json(json_value)
    is_cut = False
    if is_partial:
        json_value, is_cut = to_bounded_json(value, budget.chars)
    if is_cut:
        original = describe_whole_json(value)
    else:
        form = FileFormat(".json", "application/json", lambda: format_json_lines(json_value))
        original = Original("value", "The whole value as JSON", (form,), sys.getsizeof(text))
    whole = describe_size(value) if is_partial else ""
    return Piece(Text(text), original, is_partial=is_partial, whole=whole)


def summarize_items(items: Iterable[Any], total: int) -> str:
    """Return what is in the first items of a list of any length; empty if it says nothing."""
    first = list(islice(items, MAX_READ))
    summary = guard(_describe, first, recover=lambda _error: Summary([]))
    facts = "; ".join(filter(None, [*summary.lines, summary.note.rstrip(".")]))
    if not facts:
        return ""
    if total > MAX_READ:
        return f"; of the first {MAX_READ:,}: {facts}"
    return f"; {facts}" if summary.note else f"; all: {facts}"


def _describe(items: Sequence[Any]) -> Summary:
    frame = wrap_records(items)
    if frame is not None:
        return summarize_columns(frame, range(min(frame.width, MAX_FIELDS)))
    rows = items if all(type(item) in (list, tuple) for item in items) else ()
    if rows:
        items = list(islice(chain.from_iterable(rows), MAX_READ + 1))
    examples = {type(item): item for item in items}
    if len(items) > MAX_READ or any(map(_has_parts, examples.values())):
        return Summary([])
    facts = find_list_facts(items, find_missing(items, nan_is_missing=False))
    line = write_facts(facts, len(items), len(items), format_json_cells)
    return Summary([f"{len(items):,} values in them: {line}" if rows and line else line])


def _has_parts(value: Any) -> bool:
    return is_mapping(value) or is_sequence(value) or is_record(value)
