"""``mcp-notebook doctor [CLIENT]``: options of the checks in `doctor.examination`."""

from typing import Annotated

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.options import ClientName, SettingsFile, parse_server_name
from mcp_notebook.cli.runner import run_command
from mcp_notebook.clients.known_clients import find_client
from mcp_notebook.settings.settings import Settings

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command, epilog=format_examples("mcp-notebook doctor", "mcp-notebook doctor cursor")
)
def doctor(
    context: typer.Context,
    client: ClientName = None,
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="The server's name in the client (default: all entries for mcp-notebook).",
            parser=parse_server_name,
        ),
    ] = None,
    file: SettingsFile = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs.")
    ] = False,
) -> None:
    """Find out why a client has no tools, by connecting as the client would.

    Without CLIENT, check this machine and all clients that have an entry for mcp-notebook. Nothing
    is changed. The exit status is 1 if there is a problem.
    """
    if file is not None and client is None:
        context.fail(f"--file needs a client: `mcp-notebook doctor CLIENT --file {file}`.")
    settings = Settings.from_environment()
    from mcp_notebook.doctor.examination import Examination, examine

    program = None if client is None else find_client(client)
    examination = Examination(
        client=program, name=name, file=file.absolute() if file else None, as_json=json_
    )
    if not run_command(examine, settings, examination):
        raise typer.Exit(1)
