"""Plots of libraries that draw in a browser: what one is, found in a display or in an object.

Runs in the user's kernel, on the thread of the call.

=====================  ==========================================  ================================
plot                   found by                                    drawn by, if it is installed
=====================  ==========================================  ================================
plotly figure          ``application/vnd.plotly.v1+json``, its     kaleido and Chrome
                       script in HTML, its class
Vega, Vega-Lite        ``application/vnd.vega...+json``, its        vl-convert
(altair)               script in HTML, its class
bokeh                  its script, its class                       -
folium map             its page in HTML                            -
graphviz graph         its class, where its program is missing     (else it is SVG)
=====================  ==========================================  ================================

What is not drawn is shown as what it is made of, shortened; the whole is kept as an original. None
of the libraries is imported here. Making blocks of a plot is `kernel.results.blocks.author_blocks`'
business.
"""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_notebook.kernel.results.blocks.budget import PlotRenderer
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.plots import draw as drawing
from mcp_notebook.kernel.results.plots.bokeh_folium import (
    find_bokeh_documents,
    find_folium_page,
    summarize_bokeh,
    summarize_folium,
)
from mcp_notebook.kernel.results.plots.spec import compact_json, estimate_memory, write_json
from mcp_notebook.kernel.safe.text import describe_error, is_instance

PLOTLY = "application/vnd.plotly.v1+json"
VEGA = "application/vnd.vega"

_TYPES = (
    *("plotly.basedatatypes.BaseFigure", "altair.TopLevelMixin", "bokeh.models.LayoutDOM"),
    *("graphviz.graphs.BaseGraph", "graphviz.sources.Source"),
)
_PLOTLY_NOISE = frozenset(
    {"template", "hovertemplate", "alignmentgroup", "offsetgroup", "legendgroup", "uid", "config"}
)
_VEGA_NOISE = frozenset({"$schema", "config", "usermeta"})
_EMBEDDED_VEGA = re.compile(r"\}\)\((?=\{)|\bvegaEmbed\([^{}]*?,\s*(?=\{)")
_EMBEDDED_PLOTLY = re.compile(r"""Plotly\.(?:newPlot|react)\(\s*["'][^"']*["']\s*,\s*(?=\[)""")
_BOKEH_NOTE = "`return bokeh.io.export.get_screenshot_as_png(plot)` makes it a picture, by selenium"
_DOT_NOTE = "the program dot of Graphviz makes it a picture"


@dataclass(frozen=True)
class Plot:
    """One plot."""

    kind: str
    """What it is, with its article: ``"a plotly figure"``."""
    name: str
    """Of its file, without an extension."""
    form: FileFormat
    """The whole of it."""
    cost: int
    """Bytes that it holds, about."""
    summarize: Callable[[int], str] = field(repr=False)
    """Writes what it is made of in at most so many characters."""
    draw: Callable[[int, PlotRenderer], bytes] | None = field(default=None, repr=False)
    """Draws it as PNG, with so many pixels on its longer side."""
    note: str = ""
    """What makes it a picture, where nothing here draws it."""

    @property
    def original(self) -> Original:
        """The whole of it, to be kept."""
        title = f"The whole of {self.kind}"
        return Original(self.name, title, (self.form,), self.cost)


def find_plot_in_display(data: Mapping[str, Any]) -> Plot | None:
    """Find the plot that a display shows.

    Args:
        data: MIME types and values.
    """
    for mime_type, value in data.items():
        spec = _mapping(value) if mime_type == PLOTLY or mime_type.startswith(VEGA) else None
        if spec is not None:
            return _plotly(spec) if mime_type == PLOTLY else _vega(spec, mime_type)
    scripts = [data[key] for key in ("application/javascript", "text/html") if data.get(key)]
    for script in map(_joined, scripts):
        found = _plot_in_script(script)
        if found is not None:
            return found
    return None


def is_plot_object(value: Any) -> bool:
    """Tell whether an object is of a type that `find_plot_in_object` knows."""
    return any(is_instance(value, path) for path in _TYPES)


def find_plot_in_object(value: Any) -> Plot | str | None:
    """Find the plot that an object is, where its own representation says less.

    Returns:
        The plot; a sentence if the object fails to say what it is made of; None for no plot.
    """
    try:
        if is_instance(value, "plotly.basedatatypes.BaseFigure"):
            return _plotly(value.to_dict())
        if is_instance(value, "altair.TopLevelMixin"):
            spec = value.to_dict()
            return _vega(spec, f"{VEGA}lite.v{_major(spec)}+json")
        if is_instance(value, "bokeh.models.LayoutDOM"):
            from bokeh.core.serialization import Serializer  # noqa: PLC0415 - it is loaded

            return _bokeh(Serializer(deferred=False).encode(value))
        if is_instance(value, "graphviz.sources.Source") or is_instance(
            value, "graphviz.graphs.BaseGraph"
        ):
            return None if shutil.which(str(value.engine)) else _dot(str(value.source))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the libraries' code, and the user's data
        kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
        return f"[A {kind} cannot be shown: {describe_error(error)}]"
    return None


