"""matplotlib's figures and animations, drawn as the notebook draws them, whatever their size.

Runs in the user's kernel, on the thread of the call. matplotlib is never imported here: who has a
figure has imported it. A figure is drawn by IPython's formatters, so that the user's resolution and
colours count; one whose pixels would fill the memory is drawn smaller from the start. Making the
drawn picture fit the budget is `kernel.results.blocks.images`' business, open figures are
`kernel.calls.pyplot`'s.
"""

import io
import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from mcp_notebook.content import Image, Result
from mcp_notebook.kernel.safe.text import describe_error, is_instance

MAX_DRAWN = 25_000_000
"""Pixels of a figure that is drawn at its own size: each takes about 5 bytes while it is drawn, 20
where the notebook's pictures are of double resolution."""
NOTE = "mcp_notebook.note"
"""Key of a display's metadata: a sentence about its picture."""

_RASTER = ("image/png", "image/jpeg", "text/markdown")
_PAD_INCHES = 0.3
"""What matplotlib adds around a figure, on both sides, and a bit."""
_NO_FIGURE = object()


def can_draw(value: Any) -> bool:
    """Tell whether `draw_figure` draws a value: a figure, a part of one, or an animation."""
    return _is_figure(value) or is_animation(value)


def is_animation(value: Any) -> bool:
    """Tell whether a value is an animation of matplotlib's."""
    return is_instance(value, "matplotlib.animation.Animation")


