"""The arguments and options that commands of ``mcp-notebook`` share, each with its help.

What the values mean is defined in `settings` and in the commands.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings

_MAX_PORT = 65_535


def _parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > _MAX_PORT:
        raise typer.BadParameter(f"{text!r} is not a whole number from 0 to {_MAX_PORT}.")
    return int(text)


def parse_server_name(text: str) -> str:
    """Check the name of a server in a client, and return it."""
    # Gemini CLI cuts a name at its first underscore; TOML would need quotes for other characters.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}", text):
        raise typer.BadParameter(f"{text!r} is not valid: use letters, digits and hyphens.")
    return text


Notebooks = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="NOTEBOOK",
        help="Notebooks to run and serve. If none is given, all open notebooks are served.",
        show_default=False,
    ),
]
Notebook = Annotated[
    Path | None,
    typer.Option(
        metavar="NOTEBOOK",
        help="Only this notebook: the name of an open one, as `mcp-notebook list` shows it, or a "
        "file. A file that is not open runs for this command.",
    ),
]
AllowErrors = Annotated[
    bool, typer.Option("--allow-errors", help="Continue after a cell that fails.")
]
Replicas = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Number of kernels that run each notebook and share its calls (default: 1), or "
        "`auto` for one per processor, as far as memory allows.",
    ),
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch",
        help="Run a notebook again in new kernels when it is saved with changed code. The new "
        "kernels "
        "take over once all cells have run; running calls finish on the old ones.",
    ),
]
TrustedOnly = Annotated[
    bool,
    typer.Option(
        "--trusted-only", help="Run a notebook only if it is trusted (`jupyter trust FILE`)."
    ),
]
MetaTools = Annotated[
    bool,
    typer.Option(
        "--meta-tools",
        help="Add four tools that list, describe and call the notebooks' tools and fetch late "
        "results, for a client that does not notice when the list of tools changes.",
    ),
]
ConfirmDestructive = Annotated[
    bool,
    typer.Option(
        "--confirm-destructive",
        help="Ask a person before each call of a tool that may delete or overwrite something, that "
        "is, of any tool not marked --read-only or --non-destructive.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1)."),
]
Port = Annotated[
    int | None,
    typer.Option(
        parser=_parse_port,
        metavar="NUMBER",
        help=f"Port to listen on (default: {DEFAULT_PORT}, or the next free port).",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with the bearer token, created if it does not exist (default: "
        "~/.mcp-notebook/token). MCP_NOTEBOOK_TOKEN sets the token itself.",
    ),
]
Certfile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TLS certificate, as a PEM file."),
]
Keyfile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Private key of the certificate.")
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Let other machines connect without encryption.")
]
OAuthFile = Annotated[
    Path | None,
    typer.Option(
        "--oauth-file",
        metavar="FILE",
        help="TOML file that admits users of an OAuth issuer or a JupyterHub.",
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Only tools whose name, or NOTEBOOK.TOOL, matches this pattern, for example "
        "'sales.*'. Repeat the option or separate patterns by commas.",
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TAG",
        help="Only tools with this tag. Repeat the option or separate tags by commas to allow "
        "several.",
    ),
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Only tools that are declared read-only.")
]

ClientName = Annotated[
    str | None,
    typer.Argument(
        metavar="CLIENT",
        help=f"The program to set up: {', '.join(CLIENTS)}.",
        autocompletion=lambda incomplete: [n for n in CLIENTS if n.startswith(incomplete)],
        show_default=False,
    ),
]
Http = Annotated[
    bool,
    typer.Option(
        "--http",
        help="Connect over HTTP instead of starting a command: to the bridge of `%mcp serve`, or "
        "to the address in --url. The token stays in its file or in MCP_NOTEBOOK_TOKEN.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Connect to a server that runs already, through `mcp-notebook connect ADDRESS`: the "
        "address of a bridge, or of any page of a Jupyter server. With --http, the client connects "
        "to this address itself.",
    ),
]
TokenSourceOption = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File with the token for a remote server, env:VARIABLE for an environment variable, "
        "or keyring:NAME for an entry of the system's keyring (`keyring set mcp_notebook NAME` "
        "adds one).",
    ),
]
ServerName = Annotated[
    str,
    typer.Option(
        "--name", metavar="NAME", help="The server's name in the client.", parser=parse_server_name
    ),
]

SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="The client's settings file, if it is not in its usual place.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]

TAKES_WORDS = {"allow_extra_args": True}
"""Context settings of a command that explains unexpected arguments itself."""

NO_TOOLS = (
    "No open notebook offers a tool. Open one in Jupyter, run `%load_ext mcp_notebook` and a cell "
    "that begins with `%%mcp_tool`, or run a notebook with `--notebook FILE.ipynb`."
)


def explain_extra_notebook(word: str) -> str:
    """Explain how to name a notebook that was given as an argument."""
    return f"Name the notebook with `--notebook {shlex.quote(word)}`."


TAKES_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Context settings of a command that also takes the options of another command."""


def parse_options_of(
    name: str, context: typer.Context, words: Sequence[str]
) -> tuple[list[Any], dict[str, Any]]:
    """Parse arguments as another command does, and return its parameters and their values.

    Args:
        name: The name of the other command.
        context: The context of the command that was called.
        words: The arguments that this command does not know.
    """
    assert context.parent is not None
    group = context.parent.command
    assert isinstance(group, TyperGroup)
    command = group.get_command(context.parent, name)
    assert command is not None
    # Under the name of the command that the user typed, for errors.
    other = command.make_context(context.info_name, list(words), parent=context.parent)
    return list(other.command.params), other.params


def drop_unset(options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace flags and lists that were not given by None, so that their variables count."""
    return {
        # 0 is a value: for example, any free port.
        name: None if value is False or value in ((), []) else value
        for name, value in options.items()
    }


def read_settings(**options: Any) -> Settings:
    """Build the settings from options, environment variables and defaults, in this order.

    Raises:
        SettingsError: A value cannot be used.
    """
    return Settings.from_environment(**drop_unset(options))
