"""``mcp-notebook install CLIENT`` and ``uninstall CLIENT``: argv -> one change of a settings file.

Runs in the process of the command. What is written is the business of `clients`.
"""

from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.config import print_snippet
from mcp_notebook.cli.options import (
    ClientName,
    Http,
    RemoteTokenEntry,
    RemoteTokenFile,
    RemoteTokenVariable,
    ServerName,
    Url,
    parse_remote,
    parse_stdio,
)
from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note, print_output, print_table

INSTALL_EXAMPLE = "Example: mcp-notebook install cursor"
"""For the help of `install`."""
UNINSTALL_EXAMPLE = "Example: mcp-notebook uninstall cursor"
"""For the help of `uninstall`."""

_File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="The client's settings, if they are not where they usually are.",
    ),
]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]


def install(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    client: ClientName = None,
    *,
    http: Http = False,
    url: Url = None,
    token_file: RemoteTokenFile = None,
    token_env: RemoteTokenVariable = None,
    token_keyring: RemoteTokenEntry = None,
    name: ServerName = "notebook",
    file: _File = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Overwrite a server of that name with other settings."),
    ] = False,
    dry_run: _DryRun = False,
) -> None:
    """Connect a client to your notebooks: write what it needs into its settings.

    Notebooks and options of `stdio` may follow CLIENT. Without CLIENT, list those that are on this
    machine. Comments and the order of the settings stay, and the file before is kept. For Goose and
    Continue, whose settings are in YAML, print what to paste, with exit status 1.
    """
    from mcp_notebook.clients.installation import (  # noqa: PLC0415 - only if called
        apply_change,
        plan_installation,
    )
    from mcp_notebook.clients.servers import build_server  # noqa: PLC0415
    from mcp_notebook.clients.snippets import list_steps, render_snippet  # noqa: PLC0415

    settings = Settings.from_environment()
    if client is None:
        _list_clients()
        return
    notebooks, options = parse_stdio(context, context.args)
    program = find_client(client)
    place = _find_file(program, file)
    remote = parse_remote(context, url, token_file, token_env, token_keyring)
    server = build_server(program, settings, notebooks, options, http=http, remote=remote)
    if program.is_pasted:
        print_snippet(render_snippet(program, server, Machine.current(), name, place))
        print_note("Nothing was written: settings in YAML are yours to change.")
        raise typer.Exit(1)
    change = plan_installation(program, place, name, server, replace=replace)
    if not change.is_needed:
        print_output(f"{program.title} is connected already: {place} has this server.")
        return
    if dry_run:
        print_output(change.format_diff())
        return
    backup = apply_change(change, settings)
    print_output(f"Connected {program.title}: the server {name!r} is in {place}.")
    if backup is not None:
        print_note(f"The file before is kept as {backup}.")
    print_note("\n".join(list_steps(program, server)))


def uninstall(
    client: ClientName,
    *,
    name: ServerName = "notebook",
    file: _File = None,
    dry_run: _DryRun = False,
) -> None:
    """Disconnect a client: remove from its settings what `install` wrote."""
    from mcp_notebook.clients.installation import (  # noqa: PLC0415 - only if called
        apply_change,
        plan_removal,
    )

    settings = Settings.from_environment()
    program = find_client(str(client))
    place = file.absolute() if file else program.find_file(Machine.current())
    change = plan_removal(program, place, name, settings)
    if dry_run:
        print_output(change.format_diff())
        return
    apply_change(change, settings)
    print_output(f"Disconnected {program.title}: the server {name!r} is no longer in {place}.")
    print_note(f"{program.title} may keep it until it is started again.")


def _find_file(client: Client, file: Path | None) -> Path:
    """Return where a client's settings are.

    Raises:
        ClientError: The client has left no trace here.
    """
    from mcp_notebook.clients.installation import (  # noqa: PLC0415 - only if called
        explain_absence,
        is_installed,
    )

    machine = Machine.current()
    if file is not None:
        return file.absolute()
    place = client.find_file(machine)
    if not is_installed(client, machine):
        raise ClientError(
            f"{explain_absence(client, machine)} Install it and start it once, or say where its "
            "settings are with --file."
        )
    return place


def _list_clients() -> None:
    from mcp_notebook.clients.installation import is_installed  # noqa: PLC0415 - only if called

    machine = Machine.current()
    rows = [
        (client.name, client.title, str(client.find_file(machine)))
        for client in CLIENTS.values()
        if is_installed(client, machine)
    ]
    print_table(["CLIENT", "", "Its settings"], rows)
    others = [name for name in CLIENTS if name not in {row[0] for row in rows}]
    print_note(f"\nNot found on this machine: {', '.join(others)}." if others else "")
    print_note("`mcp-notebook install CLIENT` connects one of them.")
