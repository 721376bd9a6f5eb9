"""What to copy into a client's settings, and where: for commands and for notebooks.

In every process. It looks which settings a client has, and changes none.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.clients.client import (
    TOKEN_VARIABLE,
    Client,
    Endpoint,
    Machine,
    Server,
)
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.rendering import name_entry, render_document
from mcp_notebook.clients.servers import build_endpoint
from mcp_notebook.settings.settings import Settings

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
    client: Client,
    server: Server,
    machine: Machine,
    name: str = SERVER_NAME,
    file: Path | None = None,
) -> Snippet:
    """Return what a client's settings must hold for a server.

    Args:
        client: The client.
        server: What it starts or connects to.
        machine: Where its settings are looked for.
        name: The server's name in the client.
        file: Its settings, if they are not where they usually are.
    """
    entry = name_entry(client, client.make_entry(server), name)
    place = file or client.find_file(machine)
    return Snippet(
        client=client,
        file=place,
        text=render_document(client, entry, name),
        link=client.make_link(name, client.make_entry(server)) if client.make_link else None,
        steps=(*_list_obstacles(client, place), *list_steps(client, server)),
    )


def _list_obstacles(client: Client, file: Path) -> list[str]:
    """Return what to look at before the lines are pasted into settings that are there."""
    if not client.is_pasted:
        return []
    if file.exists():
        keys = ", ".join(f"`{key}`" for key in (*(client.required or {}), client.section))
        return [f"Leave out the top-level lines that the file already has ({keys})."]
    former = file.with_name(client.former_file) if client.former_file else None
    if former is None or not former.exists():
        return []
    step = (
        f"{client.title} still has its settings in {former}, and ignores them once {file} exists: "
        "move them there first, as its documentation says."
    )
    return [step]


def list_steps(client: Client, server: Server) -> tuple[str, ...]:
    """Return what a user has to do once the entry is there, as sentences."""
    steps = [client.next_step]
    if isinstance(server, Endpoint) and server.token_file is None:
        steps.insert(
            0,
            f"Set {TOKEN_VARIABLE} where {client.title} is started: its settings name the "
            "variable, so that the token is not in them. The token is in "
            f"{server.token_place}.",
        )
    return tuple(steps)


def format_claude_command(settings: Settings, url: str) -> str:
    """Return the shell command that connects Claude Code to an endpoint.

    The token is in no argument of any process, which every user of the machine could read: Claude
    Code reads it from its place whenever it connects.

    Args:
        settings: Of the bridge that serves it.
        url: The address.
    """
    client = CLIENTS["claude-code"]
    entry = client.make_entry(build_endpoint(client, settings, url))
    headers = entry.get("headers", {})
    if headers:
        # In single quotes: Claude Code fills the variable in, not the shell.
        words = [f"--header '{name}: {value}'" for name, value in headers.items()]
        address = shlex.quote(url)
        return f"claude mcp add --transport http {SERVER_NAME} {address} {' '.join(words)}"
    compact = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    return f"claude mcp add-json {SERVER_NAME} {shlex.quote(compact)}"
