"""What widgets show: the texts, pictures, outputs and values within boxes and tabs.

Runs in the user's kernel, on the thread of the call. A widget's own text names it and is cut at 110
characters; a user who looks at the notebook sees what is in it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.piece import Piece, join_texts, make_text_piece
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.value_renderer import ValueRenderer, find_figures
from mcp_notebook.kernel.results.value_rules import Position
from mcp_notebook.kernel.safe.deadline import run_bounded
from mcp_notebook.kernel.safe.text import is_instance, safe_repr

MAX_DEPTH = 20
"""Boxes within boxes that are opened."""
MAX_WIDGETS = 200
"""Widgets that are shown of one."""
_VIEW = "application/vnd.jupyter.widget-view+json"


def is_widget(value: Any) -> bool:
    """Tell whether a value is a widget that shows something."""
    # A progress bar is reported as progress.
    is_bar = type(value).__module__.startswith("tqdm.")
    return is_instance(value, "ipywidgets.DOMWidget") and not is_bar


def render_widget(renderer: ValueRenderer, value: Any, position: Position) -> list[Piece] | None:
    """Render what a widget shows; None if it has a representation besides its name."""
    if run_bounded(renderer.format, value)[0].keys() - {"text/plain", _VIEW}:
        return None
    widgets = _WidgetParts(renderer, replace(position, depth=position.depth + 1))
    pieces = list(widgets.render(value))
    if widgets.left_out:
        pieces.append(Piece(Text(f"[{widgets.left_out:,} more widgets are left out.]")))
    return join_texts(pieces)


class _WidgetParts:
    """One rendering of a widget and of what is in it."""

    def __init__(self, renderer: ValueRenderer, position: Position) -> None:
        self._renderer = renderer
        self._position = position
        self._count = 0
        self.left_out = 0
        """Widgets that were not rendered."""

    def render(self, widget: Any, depth: int = 0) -> Iterator[Piece]:
        """Yield what a widget shows, in order."""
        self._count += 1
        if self._count > MAX_WIDGETS or depth > MAX_DEPTH:
            self.left_out += 1
        elif is_instance(widget, "ipywidgets.Box"):
            yield from self._render_box(widget, depth)
        elif is_instance(widget, "ipywidgets.HTML") or is_instance(widget, "ipywidgets.HTMLMath"):
            yield from render_mime_bundle({"text/html": widget.value}, self._renderer.budget)
        elif is_instance(widget, "ipywidgets.Label"):
            yield make_text_piece(widget.value)
        elif is_instance(widget, "ipywidgets.Image"):
            yield from self._renderer.render(bytes(widget.value), self._position)
        elif is_instance(widget, "ipywidgets.Output"):
            for output in widget.outputs:
                yield from self._render_output(output)
        elif find_figures(widget):
            yield from self._renderer.render(widget, self._position)
        else:
            yield make_text_piece(safe_repr(widget))

    def _render_box(self, box: Any, depth: int) -> Iterator[Piece]:
        titles = getattr(box, "titles", ())
        for index, child in enumerate(box.children):
            if index < len(titles) and titles[index]:
                yield make_text_piece(f"{titles[index]}:")
            yield from self.render(child, depth + 1)

    def _render_output(self, output: Mapping[str, Any]) -> list[Piece]:
        if "data" in output:
            return render_mime_bundle(output["data"], self._renderer.budget)
        lines = output.get("traceback") or ()
        return [make_text_piece(str(output.get("text") or "\n".join(lines)))]
