"""Renders one value, and the values in it, by the first rule that applies.

Runs in the user's kernel, on the thread of the call. `values` holds the table of rules. A rule
names the libraries whose classes it is for, so that it is not asked about any other value. A list
or dict with more than data in it (a figure, a table, a file) is rendered item by item
(`RichItems`); every other one is one JSON text or one table.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

from msgspec import Struct, structs

from mcp_notebook.content import Audio, ContentBlock, Image, Message, Result, Text
from mcp_notebook.kernel.results.blocks import author_blocks, images
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.encoded_text import holds_encoded
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece, join_texts, make_text_piece
from mcp_notebook.kernel.results.displays import render_mime_bundle, render_plot, render_undrawn
from mcp_notebook.kernel.results.files.returned_files import MAX_FILES, is_path, render_path
from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
from mcp_notebook.kernel.results.iterators import (
    MAX_COLLECTED,
    Collected,
)
from mcp_notebook.kernel.results.plots import detect, matplotlib_figures
from mcp_notebook.kernel.results.self_shown import (
    RICH_METHODS,
    format_registered,
    has_registered_format,
)
from mcp_notebook.kernel.results.tables import table_text
from mcp_notebook.kernel.results.tables.exports import describe_array
from mcp_notebook.kernel.results.tables.frame import CELLS
from mcp_notebook.kernel.results.tables.outline import render_json
from mcp_notebook.kernel.results.tables.summary import summarize_array
from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded, guard
from mcp_notebook.kernel.safe.libraries import find_libraries, is_instance
from mcp_notebook.kernel.safe.stand_ins import list_fields
from mcp_notebook.kernel.safe.tabular_data import read_numbers
from mcp_notebook.kernel.safe.text import (
    MAX_HEX,
    clean_text,
    describe_bytes,
    describe_slow_value,
    is_sendable,
    safe_repr,
)
from mcp_notebook.kernel.safe.to_json import MAX_ARRAY
from mcp_notebook.text.wording import count, format_size

PLAIN_TYPES = frozenset({str, bool, int, float})
"""Simple types, whose code is Python's own."""
_RICH = ("image/png", "image/jpeg", "text/markdown")
_COLLECTIONS = frozenset({list, tuple, dict})
_MAX_DEPTH = 1
"""Levels of nested collections whose items are examined."""
_MAX_LOOKED_AT = 8
"""Items of a nested collection that are examined."""


