"""Draws an SVG as a picture, or extracts its texts if that is not possible.

Runs in the user's kernel, on the thread of the call; a `PlotRenderer` draws, in another process.
vl-convert draws if it is installed and the document has no external references, so that no address
is fetched and no file is read.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from xml.etree import ElementTree as ET

from mcp_notebook.kernel.results.plots.renderer import NotDrawn, draw

MAX_DRAWN = 5_000_000
"""Characters of the largest SVG that is drawn."""
MAX_PARTS = 200_000
"""Parts of the largest SVG that vl-convert draws, counted once per reference."""
_READABLE_SIDE = 1_000
"""Pixels of the longer side to which a small drawing is enlarged, at most by two."""
_DEFAULT_SIDE = 300.0
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
_NOT_DRAWN = frozenset({"script", "metadata", "foreignObject"})
_PICTURES = frozenset({"image", "feImage"})
_EMBEDDED = tuple(f"data:image/{kind};base64," for kind in ("png", "jpeg", "gif", "webp"))
_OUTSIDE = re.compile(r"@import|\\|url\(\s*[\"']?(?!#)", re.IGNORECASE)
"""In a style sheet: external references, and those that cannot be checked."""
_WITHIN = re.compile(r"url\(\s*[\"']?#([^\"')\s]+)")


def draw_svg(source: str, side: int) -> bytes:
    """Draw an SVG as PNG.

    Args:
        source: The document.
        side: Maximum pixels of the picture's longer side.

    Raises:
        NotDrawn: It is not an SVG, is too large, or no installed library can draw it.
    """
    if len(source) > MAX_DRAWN:
        raise NotDrawn(f"it has more than {MAX_DRAWN:,} characters")
    root = _parse(source)
    scale = _choose_scale(_get_longest_side(root), side)
    is_changed = _make_harmless(root)
    if find_spec("vl_convert") is None:
        raise NotDrawn("`pip install vl-convert-python` draws it")
    if is_changed:
        source = ET.tostring(root, encoding="unicode")
    return draw("vl_convert_svg", source, scale=scale)


def extract_texts(source: str) -> str:
    """Return the texts of an SVG, one per line."""
    try:
        root = _parse(source)
    except NotDrawn:
        return ""
    texts = ("".join(part.itertext()) for part in _iterate_texts(root))
    return "\n".join(dict.fromkeys(line for text in texts if (line := " ".join(text.split()))))


def _iterate_texts(root: ET.Element) -> Iterator[ET.Element]:
    # A nested text is part of its parent.
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if _get_local_name(part) in {"text", "title"}:
            yield part
        else:
            waiting += reversed(part)


def _parse(source: str) -> ET.Element:
    # Entities can make a short document huge or read files; plots do not need them.
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


def _get_longest_side(root: ET.Element) -> float:
    sides = [root.get("width", ""), root.get("height", "")]
    box = root.get("viewBox", "").replace(",", " ").split()
    for lengths in (sides, box[2:]):
        if found := list(filter(None, map(_to_pixels, lengths))):
            return max(found)
    return _DEFAULT_SIDE


def _to_pixels(length: str) -> float | None:
    match = _NUMBER.match(length)
    if match is None or match[2] not in _PIXELS:
        return None
    with suppress(ValueError):
        return min(float(match[1]) * _PIXELS[match[2]], sys.float_info.max)
    return None


def _choose_scale(longest: float, side: int) -> float:
    return min(side / longest, max(1.0, min(2.0, _READABLE_SIDE / longest)))


def _make_harmless(root: ET.Element) -> bool:
    """Remove invisible parts of a document, and check that the rest has no external references.

    Returns:
        Whether anything was removed.

    Raises:
        NotDrawn: It has external references, or refers to its own parts too often.
    """
    unseen = [
        (parent, part)
        for parent in root.iter()
        for part in parent
        if _get_local_name(part) in _NOT_DRAWN
    ]
    for parent, part in unseen:
        parent.remove(part)
    for part in root.iter():
        name = _get_local_name(part)
        address = next((value for key, value in part.items() if key.endswith("href")), "")
        is_picture = name in _PICTURES and address.startswith(_EMBEDDED)
        # The link of an `a` is not loaded for drawing.
        if address and name != "a" and not (is_picture or address.startswith("#")):
            raise NotDrawn(f"it refers to {address[:100]!r}, which is not read")
        if name == "style" and _OUTSIDE.search("".join(part.itertext())):
            raise NotDrawn("its style sheet refers to another document, which is not read")
    _check_drawn_parts(root)
    return bool(unseen)


def _check_drawn_parts(root: ET.Element) -> None:
    """Refuse a document that draws too many parts, counted once per reference."""
    by_id = {name: part for part in root.iter() if (name := part.get("id"))}
    drawn: dict[int, int] = {}
    """Number of parts that each part draws; 0 during counting."""
    waiting = [root]
    while waiting:
        part = waiting[-1]
        parts = [*part, *(by_id[name] for name in _list_references(part) if name in by_id)]
        if id(part) not in drawn:
            drawn[id(part)] = 0
            if any(drawn.get(id(each)) == 0 for each in parts):
                raise NotDrawn("it refers to itself")
            waiting += [each for each in parts if id(each) not in drawn]
            continue
        waiting.pop()
        drawn[id(part)] = 1 + sum(drawn[id(each)] for each in parts)
        if drawn[id(part)] > MAX_PARTS:
            raise NotDrawn(f"it draws more than {MAX_PARTS:,} parts")


def _list_references(part: ET.Element) -> Iterator[str]:
    for key, value in part.items():
        if key.endswith("href") and value.startswith("#") and _get_local_name(part) != "a":
            yield value[1:]
        elif "url(" in value:
            yield from _WITHIN.findall(value)
