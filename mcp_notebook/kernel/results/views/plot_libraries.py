"""The scripts that draw plots in a live view: those of the notebook's own libraries.

Runs in the user's kernel, on a thread of the resource store. plotly, altair (by vl-convert) and
bokeh bring what draws their plots in a browser. A view reads it from here: a page in a chat may
load nothing from the web.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files


def read_library(file: str) -> str | None:
    """Return the script ``NAME.js``; None if there is none of this name.

    Raises:
        LookupError: Its package is not installed, or brings no script.
    """
    name = file.removesuffix(".js")
    if name == file or name not in _LIBRARIES:
        return None
    read, package = _LIBRARIES[name]
    try:
        return read()
    except (ImportError, OSError, AttributeError) as error:
        raise LookupError(
            f"there is no script of {name} here ({error}): `pip install {package}`"
        ) from None


def _read_plotly() -> str:
    return files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")


@cache  # vl-convert takes seconds to write it
def _read_vega() -> str:
    script: str = import_module("vl_convert").javascript_bundle()
    return script


def _read_bokeh() -> str:
    folder = files("bokeh").joinpath("server", "static", "js")
    parts = ("bokeh.min.js", "bokeh-gl.min.js", "bokeh-widgets.min.js", "bokeh-tables.min.js")
    return ";\n".join(folder.joinpath(part).read_text("utf-8") for part in parts)


_LIBRARIES: Mapping[str, tuple[Callable[[], str], str]] = {
    "plotly": (_read_plotly, "plotly"),
    "vega": (_read_vega, "vl-convert-python"),
    "bokeh": (_read_bokeh, "bokeh"),
}
"""What reads each library's script, and the package that brings it."""
