"""What to copy into a client's settings, and where: for ``config CLIENT`` and for notebooks.

Pure functions, in every process. Changing the file is not the business of this module.
"""

from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.clients.client import (
    TOKEN_VARIABLE,
    Client,
    Endpoint,
    Machine,
    Server,
)
from mcp_notebook.clients.rendering import name_entry, render_document

SERVER_NAME = "notebook"
"""The name that a server has in clients if nobody chooses another one."""


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """What a user copies, and what to do with it."""

    client: Client
    """Whose settings it is for."""
    file: Path
    """Where they are."""
    text: str
    """The lines, as they would stand in a new file."""
    link: str | None
    """A link that opens the client and adds the server, if it has such links."""
    steps: tuple[str, ...]
    """What is to be done afterwards, as sentences."""


def render_snippet(
    client: Client, server: Server, machine: Machine, name: str = SERVER_NAME
) -> Snippet:
    """Return what a client's settings must hold for a server.

    Args:
        client: The client.
        server: What it starts or connects to.
        machine: Where its settings are looked for.
        name: The server's name in the client.
    """
    entry = name_entry(client, client.make_entry(server), name)
    return Snippet(
        client=client,
        file=client.find_file(machine),
        text=render_document(client, entry, name),
        link=client.make_link(name, client.make_entry(server)) if client.make_link else None,
        steps=list_steps(client, server),
    )


def list_steps(client: Client, server: Server) -> tuple[str, ...]:
    """Return what a user has to do once the entry is there, as sentences."""
    steps = [client.next_step]
    if isinstance(server, Endpoint) and server.token_file is None:
        steps.insert(
            0,
            f"Set {TOKEN_VARIABLE} to the token where {client.title} is started: its settings "
            "name the variable, so that the token itself is not in them.",
        )
    return tuple(steps)
