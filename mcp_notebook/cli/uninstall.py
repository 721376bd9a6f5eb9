"""``mcp-notebook uninstall CLIENT``: removes the entry that `install` added."""

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import ClientName, ServerName, SettingsFile
from mcp_notebook.clients.client import Machine
from mcp_notebook.clients.known_clients import find_client
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note, print_output

app = typer.Typer(add_completion=False)


@app.command(cls=Command, epilog="Example: mcp-notebook uninstall cursor")
def uninstall(
    client: ClientName,
    *,
    name: ServerName = "notebook",
    file: SettingsFile = None,
) -> None:
    """Disconnect a client by removing the entry that `install` added."""
    from mcp_notebook.clients.editor_extension import remove_extension
    from mcp_notebook.clients.installation import apply_change, plan_removal, read_entries
    from mcp_notebook.errors import ClientError

    settings = Settings.from_environment()
    program = find_client(str(client))
    place = file.absolute() if file else program.find_file(Machine.current())
    commands = []
    try:
        commands = [] if file else remove_extension(program.name, Machine.current())
    except ClientError as error:
        print_note(f"{error} Uninstall mcp-notebook among the extensions of {program.title}.")
    if commands:
        print_output(f"Removed the side panel from {program.title} ({', '.join(commands)}).")
        if name not in read_entries(program, place):
            return
    change = plan_removal(program, place, name, settings)
    apply_change(change, settings)
    print_output(f"Disconnected {program.title}: removed the server {name!r} from {place}.")
    print_note(f"{program.title} may keep the connection until it is restarted.")
