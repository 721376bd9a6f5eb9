"""Asks the clients' end: starts the command of an entry as its client does, or asks its address.

Runs on the command's event loop. A started process ends with the check. A token is only sent to
programs of the user on this machine.
"""

import asyncio
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from mcp_notebook._version import __version__
from mcp_notebook.bridge.access.gate import is_loopback
from mcp_notebook.bridge.transports.port_owner import find_port_use
from mcp_notebook.clients.client import Machine
from mcp_notebook.doctor.configured_servers import ConfiguredServer
from mcp_notebook.doctor.findings import Finding, approve, describe_tools, explain, note
from mcp_notebook.doctor.notebook_end import OPEN_ONE
from mcp_notebook.doctor.probes import ask_command, ask_name, ask_status
from mcp_notebook.protocol.versions import SERVER_NAME
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import RESERVED_NAMES, RUN_NOTEBOOK

_LAST_LINES = 3
"""Last lines of a failed command's output that are shown."""
_UNAUTHORIZED = (401, 403)
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)\}")


async def check_server(server: ConfiguredServer, settings: Settings, machine: Machine) -> Finding:
    """Ask the server of an entry, and return what is right or wrong about it.

    Args:
        server: The entry.
        settings: The settings of this command.
        machine: The machine that the client runs on.
    """
    if server.is_off:
        return explain("off", client=server.client.title)
    if server.url is not None:
        return await _check_address(server, server.url, settings, machine)
    if server.words:
        return await _check_command(server, settings, machine)
    return explain("empty", repair=server.format_repair())


async def _check_command(server: ConfiguredServer, settings: Settings, machine: Machine) -> Finding:
    repair = server.format_repair()
    folder, home = server.find_folder(machine), server.find_home(machine)
    answer = await ask_command(server.words, server.env, folder, server.start_limit)
    if answer.error is not None:
        member = server.client.start_member
        return explain(
            "late" if answer.is_late else "failed",
            client=server.client.title,
            command=shlex.join(server.words),
            folder=folder,
            limit=server.start_limit,
            output="\n".join(answer.lines[-_LAST_LINES:]) or answer.error,
            repair=repair,
            timeout=f" (`{member[0]}` in {server.file})" if member else "",
        )
    if answer.server.get("name") != SERVER_NAME:
        return explain("other server", theirs=repr(answer.server.get("name")), repair=repair)
    if (version := answer.server.get("version")) != __version__:
        return explain("other version", theirs=version, ours=__version__, repair=repair)
    tools = [
        name
        for name in answer.tools
        if name not in RESERVED_NAMES or name == RUN_NOTEBOOK  # which stands for a folder's tools
    ]
    if tools:
        text = f"Its command starts in {answer.seconds:.1f} s and lists {describe_tools(tools)}."
        return approve(text)
    looks_for_open = all(word.startswith("-") for word in server.arguments[1:])
    if looks_for_open and not _is_same(home, settings.home):
        return explain("other home", theirs=home, ours=settings.home, repair=repair)
    return note("Its command starts and lists no tools.", OPEN_ONE)


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


async def _check_address(
    server: ConfiguredServer, url: str, settings: Settings, machine: Machine
) -> Finding:
    headers = {name: str(text) for name, text in server.headers.items()}
    variables = _VARIABLE.findall(" ".join(headers.values()))
    missing = [variable for variable in variables if not machine.env.get(variable)]
    sent = {
        name: _VARIABLE.sub(lambda match: machine.env.get(match[1], ""), text)
        for name, text in headers.items()
    }
    cause = await _ask(url, {} if missing else sent) or ("no variable" if missing else None)
    theirs = None
    if cause is None and sent and is_loopback(urlsplit(url).hostname or ""):
        theirs = await ask_name(url, sent)
        cause = None if theirs == SERVER_NAME else "other server"
    if cause is None:
        return approve(f"{url} answers.")
    return explain(
        cause,
        client=server.client.title,
        repair=server.format_repair(),
        theirs=repr(theirs),
        token=settings.token_place,
        url=url,
        variable=", ".join(missing),
    )


async def _ask(url: str, headers: Mapping[str, str]) -> str | None:
    """Ask an address whether it answers and takes the client's token, and return what is wrong."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "nobody"
    is_here = is_loopback(host)
    use = await asyncio.to_thread(find_port_use, host, port) if is_here else "own"
    if use != "own":
        return "foreign" if use == "foreign" else "nobody"
    if parts.scheme == "http" and not is_here:
        return "not encrypted"
    if await ask_status("GET", url) is None:
        return "nobody"
    if headers and is_here and await ask_status("POST", url, headers) in _UNAUTHORIZED:
        return "refused"
    return None
