"""A program that draws one plot, started and ended by the kernel.

Runs as ``python renderer_process.py LIBRARY SECONDS``, in a process that `plots.renderer` starts,
and loads nothing but that library. It reads a JSON object from standard input, with the plot as
``source`` and the options of the library, and writes the PNG to standard output. If that fails, the
last line of standard error says why, and the exit code is 1. After the given number of seconds the
system ends the process, in case the kernel was killed. Files that a plot names are not read. Only
the tiles of plotly's maps are fetched, by the browser that draws them: `plots.draw` refuses figures
with external pictures.
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
"""Prefixes of the addresses of pictures within the plot itself."""


def vl_convert_svg(source: str, *, scale: float) -> bytes:
    """Draw an SVG without external references."""
    import vl_convert  # noqa: PLC0415 - each process loads one library

    return bytes(vl_convert.svg_to_png(source, scale=scale))


def vl_convert_vega(source: str, *, scale: float, schema: str) -> bytes:
    """Draw a Vega or Vega-Lite chart."""
    import vl_convert  # noqa: PLC0415 - each process loads one library

    if "/vega/" in schema:
        svg = vl_convert.vega_to_svg(source, allowed_base_urls=[])
    else:
        schema_version = schema.rpartition("/v")[2].removesuffix(".json").split(".")
        supported = vl_convert.get_vegalite_versions()
        same_major = [name for name in supported if name.split(".")[0] == schema_version[0]]
        exact = ".".join(schema_version[:2])
        version = exact if exact in supported else (same_major or supported)[-1]
        svg = vl_convert.vegalite_to_svg(source, vl_version=version, allowed_base_urls=[])
    # `allowed_base_urls` is for data only: the pictures of a chart are read and fetched anyway.
    _check_pictures(svg)
    return bytes(vl_convert.svg_to_png(svg, scale=scale))


def _check_pictures(svg: str) -> None:
    for part in ET.fromstring(svg).iter():  # noqa: S314 - vl-convert wrote it
        for key, address in part.items():
            is_link = part.tag.endswith("}a") or not key.endswith("href")
            if not is_link and not address.startswith(("#", *_PICTURES)):
                raise ValueError(f"it has a picture at {address[:200]!r}, which is not read")


def kaleido(source: str, *, options: dict[str, Any], kaleido_options: dict[str, Any]) -> bytes:
    """Draw a plotly figure."""
    import kaleido  # noqa: PLC0415 - each process loads one library

    async def draw() -> bytes:
        figure = kaleido.calc_fig(json.loads(source), options, kopts=kaleido_options)
        # When it is cancelled, kaleido closes its browser.
        png: bytes = await asyncio.wait_for(figure, kaleido_options["timeout"])
        return png

    return asyncio.run(draw())


_LIBRARIES: dict[str, Callable[..., bytes]] = {
    function.__name__: function for function in (vl_convert_svg, vl_convert_vega, kaleido)
}


def main() -> None:
    """Draw the plot on standard input with the library that the first argument names."""
    if hasattr(signal, "alarm"):
        signal.alarm(int(sys.argv[2]))
    os.environ["RUST_LIB_BACKTRACE"] = "0"  # vl-convert would write it into its messages
    out = os.dup(1)
    os.dup2(2, 1)  # keep a library's prints out of the picture
    request = json.load(sys.stdin.buffer)
    try:
        picture = _LIBRARIES[sys.argv[1]](request.pop("source"), **request)
    except Exception as error:  # noqa: BLE001 - the kernel passes on the message
        text = " ".join(str(error).partition("\n    at ")[0].split())  # without JavaScript's stack
        sys.stderr.write(
            f"\n{type(error).__name__}: {text}" if text else f"\n{type(error).__name__}"
        )
        sys.exit(1)
    with os.fdopen(out, "wb") as file:
        file.write(picture)


if __name__ == "__main__":
    main()
