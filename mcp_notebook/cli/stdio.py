"""``mcp-notebook stdio``: its options. Without options, `__main__` starts the bridge directly."""

from collections.abc import Mapping
from typing import Any

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import Notebooks, read_settings, takes_settings
from mcp_notebook.cli.runner import run_stdio_bridge

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog='Example in a client configuration: {"command": "mcp-notebook", "args": ["stdio"]}',
)
@takes_settings("stdio")
def stdio(notebooks: Notebooks = None, *, options: Mapping[str, Any]) -> None:
    """Serve tools over stdin and stdout, to a client that starts this command."""
    settings = read_settings(**options)
    run_stdio_bridge(settings, [*(notebooks or ())])