class Format(Protocol):
    """IPython's ``shell.display_formatter.format``."""

    def __call__(
        self, obj: Any, include: Any = None, exclude: Any = None, /
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return an object's representations by MIME type, and their metadata."""


class Rule(Struct, frozen=True, kw_only=True):
    """One row of the table of values: which values become which content."""

    values: str
    """Which values, in Markdown."""
    content: str
    """The content that the client gets, in Markdown."""
    render: Callable[["ValueRenderer", Any, int], list[Piece] | None]
    """Renders a value within so many collections; None: a later row applies instead."""
    libraries: frozenset[str] = frozenset()
    """Top-level modules that must define one of the value's classes; empty for any value."""
    accepts: Callable[[Any], bool] = lambda _: True
    """Tells whether the row applies to a value of these libraries."""
    is_rich: bool = False
    """Whether a list or dict with such a value in it is rendered item by item."""
    replaces_display: bool = False
    """Whether such a value is also rendered when it is displayed, not only when it is returned."""


def match_rules(rules: Iterable[Rule], value: Any) -> Iterator[Rule]:
    """Yield the rules that apply to a value, in their order."""
    libraries: frozenset[str] | None = None
    for rule in rules:
        if rule.libraries:
            if libraries is None:
                libraries = find_libraries(value)
            if rule.libraries.isdisjoint(libraries):
                continue
        if rule.accepts(value):
            yield rule


class RichItems:
    """Tells which items of a collection are rich: more than text and data.

    Args:
        collection: A list, tuple or mapping; anything else has no rich items.
        depth: Number of collections around this one.
        is_rich: Tells whether an item alone is rich.
    """

    def __init__(
        self,
        collection: Any,
        depth: int,
        *,
        is_rich: Callable[[Any], bool],
    ) -> None:
        self._collection = collection
        self._depth = depth
        self._is_rich = is_rich

    def are_present(self, most: int = MAX_COLLECTED) -> bool:
        """Return whether one of the first items is rich."""
        collection = self._collection
        if isinstance(collection, Mapping):
            return any(self.include(collection[key]) for key in islice(collection, most))
        if isinstance(collection, (list, tuple)):
            return any(map(self.include, collection[:most]))
        return False

    def include(self, item: Any) -> bool:
        """Return whether an item is rich."""
        if item is None or type(item) in PLAIN_TYPES:
            return type(item) is str and holds_encoded(item)
        if is_path(item):
            return self._depth == 0 and not self._is_listing
        if type(item) in _COLLECTIONS and self._depth < _MAX_DEPTH:
            nested = RichItems(item, self._depth + 1, is_rich=self._is_rich)
            if nested.are_present(_MAX_LOOKED_AT):
                return True
        return self._is_rich(item)

    @cached_property
    def _is_listing(self) -> bool:
        # Many paths are a listing, not files to show.
        collection = self._collection
        items = collection.values() if isinstance(collection, Mapping) else collection
        paths = filter(is_path, islice(items, MAX_COLLECTED))
        return len(list(islice(paths, MAX_FILES + 1))) > MAX_FILES


def is_rich(value: Any, rules: Iterable[Rule]) -> bool:
    """Return whether a value alone is more than text and data.

    Args:
        value: Anything; not rich if its own code fails.
        rules: The table of values.

    Raises:
        DeadlineExceeded: The value's own code took too long.
    """
    rich_rules = (rule for rule in rules if rule.is_rich)
    try:
        return (
            next(match_rules(rich_rules, value), None) is not None
            or (isinstance(value, bytes) and images.is_image(value))
            or any(callable(getattr(type(value), name, None)) for name in RICH_METHODS)
        )
    except (KeyboardInterrupt, DeadlineExceeded):
        raise
    except BaseException:  # noqa: BLE001 - one item that fails does not hide the others
        return False


class RenderContext(Struct, frozen=True):
    """The context of rendering: the same for all values of a notebook."""

    format: Format
    folders: SharedFolders
    rules: Sequence[Rule]


class ValueRenderer:
    """Renders values as content; holds no state.

    Args:
        context: The context of the notebook.
        budget: The limits of the result.
    """

    def __init__(self, context: RenderContext, budget: Budget) -> None:
        self._context = context
        self.format = context.format
        """IPython's ``shell.display_formatter.format``."""
        self.budget = budget
        """The limits of the result."""

    def render_returned(self, value: Any) -> list[Piece]:
        """Render what a tool returned."""
        if isinstance(value, str) and not is_sendable(value):
            return [Piece(Text("Done: the tool returned an empty text."))]
        return self.render(value, 0)

    def render_displayed(self, value: Any) -> list[Piece] | None:
        """Render a displayed value; None if its MIME bundle is as good."""

        def render_special() -> list[Piece] | None:
            rules = (rule for rule in self._context.rules if rule.replaces_display)
            is_special = next(match_rules(rules, value), None) is not None
            return self.render(value, 0) if is_special else None

        return guard(render_special, recover=lambda _: None)  # the MIME bundle is shown instead

    def render(self, value: Any, depth: int) -> list[Piece]:
        """Render a value or an item by the first rule that applies.

        Args:
            value: The value.
            depth: Number of collections around it.
        """
        try:
            if type(value) in PLAIN_TYPES:  # no other rules apply to these
                return self.render_plain(value, depth)
            for rule in match_rules(self._context.rules, value):
                pieces = rule.render(self, value, depth)
                if pieces is not None:
                    return pieces
        except DeadlineExceeded as error:
            return [Piece(Text(describe_slow_value(value, error)))]
        return []

    # -- blocks, plain values ----------------------------------------------------------------------

    def render_nothing(self, _value: Any, _depth: int) -> list[Piece]:
        """Render None."""
        return []

    def render_block(self, block: Any, depth: int) -> list[Piece]:
        """Render a content block that the author made, or a `Result` within another value."""
        if isinstance(block, Result):
            parts = author_blocks.list_parts(block.content)
            return [piece for part in parts for piece in self.render(part, depth)]
        return author_blocks.copy_annotations(self._render_content(block, depth), block)

    def render_message(self, message: Message, depth: int) -> list[Piece]:
        """Render the content of a prompt's message."""
        pieces = self.render(message.content, depth)
        return [
            structs.replace(piece, block=replace(piece.block, role=message.role))
            if piece.block.role is None
            else piece
            for piece in pieces
        ]

    def _render_content(self, block: ContentBlock, depth: int) -> list[Piece]:
        if isinstance(block, Text) and not isinstance(block.text, str):
            return self.render(block.text, depth)
        if isinstance(block, (Image, Audio)) and is_path(block.data):
            return render_path(block.data, self._context.folders, self.budget)
        if isinstance(block, Image) and not isinstance(block.data, (bytes, bytearray, memoryview)):
            figures = find_figures(block.data)
            if figures is not None:
                return self._draw_figures(figures)
        return author_blocks.check_block(block, self.budget)

    def render_plain(self, value: Any, _depth: int) -> list[Piece]:
        """Render a str, an int, a float or a bool."""
        if isinstance(value, str):
            return [make_text_piece(value)]
        return [render_json(value, self.budget)]

    def render_path(self, value: Any, _depth: int) -> list[Piece]:
        """Render the file that a path leads to."""
        return render_path(value, self._context.folders, self.budget)

    # -- images, figures, tables, plots ------------------------------------------------------------

    def render_pil_image(self, value: Any, _depth: int) -> list[Piece]:
        """Render a PIL image."""
        return author_blocks.render_image(
            lambda: images.encode_pil_image(value, self.budget), self.budget
        )

    def render_bytes(self, value: Any, _depth: int) -> list[Piece]:
        """Render bytes as an image, or else as text."""
        data = bytes(value)
        if not images.is_image(data):
            return [_make_bytes_piece(data)]
        return author_blocks.render_encoded_image(data, self.budget)

    def render_figures(self, value: Any, _depth: int) -> list[Piece] | None:
        """Render the matplotlib figures that a value is, or stands for."""
        figures = find_figures(value)
        return None if figures is None else self._draw_figures(figures)

    def _draw_figures(self, figures: Iterable[Any]) -> list[Piece]:
        return [render_undrawn(figure, self.format, self.budget) for figure in figures]

    def render_table(self, value: Any, _depth: int) -> list[Piece]:
        """Render a table of some library."""
        data = format_registered(self.format, value)
        if data is None:
            # Not all MIME types: the library would also build its HTML.
            data, _ = self.format(value, _RICH)
        if data:
            return render_mime_bundle(data, self.budget)
        return table_text.render_table(value, self.budget)

    def render_plot(self, value: Any, _depth: int) -> list[Piece] | None:
        """Render a plot of a library that draws in a browser."""
        if (data := format_registered(self.format, value)) is not None:
            return render_mime_bundle(data, self.budget)
        plot = detect.find_plot_in_object(value)
        if isinstance(plot, str):
            return [Piece(Text(plot))]
        return None if plot is None else render_plot(plot, self.budget)

    # -- collections -------------------------------------------------------------------------------

    def render_mixed(self, value: Any, depth: int) -> list[Piece] | None:
        """Render a list, tuple, mapping or record with rich items in it, item by item."""
        if type(value) not in _COLLECTIONS:
            if has_registered_format(self.format, value):
                return None
            # A dataclass may lack a field.
            fields = guard(list_fields, value, recover=lambda _error: None)
            value = value if fields is None else dict(fields)
        items = RichItems(
            value,
            depth,
            is_rich=lambda item: (
                is_rich(item, self._context.rules)
                or has_registered_format(self.format, item)
                or (is_instance(item, "numpy.ndarray") and item.size > MAX_ARRAY)
            ),
        )
        built_in = type(value) in _COLLECTIONS
        if not (items.are_present() if built_in else guard(lambda _: items.are_present(), value)):
            return None
        within = depth + 1
        is_mapping = isinstance(value, Mapping)
        render_each = self._render_entries if is_mapping else self._render_items
        pieces = list(render_each(value, items, within))
        if len(value) > MAX_COLLECTED:
            left_out = len(value) - MAX_COLLECTED
            note = Text(f"[{left_out:,} more items are left out.]")
            original = author_blocks.describe_whole_json(value)
            pieces.append(Piece(note, original, is_partial=True))
        return join_texts(pieces)

    def _render_entries(self, value: Any, items: RichItems, within: int) -> Iterable[Piece]:
        for key in islice(value, MAX_COLLECTED):
            item = value[key]
            name = f"{clean_text(str(key))}:"
            if items.include(item):
                yield Piece(Text(name))
                yield from self.render(item, within)
            else:
                yield self._make_item_piece(item, f"{name} ")

    def _render_items(self, value: Any, items: RichItems, within: int) -> Iterable[Piece]:
        for item in value[:MAX_COLLECTED]:
            if items.include(item):
                if is_path(item):
                    yield self._make_item_piece(item, end=":")
                yield from self.render(item, within)
            elif item is not None:
                # Not `render`, since a list may contain itself.
                yield self._make_item_piece(item)

    def render_built_in(self, value: Any, _depth: int) -> list[Piece]:
        """Render a list of dicts as a table if that is shorter, other collections as JSON."""
        rows = table_text.render_dicts(value, self.budget)
        return rows or [render_json(value, self.budget)]

    # -- anything else -----------------------------------------------------------------------------

    def render_array(self, value: Any, _depth: int) -> list[Piece]:
        """Render a numpy array."""
        return table_text.render_array(value, self.budget)

    def render_array_like(self, value: Any, _depth: int) -> list[Piece] | None:
        """Render an array of another library: what its numbers are, and its own text."""
        numbers = guard(read_numbers, value, recover=lambda _error: None)
        if numbers is None:
            return None
        text = safe_repr(value, self.budget.chars)
        facts = summarize_array(numbers) if numbers.size > CELLS * self.budget.table_rows else ""
        if not facts:
            return [make_text_piece(text)]
        title = f"{type(value).__name__} of shape {numbers.shape}, {numbers.dtype}: {facts}"
        original = describe_array(numbers)
        whole = count(numbers.size, "element")
        return [Piece(Text(f"{title}\n{text}"), original, is_partial=True, whole=whole)]

    def render_jsonable(self, value: Any, _depth: int) -> list[Piece]:
        """Render a value with a JSON form, unless a formatter is registered for its type."""
        is_registered = has_registered_format(self.format, value)
        data = format_registered(self.format, value) if is_registered else None
        if data:
            return render_mime_bundle(data, self.budget)
        return [render_json(value, self.budget)]

    def _make_item_piece(self, value: Any, name: str = "", end: str = "") -> Piece:
        """Render a data item of a collection with rich items."""
        piece = render_json(value, self.budget)
        original = piece.original if piece.is_partial else None
        return structs.replace(piece, block=Text(f"{name}{piece.text}{end}"), original=original)


def note_more(collected: Collected) -> list[Piece]:
    """Return the sentence on the items that an iterator had beyond those that were taken."""
    return [Piece(Text(f"[Of what it yields, {collected.note}.]"))] if collected.note else []


def _make_bytes_piece(data: bytes) -> Piece:
    text = describe_bytes(data)
    if not text.startswith("<"):
        return make_text_piece(text or "[no bytes]")
    form = FileFormat(".bin", "application/octet-stream", lambda: data, len(data))
    original = Original("data", f"The whole data: {format_size(len(data))}", (form,), len(data))
    return Piece(Text(text), original, is_partial=len(data) > MAX_HEX)


def find_figures(value: Any) -> list[Any] | None:
    """Return the matplotlib figures that a value is or stands for; None for other values."""
    if "matplotlib" not in sys.modules or type(value) in PLAIN_TYPES:
        return None
    if type(value) not in _COLLECTIONS and matplotlib_figures.can_draw(value):
        return [value]
    return matplotlib_figures.find_figures(value)
