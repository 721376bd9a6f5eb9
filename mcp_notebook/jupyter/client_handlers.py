"""``/mcp-notebook/api/clients``: connects the MCP clients of this machine, for the side panel.

Runs on the event loop of Jupyter Server; settings files are read and written on worker threads. How
a client is connected is defined in `clients`, as for ``mcp-notebook install``.

Settings are written only for a browser on this machine. Another browser's user has clients on
another machine, so the panel shows the lines to run there. A browser behind a port that is
forwarded to this machine looks as if it were here: the panel names the machine.
"""

import asyncio
import ipaddress
import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.clients.installation import (
    apply_change,
    explain_absence,
    is_installed,
    plan_installation,
    read_entries,
)
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.clients.servers import build_server
from mcp_notebook.clients.snippets import SERVER_NAME, list_steps, render_snippet
from mcp_notebook.errors import ClientError, McpNotebookError
from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler
from mcp_notebook.settings.settings import Settings

_FORWARDED = frozenset({"Forwarded", "X-Forwarded-For", "X-Real-Ip", "X-Scheme"})
"""Headers by which a proxy tells that the browser is elsewhere."""
_ELSEWHERE = (
    "The browser does not run on the machine of the Jupyter server, so the clients there are not "
    "changed. Connect a client on your own computer: run `mcp-notebook install` there."
)
_BY_HAND = "{} is not connected from here. Run `mcp-notebook install {}`."
_NO_CLIENT = 'Name the client: {"client": its name in `mcp-notebook install`}.'

Place = Literal["local", "remote", "JupyterHub", "Binder"]
"""Where the server is, seen from the browser."""
State = Literal["connected", "other", "none", "paste"]
"""A client's entry for mcp-notebook: that of this server, another one, none, or one that only the
user can add."""


class _Connect(BaseModel):
    model_config = ConfigDict(extra="forbid")

    client: str
    """The client's name."""
    replace: bool = False
    """Whether to replace another entry."""


class ClientsHandler(AuthorizedHandler):
    """``GET api/clients``: the clients of this machine; ``POST``: connect one."""

    async def get(self) -> None:
        """Answer with the clients that are found and missing, and whether this may connect them."""
        place = self._find_place()
        clients = await asyncio.to_thread(_list_clients, place, self._machine)
        answer = {"place": place, "machine": platform.node(), "clients": clients}
        if place == "local":
            answer["lines"] = _write_lines()
        self.finish(answer)

    async def post(self) -> None:
        """Connect a client, and answer with the next steps.

        The status is 400 if the body names no client, 403 if the browser is elsewhere, and 409 if
        the client cannot be connected.
        """
        try:
            order = _Connect.model_validate_json(self.request.body)
        except ValidationError:
            return self._refuse(HTTPStatus.BAD_REQUEST, _NO_CLIENT)
        if self._find_place() != "local":
            return self._refuse(HTTPStatus.FORBIDDEN, _ELSEWHERE)
        try:
            message = await asyncio.to_thread(_connect, order, self._machine)
        except McpNotebookError as error:
            return self._refuse(HTTPStatus.CONFLICT, str(error))
        self.finish({"message": message})
        return None

    @property
    def _machine(self) -> Machine:
        """This machine, with the root folder of the server as the current folder."""
        return replace(
            Machine.current(), folder=Path(self.settings["server_root_dir"]).expanduser()
        )

    def _find_place(self) -> Place:
        return find_place(self.request.remote_ip or "", self.request.headers, os.environ)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self.set_status(status)
        self.finish({"message": text})


def find_place(ip: str, headers: Mapping[str, str], env: Mapping[str, str]) -> Place:
    """Return where the server is, seen from the browser.

    Args:
        ip: The address that the browser's request comes from.
        headers: Of the request.
        env: The server's environment.
    """
    if env.get("JUPYTERHUB_SERVICE_PREFIX"):
        return "Binder" if {"BINDER_REPO_URL", "BINDER_LAUNCH_HOST"} & env.keys() else "JupyterHub"
    addresses = [f"//{headers.get('Host', '')}"]
    # What the browser's user sees; a proxy may have changed the Host.
    addresses += [headers[name] for name in ("Origin", "Referer") if name in headers]
    hosts = [ip, *map(_find_host, addresses)]
    is_local = all(map(_is_loopback, hosts)) and _FORWARDED.isdisjoint(headers)
    return "local" if is_local else "remote"


def _find_host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # an invalid IPv6 address
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_offered(client: Client) -> bool:
    """Return whether a client needs no folder, or that of this server, in which it runs."""
    return client.is_importable or not client.belongs_to_folder


def _list_clients(place: Place, machine: Machine) -> list[dict[str, Any]]:
    """Return the clients; what is on this machine is told to local ones only.

    A browser elsewhere gets the names, for the line to run there.
    """
    clients = list(filter(_is_offered, CLIENTS.values()))
    if place != "local":
        return [{"name": client.name, "title": client.title} for client in clients]
    settings = Settings.from_environment()
    return [_describe(client, settings, machine) for client in clients]


def _write_lines() -> str:
    """Return the entry for a client that is not known here: in the form that most clients read."""
    client = find_client("claude-desktop")
    server = build_server(client, Settings.from_environment())
    return render_snippet(client, server, Machine.current()).text.rstrip("\n")


def _describe(client: Client, settings: Settings, machine: Machine) -> dict[str, Any]:
    if not is_installed(client, machine):
        return {"name": client.name, "title": client.title, "is_found": False}
    state, problem = _find_state(client, settings, machine)
    snippet = render_snippet(client, build_server(client, settings), machine)
    return {
        "name": client.name,
        "title": client.title,
        "is_found": True,
        "state": state,
        "problem": problem,
        "program": client.program,
        "file": str(snippet.file),
        "text": snippet.text.rstrip("\n"),
        "steps": list(snippet.steps),
    }


def _find_state(client: Client, settings: Settings, machine: Machine) -> tuple[State, str]:
    """Return the state of a client's entry, and what is wrong with its settings."""
    file = client.find_file(machine)
    try:
        entry = read_entries(client, file).get(SERVER_NAME)
    except McpNotebookError as error:
        return "paste", str(error)
    if entry == client.make_entry(build_server(client, settings)):
        return "connected", ""
    return ("none" if entry is None else "other"), ""


def _connect(order: _Connect, machine: Machine) -> str:
    """Write a client's entry, and return what was done and the next steps.

    Raises:
        McpNotebookError: It cannot be done.
    """
    settings = Settings.from_environment()
    client = find_client(order.client)
    if not _is_offered(client):
        raise ClientError(_BY_HAND.format(client.title, client.name))
    if not is_installed(client, machine):
        raise ClientError(explain_absence(client, machine))
    server = build_server(client, settings)
    file = client.find_file(machine)
    change = plan_installation(client, file, SERVER_NAME, server, replace=order.replace)
    backup = apply_change(change, settings) if change.is_needed else None
    sentences = [f"Connected {client.title}: the server {SERVER_NAME!r} is in {file}."]
    if backup is not None:
        sentences.append(f"Backup of the previous file: {backup}.")
    return " ".join([*sentences, *list_steps(client, server)])
