"""Draws matplotlib figures and animations as the notebook does, at any size.

Runs in the user's kernel, on the thread of the call. matplotlib is never imported here: if there
is a figure, it is loaded. IPython's formatters draw the figure with the user's resolution and
colours; a figure that is too large for memory is drawn smaller.
"""

import io
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from mcp_notebook.content import Image, Result
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error

MAX_DRAWN = 25_000_000
"""Pixels of the largest figure that is drawn at its own size. Drawing takes about 5 bytes a pixel,
or 20 at double resolution."""
NOTE = "mcp_notebook.note"
"""Key in a display's metadata: a sentence about its picture."""

_RASTER = ("image/png", "image/jpeg", "text/markdown")
_PAD_INCHES = 0.3
"""Slightly more than matplotlib's padding on both sides of a figure."""
_MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from ")
_MAX_NAMED = 20
"""Maximum characters without a glyph that are named."""
_MAX_WIDGETS = 200
"""Maximum widgets in boxes that are searched for canvases."""
_NO_FIGURE = object()


def has_content(figure: Any) -> bool:
    """Return whether a figure has more than empty axes."""
    try:
        return any(
            axes.has_data() or axes.get_title() or axes.texts for axes in figure.axes
        ) or bool(figure.texts or figure.images)
    except Exception:  # noqa: BLE001 - axes may be the author's code
        return True


def can_draw(value: Any) -> bool:
    """Return whether `draw_figure` draws a value: a figure, its canvas or an animation."""
    return _is_figure(value) or is_canvas(value) or is_animation(value)


def is_canvas(value: Any) -> bool:
    """Return whether a value is a figure's canvas, which ipympl shows as a widget."""
    return is_instance(value, "matplotlib.backend_bases.FigureCanvasBase")


def find_canvas_figures(value: Any) -> list[Any]:
    """Return the figures that a value shows as widgets: a canvas, or boxes with canvases."""
    parts, figures = [value], []
    for part in parts:  # grows during the loop
        if is_canvas(part):
            figures.append(part.figure)
        elif is_instance(part, "ipywidgets.Box") and len(parts) < _MAX_WIDGETS:
            parts += part.children
    return figures


def is_animation(value: Any) -> bool:
    """Return whether a value is a matplotlib animation."""
    return is_instance(value, "matplotlib.animation.Animation")


