"""Draws one plot; a program of its own, which the kernel starts and can end.

Runs in a process of its own, as ``python renderer_process.py LIBRARY SECONDS``
(`kernel.results.plots.renderer`), and loads nothing but that library. Reads a JSON object from
standard input: ``source``, the plot's text, and the library's options; writes the PNG to standard
output. What fails is told on standard error, in one line, with exit code 1. After so many seconds
the system ends it, whatever it does then: a kernel that was killed ends nothing any more. No file
that a plot names is read, and of addresses only the tiles of plotly's maps, by the browser that
draws them (`kernel.results.plots.draw` refuses pictures elsewhere).
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

_PICTURES = tuple(f"data:image/{kind};base64," for kind in ("png", "jpeg", "gif", "webp"))
"""How the address of a picture begins that is in the plot itself; an SVG might refer to others."""


def cairosvg(source: str, *, width: int, height: int) -> bytes:
    """Draw an SVG."""
    from cairosvg import surface, url  # noqa: PLC0415 - each run loads one of them

    drawn: bytes = surface.PNGSurface.convert(
        source.encode("utf-8", "replace"),
        output_width=width,
        output_height=height,
        background_color="white",
        url_fetcher=url.safe_fetch,  # takes data: addresses only; before CairoSVG 2.7 it is missing
    )
    return drawn


def vl_convert_svg(source: str, *, scale: float) -> bytes:
    """Draw an SVG that refers to nothing but itself."""
    import vl_convert  # noqa: PLC0415 - each run loads one of them

    return bytes(vl_convert.svg_to_png(source, scale=scale))


def vl_convert_vega(source: str, *, scale: float, schema: str) -> bytes:
    """Draw a Vega or Vega-Lite chart."""
    import vl_convert  # noqa: PLC0415 - each run loads one of them

    if "/vega/" in schema:
        svg = vl_convert.vega_to_svg(source, allowed_base_urls=[])
    else:
        wanted = schema.rpartition("/v")[2].removesuffix(".json").split(".")
        known = vl_convert.get_vegalite_versions()
        same = [version for version in known if version.split(".")[0] == wanted[0]]
        exact = ".".join(wanted[:2])
        version = exact if exact in known else (same or known)[-1]
        svg = vl_convert.vegalite_to_svg(source, vl_version=version, allowed_base_urls=[])
    # What is allowed above is of data only: pictures within a chart are read and fetched anyway.
    _check_pictures(svg)
    return bytes(vl_convert.svg_to_png(svg, scale=scale))


def _check_pictures(svg: str) -> None:
    for part in ET.fromstring(svg).iter():  # noqa: S314 - of our own making
        for key, address in part.items():
            is_link = part.tag.endswith("}a") or not key.endswith("href")
            if not is_link and not address.startswith(("#", *_PICTURES)):
                raise ValueError(f"it has a picture at {address[:200]!r}, which is not read")


def kaleido(source: str, *, options: dict[str, Any], started: dict[str, Any]) -> bytes:
    """Draw a plotly figure."""
    import kaleido  # noqa: PLC0415 - each run loads one of them

    async def drawn() -> bytes:
        made = kaleido.calc_fig(json.loads(source), options, kopts=started)
        # Cancelled, it closes its browser.
        data: bytes = await asyncio.wait_for(made, started["timeout"])
        return data

    return asyncio.run(drawn())


_LIBRARIES: dict[str, Callable[..., bytes]] = {
    function.__name__: function for function in (cairosvg, vl_convert_svg, vl_convert_vega, kaleido)
}


def main() -> None:
    """Draw what standard input holds by the library that the first argument names."""
    if hasattr(signal, "alarm"):
        signal.alarm(int(sys.argv[2]))
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no part of the picture
    given = json.load(sys.stdin.buffer)
    try:
        picture = _LIBRARIES[sys.argv[1]](given.pop("source"), **given)
    except Exception as error:  # noqa: BLE001 - others' code; the kernel tells what it says
        text = " ".join(str(error).split())
        sys.stderr.write(
            f"\n{type(error).__name__}: {text}" if text else f"\n{type(error).__name__}"
        )
        sys.exit(1)
    with os.fdopen(out, "wb") as file:
        file.write(picture)


if __name__ == "__main__":
    main()
