"""Pictures as bytes that every client can show, in a size that a model can take.

Runs in the user's kernel, on the thread of the call. Recognises encoded pictures by their first
bytes, encodes PIL images, finds and draws matplotlib figures. matplotlib is never imported here;
PIL is, when a picture must be measured or made smaller, and everything works without it but that.
"""

import io
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.texts import is_instance, safe_message

_JPEG_QUALITY = 85
_PNG_MODES = frozenset({"1", "L", "LA", "I;16", "P", "RGB", "RGBA"})

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass(frozen=True)
class Picture:
    """An encoded picture."""

    data: bytes = field(repr=False)
    mime_type: str
    note: str = ""
    """What was done to it, for the reader of the result."""


def mime_type_of(data: bytes) -> str | None:
    """Return the type of an encoded picture by its first bytes, None if it is none we send."""
    for beginning, mime_type in _BEGINNINGS:
        if data.startswith(beginning):
            return mime_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def from_bytes(data: bytes, budget: Budget) -> Picture:
    """Take an encoded picture, made smaller if it is too large.

    Raises:
        ValueError: The bytes are no picture, or too large a one.
    """
    mime_type = mime_type_of(data)
    pil = _pil()
    if pil is None:
        if mime_type is None:
            raise ValueError(_not_a_picture(data))
        return Picture(data, mime_type)
    try:
        with pil.open(io.BytesIO(data)) as image:
            fits = max(image.size) <= budget.picture_side and len(data) <= budget.picture_bytes
            if mime_type is not None and fits:
                return Picture(data, mime_type)
            return from_pil(image, budget)
    except pil.UnidentifiedImageError:
        raise ValueError(_not_a_picture(data)) from None
    except Exception as error:  # PIL raises anything on broken files
        raise ValueError(f"A picture cannot be read: {safe_message(error)}.") from error


def from_pil(image: Any, budget: Budget) -> Picture:
    """Encode a PIL image as PNG, or as JPEG where a PNG would be too large.

    Raises:
        ValueError: The picture has no pixels.
    """
    size = image.size
    if min(size) < 1:
        raise ValueError(f"A picture of {size[0]}x{size[1]} pixels has nothing to show.")
    note = ""
    if max(size) > budget.picture_side:
        factor = budget.picture_side / max(size)
        smaller = tuple(max(1, math.floor(side * factor)) for side in size)
        image = image.convert(_scalable(image.mode)).resize(smaller)
        note = f"The picture was scaled down from {size[0]}x{size[1]} to {smaller[0]}x{smaller[1]}."
    if image.mode not in _PNG_MODES:
        image = image.convert(_scalable(image.mode))
    data = _encoded(image, format="PNG")
    if len(data) > budget.picture_bytes and "A" not in image.mode:
        jpeg = _encoded(image.convert("RGB"), format="JPEG", quality=_JPEG_QUALITY)
        if len(jpeg) < len(data):
            return Picture(jpeg, "image/jpeg", note)
    return Picture(data, "image/png", note)


def from_figure(figure: Any, budget: Budget) -> Picture | None:
    """Draw a matplotlib figure as the notebook would; None if there is nothing on it."""
    if not figure.axes and not figure.lines and not figure.texts and not figure.images:
        return None
    buffer = io.BytesIO()
    figure.canvas.print_figure(
        buffer,
        format="png",
        dpi=figure.dpi,
        facecolor=figure.get_facecolor(),
        edgecolor=figure.get_edgecolor(),
        bbox_inches="tight",
    )
    return from_bytes(buffer.getvalue(), budget)


def figures_of(value: Any) -> list[Any] | None:
    """Return the matplotlib figures that a value stands for.

    Plotting functions return axes, lines, bars, or lists and arrays of them: all stand for the
    figure that they are part of.

    Returns:
        The figures without repetition; None if the value is, or holds, anything else.
    """
    if "matplotlib.figure" not in sys.modules:
        return None
    figures: dict[int, Any] = {}
    for part in _flat(value):
        figure = _figure_of(part)
        if figure is None:
            return None
        if figure is not _NO_FIGURE:
            figures[id(figure)] = figure
    return list(figures.values()) if figures else None


_NO_FIGURE = object()


def _figure_of(part: Any) -> Any:
    grid = type(part).__module__.startswith("seaborn.")
    if not grid and not is_instance(part, "matplotlib.artist.Artist"):
        return None
    figure: Any = getattr(part, "figure", None)
    while is_instance(figure, "matplotlib.figure.SubFigure"):
        figure = figure.figure
    if is_instance(part, "matplotlib.figure.Figure"):
        return part
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


def _pil() -> Any:
    try:
        import PIL.Image  # noqa: PLC0415 - only for pictures, and only if it is there
    except ImportError:
        return None
    return PIL.Image


def _scalable(mode: str) -> str:
    if mode in {"RGBA", "LA", "PA", "La", "RGBa", "P"}:
        return "RGBA"
    return "L" if mode in {"L", "1", "I", "I;16", "F"} else "RGB"


def _encoded(image: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def _not_a_picture(data: bytes) -> str:
    beginning = data[:8].hex(" ")
    return (
        f"{len(data):,} bytes beginning with {beginning or 'nothing'} are no picture: "
        "give PNG, JPEG, WebP or GIF."
    )
