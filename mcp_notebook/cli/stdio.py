"""``mcp-notebook stdio``: its options. Without options, `__main__` starts the bridge directly."""

from collections.abc import Mapping
from typing import Any

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import OFFERING, RUNNING, Notebooks, read_settings, takes_options
from mcp_notebook.cli.runner import run_stdio_bridge

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog='Example in a client configuration: {"command": "mcp-notebook", "args": ["stdio"]}',
)
@takes_options(RUNNING, OFFERING)
def stdio(notebooks: Notebooks = None, *, options: Mapping[str, Any]) -> None:
    """Serve tools over stdin and stdout, to a client that starts this command."""
    run_stdio_bridge(read_settings(**options), notebooks or [])
