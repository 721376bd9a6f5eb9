"""The arguments and options that commands of ``mcp-notebook`` share, each with its help.

Tested in ``tests/test_cli.py``. Runs in the process of the command; what the values do is the
business of `settings` and of the commands in `cli`.
"""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.settings import DEFAULT_PORT

_MAX_PORT = 65_535


def _parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > _MAX_PORT:
        raise typer.BadParameter(f"{text!r} is not a whole number from 0 to {_MAX_PORT}.")
    return int(text)


Notebooks = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="NOTEBOOK",
        help="Notebooks to run and serve. Without any, all open notebooks are served.",
        show_default=False,
    ),
]
Notebook = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The notebook to use. If it is not open, it is run for this command."
    ),
]
AllowErrors = Annotated[
    bool, typer.Option("--allow-errors", help="Serve a notebook even if one of its cells fails.")
]
IgnoreErrors = Annotated[
    bool, typer.Option("--allow-errors", help="Continue after a cell that fails.")
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
        help="Add three tools that list, describe and call the notebooks' tools, for a client "
        "that does not notice when the list of tools changes.",
    ),
]
ConfirmDestructive = Annotated[
    bool,
    typer.Option(
        "--confirm-destructive",
        help="Ask a person before each call of a tool that may delete or overwrite something: of "
        "all but those with --read-only or --non-destructive.",
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
    typer.Option(metavar="FILE", help="Certificate to encrypt with (TLS), as a PEM file."),
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
        help="Let users of an OAuth issuer or a JupyterHub in, as this TOML file says.",
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Only tools whose name, or full name NOTEBOOK.TOOL, matches, such as 'sales.*'. "
        "Repeat the option, or use commas, for more.",
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TAG",
        help="Only tools that have this tag. Repeat the option, or use commas, for any of several.",
    ),
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Only tools that are declared to change nothing.")
]

TAKES_WORDS = {"allow_extra_args": True}
"""For the context of a command that checks unexpected words itself, to say where they belong."""


def explain_extra_notebook(word: str) -> str:
    """Say how to name a notebook that was given as a plain word."""
    return f"Name the notebook with `--notebook {shlex.quote(word)}`."
