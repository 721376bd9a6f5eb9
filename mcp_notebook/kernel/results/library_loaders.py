"""Recognizes displays that only load a plotting library into the page.

Runs in the user's kernel, on the thread of the call. ``bokeh.io.output_notebook()``,
``holoviews.extension()`` and the like display scripts, a logo and "Loading BokehJS ...", which is
noise for a client. So is the empty element that a script draws into.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp_notebook.kernel.results.blocks.author_blocks import join_lines
from mcp_notebook.kernel.results.plots.bokeh_folium import find_bokeh_documents, shows_nothing

_SCRIPT = re.compile(r"application/vnd\.(?:bokehjs|holoviews)_load\.v\d+\+json")
_LOADING = re.compile(
    r"""class=["']?bk-notebook-logo"""  # bokeh's logo and "Loading BokehJS ..."
    r"""|\A\s*<div id="[^"]*" data-root-id="[^"]*"[^>]*>\s*</div>\s*\Z"""  # bokeh draws into it
    r"""|\A\s*<div class="logo-block">\s*<a href="https://holoviews\.org"""
    r"""|\A\s*<script type="esms-options">"""  # panel's, for holoviews
    r"""|\A\s*<script[^>]*>\s*window\.PlotlyConfig\s*="""  # a plot's element comes before it
    r"""|<script\b[^>]*\bdata-lets-plot-script="library\""""
)
_PLOT = 'data-lets-plot-script="plot"'
"""Found in a page that loads lets-plot and also has a plot."""
_MAX_CONNECTION = 50_000
"""Maximum characters of the page by which panel connects to the kernel."""
_MAX_SEARCHED = 2_000
"""Characters at the beginning of a display's HTML that are searched."""


def is_library_loader(data: Mapping[str, Any]) -> bool:
    """Return whether a display only prepares the page for later ones.

    Args:
        data: MIME types and values.
    """
    if any(_SCRIPT.fullmatch(mime_type) for mime_type in data):
        return True
    html = join_lines(data.get("text/html") or "")
    if _LOADING.search(html, 0, _MAX_SEARCHED) is not None:
        return _PLOT not in html
    documents = find_bokeh_documents(html) if len(html) < _MAX_CONNECTION else None
    return documents is not None and shows_nothing(documents)
