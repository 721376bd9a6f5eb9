"""``mcp-notebook doctor``: does what each client's settings say work?

Tested in ``tests/bridge/test_doctor_command.py``. Runs in the process of the command. Servers are
tried by `bridge.doctor_command`, settings are read by `clients`.
"""

from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli_options import ClientName, ServerName
from mcp_notebook.cli_runner import run_command
from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.clients.entries import read_server
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.errors import ClientError
from mcp_notebook.missing_tools import META_TOOLS
from mcp_notebook.settings import Settings
from mcp_notebook.terminal import print_output
from mcp_notebook.wording import count

EXAMPLE = "Example: mcp-notebook doctor cursor"
"""For the command's help."""


def doctor(
    client: ClientName = None,
    *,
    name: ServerName = "notebook",
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The client's settings, if they are elsewhere."),
    ] = None,
) -> None:
    """Check that what a client's settings say works: start it as the client would, list its tools.

    Without CLIENT, check all clients on this machine that are connected.
    """
    from mcp_notebook.bridge.doctor_command import diagnose  # noqa: PLC0415 - only if called
    from mcp_notebook.clients.installation import read_entry  # noqa: PLC0415

    machine, settings = Machine.current(), Settings.from_environment()
    clients = [find_client(client)] if client else list(CLIENTS.values())
    are_well: list[bool] = []
    for program in clients:
        place = file.absolute() if file and client else program.find_file(machine)
        try:
            entry = read_entry(program, place, name)
        except ClientError as error:
            are_well.append(_report(program, place, [], str(error)))
            continue
        if entry is None:
            continue
        server = read_server(entry)
        if server is None:
            problem = f"Its entry {name!r} has neither a command nor an address."
            are_well.append(_report(program, place, [], problem))
            continue
        diagnosis = run_command(diagnose, settings, server)
        are_well.append(_report(program, place, diagnosis.tools, diagnosis.problem))
    if not are_well:
        who = find_client(client).title if client else "No client on this machine"
        raise ClientError(
            f"{who} is {'not ' if client else ''}connected as {name!r}. Run `mcp-notebook install "
            f"{client or 'CLIENT'}`; without a client, it lists those that it finds."
        )
    if not all(are_well):
        raise typer.Exit(1)


def _report(
    client: Client, place: Path, tools: tuple[str, ...] | list[str] | None, problem: str | None
) -> bool:
    """Print what was found, and return whether the client is well."""
    print_output(f"{client.title}, {place}:")
    if problem is not None:
        print_output("  Problem: " + problem.replace("\n", "\n  "))
        return False
    names = [tool for tool in tools or () if tool not in META_TOOLS]
    print_output(
        f"  Works: {count(len(names), 'tool')}: {', '.join(names)}."
        if names
        else "  Works, but there are no tools: no open notebook has run `%load_ext mcp_notebook` "
        "and a cell with `%%mcp_tool`."
    )
    return True