def draw_figure(value: Any, format_: Any, side: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a figure, or the first frame of an animation, as ``display_formatter.format`` would.

    Warnings about missing glyphs become one sentence.

    Args:
        value: A value for which `can_draw` is true.
        format_: IPython's ``shell.display_formatter.format``.
        side: Pixels of the longer side of figures that are too large to draw at their own size.

    Returns:
        The MIME bundle (a sentence if the figure cannot be drawn) and its metadata.
    """
    value = value.figure if is_canvas(value) else value
    with _collect_missing_characters() as missing:
        try:
            if not _is_figure(value):
                data, metadata = _draw_first_frame(value, format_, side)
            else:
                data, metadata = _draw(_get_root_figure(value), format_, side)
        except Exception as error:  # noqa: BLE001 - artists and callbacks may be the author's code
            what = "figure" if _is_figure(value) else "animation"
            return {"text/plain": f"[The {what} cannot be drawn: {describe_error(error)}.]"}, {}
    if missing:
        metadata = {
            **metadata,
            NOTE: " ".join(filter(None, [metadata.get(NOTE), _describe_missing(missing)])),
        }
    return data, metadata


@contextmanager
def _collect_missing_characters() -> Iterator[dict[str, None]]:
    """Collect the characters without glyphs that matplotlib warns about."""
    missing: dict[str, None] = {}
    with ExitStack() as stack:
        with Shield():  # an interrupt would leave the notebook's filters changed
            stack.enter_context(warnings.catch_warnings())
        show = warnings.showwarning

        def collect(message: Any, *args: Any, **kwargs: Any) -> None:
            glyph = _MISSING_GLYPH.match(str(message))
            if glyph is None:
                show(message, *args, **kwargs)
            else:
                missing[chr(int(glyph[1]))] = None

        warnings.showwarning = collect
        warnings.filterwarnings("always", "Glyph ")
        yield missing


def _describe_missing(missing: Iterable[str]) -> str:
    characters = list(missing)
    more = "..." if len(characters) > _MAX_NAMED else ""
    return (
        f"The figure's fonts lack {''.join(characters[:_MAX_NAMED])}{more}, drawn as empty boxes: "
        "set a font that has them with plt.rcParams['font.family']."
    )


def find_figures(value: Any) -> list[Any] | None:
    """Return the matplotlib figures that a value stands for.

    Plotting functions return axes, lines or bars, or lists, arrays and dicts of these, which all
    stand for their figure. A dict of several figures is not replaced, since its keys have meaning.

    Returns:
        Each figure once; None if the value is or contains anything else.
    """
    if "matplotlib.figure" not in sys.modules:
        return None
    if type(value) is dict:
        return _find_figure_in_dict(value)
    figures: dict[int, Any] = {}
    for part in _flatten(value):
        figure = _find_figure(part)
        if figure is None:
            return None
        if figure is not _NO_FIGURE:
            figures[id(figure)] = figure
    return list(figures.values()) if figures else None


def _find_figure_in_dict(value: dict[Any, Any]) -> list[Any] | None:
    """Return the one figure of a dict such as ``boxplot`` and ``violinplot`` return."""
    figures: dict[int, Any] = {}
    for parts in value.values():
        if isinstance(parts, list) and not parts:
            continue
        is_other = isinstance(parts, (dict, str, int, float)) or _is_figure(parts)
        in_parts = None if is_other else find_figures(parts)
        if in_parts is None:
            return None
        figures |= {id(figure): figure for figure in in_parts}
    return list(figures.values()) if len(value) > 1 and len(figures) == 1 else None


def has_figure(value: Any, figure: Any) -> bool:
    """Return whether a tool's value is the figure, or contains it."""
    value = value.content if isinstance(value, Result) else value
    parts = value.values() if isinstance(value, Mapping) else [value]
    flat = [leaf for part in parts for leaf in (part, *_flatten_once(part))]
    flat = [leaf.data if isinstance(leaf, Image) else leaf for leaf in flat]
    return any(
        # The figure of an animation has no public name.
        figure is (getattr(leaf, "_fig", None) if is_animation(leaf) else candidate)
        for leaf in flat
        for candidate in find_figures(leaf) or find_canvas_figures(leaf) or (None,)
    )


def _is_figure(value: Any) -> bool:
    return is_instance(value, "matplotlib.figure.FigureBase")


def _get_root_figure(figure: Any) -> Any:
    while is_instance(figure, "matplotlib.figure.SubFigure"):
        figure = figure.figure
    return figure


def _draw(figure: Any, format_: Any, side: int) -> tuple[dict[str, Any], dict[str, Any]]:
    if len(figure.get_children()) <= 1:  # only its background
        return {"text/plain": "[an empty figure]"}, {}
    dpi = figure.dpi
    inches = figure.get_size_inches()
    if _count_pixels(inches, dpi) > MAX_DRAWN:
        return _draw_smaller(figure, inches, side)
    tight_inches = _measure_tight_inches(figure)
    if _count_pixels(tight_inches, dpi) > MAX_DRAWN:
        size = _format_size(tight_inches, dpi)
        note = f"What lies outside the figure is left out: with it there would be {size}."
        return {"image/png": _print_png(figure, dpi, tight=False)}, {NOTE: note}
    data, metadata = format_(figure, _RASTER)
    return (data, metadata) if data else ({"image/png": _print_png(figure, dpi)}, {})


def _draw_smaller(
    figure: Any, inches: tuple[float, float], side: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    dpi = side / max(inches)
    size = _format_size(inches, figure.dpi)
    if min(inches) * dpi < 1:
        raise ValueError(f"it is {inches[0]:g} x {inches[1]:g} inches, which are {size}")
    note = (
        f"The figure, of {inches[0]:g} x {inches[1]:g} inches and {size}, was drawn at {dpi:.3g} "
        f"dpi instead of {figure.dpi:g}: figure.savefig(path) saves it in full size."
    )
    return {"image/png": _print_png(figure, dpi, tight=False)}, {NOTE: note}


def _count_pixels(inches: tuple[float, float], dpi: float) -> float:
    return float(inches[0] * inches[1] * dpi**2)


def _format_size(inches: tuple[float, float], dpi: float) -> str:
    return f"{math.ceil(inches[0] * dpi):,} x {math.ceil(inches[1] * dpi):,} pixels"


def _measure_tight_inches(figure: Any) -> tuple[float, float]:
    """Return the size at which the notebook draws a figure, including artists outside it.

    Only for figures that fit into memory, since matplotlib draws to measure.
    """
    box = figure.get_tightbbox()
    sizes = box.width + _PAD_INCHES, box.height + _PAD_INCHES
    return sizes if all(map(math.isfinite, sizes)) else figure.get_size_inches()


def _print_png(figure: Any, dpi: float, *, tight: bool = True) -> bytes:
    buffer = io.BytesIO()
    figure.canvas.print_figure(
        buffer,
        format="png",
        dpi=dpi,
        facecolor=figure.get_facecolor(),
        edgecolor=figure.get_edgecolor(),
        # Overrides the user's setting where the figure must not be tight.
        bbox_inches="tight" if tight else figure.bbox_inches,
    )
    return buffer.getvalue()


class _FirstFrameReady(Exception):
    """Raised to end the saving of an animation after its first frame."""


def _draw_first_frame(
    animation: Any, format_: Any, side: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    figure: Any = None

    def setup(_writer: Any, fig: Any, *_args: Any, **_kwargs: Any) -> None:
        nonlocal figure
        figure = fig

    def grab_frame(_writer: Any, **_kwargs: Any) -> None:
        raise _FirstFrameReady

    # A movie writer that stops with the first frame on the figure.
    methods = {"setup": setup, "grab_frame": grab_frame, "finish": lambda _writer: None}
    base = sys.modules["matplotlib.animation"].AbstractMovieWriter
    writer = type("FirstFrameWriter", (base,), methods)()
    with suppress(_FirstFrameReady):
        animation.save("first_frame", writer=writer)
    data, metadata = _draw(figure, format_, side)
    notes = ["This is the first frame of an animation.", metadata.get(NOTE, "")]
    return data, {**metadata, NOTE: " ".join(filter(None, notes))}


def _find_figure(part: Any) -> Any:
    if is_instance(part, "matplotlib.colorbar.Colorbar"):
        part = part.ax
    elif is_instance(part, "matplotlib.container.PieContainer"):
        part = next(iter(part.wedges), None)
    elif is_canvas(part):
        part = part.figure
    grid = type(part).__module__.startswith("seaborn.")
    if not grid and not is_instance(part, "matplotlib.artist.Artist"):
        return None
    figure = part if _is_figure(part) else getattr(part, "figure", None)
    figure = _get_root_figure(figure)
    if is_instance(figure, "matplotlib.figure.Figure"):
        return figure
    return None if grid else _NO_FIGURE  # an artist that was removed from its figure


def _flatten(value: Any) -> Iterable[Any]:
    nested = isinstance(value, (list, tuple)) or (
        is_instance(value, "numpy.ndarray") and value.dtype == object
    )
    # Lazy: usually the first element decides, so a long list of numbers is not read.
    if not nested:
        return [value]
    parts = value.flat if is_instance(value, "numpy.ndarray") else value
    return (leaf for part in parts for leaf in _flatten_once(part))


def _flatten_once(part: Any) -> Iterable[Any]:
    return part if isinstance(part, (list, tuple)) and part else [part]
