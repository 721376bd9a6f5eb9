"""The entry to paste into a client's settings, for commands and notebooks.

In every process. Checks which settings files exist, and changes none.
"""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.clients.client import (
    TOKEN_VARIABLE,
    Client,
    Endpoint,
    Machine,
    Server,
)
from mcp_notebook.clients.rendering import render_document
from mcp_notebook.settings.settings import Settings

SERVER_NAME = "notebook"
"""The default name of a server in clients."""


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """An entry to paste, and what to do with it."""

    client: Client
    """The client."""
    file: Path
    """Its settings file."""
    text: str
    """The lines, as a new settings file would have them."""
    link: str | None
    """A link that opens the client and adds the server; None if it has no such links."""
    steps: tuple[str, ...]
    """The user's next steps, as sentences."""


def render_snippet(
    client: Client,
    server: Server,
    machine: Machine,
    name: str = SERVER_NAME,
    file: Path | None = None,
) -> Snippet:
    """Return the entry to paste for a server.

    Args:
        client: The client.
        server: The server.
        machine: The machine that the client runs on.
        name: The server's name in the client.
        file: The settings file; None for its usual place.
    """
    entry = client.make_entry(server)
    return Snippet(
        client=client,
        file=file or client.find_file(machine),
        text=render_document(client, entry, name),
        link=client.make_link(name, entry) if client.make_link else None,
        steps=list_steps(client, server),
    )


def list_steps(client: Client, server: Server) -> tuple[str, ...]:
    """Return the user's next steps after the entry was added, as sentences."""
    steps = [client.next_step]
    if isinstance(server, Endpoint) and server.token_file is None:
        steps.insert(
            0,
            f"Set {TOKEN_VARIABLE} where {client.title} is started: its settings refer to the "
            "variable instead of containing the token. The token is in "
            f"{server.token_place}.",
        )
    return tuple(steps)


def format_install_command(settings: Settings, url: str) -> str:
    """Return the shell command that connects Claude Code to an endpoint.

    It has the same words in bash, zsh, fish, PowerShell and cmd, and does not contain the token,
    which every user of the machine could read in the list of processes.

    Args:
        settings: The settings of the bridge.
        url: The address.
    """
    words = ["mcp-notebook", "install", "claude-code", "--http", "--url", url]
    if not settings.token and settings.token_path != Settings().token_path:
        words += ["--token-file", str(settings.token_path.absolute())]
    return " ".join(map(_quote, words))


def _quote(word: str) -> str:
    """Quote a word for any shell, or for this system's if no quotes suit all of them."""
    if re.fullmatch(r"[\w./:+-]+", word, re.ASCII):
        return word
    if not re.search(r"""[$`"%!]|\\(?=\\|$)""", word):
        return f'"{word}"'
    return subprocess.list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)
