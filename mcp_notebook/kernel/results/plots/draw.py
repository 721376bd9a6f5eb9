"""Draws plotly figures with kaleido, and Vega charts with vl-convert.

Runs in the user's kernel, on the thread of the call. This module checks the specification and
chooses the size; `renderer` draws in another process.
"""

from collections.abc import Collection, Iterator, Mapping
from importlib.util import find_spec
from itertools import chain
from typing import Any

from mcp_notebook.kernel.results.plots.renderer import SECONDS, NotDrawn, draw
from mcp_notebook.kernel.results.plots.spec import write_json
from mcp_notebook.kernel.safe.to_json import TooDeep, TooLarge

MAX_PLOTLY = 5_000_000
"""Characters of the largest plotly figure that is drawn."""
MAX_VEGA = 1_000_000
"""Characters of the largest chart that is drawn: 50,000 rows take 10 seconds."""
_KALEIDO = "`pip install -U kaleido` and Chrome draw it"
_VL_CONVERT = "`pip install vl-convert-python` draws it"
_PLOTLY_DEFAULT_SIZE = (700, 500)


def draw_plotly(figure: Mapping[str, Any], side: int) -> bytes:
    """Draw a plotly figure as PNG.

    Args:
        figure: Its specification: data and layout.
        side: Maximum pixels of the picture's longer side.

    Raises:
        NotDrawn: A program is missing, or the drawing was refused or failed.
    """
    text = _write_limited(figure, MAX_PLOTLY)
    if address := _find_external_picture(figure):
        raise NotDrawn(f"it has a picture at {address!r}, which is not read: give it a PIL image")
    if find_spec("kaleido") is None:
        raise NotDrawn(_KALEIDO)
    width, height = _get_plotly_size(figure)
    options = {"format": "png", "width": width, "height": height}
    options["scale"] = min(1.0, side / max(width, height))
    # kaleido ends its browser if it is cancelled in time.
    kaleido_options: dict[str, Any] = {"timeout": SECONDS - 2}
    if "$" not in text:
        # Only formulas need MathJax, which is downloaded at each start.
        kaleido_options["mathjax"] = False
    return draw("kaleido", text, options=options, kaleido_options=kaleido_options)


def draw_vega(spec: Mapping[str, Any], side: int) -> bytes:
    """Draw a Vega or Vega-Lite chart as PNG, without fetching data from addresses.

    Args:
        spec: Its specification.
        side: Maximum pixels of the picture's longer side.

    Raises:
        NotDrawn: A program is missing, or the drawing was refused or failed.
    """
    text = _write_limited(spec, MAX_VEGA)
    if address := _find_external_data(spec):
        raise NotDrawn(f"its data is at {address!r}, which is not fetched: give it a DataFrame")
    if find_spec("vl_convert") is None:
        raise NotDrawn(_VL_CONVERT)
    sizes = [spec.get("width"), spec.get("height")]
    largest = max((float(size) for size in sizes if isinstance(size, (int, float))), default=1.0)
    return draw(
        "vl_convert_vega",
        text,
        scale=min(1.5, side / max(largest, 1.0)),
        schema=str(spec.get("$schema", "")),
    )


def _write_limited(spec: Mapping[str, Any], size: int) -> str:
    try:
        text = write_json(spec, size)
    except TooLarge:
        raise NotDrawn("it has too much data to draw") from None
    except TooDeep as error:
        raise NotDrawn(str(error)) from None
    if len(text) > size:
        raise NotDrawn(f"it has {len(text):,} characters of data, and {size:,} are drawn at most")
    return text


def _get_plotly_size(figure: Mapping[str, Any]) -> tuple[float, float]:
    layout = figure.get("layout")
    layout = layout if isinstance(layout, Mapping) else {}
    template = layout.get("template")
    defaults = template.get("layout") if isinstance(template, Mapping) else None
    sizes = []
    for name, fallback in zip(("width", "height"), _PLOTLY_DEFAULT_SIZE, strict=True):
        size = layout.get(name) or (defaults.get(name) if isinstance(defaults, Mapping) else None)
        sizes.append(
            float(size) if isinstance(size, (int, float)) and size >= 1 else float(fallback)
        )
    return sizes[0], sizes[1]


def _find_external_picture(figure: Any) -> str | None:
    """Return the address of a picture that a plotly figure refers to, or None.

    The browser that draws the figure would fetch it, even from disk.
    """
    addresses = (part.get("source") for part in _iterate_objects(figure, ()))
    return next(filter(_is_external, addresses), None)


def _find_external_data(spec: Any) -> str | None:
    """Return the address of data that a chart refers to, or None."""
    data = (part.get("data") for part in _iterate_objects(spec, ("datasets", "values")))
    sources = chain.from_iterable(each if isinstance(each, list) else [each] for each in data)
    addresses = (source.get("url") for source in sources if isinstance(source, Mapping))
    return next(filter(_is_external, addresses), None)


def _is_external(address: Any) -> bool:
    return isinstance(address, str) and not address.startswith("data:")


def _iterate_objects(spec: Any, skipped: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a specification, without those below some keys."""
    pending = [spec]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            yield part
            pending += [item for key, item in part.items() if key not in skipped]
        elif isinstance(part, (list, tuple)):
            pending += [item for item in part if isinstance(item, (Mapping, list, tuple))]
