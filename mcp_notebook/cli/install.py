"""``mcp-notebook install CLIENT``: adds an entry to a client's settings, or prints it.

The entries, and how settings are changed, are defined in `clients`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from typer.core import TyperGroup

from mcp_notebook.cli.help import META_TOOLS_OPTION, Command, format_examples
from mcp_notebook.cli.options import (
    ClientName,
    Http,
    ServerName,
    SettingsFile,
    TokenSourceOption,
    Url,
)
from mcp_notebook.clients.client import Client, Machine, Remote, Server
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings
from mcp_notebook.text.terminal import print_note, print_output, print_table

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},  # of `stdio`
    epilog=format_examples(
        "mcp-notebook install cursor",
        "mcp-notebook install vscode --print",
        "mcp-notebook install claude-code --http",
        "mcp-notebook install codex --name weather notebooks/weather.ipynb --read-only",
    ),
)
def install(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    client: ClientName = None,
    *,
    http: Http = False,
    url: Url = None,
    token_file: TokenSourceOption = None,
    name: ServerName = "notebook",
    file: SettingsFile = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Overwrite an existing server of the same name."),
    ] = False,
    print_: Annotated[
        bool,
        typer.Option(
            "--print", help="Print the entry to copy into the settings, and change nothing."
        ),
    ] = False,
) -> None:
    """Connect a client to your notebooks by adding an entry to its settings.

    Notebooks and options of `stdio` may follow CLIENT. Without CLIENT, list the clients on this
    machine. Comments and the order of the settings are preserved, and a backup is kept.
    """
    settings = Settings.from_environment()
    if client is None:
        if any((http, url, token_file, file, replace, print_)):
            context.fail(
                "Missing argument 'CLIENT'. `mcp-notebook install` without options lists the "
                "clients on this machine."
            )
        _list_clients()
        return
    from mcp_notebook.clients.editor_extension import BY_HAND, COMMANDS
    from mcp_notebook.clients.servers import build_server

    notebooks, options = _parse_stdio(context, context.args)
    program = find_client(client)
    remote = _parse_remote(context, url, token_file, http=http)
    place = file.absolute() if file else program.find_file(Machine.current())
    server = build_server(program, settings, notebooks, options, http=http, remote=remote)
    if print_:
        _print_entry(program, server, name, place)
        return
    panel = None if file else _install_panel(program)
    is_plain = not (notebooks or options or http or url) and name == "notebook"
    if panel and is_plain and program.name == "vscode":
        print_note("Its assistants find the tools of open notebooks, without a settings file.")
        return
    if file is None:
        _check_presence(program)
    from mcp_notebook.clients.installation import apply_change, plan_installation
    from mcp_notebook.clients.snippets import list_steps

    change = plan_installation(program, place, name, server, replace=replace)
    if not change.is_needed:
        print_output(f"{program.title} is already connected: {place} has this server.")
        return
    backup = apply_change(change, settings)
    print_output(f"Connected {program.title}: the server {name!r} is in {place}.")
    if backup is not None:
        print_note(f"Backup of the previous file: {backup}.")
    hand = [BY_HAND] if program.name in COMMANDS and panel == [] else []
    print_note("\n".join([*list_steps(program, server), *hand]))


def _install_panel(client: Client) -> list[str] | None:
    """Install the side panel in an editor; return the commands that did, None if one failed."""
    from mcp_notebook.clients.editor_extension import BY_HAND, install_extension

    try:
        commands = install_extension(client.name, Machine.current())
    except ClientError as error:
        print_note(f"{error} {BY_HAND}")
        return None
    if commands:
        print_output(f"Installed the side panel in {client.title} ({', '.join(commands)}).")
    return commands


def _parse_stdio(context: typer.Context, words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Split arguments into notebooks and options of `stdio`."""
    assert context.parent is not None
    group = context.parent.command
    assert isinstance(group, TyperGroup)
    command = group.get_command(context.parent, "stdio")
    assert command is not None
    # Under the name of the command that the user typed, for errors.
    stdio = command.make_context(context.info_name, list(words), parent=context.parent)
    values = stdio.params
    options: list[str] = []
    for parameter in stdio.command.params:
        value = values.get(parameter.name)
        if parameter.param_type_name != "option" or not value:
            continue
        option = parameter.opts[-1]
        if value is True or (option, value) == (META_TOOLS_OPTION, "yes"):
            options.append(option)
        else:
            texts = [value] if isinstance(value, str) else value
            options += [f"{option}={text}" for text in texts]
    # Old versions of typer return strings here.
    return [Path(notebook) for notebook in values["notebooks"] or ()], options


