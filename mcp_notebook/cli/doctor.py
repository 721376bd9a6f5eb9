"""``mcp-notebook doctor [CLIENT]``: options of `doctor.examination`, and the table of settings."""

from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.options import ClientName, SettingsFile
from mcp_notebook.cli.runner import run_command
from mcp_notebook.clients.known_clients import find_client
from mcp_notebook.settings.settings import Settings, list_sources, list_unknown_variables
from mcp_notebook.settings.values import to_text
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.text.wording import suggest

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command, epilog=format_examples("mcp-notebook doctor", "mcp-notebook doctor cursor")
)
def doctor(
    context: typer.Context,
    client: ClientName = None,
    *,
    settings: Annotated[
        bool,
        typer.Option(
            "--settings",
            help="Print all settings instead: name, value, and where the value comes from.",
        ),
    ] = False,
    file: SettingsFile = None,
) -> None:
    """Find out why a client has no tools, by connecting as the client would.

    Check this machine, and CLIENT or all clients that have an entry for mcp-notebook. Nothing is
    changed. The exit status is 1 if there is a problem.
    """
    if file is not None and client is None:
        context.fail(f"--file needs a client: `mcp-notebook doctor CLIENT --file {file}`.")
    if settings and (client or file):
        context.fail("--settings takes no client: `mcp-notebook doctor --settings`.")
    known = Settings.from_environment()
    if settings:
        _print_settings(known)
        return
    from mcp_notebook.doctor.examination import examine

    program = None if client is None else find_client(client)
    if not run_command(examine, known, program, file.absolute() if file else None):
        raise typer.Exit(1)


def _print_settings(settings: Settings) -> None:
    """Print name, value and source of each setting; tokens are not shown."""
    sources = list_sources()
    rows = [
        (
            setting.name,
            _describe(settings, setting),
            sources.get(setting.name, "default"),
        )
        for setting in sorted(fields(Settings), key=lambda setting: setting.name)
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, source in rows:
        print_output(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}")
    names = [setting.metadata["env"] for setting in fields(Settings)]
    for variable in list_unknown_variables():
        close = suggest(variable, names)
        hint = f" Did you mean {close}?" if close else ""
        print_note(f"The variable {variable} is set, but no setting has this name.{hint}")


def _describe(settings: Settings, setting: Field[Any]) -> str:
    """Return a setting's value, or the default place of its file; a secret is hidden."""
    is_place = setting.name == "token_file"
    value = settings.token_path if is_place else getattr(settings, setting.name)
    if value is None or value == ():
        return "none"
    text = to_text(value) if setting.repr else "***"
    return text if text.isprintable() else repr(text)
