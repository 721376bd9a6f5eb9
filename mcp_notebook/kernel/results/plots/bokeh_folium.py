"""What matters in plots that are a page: of bokeh, and maps of folium.

Runs in the user's kernel, on the thread of the call. Pure functions over what these libraries put
into a notebook: bokeh's documents as JSON, folium's pages as HTML. What becomes of it is
`kernel.results.plots.detect`' business.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

_DOCUMENTS = re.compile(r"\bdocs_json\s*=\s*(?=\{)")
_PAGE = re.compile(r"""<iframe\b[^>]*?\bsrcdoc=(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_CENTRE = re.compile(r"\bcenter:\s*\[\s*([-\d.eE]+)\s*,\s*([-\d.eE]+)\s*\]")
_ZOOM = re.compile(r'"?\bzoom"?:\s*(\d+)')
_PLACE = re.compile(
    r"\bL\.(marker|circleMarker|circle)\(\s*\[\s*([-\d.eE]+)\s*,\s*([-\d.eE]+)\s*\]"
)
_LAYER = re.compile(r"\bL\.(geoJson|polyline|polygon|rectangle|heatLayer|markerClusterGroup)\(")
_BUBBLE = re.compile(r'<div id="html_[0-9a-f]+"[^>]*>(.*?)</div>', re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_GZIP = "H4sI"
"""How gzip begins in base64."""
_MAX_PLACES = 1_000
_MAX_SERIES = 50


def find_bokeh_documents(script: str) -> Any:
    """Return the documents that bokeh's script shows, None if it shows none."""
    found = _DOCUMENTS.search(script)
    if found is None:
        return None
    try:
        return json.JSONDecoder().raw_decode(script, found.end())[0]
    except ValueError:
        return None


def summarize_bokeh(documents: Any) -> dict[str, Any]:
    """Return the titles, axes and series of bokeh's JSON, without what it looks like."""
    known = {part["id"]: part for part in _models(documents)}
    summary: dict[str, Any] = {"titles": [], "axes": [], "legend": [], "series": []}
    for model in known.values():
        attributes = model.get("attributes", {})
        if model["name"] == "GlyphRenderer" and len(summary["series"]) < _MAX_SERIES:
            summary["series"].append(_series(attributes, known))
        elif model["name"] == "Title":
            summary["titles"].append(attributes.get("text"))
        elif model["name"] == "LegendItem":
            summary["legend"].append(_plain(attributes.get("label")))
        elif attributes.get("axis_label"):
            summary["axes"].append(_plain(attributes["axis_label"]))
    return {key: value for key, value in summary.items() if any(value)}


def find_folium_page(html: str) -> str | None:
    """Return the page of a folium map in a display, None if it is no such map."""
    if "L.map(" not in html:
        return None
    framed = _PAGE.search(html)
    page = unescape(framed[1] or framed[2] or "") if framed else html
    return page if "L.map(" in page else None


def summarize_folium(page: str) -> dict[str, Any]:
    """Return where a folium map is, and what is on it."""
    summary: dict[str, Any] = {}
    if centre := _CENTRE.search(page):
        summary["center"] = [float(centre[1]), float(centre[2])]
    if zoom := _ZOOM.search(page):
        summary["zoom"] = int(zoom[1])
    places: dict[str, list[list[float]]] = {}
    for kind, latitude, longitude in _PLACE.findall(page):
        places.setdefault(kind, []).append([float(latitude), float(longitude)])
    summary["counts"] = {kind: len(found) for kind, found in places.items()}
    for kind in _LAYER.findall(page):
        summary["counts"][kind] = summary["counts"].get(kind, 0) + 1
    summary |= {kind: found[:_MAX_PLACES] for kind, found in places.items()}
    bubbles = (" ".join(_TAG.sub(" ", unescape(text)).split()) for text in _BUBBLE.findall(page))
    if texts := [text for text in bubbles if text][:_MAX_PLACES]:
        summary["popups"] = texts
    return summary


def _models(part: Any) -> Iterator[dict[str, Any]]:
    open_parts = [part]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, Mapping):
            if part.get("type") == "object" and "id" in part and "name" in part:
                yield dict(part)
            open_parts += reversed(list(part.values()))
        elif isinstance(part, (list, tuple)):
            # A long list is data: numbers, or names of categories.
            open_parts += [item for item in reversed(part) if isinstance(item, (dict, list, tuple))]


def _series(attributes: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    glyph = _resolved(attributes.get("glyph"), known)
    source = _resolved(attributes.get("data_source"), known)
    fields = {
        key: value["field"]
        for key, value in glyph.get("attributes", {}).items()
        if isinstance(value, Mapping) and "field" in value
    }
    data = source.get("attributes", {}).get("data")
    entries = data.get("entries", ()) if isinstance(data, Mapping) else ()
    columns = {str(name): _column(column) for name, column in entries}
    return {"glyph": glyph.get("name"), **fields, "data": columns}


def _resolved(part: Any, known: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        return {}
    found: Mapping[str, Any] = known.get(part.get("id", ""), part)
    return found


def _column(column: Any) -> Any:
    """Return a column in the form that plotly gives arrays, which `plots.spec` reads."""
    if not isinstance(column, Mapping) or column.get("type") != "ndarray":
        return column
    array = column.get("array")
    data = array.get("data") if isinstance(array, Mapping) else array
    if not isinstance(data, str):
        return data
    return {
        "bdata": _unzipped(data),
        "dtype": column.get("dtype"),
        "shape": ",".join(str(size) for size in column.get("shape", ())),
    }


def _unzipped(data: str) -> str:
    if not data.startswith(_GZIP):
        return data
    try:
        return base64.b64encode(gzip.decompress(base64.b64decode(data))).decode("ascii")
    except (OSError, EOFError, ValueError):
        return ""


def _plain(text: Any) -> Any:
    return text.get("value", text.get("field")) if isinstance(text, Mapping) else text