def _parse_remote(
    context: typer.Context, url: str | None, token_source: str | None, *, http: bool
) -> Remote | None:
    """Return the server of ``--url`` and ``--token-file``; None without ``--url``.

    Raises:
        RemoteError: The address is not valid.
        ClientError: It is not one for a client that connects itself.
    """
    if url is None:
        if token_source is not None:
            context.fail("--token-file needs --url.")
        return None
    from mcp_notebook.bridge.connect.addresses import read_address

    read_address(url)  # check now: clients hide the errors of their commands
    if http:
        _check_endpoint(url, token_source)
    return Remote(address=url, token_source=token_source)


def _check_endpoint(url: str, token_source: str | None) -> None:
    """Check that a client can send the token to an address.

    Raises:
        ClientError: It is not the whole address, the token would be sent in clear, or it would be
            that of the user's own bridges.
    """
    from mcp_notebook.bridge.access.gate import is_loopback

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.path.endswith(("/mcp", "/mcp-notebook")):
        raise ClientError(
            "With --http, --url is the whole address of an MCP endpoint: of a bridge, such as "
            f"http://127.0.0.1:{DEFAULT_PORT}/mcp, or of a Jupyter server, such as "
            "http://127.0.0.1:8888/mcp-notebook. Omit --http for other addresses."
        )
    is_here = is_loopback(parts.hostname or "")
    if parts.scheme == "http" and not is_here:
        raise ClientError(
            f"{url} is on another machine, and the connection is not encrypted: anyone on the "
            "network could read the token. Use an address with https://, or a tunnel to a port of "
            "this machine."
        )
    if token_source is None and (not is_here or parts.path.endswith("/mcp-notebook")):
        raise ClientError(
            f"Name the file with the token for {url} with --token-file: only bridges on this "
            "machine take the token that is read without it."
        )


def _check_presence(client: Client) -> None:
    """Check that a client is installed, so that its settings are in their usual place.

    Raises:
        ClientError: The client seems not to be installed.
    """
    from mcp_notebook.clients.installation import explain_absence, is_installed

    machine = Machine.current()
    if not is_installed(client, machine):
        raise ClientError(
            f"{explain_absence(client, machine)} Install it and start it once, or name its "
            "settings file with --file."
        )


def _print_entry(client: Client, server: Server, name: str, file: Path) -> None:
    """Print an entry to paste, and what to do with it."""
    from mcp_notebook.clients.rendering import render_document
    from mcp_notebook.clients.snippets import list_steps

    entry = client.make_entry(server)
    print_output(render_document(client, entry, name).rstrip("\n"))
    notes = [f"Paste this into {file}.", *list_steps(client, server)]
    if client.make_link is not None:
        link = client.make_link(name, entry)
        notes.append(f"Or open this link to add it to {client.title}:\n{link}")
    print_note("\n" + "\n".join(notes))


def _list_clients() -> None:
    from mcp_notebook.clients.installation import is_installed

    machine = Machine.current()
    rows = [
        (client.name, client.title, str(client.find_file(machine)))
        for client in CLIENTS.values()
        if is_installed(client, machine)
        and (client.package is None or client.is_importable or client.find_file(machine).exists())
    ]
    print_table(["Client", "", "Settings file"], rows)
    others = [name for name in CLIENTS if name not in {row[0] for row in rows}]
    print_note(f"\nNot found on this machine: {', '.join(others)}." if others else "")
    print_note("`mcp-notebook install CLIENT` connects one of them.")
