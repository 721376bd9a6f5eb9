"""The clients that a side panel finds on its kernels' machine, and connects by a click.

Reads and writes settings files, on a worker thread of a Jupyter server or in a process that VS
Code's extension starts. Who may do that is decided there.
"""

from pathlib import Path
from typing import Any, Literal, TypeAlias

from mcp_notebook.clients.client import Client, Entry, Machine
from mcp_notebook.clients.installation import (
    apply_change,
    explain_absence,
    is_installed,
    plan_installation,
    read_entries,
)
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.clients.rendering import render_document
from mcp_notebook.clients.servers import build_server
from mcp_notebook.clients.snippets import SERVER_NAME, list_steps
from mcp_notebook.errors import ClientError, McpNotebookError
from mcp_notebook.settings.settings import Settings

_BY_HAND = "{} is not connected from here. Run `mcp-notebook install {}`."
_State: TypeAlias = Literal["connected", "other", "none", "paste"]
"""A client's entry for mcp-notebook: that of this environment, another one, none, or one that only
the user can add."""


def name_clients() -> list[dict[str, Any]]:
    """Return the names of the clients, for the line to run on another machine."""
    return [{"name": client.name, "title": client.title} for client in _list_offered()]


def list_clients(machine: Machine) -> dict[str, Any]:
    """Return the clients that are found and missing, and the lines for any other client."""
    settings = Settings.from_environment()
    # In the form that most clients read.
    other = find_client("claude-desktop")
    entry = other.make_entry(build_server(other, settings))
    lines = render_document(other, entry, SERVER_NAME).rstrip("\n")
    clients = [_describe(client, settings, machine) for client in _list_offered()]
    return {"clients": clients, "lines": lines}


def connect_client(name: str, machine: Machine, *, replace: bool) -> str:
    """Write a client's entry, and return what was done and the next steps.

    Raises:
        McpNotebookError: It cannot be done.
    """
    settings = Settings.from_environment()
    client = find_client(name)
    if client not in _list_offered():
        raise ClientError(_BY_HAND.format(client.title, client.name))
    if not is_installed(client, machine):
        raise ClientError(explain_absence(client, machine))
    server = build_server(client, settings)
    file = client.find_file(machine)
    change = plan_installation(client, file, SERVER_NAME, server, replace=replace)
    backup = apply_change(change, settings) if change.is_needed else None
    sentences = [f"Connected {client.title}: the server {SERVER_NAME!r} is in {file}."]
    if backup is not None:
        sentences.append(f"Backup of the previous file: {backup}.")
    return " ".join([*sentences, *list_steps(client, server)])


def _list_offered() -> list[Client]:
    """Return the clients that need no folder, or that of the notebooks, in which they run."""
    clients = CLIENTS.values()
    return [each for each in clients if each.is_importable or not each.belongs_to_folder]


def _describe(client: Client, settings: Settings, machine: Machine) -> dict[str, Any]:
    if not is_installed(client, machine):
        return {"name": client.name, "title": client.title, "is_found": False}
    server, file = build_server(client, settings), client.find_file(machine)
    entry = client.make_entry(server)
    state, problem = _find_state(client, file, entry)
    return {
        "name": client.name,
        "title": client.title,
        "is_found": True,
        "state": state,
        "problem": problem,
        "program": client.program,
        "file": str(file),
        "text": render_document(client, entry, SERVER_NAME).rstrip("\n"),
        "steps": list_steps(client, server),
    }


def _find_state(client: Client, file: Path, wanted: Entry) -> tuple[_State, str]:
    """Return the state of a client's entry, and what is wrong with its settings."""
    try:
        entry = read_entries(client, file).get(SERVER_NAME)
    except McpNotebookError as error:
        return "paste", str(error)
    if entry == wanted:
        return "connected", ""
    return ("none" if entry is None else "other"), ""