def _plot_in_script(script: str) -> Plot | None:
    if "vega" in script and (spec := _embedded_vega(script)) is not None:
        return _vega(spec, f"{VEGA}lite.v{_major(spec)}+json")
    if "Plotly" in script and (figure := _embedded_plotly(script)) is not None:
        return _plotly(figure)
    if (documents := find_bokeh_documents(script)) is not None:
        return _bokeh(documents)
    if (page := find_folium_page(script)) is not None:
        return _folium(page)
    return None


def _plotly(figure: Mapping[str, Any]) -> Plot:
    return Plot(
        "a plotly figure",
        "figure",
        FileFormat(".json", PLOTLY, lambda: write_json(figure)),
        estimate_memory(figure),
        lambda size: compact_json(_without(figure, _PLOTLY_NOISE), size),
        lambda side, renderer: drawing.draw_plotly(figure, side, renderer),
    )


def _vega(spec: Mapping[str, Any], mime_type: str) -> Plot:
    shown = {key: value for key, value in spec.items() if key not in _VEGA_NOISE}
    return Plot(
        "a Vega-Lite chart" if "lite" in mime_type else "a Vega chart",
        "chart",
        FileFormat(".json", mime_type, lambda: write_json(spec)),
        estimate_memory(spec),
        lambda size: compact_json(shown, size),
        lambda side, renderer: drawing.draw_vega(spec, side, renderer),
    )


def _bokeh(documents: Any) -> Plot:
    return Plot(
        "a bokeh plot",
        "plot",
        FileFormat(".json", "application/json", lambda: write_json(documents)),
        estimate_memory(documents),
        lambda size: compact_json(summarize_bokeh(documents), size),
        note=_BOKEH_NOTE,
    )


def _folium(page: str) -> Plot:
    return Plot(
        "a folium map",
        "map",
        FileFormat(".html", "text/html", lambda: page, len(page.encode("utf-8", "replace"))),
        len(page),
        lambda size: compact_json(summarize_folium(page), size),
        note="only a browser shows it",
    )


def _dot(source: str) -> Plot:
    return Plot(
        "a graph in DOT",
        "graph",
        FileFormat(
            ".gv", "text/vnd.graphviz", lambda: source, len(source.encode("utf-8", "replace"))
        ),
        len(source),
        lambda size: source if len(source) <= size else source[: size - 5] + "\n...",
        note=_DOT_NOTE,
    )


def _without(value: Any, noise: frozenset[str], depth: int = 3) -> Any:
    """Leave out what says nothing about the data, in the upper levels of a specification."""
    if isinstance(value, Mapping):
        parts = {key: item for key, item in value.items() if key not in noise}
        if depth == 0:
            return parts
        made = {key: _without(item, noise, depth - 1) for key, item in parts.items()}
        return {key: item for key, item in made.items() if not _is_emptied(item, parts[key])}
    if isinstance(value, (list, tuple)) and depth and any(isinstance(i, Mapping) for i in value):
        return [_without(item, noise, depth - 1) for item in value]
    return value


def _is_emptied(item: Any, before: Any) -> bool:
    return isinstance(item, Mapping) and not item and bool(before)


def _mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, (str, list)):
        try:
            value = json.loads(_joined(value))
        except ValueError:
            return None
    return value if isinstance(value, Mapping) else None


def _joined(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


def _embedded_vega(script: str) -> Mapping[str, Any] | None:
    for found in _EMBEDDED_VEGA.finditer(script):
        spec = _decoded(script, found.end())
        if isinstance(spec, Mapping) and "vega.github.io/schema" in str(spec.get("$schema")):
            return spec
    return None


def _embedded_plotly(script: str) -> Mapping[str, Any] | None:
    # The library itself, which may stand before it, is megabytes long and has such calls, too.
    for found in _EMBEDDED_PLOTLY.finditer(script):
        try:
            data, end = json.JSONDecoder().raw_decode(script, found.end())
            layout = _decoded(script, script.index("{", end))
        except ValueError:
            continue
        return {"data": data, "layout": layout if isinstance(layout, Mapping) else {}}
    return None


def _decoded(text: str, start: int) -> Any:
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except ValueError:
        return None


def _major(spec: Mapping[str, Any]) -> str:
    version = re.search(r"/v(\d+)", str(spec.get("$schema", "")))
    return version[1] if version else "6"
