"""What follows for the user: the steps after an entry, and the command that adds one.

Pure functions, in every process.
"""

import re
import shlex
import subprocess
import sys

from mcp_notebook.clients.client import (
    TOKEN_VARIABLE,
    Client,
    Endpoint,
    Server,
)
from mcp_notebook.settings.settings import Settings

SERVER_NAME = "notebook"
"""The default name of a server in clients."""


def list_steps(client: Client, server: Server) -> list[str]:
    """Return the user's next steps after the entry was added, as sentences."""
    steps = [client.next_step]
    if isinstance(server, Endpoint) and server.token_file is None:
        variable = (
            f"Set {TOKEN_VARIABLE} where {client.title} is started: its settings refer to the "
            f"variable instead of containing the token. The token is in {server.token_place}."
        )
        steps.insert(0, variable)
    return steps


def format_install_command(settings: Settings, url: str) -> str:
    """Return the shell command that connects Claude Code to an endpoint.

    It has the same words in bash, zsh, fish, PowerShell and cmd, and does not contain the token,
    which every user of the machine could read in the list of processes.

    Args:
        settings: The settings of the bridge.
        url: The address.
    """
    words = ["mcp-notebook", "install", "claude-code", "--http", "--url", url]
    is_here = url.startswith("http:")
    if settings.token:
        words += [] if is_here else ["--token-file", f"env:{TOKEN_VARIABLE}"]
    elif not is_here or settings.token_path != Settings().token_path:
        words += ["--token-file", str(settings.token_path.absolute())]
    return " ".join(map(_quote, words))


def _quote(word: str) -> str:
    """Quote a word for any shell, or for this system's if no quotes suit all of them."""
    if re.fullmatch(r"[\w./:+-]+", word, re.ASCII):
        return word
    if not re.search(r"""[$`"%!]|\\(?=\\|$)""", word):
        return f'"{word}"'
    return subprocess.list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)
