"""Summarizes plots of bokeh, which come as scripts.

Runs in the user's kernel, on the thread of the call. Pure functions on bokeh's JSON.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

_DOCUMENTS = re.compile(r"\bdocs_json\s*=\s*(?=\{)")
_GZIP = "H4sI"
"""The beginning of gzip data in base64."""
_WITH_HEADER = 16
"""Makes zlib read a gzip header."""
_MAX_UNPACKED = 64 * 2**20
"""Maximum bytes of a plot's unpacked arrays."""
_MAX_SERIES = 50
_MAX_IMAGES = 10
"""Arrays in a column of pictures."""


def find_bokeh_documents(script: str) -> Any:
    """Return the bokeh documents that a script shows, or None."""
    match = _DOCUMENTS.search(script)
    return None if match is None else decode_json(script, match.end())


def decode_json(text: str, start: int) -> Any:
    """Return the JSON value that begins at a place of a text; None if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def summarize_bokeh(documents: Any) -> dict[str, Any]:
    """Return the titles, axes and series of bokeh documents, without styles."""
    models = {model["id"]: model for model in iterate_models(documents)}
    summary: dict[str, Any] = {"titles": [], "axes": [], "legend": [], "series": []}
    unpacker = _Unpacker(_MAX_UNPACKED)
    for model in models.values():
        attributes = model.get("attributes", {})
        name = model["name"]
        if name == "GlyphRenderer" and len(summary["series"]) < _MAX_SERIES:
            summary["series"].append(_summarize_series(attributes, models, unpacker))
        elif name == "Title":
            summary["titles"].append(attributes.get("text"))
        elif name == "LegendItem":
            summary["legend"].append(_get_label(attributes.get("label")))
        elif attributes.get("axis_label"):
            summary["axes"].append(_get_label(attributes["axis_label"]))
    return {key: value for key, value in summary.items() if any(value)}


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
