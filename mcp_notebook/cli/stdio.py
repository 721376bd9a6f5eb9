"""``mcp-notebook stdio``: its options. Without options, `__main__` starts the bridge directly."""

from collections.abc import Mapping
from typing import Any

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import (
    OFFERING,
    RUNNING,
    Notebooks,
    Packages,
    list_served,
    read_settings,
    takes_options,
)
from mcp_notebook.cli.runner import run_stdio_bridge

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog='Example in a client configuration: {"command": "mcp-notebook", "args": ["stdio"]}',
)
@takes_options(RUNNING, OFFERING)
def stdio(
    notebooks: Notebooks = None, *, package: Packages = None, options: Mapping[str, Any]
) -> None:
    """Serve tools over stdin and stdout, to a client that starts this command."""
    settings = read_settings(**options)
    run_stdio_bridge(settings, list_served(notebooks, package, settings))
