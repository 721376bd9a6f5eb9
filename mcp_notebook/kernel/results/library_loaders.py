"""Recognizes displays that only load a plotting library into the page.

Runs in the user's kernel, on the thread of the call. ``bokeh.io.output_notebook()``
and ``plotly.offline.init_notebook_mode()`` display scripts, a logo and "Loading BokehJS ...", which
is noise for a client. So is the empty element that a script draws into.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp_notebook.kernel.results.blocks.author_blocks import join_lines

_SCRIPT = re.compile(r"application/vnd\.bokehjs_load\.v\d+\+json")
_LOADING = re.compile(
    r"""class=["']?bk-notebook-logo"""  # bokeh's logo and "Loading BokehJS ..."
    r"""|\A\s*<div id="[^"]*" data-root-id="[^"]*"[^>]*>\s*</div>\s*\Z"""  # bokeh draws into it
    r"""|\A\s*<script[^>]*>\s*window\.PlotlyConfig\s*="""  # a plot's element comes before it
)
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
    return _LOADING.search(html, 0, _MAX_SEARCHED) is not None
