"""Draws matplotlib figures as the notebook does, at any size.

Runs in the user's kernel, on the thread of the call. matplotlib is never imported here: if there
is a figure, it is loaded. IPython's formatters draw the figure with the user's resolution and
colours; a figure that is too large for memory is drawn smaller.
"""

import io
import math
import pickle
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mcp_notebook.content import Image, Result
from mcp_notebook.kernel.results.plots.figure_text import describe_figure
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error

MAX_DRAWN = 25_000_000
"""Pixels of the largest figure that is drawn at its own size. Drawing takes about 5 bytes a pixel,
or 20 at double resolution."""
NOTE = "mcp_notebook.note"
"""Key in a display's metadata: a sentence about its picture."""
FIGURE = "mcp_notebook.figure"
"""Key in a display's metadata: a weak reference to the figure of its picture."""

_RASTER = ("image/png", "image/jpeg", "text/markdown")
_PAD_INCHES = 0.3
"""Slightly more than matplotlib's padding on both sides of a figure."""
_MAX_NAMED = 20
"""Maximum characters without a glyph that are named."""
_NO_FIGURE = object()
_missing: ContextVar[dict[str, None] | None] = ContextVar(
    "mcp_notebook_missing_characters", default=None
)
"""Receives the characters without glyphs while a figure is drawn."""


def has_content(figure: Any) -> bool:
    """Return whether a figure has more than empty axes."""
    try:
        return any(
            axes.has_data() or axes.get_title() or axes.texts for axes in figure.axes
        ) or bool(figure.texts or figure.images)
    except Exception:  # noqa: BLE001 - axes may be the author's code
        return True


def can_draw(value: Any) -> bool:
    """Return whether `draw_figure` draws a value: a figure or its canvas."""
    return _is_figure(value) or is_canvas(value)


def is_canvas(value: Any) -> bool:
    """Return whether a value is a figure's canvas, which ipympl shows as a widget."""
    return is_instance(value, "matplotlib.backend_bases.FigureCanvasBase")


def draw_figure(value: Any, format_: Any, side: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a figure as ``display_formatter.format`` would.

    The figure is described in the note. Warnings about missing glyphs become one sentence.

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
            data, metadata = _draw(_get_root_figure(value), format_, side)
        except Exception as error:  # noqa: BLE001 - artists and callbacks may be the author's code
            return {"text/plain": f"[The figure cannot be drawn: {describe_error(error)}.]"}, {}
    if missing:
        metadata = {
            **metadata,
            NOTE: " ".join(filter(None, [metadata.get(NOTE), _describe_missing(missing)])),
        }
    return data, metadata


@contextmanager
def _collect_missing_characters() -> Iterator[dict[str, None]]:
    """Collect the characters without glyphs that matplotlib warns about in this context.

    Not with ``warnings.catch_warnings``, which would change the filters of all threads.
    """
    helpers: Any = sys.modules["matplotlib._text_helpers"]
    if helpers.warn_on_missing_glyph.__module__ != __name__:
        helpers.warn_on_missing_glyph = _divert_warnings(helpers.warn_on_missing_glyph)
    missing: dict[str, None] = {}
    token = _missing.set(missing)
    try:
        yield missing
    finally:
        _missing.reset(token)


def _divert_warnings(warn: Callable[..., None]) -> Callable[..., None]:
    def warn_or_collect(codepoint: int, *font_names: str) -> None:
        missing = _missing.get()
        if missing is None:
            warn(codepoint, *font_names)
        else:
            missing[chr(codepoint)] = None

    return warn_or_collect


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
    return any(figure is found for leaf in flat for found in find_figures(leaf) or ())


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
        return _describe({"image/png": _print_png(figure, dpi, tight=False)}, {NOTE: note}, figure)
    data, metadata = format_(figure, _RASTER)
    if not data:
        data, metadata = {"image/png": _print_png(figure, dpi)}, {}
    return _describe(data, metadata, figure)


def _describe(
    data: dict[str, Any], metadata: dict[str, Any], figure: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Note what a picture shows, before the other notes on it."""
    line = describe_figure(figure)
    notes = " ".join(filter(None, [line and f"{line}.", metadata.get(NOTE)]))
    return data, {**metadata, NOTE: notes, FIGURE: weakref.ref(figure)}


def refer_to(value: Any) -> Any:
    """Return a weak reference to the whole figure that a value is, or to the value."""
    return weakref.ref(_get_root_figure(value.figure if is_canvas(value) else value))


def take_snapshot(figure: Any) -> Callable[[], Any] | None:
    """Return a function that returns a copy of a figure as it is now; None if it has none."""
    if not _is_figure(figure):
        return None
    figure = _get_root_figure(figure)
    canvas = figure.canvas
    manager = canvas.manager
    try:
        canvas.manager = None  # or the copy would be open in pyplot
        data = pickle.dumps(figure)
    except Exception:  # noqa: BLE001 - artists may hold anything
        return None
    finally:
        canvas.manager = manager
    return lambda: pickle.loads(data)  # noqa: S301 - from this process


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
    return _describe({"image/png": _print_png(figure, dpi, tight=False)}, {NOTE: note}, figure)


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


def _find_figure(part: Any) -> Any:
    if is_instance(part, "matplotlib.animation.Animation"):
        part._draw_was_started = True  # noqa: SLF001 - or matplotlib warns, in a later call
        return getattr(part, "_fig", _NO_FIGURE)
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