def draw_figure(value: Any, format_: Any, side: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a figure or an animation's first frame, as ``display_formatter.format`` would.

    Args:
        value: What `can_draw`.
        format_: IPython's ``shell.display_formatter.format``.
        side: Pixels on the longer side of a figure that is too large to be drawn at its own size.

    Returns:
        The representations by MIME type, one of them a text if the figure cannot be drawn; and
        their metadata.
    """
    try:
        if not _is_figure(value):
            return _first_frame(value, format_, side)
        return _drawn(_whole(value), format_, side)
    except Exception as error:  # noqa: BLE001 - artists and callbacks may be the user's code
        what = "figure" if _is_figure(value) else "animation"
        return {"text/plain": f"[The {what} cannot be drawn: {describe_error(error)}.]"}, {}


def find_figures(value: Any) -> list[Any] | None:
    """Return the matplotlib figures that a value stands for.

    Plotting functions return axes, lines, bars, or lists, arrays and dicts of them: all stand for
    the figure that they are part of. A dict of several figures is more: its keys tell them apart.

    Returns:
        The figures without repetition; None if the value is, or holds, anything else.
    """
    if "matplotlib.figure" not in sys.modules:
        return None
    if type(value) is dict:
        return _figure_of_dict(value)
    figures: dict[int, Any] = {}
    for part in _flat(value):
        figure = _figure_of(part)
        if figure is None:
            return None
        if figure is not _NO_FIGURE:
            figures[id(figure)] = figure
    return list(figures.values()) if figures else None


def _figure_of_dict(value: dict[Any, Any]) -> list[Any] | None:
    """Return the one figure of what ``boxplot`` and ``violinplot`` return."""
    figures: dict[int, Any] = {}
    for parts in value.values():
        if isinstance(parts, list) and not parts:
            continue
        found = None if isinstance(parts, dict) or _is_figure(parts) else find_figures(parts)
        if found is None:
            return None
        figures |= {id(figure): figure for figure in found}
    return list(figures.values()) if len(value) > 1 and len(figures) == 1 else None


def has_figure(value: Any, figure: Any) -> bool:
    """Tell whether a tool's value is shown as the figure, or with it among its parts."""
    value = value.content if isinstance(value, Result) else value
    parts = value.values() if isinstance(value, Mapping) else [value]
    flat = [leaf for part in parts for leaf in (part, *_flat_once(part))]
    flat = [leaf.data if isinstance(leaf, Image) else leaf for leaf in flat]
    return any(
        # An animation has no public name for its figure.
        figure is (getattr(leaf, "_fig", None) if is_animation(leaf) else shown)
        for leaf in flat
        for shown in find_figures(leaf) or (None,)
    )


def _is_figure(value: Any) -> bool:
    return is_instance(value, "matplotlib.figure.FigureBase")


def _whole(figure: Any) -> Any:
    while is_instance(figure, "matplotlib.figure.SubFigure"):
        figure = figure.figure
    return figure


def _drawn(figure: Any, format_: Any, side: int) -> tuple[dict[str, Any], dict[str, Any]]:
    if len(figure.get_children()) <= 1:  # its background
        return {"text/plain": "[an empty figure]"}, {}
    dpi = figure.dpi
    own = figure.get_size_inches()
    if _pixels(own, dpi) > MAX_DRAWN:
        return _drawn_smaller(figure, own, side)
    stuck_out = _tight_inches(figure)
    if _pixels(stuck_out, dpi) > MAX_DRAWN:
        size = _size(stuck_out, dpi)
        note = f"What lies outside the figure is left out: with it there would be {size}."
        return {"image/png": _png(figure, dpi, tight=False)}, {NOTE: note}
    data, metadata = format_(figure, _RASTER)
    return (data, metadata) if data else ({"image/png": _png(figure, dpi)}, {})


def _drawn_smaller(
    figure: Any, own: tuple[float, float], side: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    dpi = side / max(own)
    size = _size(own, figure.dpi)
    if min(own) * dpi < 1:
        raise ValueError(f"it is {own[0]:g} x {own[1]:g} inches, which are {size}")
    note = (
        f"The figure, of {own[0]:g} x {own[1]:g} inches and {size}, was drawn with {dpi:.3g} dots "
        f"per inch in place of {figure.dpi:g}: figure.savefig(path) saves it in full size."
    )
    return {"image/png": _png(figure, dpi, tight=False)}, {NOTE: note}


def _pixels(inches: tuple[float, float], dpi: float) -> float:
    return float(inches[0] * inches[1] * dpi**2)


def _size(inches: tuple[float, float], dpi: float) -> str:
    return f"{math.ceil(inches[0] * dpi):,} x {math.ceil(inches[1] * dpi):,} pixels"


def _tight_inches(figure: Any) -> tuple[float, float]:
    """Return how large the notebook draws a figure: with what sticks out of it.

    Only for a figure that may be drawn at its own size: matplotlib takes the memory for it.
    """
    box = figure.get_tightbbox()
    sizes = box.width + _PAD_INCHES, box.height + _PAD_INCHES
    return sizes if all(map(math.isfinite, sizes)) else figure.get_size_inches()


def _png(figure: Any, dpi: float, *, tight: bool = True) -> bytes:
    buffer = io.BytesIO()
    figure.canvas.print_figure(
        buffer,
        format="png",
        dpi=dpi,
        facecolor=figure.get_facecolor(),
        edgecolor=figure.get_edgecolor(),
        # A figure that is not tight is drawn so even where matplotlib's settings say otherwise.
        bbox_inches="tight" if tight else figure.bbox_inches,
    )
    return buffer.getvalue()


class _FirstFrameReady(Exception):
    """Ends the saving of an animation."""


def _first_frame(animation: Any, format_: Any, side: int) -> tuple[dict[str, Any], dict[str, Any]]:
    figure: Any = None

    def setup(_writer: Any, of: Any, *_args: Any, **_kwargs: Any) -> None:
        nonlocal figure
        figure = of

    def grab_frame(_writer: Any, **_kwargs: Any) -> None:
        raise _FirstFrameReady

    # A movie writer that leaves the first frame on the figure.
    methods = {"setup": setup, "grab_frame": grab_frame, "finish": lambda _writer: None}
    base = sys.modules["matplotlib.animation"].AbstractMovieWriter
    writer = type("FirstFrameWriter", (base,), methods)()
    with suppress(_FirstFrameReady):
        animation.save("first_frame", writer=writer)
    data, metadata = _drawn(figure, format_, side)
    notes = ["This is the first frame of an animation.", metadata.get(NOTE, "")]
    return data, {**metadata, NOTE: " ".join(filter(None, notes))}


def _figure_of(part: Any) -> Any:
    if is_instance(part, "matplotlib.colorbar.Colorbar"):
        part = part.ax
    elif is_instance(part, "matplotlib.container.PieContainer"):
        part = next(iter(part.wedges), None)
    grid = type(part).__module__.startswith("seaborn.")
    if not grid and not is_instance(part, "matplotlib.artist.Artist"):
        return None
    figure = part if _is_figure(part) else getattr(part, "figure", None)
    figure = _whole(figure)
    if is_instance(figure, "matplotlib.figure.Figure"):
        return figure
    return None if grid else _NO_FIGURE  # an artist that was removed from its figure


def _flat(value: Any) -> Iterable[Any]:
    nested = isinstance(value, (list, tuple)) or (
        is_instance(value, "numpy.ndarray") and value.dtype == object
    )
    # The first element tells nearly always; a long list of numbers is not walked through.
    if not nested:
        return [value]
    parts = value.flat if is_instance(value, "numpy.ndarray") else value
    return (leaf for part in parts for leaf in _flat_once(part))


def _flat_once(part: Any) -> Iterable[Any]:
    return part if isinstance(part, (list, tuple)) and part else [part]
