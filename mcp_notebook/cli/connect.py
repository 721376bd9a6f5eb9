"""``mcp-notebook connect ADDRESS``: a remote server for a client that only starts commands.

The implementation is in `bridge.connect`.
"""

from typing import Annotated

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import TokenSourceOption
from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog="Example: mcp-notebook connect https://hub.example.org/user/ada/lab/tree/rain.ipynb "
    "--token-file ~/hub.token",
)
def connect(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The address of a bridge (ending in /mcp), or of any page of a Jupyter server as "
            "the browser shows it, which is started if the token may. binder:OWNER/REPO/REF, or a "
            "Binder link, starts a Binder.",
        ),
    ],
    *,
    token_file: TokenSourceOption = None,
    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Run the notebook of the address on its Jupyter server, unless it is open there "
            "with tools. No other notebook is run.",
        ),
    ] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow unencrypted connections to another machine.")
    ] = False,
) -> None:
    """Connect a client that only starts commands to a remote server.

    For clients that cannot connect over HTTP with a token.
    """
    from mcp_notebook.bridge.connect.command import connect as run_connect

    run_command(
        run_connect, Settings.from_environment(), address, token_file, run=run, insecure=insecure
    )
