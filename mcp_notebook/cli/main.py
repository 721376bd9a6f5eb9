"""The ``mcp-notebook`` command: the list of commands, and the entry point.

Each command is a module of the same name that is imported when it runs, so that ``--help`` and
shell completion are quick.
"""

from typing import Annotated, Any

import typer

from mcp_notebook._version import __version__
from mcp_notebook.cli.help import Group, LazyCommand
from mcp_notebook.cli.runner import exit_with_messages

COMMANDS = {
    "demo": "Open JupyterLab on a small notebook with a first tool.",
    "stdio": "Serve tools over stdin and stdout, to a client that starts this command.",
    "serve": "Serve tools over HTTP.",
    "list": "List the tools of all open notebooks, of one notebook, or of a folder.",
    "call": "Call a tool and print its result.",
    "stop": "Stop a waiting or running call, even while its kernel is busy.",
    "check": "Test and review the tools of a notebook before a model uses them.",
    "install": "Connect a client to your notebooks by adding an entry to its settings.",
    "uninstall": "Disconnect a client by removing the entry that `install` added.",
    "doctor": "Find out why a client has no tools, by connecting as the client would.",
    "connect": "Connect a client that only starts commands to a remote server.",
    "bundle": "Pack a notebook with its packages for another machine.",
    "audit": "Show the audit log: who called which tool, when, and with what outcome.",
    "token": "Manage the tokens with which others use your tools over HTTP.",
}
"""The commands, with the first paragraph of their help (a test compares them)."""


class _Commands(Group):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, help_ in COMMANDS.items():
            self.add_command(LazyCommand(name, help=help_))


app = typer.Typer(
    name="mcp-notebook",
    cls=_Commands,
    help="Serve the tools of Jupyter notebooks to AI assistants over MCP.",
    epilog="To declare tools, run `%load_ext mcp_notebook` in a notebook, and put `%%mcp_tool` as "
    "the first line of a cell with functions. `mcp-notebook COMMAND --help` shows an example.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(show: bool) -> None:  # noqa: FBT001 - typer calls it
    if show:
        typer.echo(f"mcp-notebook {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; exit with 0 (success), 1 (failure), 2 (wrong usage) or 130 (interrupt)."""
    with exit_with_messages():
        app()
