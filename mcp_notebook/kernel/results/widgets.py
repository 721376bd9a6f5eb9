"""Renders widgets: the texts, pictures, outputs and values in their boxes and tabs.

Runs in the user's kernel, on the thread of the call. The repr of an ipywidgets or panel widget
is little more than its name, but the user in the notebook sees its contents.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.piece import Piece, join_texts, make_text_piece
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.value_renderer import Position, ValueRenderer, find_figures
from mcp_notebook.kernel.safe.foreign_code import run_bounded
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import get_type_name, safe_repr

MAX_DEPTH = 20
"""Maximum levels of nested boxes."""
MAX_WIDGETS = 200
"""Maximum widgets that are shown within one."""
_TEMPLATE = "panel.template.base.BaseTemplate"
_VIEW = "application/vnd.jupyter.widget-view+json"


def is_widget(value: Any) -> bool:
    """Return whether a value is a widget that shows something."""
    # Progress bars are reported as progress.
    is_bar = type(value).__module__.startswith("tqdm.")
    return is_instance(value, "ipywidgets.DOMWidget") and not is_bar


def is_of_panel(value: Any) -> bool:
    """Return whether a value is a layout, pane, widget or template of panel."""
    return is_instance(value, "panel.viewable.Viewable") or is_instance(value, _TEMPLATE)


def render_widget(renderer: ValueRenderer, value: Any, position: Position) -> list[Piece] | None:
    """Render a widget; None if it has a MIME type besides text."""
    if run_bounded(renderer.format, value)[0].keys() - {"text/plain", _VIEW}:
        return None
    return _IpywidgetsParts(renderer, position).render_all(value)


def render_panel(renderer: ValueRenderer, value: Any, position: Position) -> list[Piece]:
    """Render a layout, pane or widget of panel."""
    return _PanelParts(renderer, position).render_all(value)


class _WidgetParts(ABC):
    """The rendering of one widget and its contents."""

    def __init__(self, renderer: ValueRenderer, position: Position) -> None:
        self._renderer = renderer
        self._position = structs.replace(position, depth=position.depth + 1)
        self._count = 0
        self._left_out = 0

    def render_all(self, widget: Any) -> list[Piece]:
        """Return the contents of a widget in order, and the number of parts left out."""
        pieces = list(self._render(widget))
        if self._left_out:
            more = f"{self._left_out:,} more widgets are left out"
            pieces.append(Piece(Text(f"[{more}: a result shows {MAX_WIDGETS} at most.]")))
        return join_texts(pieces)

    def _render(self, widget: Any, depth: int = 0) -> Iterator[Piece]:
        self._count += 1
        if self._count > MAX_WIDGETS or depth > MAX_DEPTH:
            self._left_out += 1
        else:
            yield from self._render_part(widget, depth)

    @abstractmethod
    def _render_part(self, widget: Any, depth: int) -> Iterator[Piece]:
        """Yield what one widget shows."""


class _IpywidgetsParts(_WidgetParts):
    def _render_part(self, widget: Any, depth: int) -> Iterator[Piece]:
        if is_instance(widget, "ipywidgets.Box"):
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
            yield from self._render(child, depth + 1)

    def _render_output(self, output: Mapping[str, Any]) -> list[Piece]:
        if "data" in output:
            return render_mime_bundle(output["data"], self._renderer.budget)
        lines = output.get("traceback") or ()
        return [make_text_piece(str(output.get("text") or "\n".join(lines)))]


class _PanelParts(_WidgetParts):
    def _render_part(self, widget: Any, depth: int) -> Iterator[Piece]:
        inner = getattr(widget, "_pane", None)  # of what a function returns
        if hasattr(widget, "objects") or is_instance(widget, _TEMPLATE):
            yield from self._render_layout(widget, depth)
        elif is_instance(widget, "panel.widgets.WidgetBase"):
            yield from self._render_value(widget)
        elif inner is not None:
            yield from self._render(inner, depth + 1)
        elif is_instance(widget, "panel.pane.HTML") and isinstance(widget.object, str):
            yield from render_mime_bundle({"text/html": widget.object}, self._renderer.budget)
        elif is_instance(widget, "panel.pane.PaneBase"):
            yield from self._renderer.render(widget.object, self._position)
        elif not is_instance(widget, "panel.Spacer"):
            yield make_text_piece(safe_repr(widget))

    def _render_layout(self, layout: Any, depth: int) -> Iterator[Piece]:
        if title := getattr(layout, "title", None):
            yield make_text_piece(f"{title}:")
        if is_instance(layout, _TEMPLATE):
            objects = [*getattr(layout, "sidebar", ()), *getattr(layout, "main", ())]
        else:
            objects = layout.objects
        # The keys of a grid are positions.
        objects = list(objects.values()) if isinstance(objects, Mapping) else list(objects)
        names = getattr(layout, "_names", ())  # of tabs
        for index, child in enumerate(objects):
            if index < len(names) and names[index]:
                yield make_text_piece(f"{names[index]}:")
            yield from self._render(child, depth + 1)

    def _render_value(self, widget: Any) -> Iterator[Piece]:
        # Before panel 1.9 a widget has no label.
        label, value = getattr(widget, "label", None), getattr(widget, "value", None)
        name = str(widget.name if label is None else label) or get_type_name(widget)
        if isinstance(value, (str, int, float, bool, type(None))):
            yield make_text_piece(f"{name}: {value}")
        else:
            yield make_text_piece(f"{name}:")
            yield from self._renderer.render(value, self._position)
