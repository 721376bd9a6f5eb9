"""What a value becomes: the table of `kernel.results.converter`, rule by rule.

Runs in the user's kernel, on the thread that the call ran on. `Values` goes through one value and
what is in it; how a whole result is put together, and what a result has besides, is
`kernel.results.converter`' business.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, Protocol

from mcp_notebook.content import Audio, ContentBlock, Image, Result, Text
from mcp_notebook.kernel.results.blocks import author_blocks, images
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.piece import Piece, make_text_piece
from mcp_notebook.kernel.results.blocks.truncation import is_plain
from mcp_notebook.kernel.results.custom_types import Conversion, CustomTypes
from mcp_notebook.kernel.results.displays import render_mime_bundle, render_plot
from mcp_notebook.kernel.results.files import MAX_FILES, Files, is_path
from mcp_notebook.kernel.results.ipython_formatters import format_registered, has_registered_format
from mcp_notebook.kernel.results.iterators import MAX_COLLECTED, collect_items, is_iterator
from mcp_notebook.kernel.results.plots import detect, matplotlib_figures
from mcp_notebook.kernel.results.tables import render
from mcp_notebook.kernel.safe.deadline import DeadlineExceeded, run_bounded
from mcp_notebook.kernel.safe.text import (
    clean_text,
    describe_bytes,
    describe_slow_value,
    is_instance,
    is_sendable,
    safe_repr,
)
from mcp_notebook.kernel.safe.to_json import format_json, is_jsonable, to_json_value

MISSING: Any = object()
"""Stands for no data."""
_RICH = ("image/png", "image/jpeg", "text/markdown")
_SCALARS = frozenset({bool, int, float, str, type(None)})
_PLAIN = frozenset({str, bool, int, float})
_COLLECTIONS = frozenset({list, tuple, dict})
_MAX_DEPTH = 1
"""Collections within collections whose items are looked at one by one."""
_MAX_LOOKED_AT = 8
"""Items of a collection within another that tell whether it is more than data."""
_RICH_METHODS = (
    *("_repr_mimebundle_", "_repr_png_", "_repr_jpeg_", "_repr_svg_"),
    *("_repr_markdown_", "_repr_html_", "_repr_latex_", "_repr_json_"),
)


class Format(Protocol):
    """IPython's ``shell.display_formatter.format``."""

    def __call__(
        self, obj: Any, include: Any = None, exclude: Any = None, /
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return an object's representations by MIME type, and their metadata."""


@dataclass(frozen=True)
class Rules:
    """What the conversion of every value goes by."""

    format: Format
    files: Files
    custom_types: CustomTypes


class Values:
    """The conversion of one value; `one` is the table.

    Args:
        rules: What it goes by.
        budget: What the result may take.
        data: The value as a program gets it, if one does: its JSON text says the same.
    """

    def __init__(self, rules: Rules, budget: Budget, data: Any = MISSING) -> None:
        self._rules = rules
        self._format = rules.format
        self._budget = budget
        self._data = data
        self._value = MISSING
        self._used: tuple[Conversion, ...] = ()
        """The converters whose results are being converted."""
        self._depth = 0
        """In how many collections the value lies that is being converted."""

    def top(self, value: Any) -> list[Piece]:
        """Convert what a tool returned."""
        self._value = value
        if isinstance(value, str) and not is_sendable(value):
            return [Piece(Text("Done: the tool returned an empty text."))]
        return self.one(value)

    def shown(self, value: Any) -> list[Piece] | None:
        """Convert what a call displays; None if its representations by MIME type say as much."""
        try:
            special = (
                isinstance(value, (Result, *author_blocks.BLOCK_TYPES))
                or render.is_table(value)
                or is_instance(value, "numpy.ndarray")
                or is_instance(value, "pandas.Index")
            )
            return self.one(value) if special else None
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - the value's own code; there is another way
            return None

    def one(self, value: Any) -> list[Piece]:
        """Convert a value, or an item of one."""
        try:
            return self._one(value)
        except DeadlineExceeded as error:
            return [Piece(Text(describe_slow_value(value, error)))]

    def _one(self, value: Any) -> list[Piece]:  # noqa: PLR0911 - the table, in its order
        if value is None:
            return []
        conversion = self._rules.custom_types.find(value, self._used)
        if conversion is not None:
            return self._converted(value, conversion)
        if isinstance(value, author_blocks.BLOCK_TYPES):
            return author_blocks.copy_annotations(self._author_block(value), value)
        if isinstance(value, Result):  # within another value
            return [
                block
                for part in author_blocks.list_parts(value.content)
                for block in self.one(part)
            ]
        if type(value) in _PLAIN:
            return [make_text_piece(value) if isinstance(value, str) else self._json_block(value)]
        if is_path(value):
            return self._rules.files.render(value, self._budget)
        special = self._picture(value)
        if special is not None:
            return special
        if render.is_table(value):
            return self._table(value)
        built_in = type(value) in _COLLECTIONS
        if self._is_mixed(value) if built_in else run_bounded(self._is_mixed, value):
            return self._mixed(value)
        plot = self._plot(value)
        return self._represented(value) if plot is None else plot

    def _plot(self, value: Any) -> list[Piece] | None:
        if not detect.is_plot_object(value):
            return None
        if (data := format_registered(self._format, value)) is not None:
            return render_mime_bundle(data, self._budget)
        plot = detect.find_plot_in_object(value)
        if isinstance(plot, str):
            return [Piece(Text(plot))]
        return None if plot is None else render_plot(plot, self._budget)

    def _converted(self, value: Any, conversion: Conversion) -> list[Piece]:
        used = self._used
        # Not again in what it returns: a converter may return its value, or a value like it.
        self._used = (*used, conversion)
        try:
            made = conversion.function(value)
            if is_iterator(made):
                made = collect_items(made, MAX_COLLECTED)
            return self.one(made)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the author's code
            return [Piece(Text(f"[{conversion.failure(error)}]"))]
        finally:
            self._used = used

    def _author_block(self, block: ContentBlock) -> list[Piece]:
        if isinstance(block, Text) and not isinstance(block.text, str):
            return self.one(block.text)
        if isinstance(block, (Image, Audio)) and is_path(block.data):
            return self._rules.files.render(block.data, self._budget)
        if isinstance(block, Image) and not isinstance(block.data, (bytes, bytearray, memoryview)):
            made = self._figures(block.data)
            if made is not None:
                return made
        return author_blocks.check_block(block, self._budget)

    def _picture(self, value: Any) -> list[Piece] | None:
        if is_instance(value, "PIL.Image.Image"):
            return author_blocks.render_image(
                lambda: images.encode_pil_image(value, self._budget), self._budget
            )
        if isinstance(value, (bytes, bytearray)):
            data = bytes(value)
            if not images.is_image(data):
                return [Piece(Text(describe_bytes(data) or "[no bytes]"))]
            return author_blocks.render_encoded_image(data, self._budget)
        return self._figures(value)

    def _figures(self, value: Any) -> list[Piece] | None:
        found = (
            [value]
            if matplotlib_figures.can_draw(value)
            else matplotlib_figures.find_figures(value)
        )
        if found is None:
            return None
        return [block for one in found for block in self._figure(one)]

    def _figure(self, figure: Any) -> list[Piece]:
        shown = matplotlib_figures.draw_figure(figure, self._format, self._budget.picture_side)
        return render_display(*shown, self._budget)

    def _table(self, value: Any) -> list[Piece]:
        data = format_registered(self._format, value)
        if data is None:
            # Not all types: the library's own HTML would be made, too.
            data, _ = self._format(value, _RICH)
        if data:
            return render_mime_bundle(data, self._budget)
        return self._repeating(value, render.render_table(value, self._budget))

    def _is_mixed(self, value: Any) -> bool:
        return self._has_rich_items(value, MAX_COLLECTED, self._depth)

    def _has_rich_items(self, value: Any, most: int, depth: int) -> bool:
        if isinstance(value, Mapping):
            items: Iterable[Any] = (value[key] for key in islice(value, most))
        elif isinstance(value, (list, tuple)):
            items = value[:most]
        else:
            return False
        return any(map(self._rich_in(value, depth), items))

    def _rich_in(self, value: Any, depth: int) -> Callable[[Any], bool]:
        """Return what tells whether an item of a collection is more than text."""

        @cache
        def is_listing() -> bool:
            # Many paths are a listing, not files to be read.
            parts = value.values() if isinstance(value, Mapping) else value
            paths = filter(is_path, islice(parts, MAX_COLLECTED))
            return len(list(islice(paths, MAX_FILES + 1))) > MAX_FILES

        def is_rich(item: Any) -> bool:
            if self._rules.custom_types.find(item, self._used) is not None:
                return True
            if type(item) in _SCALARS:
                return False
            if is_path(item):
                return depth == 0 and not is_listing()
            if type(item) in _COLLECTIONS and depth < _MAX_DEPTH:
                return self._has_rich_items(item, _MAX_LOOKED_AT, depth + 1) or _is_rich(item)
            return _is_rich(item) or has_registered_format(self._format, item)

        return is_rich

    def _mixed(self, value: Any) -> list[Piece]:
        is_rich = self._rich_in(value, self._depth)
        self._depth += 1
        try:
            return self._items(value, is_rich)
        finally:
            self._depth -= 1

    def _items(self, value: Any, is_rich: Callable[[Any], bool]) -> list[Piece]:
        made: list[Piece] = []
        for key in islice(value, MAX_COLLECTED) if isinstance(value, Mapping) else ():
            rich = is_rich(value[key])
            made.append(
                Piece(
                    Text(
                        f"{clean_text(str(key))}:" + ("" if rich else f" {self._json(value[key])}")
                    )
                )
            )
            made += self.one(value[key]) if rich else []
        for item in () if isinstance(value, Mapping) else value[:MAX_COLLECTED]:
            # Not `one` for all: a list may contain itself.
            plain = [] if item is None else [Piece(Text(self._json(item)))]
            rich = is_rich(item)
            made += [Piece(Text(f"{self._json(item)}:"))] if rich and is_path(item) else []
            made += self.one(item) if rich else plain
        if len(value) > MAX_COLLECTED:
            made.append(Piece(Text(f"[{len(value) - MAX_COLLECTED:,} more items are left out.]")))
        return _join_texts(made)

    def _represented(self, value: Any) -> list[Piece]:
        if type(value) in {bool, int, float, list, tuple, dict, set}:
            return self._dicts(value) or [self._json_block(value)]
        if is_instance(value, "numpy.ndarray"):
            return render.render_array(value, self._budget)
        if is_instance(value, "pandas.Index"):
            data, _ = self._format(value, _RICH)
            made = render_mime_bundle(data, self._budget) if data else None
            return made or render.render_index(value, self._budget)
        known = is_jsonable(value)
        if known:
            data, _ = run_bounded(lambda known: self._format(known, _RICH), value)
            return render_mime_bundle(data, self._budget) if data else [self._json_block(value)]
        data, _ = run_bounded(self._format, value)
        if data:
            return render_mime_bundle(data, self._budget)
        # Nothing: the object displayed itself (which is among the outputs then), or its repr fails.
        return [] if _displays_itself(value) else [Piece(Text(safe_repr(value)))]

    def _dicts(self, value: Any) -> list[Piece] | None:
        return None if self._is_data(value) else render.render_dicts(value, self._budget)

    def _repeating(self, value: Any, pieces: list[Piece]) -> list[Piece]:
        """Have a table's text give way where structured content says the same."""
        if not self._is_data(value):
            return pieces
        return [
            replace(piece, repeats_data=True) if isinstance(piece.block, Text) else piece
            for piece in pieces
        ]

    def _is_data(self, value: Any) -> bool:
        """Tell whether the structured content says the same as a value."""
        return self._data is not MISSING and value is self._value

    def _json_block(self, value: Any) -> Piece:
        if not self._is_data(value):
            return author_blocks.make_json_piece(value, self._budget.chars)
        if isinstance(self._data, str):
            return replace(make_text_piece(self._data), repeats_data=True)
        # Whole: structured content is bounded itself.
        return author_blocks.make_json_piece(self._data, sys.maxsize, repeats_data=True)

    def _json(self, value: Any) -> str:
        made = to_json_value(value, self._budget.chars)
        return made if isinstance(made, str) else format_json(made)


def _is_rich(value: Any) -> bool:
    try:
        return _has_rich_form(value)
    except (KeyboardInterrupt, DeadlineExceeded):
        raise
    except BaseException:  # noqa: BLE001 - one item that lies of its class does not hide the others
        return False


def _has_rich_form(value: Any) -> bool:
    return (
        isinstance(value, (Result, *author_blocks.BLOCK_TYPES))
        or render.is_table(value)
        or is_instance(value, "PIL.Image.Image")
        or (isinstance(value, bytes) and images.is_image(value))
        or matplotlib_figures.can_draw(value)
        or matplotlib_figures.find_figures(value) is not None
        or any(callable(getattr(type(value), name, None)) for name in _RICH_METHODS)
    )


def render_display(
    data: Mapping[str, Any], metadata: Mapping[str, Any], budget: Budget
) -> list[Piece]:
    """Make blocks of what is displayed: of its data, and of what is said about its picture."""
    pieces = render_mime_bundle(data, budget)
    note = metadata.get(matplotlib_figures.NOTE)
    if note and pieces and isinstance(pieces[0].block, Image):
        pieces[0] = replace(pieces[0], notes=(note, *pieces[0].notes))
    return pieces


def _displays_itself(value: Any) -> bool:
    return callable(getattr(type(value), "_ipython_display_", None))


def _join_texts(pieces: Iterable[Piece]) -> list[Piece]:
    """Join plain neighbouring texts, so that a list of many words is one block."""
    joined: list[Piece] = []
    for piece in pieces:
        text, last = piece.block, joined[-1].block if joined else None
        if (
            isinstance(text, Text)
            and isinstance(last, Text)
            and is_plain(piece)
            and is_plain(joined[-1])
        ):
            gap = "\n\n" if "\n" in last.text else "\n"  # ends a Markdown table
            joined[-1] = make_text_piece(last.text + gap + text.text)
        else:
            joined.append(piece)
    return joined
