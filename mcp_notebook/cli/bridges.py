"""``mcp-notebook stdio`` and ``mcp-notebook serve``, once their options are settings.

The process becomes a bridge; the work is that of `bridge.start`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note


def run_stdio_bridge(settings: Settings, notebooks: Sequence[Path]) -> None:
    """Serve the client that has started this process."""
    if os.isatty(0):
        print_note(
            "This command is started by an MCP client, which talks to it over stdin and stdout. "
            "Press Ctrl-C to stop it; `mcp-notebook list` shows the tools."
        )
    from mcp_notebook.bridge.start import start_stdio

    run_command(start_stdio, settings, notebooks)


def run_http_bridge(
    settings: Settings, notebooks: Sequence[Path], *, background: bool = False
) -> None:
    """Serve clients over HTTP."""
    from mcp_notebook.bridge.start import start_http

    run_command(start_http, settings, notebooks, background=background)
