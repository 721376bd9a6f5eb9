"""Shortens nested data: long lists and dicts keep their ends, and say what is between.

Runs in the user's kernel, on the thread of the call. Only Python's own lists, tuples and dicts are
shortened, and no more of them is read than is shown or summarized. Texts are not shortened here:
somebody wants to read them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from msgspec import structs

from mcp_notebook.kernel.results.blocks.author_blocks import make_json_piece
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.tables.cell_text import find_missing, format_column
from mcp_notebook.kernel.results.tables.column_facts import find_list_facts
from mcp_notebook.kernel.results.tables.frame import CELLS
from mcp_notebook.kernel.results.tables.row_frame import wrap_dicts
from mcp_notebook.kernel.results.tables.summary import (
    Summary,
    summarize_columns,
    write_facts,
)
from mcp_notebook.kernel.safe.foreign_code import run_bounded, run_guarded

LENGTHS = (20, 10, 6, 4)
"""Items of each list that are kept, from the most; of a dict twice as many."""
MAX_PARTS = 5_000
"""Parts of a shortened value, before the next length is tried."""
MAX_DEPTH = 40
"""Levels of nesting that are followed."""
MAX_READ = 50_000
"""Items of a list that are summarized."""
MAX_FIELDS = 12
"""Fields of records that are summarized."""
_ITEMS = frozenset({list, tuple})


def render_json(
    value: Any, budget: Budget, max_items: int | None = None, *, repeats_data: bool = False
) -> Piece:
    """Render a value as JSON, with its long lists and dicts shortened.

    Args:
        value: Anything.
        budget: The limits of the result.
        max_items: As for `make_json_piece`; None: the characters of the result.
        repeats_data: As for `make_json_piece`.
    """
    shortened = shorten_nested(value, CELLS * budget.table_rows)
    most = budget.chars if max_items is None else max_items
    piece = make_json_piece(shortened, most, repeats_data=repeats_data)
    if shortened is value:
        return piece
    whole = make_json_piece(value, budget.chars)
    return structs.replace(piece, original=whole.original, is_partial=True)


def shorten_nested(value: Any, most: int) -> Any:
    """Shorten the lists and dicts in a value; return it as it is if it is small.

    Args:
        value: Anything.
        most: Values in all lists and dicts together.
    """
    if _is_small(value, most):
        return value
    for length in LENGTHS:
        try:
            shortened = _Shortener(length).shorten(value)
        except _TooMany:
            continue
        if length == LENGTHS[-1] or _is_small(shortened, most):
            return shortened
    return value  # which refers to itself, many times


def _is_small(value: Any, most: int) -> bool:
    return next(islice(_iterate_values(value, 0), most, None), None) is None


def _iterate_values(value: Any, depth: int) -> Iterator[bool]:
    """Yield something for each value that is no list or dict, and for each empty one."""
    is_items = type(value) in _ITEMS
    if not (is_items or type(value) is dict) or not value or depth >= MAX_DEPTH:
        yield True
        return
    for part in value if is_items else value.values():
        yield from _iterate_values(part, depth + 1)


class _TooMany(Exception):
    """There are more parts than a result could show."""


class _Shortener:
    """Shortens a value to lists of one length.

    Args:
        length: Items of each list that are kept.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._left = MAX_PARTS

    def shorten(self, value: Any, depth: int = 0, *, is_item: bool = False) -> Any:
        """Shorten a value.

        Args:
            value: Anything.
            depth: Number of lists and dicts around it.
            is_item: Whether it is an item of a list, which is summarized as a whole.

        Raises:
            _TooMany: Its lists and dicts have too many parts, even so.
        """
        self._left -= 1
        if not self._left:
            raise _TooMany
        if depth >= MAX_DEPTH:
            return value
        if type(value) in _ITEMS:
            return self._shorten_items(value, depth, is_item=is_item)
        return self._shorten_dict(value, depth) if type(value) is dict else value

    def _shorten_items(self, items: Sequence[Any], depth: int, *, is_item: bool) -> list[Any]:
        shorten = partial(self.shorten, depth=depth + 1, is_item=True)
        left_out = len(items) - self._length
        if left_out <= 1:
            return list(map(shorten, items))
        facts = "" if is_item else _summarize(items, len(items))
        note = f"... {left_out:,} of {len(items):,} items left out{facts} ..."
        tail = self._length // 2
        head = self._length - tail
        return [*map(shorten, items[:head]), note, *map(shorten, items[-tail:])]

    def _shorten_dict(self, items: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        most = 2 * self._length
        kept = {key: self.shorten(item, depth + 1) for key, item in islice(items.items(), most)}
        if len(items) > most:
            facts = _summarize(list(islice(items.values(), MAX_READ)), len(items))
            kept["..."] = f"{len(items) - most:,} more of {len(items):,} items{facts}"
        return kept


def _summarize(items: Sequence[Any], total: int) -> str:
    """Return what is in the first items of a list of any length; empty if it says nothing."""
    describe = partial(run_bounded, _describe, items[:MAX_READ])
    summary = run_guarded(describe, lambda _error: Summary([]))
    facts = "; ".join(filter(None, [*summary.lines, summary.note.rstrip(".")]))
    if not facts:
        return ""
    if total > MAX_READ:
        return f"; of the first {MAX_READ:,}: {facts}"
    return f"; {facts}" if summary.note else f"; all: {facts}"


def _describe(items: Sequence[Any]) -> Summary:
    frame = wrap_dicts(items)
    if frame is not None:
        return summarize_columns(frame, range(min(frame.width, MAX_FIELDS)))
    if all(type(item) in _ITEMS for item in items):
        items = list(islice(chain.from_iterable(items), MAX_READ + 1))
        if len(items) > MAX_READ:
            return Summary([])
    if any(type(item) in _ITEMS or type(item) is dict for item in items):
        return Summary([])
    facts = find_list_facts(items, find_missing(items, nan_is_missing=False))
    format_values = partial(format_column, nan_is_missing=False)
    return Summary([write_facts(facts, len(items), len(items), format_values)])
