"""``mcp-notebook connect ADDRESS``: a remote server for a client that only starts commands.

The work is that of `bridge.connect`.
"""

from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog="Example: mcp-notebook connect https://hub.example.org/user/ada/lab/tree/rain.ipynb "
    "--token-file ~/hub.token",
)
def connect(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The address of a bridge (it ends in /mcp), or of any page of a Jupyter server, "
            "as the browser shows it; binder:OWNER/REPO@REF, or a link to a Binder, starts that.",
        ),
    ],
    *,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token for the server.")
    ] = None,
    token_env: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Environment variable with the token.")
    ] = None,
    token_keyring: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Entry of the system's keyring with the token, made by `keyring set mcp_notebook "
            "NAME`.",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Connect to another machine without encryption.")
    ] = False,
) -> None:
    """Pass a client's messages on to a remote server.

    For clients that can start a command, but not connect over HTTP with a token.
    """
    if sum(option is not None for option in (token_file, token_env, token_keyring)) > 1:
        context.fail("Give one of --token-file, --token-env and --token-keyring.")
    from mcp_notebook.bridge.connect.command import connect as run_connect
    from mcp_notebook.bridge.connect.credentials import TokenSource

    source = TokenSource(file=token_file, variable=token_env, keyring=token_keyring)
    run_command(run_connect, Settings.from_environment(), address, source, insecure=insecure)
