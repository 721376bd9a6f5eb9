"""``mcp-notebook serve``: its options. Without options, `__main__` starts the bridge directly."""

from typing import Annotated

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import (
    AllowErrors,
    Certfile,
    ConfirmDestructive,
    Host,
    Insecure,
    Keyfile,
    MetaTools,
    Notebooks,
    OAuthFile,
    Port,
    ReadOnly,
    Replicas,
    Tags,
    TokenFile,
    Tools,
    TrustedOnly,
    Watch,
    read_settings,
)
from mcp_notebook.cli.runner import run_http_bridge

app = typer.Typer(add_completion=False)


@app.command(cls=Command, epilog="Example: mcp-notebook serve notebooks/weather.ipynb")
def serve(  # noqa: PLR0913 - one for each option
    notebooks: Notebooks = None,
    *,
    host: Host = None,
    port: Port = None,
    certfile: Certfile = None,
    keyfile: Keyfile = None,
    insecure: Insecure = False,
    token_file: TokenFile = None,
    oauth_file: OAuthFile = None,
    allow_errors: AllowErrors = False,
    trusted_only: TrustedOnly = False,
    replicas: Replicas = None,
    watch: Watch = False,
    meta_tools: MetaTools = False,
    tools: Tools = None,
    tags: Tags = None,
    read_only: ReadOnly = False,
    confirm_destructive: ConfirmDestructive = False,
    background: Annotated[bool, typer.Option("--background", hidden=True)] = False,
) -> None:
    """Serve tools over HTTP."""
    if background and notebooks:
        raise typer.BadParameter("The background bridge serves open notebooks: do not name any.")
    if (replicas is not None or watch) and not notebooks:
        option = "--watch" if replicas is None else f"--replicas {replicas}"
        raise typer.BadParameter(
            f"{option} needs a notebook: `mcp-notebook serve FILE.ipynb {option}`."
        )
    settings = read_settings(
        host=host,
        port=port,
        certfile=certfile,
        keyfile=keyfile,
        insecure=insecure,
        token_file=token_file,
        oauth_file=oauth_file,
        allow_errors=allow_errors,
        trusted_only=trusted_only,
        replicas=replicas,
        watch=watch,
        meta_tools=meta_tools,
        tools=tools,
        tags=tags,
        read_only=read_only,
        confirm_destructive=confirm_destructive,
    )
    run_http_bridge(settings, notebooks or [], background=background)
