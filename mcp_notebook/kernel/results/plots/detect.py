"""Finds the plots of libraries that draw in a browser, in a display's data or in an object.

Runs in the user's kernel, on the thread of the call. None of the libraries is imported here.

=====================  ==========================================  ================================
plot                   found by                                    drawn by, if installed
=====================  ==========================================  ================================
plotly figure          ``application/vnd.plotly.v1+json``, the     kaleido and Chrome
                       script in its HTML, its class
Vega, Vega-Lite        ``application/vnd.vega...+json``, the       vl-convert
(altair)               script in its HTML, its class
bokeh                  its script, its class                       -
=====================  ==========================================  ================================

A plot that is not drawn is described by its specification, shortened; the whole specification is
kept as the original.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from msgspec import Struct

from mcp_notebook.kernel.results.blocks.author_blocks import join_lines
from mcp_notebook.kernel.results.blocks.originals import (
    FileFormat,
    Original,
    estimate_memory,
)
from mcp_notebook.kernel.results.plots.bokeh import (
    decode_json,
    find_bokeh_documents,
    iterate_models,
    summarize_bokeh,
)
from mcp_notebook.kernel.results.plots.draw import draw_plotly, draw_vega
from mcp_notebook.kernel.results.plots.spec import compact_json, write_json
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error

PLOTLY = "application/vnd.plotly.v1+json"
VEGA = "application/vnd.vega"

_TYPES = ("plotly.basedatatypes.BaseFigure", "altair.TopLevelMixin", "bokeh.models.LayoutDOM")
_PLOTLY_NOISE = frozenset(
    {"template", "hovertemplate", "alignmentgroup", "offsetgroup", "legendgroup", "uid", "config"}
)
_VEGA_NOISE = frozenset({"$schema", "config", "usermeta"})
_EMBEDDED_VEGA = re.compile(r"\}\)\((?=\{)|\bvegaEmbed\([^{}]{0,200}?,\s*(?=\{)")
_EMBEDDED_PLOTLY = re.compile(r"""Plotly\.(?:newPlot|react)\(\s*["'][^"']*["']\s*,\s*(?=\[)""")
_MAX_CANDIDATES = 1_000
"""Maximum places of a script that are searched for a plot's JSON."""
_BOKEH_NOTE = "`return bokeh.io.export.get_screenshot_as_png(plot)` draws it with selenium"


class Plot(Struct, frozen=True):
    """A plot that was found in a display or an object."""

    kind: str
    """The kind of plot, with its article: ``"a plotly figure"``."""
    original: Original
    """The whole plot, to be kept."""
    summarize: Callable[[int], str]
    """Describes the plot in at most this many characters."""
    draw: Callable[[int], bytes] | None = None
    """Draws it as PNG with at most this many pixels on the longer side."""
    note: str = ""
    """How to get a picture, for plots that are not drawn here."""


def find_plot_in_display(data: Mapping[str, Any]) -> Plot | None:
    """Return the plot that a display shows, or None.

    Args:
        data: The MIME bundle of the display.
    """
    for mime_type, value in data.items():
        spec = _parse_object(value) if mime_type == PLOTLY or mime_type.startswith(VEGA) else None
        if spec is not None:
            return _make_plotly(spec) if mime_type == PLOTLY else _make_vega(spec, mime_type)
    scripts = [data[key] for key in ("application/javascript", "text/html") if data.get(key)]
    for script in map(join_lines, scripts):
        plot = _find_plot_in_script(script)
        if plot is not None:
            return plot
    return None


def is_plot_object(value: Any) -> bool:
    """Return whether an object is of a class that `find_plot_in_object` knows."""
    return any(is_instance(value, path) for path in _TYPES)


def find_plot_in_object(value: Any) -> Plot | str | None:
    """Return the plot of an object, unless its own representations are better.

    Returns:
        The plot, a sentence if the library failed, or None if the object is not a plot.
    """
    return guard(lambda: _read_plot(value), recover=lambda error: _describe_failure(value, error))


def _read_plot(value: Any) -> Plot | None:
    if is_instance(value, "plotly.basedatatypes.BaseFigure"):
        return _make_plotly(value.to_dict())
    if is_instance(value, "altair.TopLevelMixin"):
        spec = value.to_dict()
        return _make_vega(spec, f"{VEGA}lite.v{_get_major_version(spec)}+json")
    if is_instance(value, "bokeh.models.LayoutDOM"):
        from bokeh.core.serialization import Serializer  # noqa: PLC0415 - it is loaded

        return _make_bokeh(Serializer(deferred=False).encode(value))
    return None


def _describe_failure(value: Any, error: BaseException) -> str:
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    return f"[This {kind} cannot be shown: {describe_error(error)}]"


def _find_plot_in_script(script: str) -> Plot | None:
    if "vega" in script and (spec := _find_embedded_vega(script)) is not None:
        return _make_vega(spec, f"{VEGA}lite.v{_get_major_version(spec)}+json")
    if "Plotly" in script and (figure := _find_embedded_plotly(script)) is not None:
        return _make_plotly(figure)
    documents = find_bokeh_documents(script)
    return None if documents is None else _make_bokeh(documents)


def _make_plotly(figure: Mapping[str, Any]) -> Plot:
    kind = "a plotly figure"
    return Plot(
        kind,
        _describe_whole(kind, "figure", PLOTLY, figure, "plotly"),
        lambda size: compact_json(_remove_noise(figure, _PLOTLY_NOISE), size),
        lambda side: draw_plotly(figure, side),
    )


def _make_vega(spec: Mapping[str, Any], mime_type: str) -> Plot:
    content = {key: value for key, value in spec.items() if key not in _VEGA_NOISE}
    kind = "a Vega-Lite chart" if "lite" in mime_type else "a Vega chart"
    return Plot(
        kind,
        _describe_whole(kind, "chart", mime_type, spec, "vega"),
        lambda size: compact_json(content, size),
        lambda side: draw_vega(spec, side),
    )


def _make_bokeh(documents: Any) -> Plot | None:
    if not any(model["name"] == "GlyphRenderer" for model in iterate_models(documents)):
        return None  # a page of widgets
    kind = "a bokeh plot"
    return Plot(
        kind,
        _describe_whole(kind, "plot", "application/json", documents, "bokeh"),
        lambda size: compact_json(summarize_bokeh(documents), size),
        note=_BOKEH_NOTE,
    )


def _describe_whole(
    kind: str, name: str, mime_type: str, spec: Any, library: Literal["plotly", "vega", "bokeh"]
) -> Original:
    file = FileFormat(".json", mime_type, lambda: write_json(spec))
    return Original(name, f"The whole of {kind}", (file,), estimate_memory(spec), library)


def _remove_noise(value: Any, noise: frozenset[str], depth: int = 3) -> Any:
    """Remove the parts of a specification that say nothing about the data."""
    if isinstance(value, Mapping):
        parts = {key: item for key, item in value.items() if key not in noise}
        if depth == 0:
            return parts
        cleaned = {key: _remove_noise(item, noise, depth - 1) for key, item in parts.items()}
        return {key: item for key, item in cleaned.items() if not _was_emptied(item, parts[key])}
    if isinstance(value, (list, tuple)) and depth and any(isinstance(i, Mapping) for i in value):
        return [_remove_noise(item, noise, depth - 1) for item in value]
    return value


def _was_emptied(item: Any, before: Any) -> bool:
    return isinstance(item, Mapping) and not item and bool(before)


def _parse_object(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, (str, list)):
        try:
            value = json.loads(join_lines(value))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def _find_embedded_vega(script: str) -> Mapping[str, Any] | None:
    for spec, _ in _decode_embedded(script, _EMBEDDED_VEGA):
        if isinstance(spec, Mapping) and "vega.github.io/schema" in str(spec.get("$schema")):
            return spec
    return None


def _find_embedded_plotly(script: str) -> Mapping[str, Any] | None:
    # The library may precede the figure; it has megabytes and similar calls.
    for data, end in _decode_embedded(script, _EMBEDDED_PLOTLY):
        start = script.find("{", end)
        if start < 0:
            return None
        layout = decode_json(script, start)
        return {"data": data, "layout": layout if isinstance(layout, Mapping) else {}}
    return None


def _decode_embedded(script: str, pattern: re.Pattern[str]) -> Iterator[tuple[Any, int]]:
    """Yield the JSON values that follow a pattern, each with its end."""
    room = len(script)  # attempts may overlap, but only up to a limit
    for match in islice(pattern.finditer(script), _MAX_CANDIDATES):
        try:
            value, end = json.JSONDecoder().raw_decode(script, match.end())
            yield value, end
        except json.JSONDecodeError as error:
            end = error.pos
        except (ValueError, RecursionError):  # an integer or nesting beyond Python's limits
            return
        room -= end - match.end()
        if room < 0:
            return


def _get_major_version(spec: Mapping[str, Any]) -> str:
    version = re.search(r"/v(\d+)", str(spec.get("$schema", "")))
    return version[1] if version else "6"
