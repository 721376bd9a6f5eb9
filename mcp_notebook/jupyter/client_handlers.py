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
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from mcp_notebook.clients.client import Machine
from mcp_notebook.clients.panel_clients import connect_client, list_clients, name_clients
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler

_FORWARDED = frozenset({"Forwarded", "X-Forwarded-For", "X-Real-Ip", "X-Scheme"})
"""Headers by which a proxy tells that the browser is elsewhere."""
_ELSEWHERE = (
    "The browser does not run on the machine of the Jupyter server, so the clients there are not "
    "changed. Connect a client on your own computer: run `mcp-notebook install` there."
)
_NO_CLIENT = 'Name the client: {"client": its name in `mcp-notebook install`}.'

Place = Literal["local", "remote", "JupyterHub", "Binder"]
"""Where the server is, seen from the browser."""


class _Connect(msgspec.Struct, forbid_unknown_fields=True):
    client: str
    """The client's name."""
    replace: bool = False
    """Whether to replace another entry."""


class ClientsHandler(AuthorizedHandler):
    """``GET api/clients``: the clients of this machine; ``POST``: connect one."""

    async def get(self) -> None:
        """Answer with the clients that are found and missing, and whether this may connect them."""
        place = self._find_place()
        if place == "local":
            found = await asyncio.to_thread(list_clients, self._machine)
        else:  # what is on this machine is told to local browsers only
            found = {"clients": name_clients()}
        self.finish({"place": place, "machine": platform.node()} | found)

    async def post(self) -> None:
        """Connect a client, and answer with the next steps.

        The status is 400 if the body names no client, 403 if the browser is elsewhere, and 409 if
        the client cannot be connected.
        """
        try:
            order = msgspec.json.decode(self.request.body, type=_Connect)
        except msgspec.DecodeError:
            return self.refuse(HTTPStatus.BAD_REQUEST, _NO_CLIENT)
        if self._find_place() != "local":
            return self.refuse(HTTPStatus.FORBIDDEN, _ELSEWHERE)
        try:
            message = await asyncio.to_thread(
                connect_client, order.client, self._machine, replace=order.replace
            )
        except McpNotebookError as error:
            return self.refuse(HTTPStatus.CONFLICT, str(error))
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
