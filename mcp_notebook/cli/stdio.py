"""``mcp-notebook stdio``: its options. Without options, `__main__` starts the bridge directly."""

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import (
    AllowErrors,
    ConfirmDestructive,
    MetaTools,
    Notebooks,
    ReadOnly,
    Tags,
    Tools,
    TrustedOnly,
    read_settings,
)
from mcp_notebook.cli.runner import run_stdio_bridge

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog='Example in a client configuration: {"command": "mcp-notebook", "args": ["stdio"]}',
)
def stdio(  # noqa: PLR0913 - one for each option
    notebooks: Notebooks = None,
    *,
    allow_errors: AllowErrors = False,
    trusted_only: TrustedOnly = False,
    meta_tools: MetaTools = False,
    tools: Tools = None,
    tags: Tags = None,
    read_only: ReadOnly = False,
    confirm_destructive: ConfirmDestructive = False,
) -> None:
    """Serve tools over stdin and stdout, to a client that starts this command."""
    settings = read_settings(
        allow_errors=allow_errors,
        trusted_only=trusted_only,
        meta_tools=meta_tools,
        tools=tools,
        tags=tags,
        read_only=read_only,
        confirm_destructive=confirm_destructive,
    )
    run_stdio_bridge(settings, notebooks or [])
