"""Draws an SVG as a picture, and extracts its texts where that is not possible.

Runs in the user's kernel, on the thread of the call; a `PlotRenderer` draws, in another process.
CairoSVG draws if it is installed and finds the cairo library; otherwise vl-convert does, if it is
installed and the document is simple enough to be safe with it. Neither fetches an address or reads
a file.
"""

import math
import re
from collections.abc import Iterator
from importlib.util import find_spec
from xml.etree import ElementTree as ET

from mcp_notebook.kernel.results.blocks.budget import NotDrawn, PlotRenderer

MAX_DRAWN = 5_000_000
"""Characters of the largest SVG that is drawn."""
_READABLE_SIDE = 1_000
"""Pixels of the longer side to which a small drawing is enlarged, at most twofold."""
_DEFAULT_SIZE = (300.0, 150.0)
_NUMBER = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-z%]*)")
_PIXELS = {
    "": 1.0,
    "px": 1.0,
    "pt": 4 / 3,
    "pc": 16.0,
    "in": 96.0,
    "cm": 96 / 2.54,
    "mm": 96 / 25.4,
}
_INSTALL = "`pip install cairosvg` draws it"


def draw_svg(source: str, side: int, renderer: PlotRenderer) -> bytes:
    """Draw an SVG as PNG.

    Args:
        source: The document.
        side: Most pixels of the longer side of the picture.
        renderer: Runs the libraries within its time limit.

    Raises:
        NotDrawn: It is not an SVG, is too large, or no library here can draw it.
    """
    if len(source) > MAX_DRAWN:
        raise NotDrawn(f"it has more than {MAX_DRAWN:,} characters")
    root = _parse(source)
    width, height = _get_size(root)
    scale = _choose_scale(max(width, height), side)
    reason = _INSTALL
    if find_spec("cairosvg") is not None:
        pixels = {"width": max(1, int(width * scale)), "height": max(1, int(height * scale))}
        try:
            return renderer.draw("cairosvg", source, **pixels)
        except NotDrawn as error:
            reason = str(error)
            if "OSError" not in reason:  # the cairo library is missing
                raise
    if _is_simple(root) and find_spec("vl_convert") is not None:
        return renderer.draw("vl_convert_svg", source, scale=scale)
    raise NotDrawn(reason)


def extract_texts(source: str) -> str:
    """Return the texts of an SVG, a line for each."""
    try:
        root = _parse(source)
    except NotDrawn:
        return ""
    texts = ("".join(part.itertext()) for part in _iterate_texts(root))
    return "\n".join(dict.fromkeys(line for text in texts if (line := " ".join(text.split()))))


def _iterate_texts(root: ET.Element) -> Iterator[ET.Element]:
    # A text within a text is part of it.
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if _get_local_name(part) in {"text", "title"}:
            yield part
        else:
            waiting += reversed(part)


def _parse(source: str) -> ET.Element:
    # Entities can make a short document huge, or read files; no plot needs them.
    if "<!ENTITY" in source:
        raise NotDrawn("it declares entities, which are not read")
    try:
        root = ET.fromstring(source.encode("utf-8", "replace"))  # noqa: S314 - no entities
    except (ET.ParseError, ValueError, LookupError) as error:
        raise NotDrawn(f"it is not a well-formed SVG ({error})") from error
    if _get_local_name(root) != "svg":
        raise NotDrawn(f"it is not an SVG but <{_get_local_name(root)}>")
    return root


def _get_local_name(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _get_size(root: ET.Element) -> tuple[float, float]:
    box = root.get("viewBox", "").replace(",", " ").split()
    natural = _DEFAULT_SIZE
    if len(box) == 4 and all(_is_number(part) for part in box):  # noqa: PLR2004
        natural = (float(box[2]), float(box[3])) if min(map(float, box[2:])) > 0 else natural
    width, height = _to_pixels(root.get("width")), _to_pixels(root.get("height"))
    if width and height:
        return width, height
    if width:
        return width, natural[1] * width / natural[0]
    if height:
        return natural[0] * height / natural[1], height
    return natural


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _to_pixels(length: str | None) -> float | None:
    match = _NUMBER.match(length or "")
    if match is None or match[2] not in _PIXELS or not _is_number(match[1]):
        return None
    return float(match[1]) * _PIXELS[match[2]]


def _choose_scale(longest: float, side: int) -> float:
    return min(side / longest, max(1.0, min(2.0, _READABLE_SIDE / longest)))


def _is_simple(root: ET.Element) -> bool:
    """Tell whether a document refers neither to anything else nor to parts of itself."""
    for part in root.iter():
        if _get_local_name(part) in {"use", "image", "feImage", "style", "foreignObject", "script"}:
            return False
        # The link of an `a` is for a reader to follow; drawing does not load it.
        refers = any(
            key.endswith("href") and not value.startswith("#") for key, value in part.items()
        )
        if refers and _get_local_name(part) != "a":
            return False
    return True
