"""``mcp-notebook serve``: its options. Without options, `__main__` starts the bridge directly."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.options import Notebooks, read_settings, takes_settings
from mcp_notebook.cli.runner import run_http_bridge

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog=format_examples(
        "mcp-notebook serve",
        "mcp-notebook serve notebooks/weather.ipynb --watch",
        "mcp-notebook serve notebooks --meta-tools=only",
        "mcp-notebook serve --tools 'sales.*' --read-only",
    ),
)
@takes_settings("serve")
def serve(
    notebooks: Notebooks = None,
    *,
    background: Annotated[bool, typer.Option("--background", hidden=True)] = False,
    options: Mapping[str, Any],
) -> None:
    """Serve tools over HTTP."""
    if background and notebooks:
        raise typer.BadParameter("The background bridge serves open notebooks: do not name any.")
    if options["watch"] and not notebooks:
        raise typer.BadParameter(
            "--watch needs a notebook: `mcp-notebook serve FILE.ipynb --watch`."
        )
    settings = read_settings(**options)
    served = [*(notebooks or ())]
    run_http_bridge(settings, served, background=background)
