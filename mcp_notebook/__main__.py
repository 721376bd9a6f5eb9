"""``python -m mcp_notebook``: the same as the ``mcp-notebook`` command."""

from mcp_notebook.cli import main

main()
