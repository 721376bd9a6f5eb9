"""Checks this machine, and one client or all clients that have an entry for mcp-notebook.

Runs in the process of the command, and prints findings as they come.
"""

import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from mcp_notebook._version import __version__
from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.doctor.client_end import check_server
from mcp_notebook.doctor.configured_servers import read_servers
from mcp_notebook.doctor.findings import Finding, State, approve, complain, explain, note
from mcp_notebook.doctor.notebook_end import ask_bridge, ask_jupyter_servers, ask_notebooks
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_check, print_output
from mcp_notebook.text.wording import count

_MARKS: dict[State, str] = {"right": "✓", "noted": "-", "wrong": "✗"}


async def examine(settings: Settings, client: Client | None, file: Path | None = None) -> bool:
    """Check what connects clients and notebooks, print the findings, and return if all is well.

    Args:
        settings: The settings of this command.
        client: None for all clients with an entry for mcp-notebook.
        file: The settings file of this client; None for its usual place.
    """
    wrong = _print_section("This machine", await _examine_machine(settings))
    machine, is_known = Machine.current(), False
    for each in [client] if client else CLIENTS.values():
        checked = _examine_client(settings, machine, each, file, is_named=client is not None)
        async for title, finding in checked:
            wrong += _print_section(title, [finding])
            is_known = True
    if not is_known:
        step = "`mcp-notebook install` lists the clients on this machine, and connects them."
        _print_section("Clients", [note("No client has an entry for mcp-notebook.", step)])
    print_output("\nNo problems." if not wrong else f"\n{count(wrong, 'problem')}.")
    return not wrong


async def _examine_machine(settings: Settings) -> list[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    return [
        approve(f"mcp-notebook {__version__}, Python {python}: {sys.executable}."),
        *await ask_notebooks(settings),
        await ask_bridge(settings),
        *await ask_jupyter_servers(),
    ]


async def _examine_client(
    settings: Settings, machine: Machine, client: Client, file: Path | None, *, is_named: bool
) -> AsyncIterator[tuple[str, Finding]]:
    """Yield a title and a finding for each entry for mcp-notebook in a client's settings."""
    try:
        servers = read_servers(client, machine, file)
    except ClientError as error:
        yield client.title, complain(str(error))
        return
    for server in servers:
        title = f"{client.title}: the server {server.name!r} in {server.file}"
        if client.belongs_to_folder and not is_named:
            # Another user may have written it: its command would run, or get the user's token.
            step = f"Read it first, then check it with `mcp-notebook doctor {client.name}`."
            yield title, note("It belongs to this folder, so it was not checked.", step)
        else:
            yield title, await check_server(server, settings, machine)
    if servers or not is_named:
        return
    words = ["mcp-notebook", "install", client.name]
    words += ["--file", str(file)] if file else []
    repair = f"`{shlex.join(words)}`"
    place = file or client.find_file(machine)
    yield client.title, explain("no entry", client=client.title, file=place, repair=repair)


def _print_section(title: str, findings: Sequence[Finding]) -> int:
    """Print the findings about one thing, and return the number of problems."""
    print_output(title)
    for finding in findings:
        print_check(_MARKS[finding.state], finding.text, is_wrong=finding.state == "wrong")
        if finding.next_step is not None:
            print_output(f"    {finding.next_step}")
    return sum(finding.state == "wrong" for finding in findings)
