"""Pictures of plots that only a browser shows: plotly by kaleido, Vega by vl-convert.

Runs in the user's kernel, on the thread of the call; `kernel.results.plots.renderer` has them
drawn, in a process of its own. What is a plot, and what is said where none is drawn, is
`kernel.results.plots.detect`' business.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from mcp_notebook.kernel.results.blocks.budget import NotDrawn, PlotRenderer
from mcp_notebook.kernel.results.plots.spec import write_json
from mcp_notebook.kernel.safe.to_json import TooDeep, TooLarge

MAX_PLOTLY = 5_000_000
"""Characters of a plotly figure that is still drawn."""
MAX_VEGA = 1_000_000
"""Characters of a chart that is still drawn: 50,000 rows take 10 seconds."""
_KALEIDO = "`pip install -U kaleido` and Chrome make it a picture"
_VL_CONVERT = "`pip install vl-convert-python` makes it a picture"
_PLOTLY_SIZE = (700, 500)


def draw_plotly(figure: Mapping[str, Any], side: int, renderer: PlotRenderer) -> bytes:
    """Draw a plotly figure as PNG.

    Args:
        figure: Its specification: data and layout.
        side: Pixels that the longer side of the picture may have.
        renderer: Draw within bounds.

    Raises:
        NotDrawn: Something is missing, or failed.
    """
    text = _small_enough(figure, MAX_PLOTLY)
    if address := _picture_at(figure):
        raise NotDrawn(f"it has a picture at {address!r}, which is not read: give it a PIL image")
    if find_spec("kaleido") is None:
        raise NotDrawn(_KALEIDO)
    width, height = _plotly_size(figure)
    options = {"format": "png", "width": width, "height": height}
    options["scale"] = min(1.0, side / max(width, height))
    # Cancelled in time, it ends its browser by itself.
    started: dict[str, Any] = {"timeout": max(renderer.seconds - 2, 0.1)}
    if "$" not in text:
        # It would load MathJax from the network at each start; only formulas need it.
        started["mathjax"] = False
    try:
        return renderer.draw("kaleido", text, options=options, started=started)
    except NotDrawn as error:
        # One before 1.0, which other versions of plotly take.
        hint = f"; {_KALEIDO}" if "calc_fig" in str(error) else ""
        raise NotDrawn(f"{error}{hint}") from error


def draw_vega(spec: Mapping[str, Any], side: int, renderer: PlotRenderer) -> bytes:
    """Draw a Vega or Vega-Lite chart as PNG; data at an address is not fetched.

    Args:
        spec: Its specification.
        side: Pixels that the longer side of the picture may have.
        renderer: Draw within bounds.

    Raises:
        NotDrawn: Something is missing, or failed.
    """
    text = _small_enough(spec, MAX_VEGA)
    if address := _address_in(spec):
        raise NotDrawn(f"its data is at {address!r}, which is not fetched: give it a DataFrame")
    if find_spec("vl_convert") is None:
        raise NotDrawn(_VL_CONVERT)
    sizes = [spec.get("width"), spec.get("height")]
    largest = max((float(size) for size in sizes if isinstance(size, (int, float))), default=1.0)
    return renderer.draw(
        "vl_convert_vega",
        text,
        scale=min(1.5, side / max(largest, 1.0)),
        schema=str(spec.get("$schema", "")),
    )


def _small_enough(spec: Mapping[str, Any], size: int) -> str:
    try:
        text = write_json(spec, size)
    except TooLarge:
        raise NotDrawn("it has more data than is drawn") from None
    except TooDeep as error:
        raise NotDrawn(str(error)) from None
    if len(text) > size:
        raise NotDrawn(f"it has {len(text):,} characters of data, and {size:,} are drawn at most")
    return text


def _plotly_size(figure: Mapping[str, Any]) -> tuple[float, float]:
    layout = figure.get("layout")
    layout = layout if isinstance(layout, Mapping) else {}
    template = layout.get("template")
    below = template.get("layout") if isinstance(template, Mapping) else None
    sizes = []
    for name, usual in zip(("width", "height"), _PLOTLY_SIZE, strict=True):
        size = layout.get(name) or (below.get(name) if isinstance(below, Mapping) else None)
        sizes.append(float(size) if isinstance(size, (int, float)) and size >= 1 else float(usual))
    return sizes[0], sizes[1]


def _picture_at(figure: Any) -> str | None:
    """Return where a picture within a plotly figure is, if it is not in the figure.

    A browser that draws it would fetch it, also from the disk.
    """
    open_parts = [figure]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, Mapping):
            source = part.get("source")
            if isinstance(source, str) and not source.startswith("data:"):
                return source
            open_parts += part.values()
        elif isinstance(part, (list, tuple)):
            open_parts += [item for item in part if isinstance(item, (Mapping, list, tuple))]
    return None


def _address_in(spec: Any) -> str | None:
    """Return where a chart's data is, if it is not in the chart."""
    open_parts = [spec]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, Mapping):
            data = part.get("data")
            for source in data if isinstance(data, list) else [data]:
                url = source.get("url") if isinstance(source, Mapping) else None
                if isinstance(url, str) and not url.startswith("data:"):
                    return url
            open_parts += [item for key, item in part.items() if key not in {"datasets", "values"}]
        elif isinstance(part, (list, tuple)):
            open_parts += [item for item in part if isinstance(item, (Mapping, list))]
    return None
