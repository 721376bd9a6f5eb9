"""Summarizes plots that come as a page: bokeh documents and folium maps.

Runs in the user's kernel, on the thread of the call. Pure functions on the displays of these
libraries: JSON for bokeh, HTML for folium.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_notebook.kernel.results.html.tags import iterate_tags, unescape

_DOCUMENTS = re.compile(r"\bdocs_json\s*=\s*(?=\{)")
_NUMBER = r"(-?\d{1,30}(?:\.\d*)?(?:[eE][-+]?\d{1,3})?)"
_POINT = rf"\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\]"
_CENTRE = re.compile(rf"\bcenter:\s*{_POINT}")
_ZOOM = re.compile(r'"?\bzoom"?:\s*(\d{1,9})')
_PLACE = re.compile(rf"\bL\.(marker|circleMarker|circle)\(\s*{_POINT}")
_LAYER = re.compile(r"\bL\.(geoJson|polyline|polygon|rectangle|heatLayer|markerClusterGroup)\(")
# Also matches unclosed elements, or each would be searched to the end of the page.
_POPUP = re.compile(r'<div id="html_[0-9a-f]+"[^<>]*>(.*?)(?:</div>|\Z)', re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_GZIP = "H4sI"
"""The beginning of gzip data in base64."""
_WITH_HEADER = 16
"""Makes zlib read a gzip header."""
_MAX_UNPACKED = 64 * 2**20
"""Maximum bytes of a plot's unpacked arrays."""
_MAX_PLACES = 1_000
_MAX_SERIES = 50
_MAX_IMAGES = 10
"""Arrays in a column of pictures."""
_MAX_TEXTS = 100
_MAX_MARKUP = 20_000
"""Maximum characters of the HTML of one text."""
_UNSEEN = frozenset({"DocumentConfig", "Notifications", "BrowserInfo", "CommManager"})
"""Models that show nothing."""


def find_bokeh_documents(script: str) -> Any:
    """Return the bokeh documents that a script shows, or None."""
    match = _DOCUMENTS.search(script)
    if match is None:
        return None
    try:
        return json.JSONDecoder().raw_decode(script, match.end())[0]
    except (ValueError, RecursionError):
        return None


def shows_nothing(documents: Any) -> bool:
    """Return whether bokeh documents only connect a page to the kernel, like panel's first."""
    return all(model["name"].rpartition(".")[2] in _UNSEEN for model in iterate_models(documents))


def summarize_bokeh(documents: Any) -> dict[str, Any]:
    """Return the content of bokeh documents, without styles.

    That is: titles, axes and series of plots, tables, texts, and values of widgets; otherwise the
    names of the models.
    """
    models = {model["id"]: model for model in iterate_models(documents)}
    summary: dict[str, Any] = {"titles": [], "axes": [], "legend": [], "series": []}
    summary |= {"tables": [], "texts": [], "widgets": {}}
    unpacker = _Unpacker(_MAX_UNPACKED)
    for model in models.values():
        attributes = model.get("attributes", {})
        name, label = model["name"], attributes.get("title") or attributes.get("label")
        if name == "GlyphRenderer" and len(summary["series"]) < _MAX_SERIES:
            summary["series"].append(_summarize_series(attributes, models, unpacker))
        elif "source" in attributes and len(summary["tables"]) < _MAX_SERIES:
            source = _resolve(attributes["source"], models)
            summary["tables"].append(_list_columns(source, unpacker))
        elif name == "Title":
            summary["titles"].append(attributes.get("text"))
        elif name == "LegendItem":
            summary["legend"].append(_get_label(attributes.get("label")))
        elif attributes.get("axis_label"):
            summary["axes"].append(_get_label(attributes["axis_label"]))
        elif isinstance(attributes.get("text"), str) and len(summary["texts"]) < _MAX_TEXTS:
            summary["texts"].append(_read_markup(attributes["text"]))
        elif isinstance(label, str) and "value" in attributes:
            summary["widgets"][label] = attributes["value"]
    seen = {key: value for key, value in summary.items() if any(value)}
    return seen or {"models": [model["name"] for model in models.values()][:_MAX_TEXTS]}


def _read_markup(markup: str) -> str:
    """Return the text of HTML that panel escaped twice."""
    return " ".join(_TAG.sub(" ", unescape(unescape(markup[:_MAX_MARKUP]))).split())


