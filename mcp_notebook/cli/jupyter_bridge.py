"""The bridge process that the Jupyter Server extension starts; not a command for people.

Runs in a process of its own, as ``python -m mcp_notebook.cli.jupyter_bridge``; the implementation
is in `bridge.jupyter.server_bridge`.
"""

import sys
from pathlib import Path

from mcp_notebook.bridge.jupyter.server_bridge import run_server_bridge
from mcp_notebook.cli.runner import run_command
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import format_logs, print_note

if __name__ == "__main__":
    format_logs()
    try:
        run_command(run_server_bridge, Settings.from_environment(), *map(Path, sys.argv[1:]))
    except* McpNotebookError as group:
        print_note("\n".join(map(str, group.exceptions)))
        sys.exit(1)