def find_bokeh_pictures(documents: Any) -> str:
    """Return the HTML in bokeh documents that contains a picture.

    panel shows matplotlib plots of holoviews this way, with their sliders beside them.
    """
    texts = (model.get("attributes", {}).get("text") for model in iterate_models(documents))
    pages = [unescape(text) for text in texts if isinstance(text, str)]
    return "\n".join(page for page in pages if "data:image/" in page)


def find_folium_page(html: str) -> str | None:
    """Return the page of the folium map that a display shows, or None."""
    if "L.map(" not in html:
        return None
    pages = (values["srcdoc"] for _, values in iterate_tags(html, {"iframe"}) if "srcdoc" in values)
    page = next(pages, html)
    return page if "L.map(" in page else None


def summarize_folium(page: str) -> dict[str, Any]:
    """Return the position of a folium map and its contents."""
    summary: dict[str, Any] = {}
    if centre := _CENTRE.search(page):
        summary["center"] = [float(centre[1]), float(centre[2])]
    if zoom := _ZOOM.search(page):
        summary["zoom"] = int(zoom[1])
    places: dict[str, list[list[float]]] = {}
    for kind, latitude, longitude in _PLACE.findall(page):
        places.setdefault(kind, []).append([float(latitude), float(longitude)])
    summary["counts"] = {kind: len(points) for kind, points in places.items()}
    for kind in _LAYER.findall(page):
        summary["counts"][kind] = summary["counts"].get(kind, 0) + 1
    summary |= {kind: points[:_MAX_PLACES] for kind, points in places.items()}
    popups = (" ".join(_TAG.sub(" ", unescape(text)).split()) for text in _POPUP.findall(page))
    if texts := [text for text in popups if text][:_MAX_PLACES]:
        summary["popups"] = texts
    return summary


def iterate_models(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the models in bokeh documents."""
    pending = [part]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if part.get("type") == "object" and "id" in part and "name" in part:
                yield dict(part)
            pending += reversed(list(part.values()))
        elif isinstance(part, (list, tuple)):
            # Long lists are data (numbers or categories), which are skipped.
            pending += [item for item in reversed(part) if isinstance(item, (dict, list, tuple))]


def _summarize_series(
    attributes: Mapping[str, Any], models: Mapping[str, Any], unpacker: "_Unpacker"
) -> dict[str, Any]:
    glyph = _resolve(attributes.get("glyph"), models)
    source = _resolve(attributes.get("data_source"), models)
    fields = {
        key: value["field"]
        for key, value in glyph.get("attributes", {}).items()
        if isinstance(value, Mapping) and "field" in value
    }
    return {"glyph": glyph.get("name"), **fields, "data": _list_columns(source, unpacker)}


def _list_columns(source: Mapping[str, Any], unpacker: "_Unpacker") -> dict[str, Any]:
    data = source.get("attributes", {}).get("data")
    entries = data.get("entries", ()) if isinstance(data, Mapping) else ()
    return {str(name): _convert_column(column, unpacker) for name, column in entries}


def _resolve(part: Any, models: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        return {}
    model: Mapping[str, Any] = models.get(part.get("id", ""), part)
    return model


def _convert_column(column: Any, unpacker: "_Unpacker") -> Any:
    """Return a column in plotly's array format, which `plots.spec` reads."""
    if isinstance(column, list) and 0 < len(column) <= _MAX_IMAGES:
        return [_convert_column(item, unpacker) for item in column]
    if not isinstance(column, Mapping) or column.get("type") != "ndarray":
        return column
    array = column.get("array")
    data = array.get("data") if isinstance(array, Mapping) else array
    if not isinstance(data, str):
        return data
    return {
        "bdata": unpacker.unpack(data),
        "dtype": column.get("dtype"),
        "shape": ",".join(str(size) for size in column.get("shape", ())),
    }


class _Unpacker:
    """Unpacks the arrays of a plot up to a limit, since a page may claim any size.

    Args:
        room: Maximum bytes of all arrays.
    """

    def __init__(self, room: int) -> None:
        self._room = room

    def unpack(self, data: str) -> str:
        """Return an array in base64; "" if it is damaged or does not fit."""
        if not data.startswith(_GZIP):
            return data
        try:
            unpacker = zlib.decompressobj(zlib.MAX_WBITS | _WITH_HEADER)
            # One byte more, to notice an array that does not fit.
            content = unpacker.decompress(base64.b64decode(data), self._room + 1)
        except (zlib.error, ValueError):
            return ""
        if not unpacker.eof or len(content) > self._room:
            return ""
        self._room -= len(content)
        return base64.b64encode(content).decode("ascii")


def _get_label(text: Any) -> Any:
    return text.get("value", text.get("field")) if isinstance(text, Mapping) else text
