"""The ``mcp-notebook`` command: argv -> Settings -> one call, and errors -> one message.

Each command imports what it runs only when it is called, so that ``--help`` and shell completion
are quick. The process becomes a bridge (`bridge.app`) or ends with the command (`cli.commands`).
"""

from typing import Annotated

import typer

from mcp_notebook._version import __version__
from mcp_notebook.cli.audit import EXAMPLE as AUDIT_EXAMPLE
from mcp_notebook.cli.audit import audit
from mcp_notebook.cli.bridges import run_http_bridge, run_stdio_bridge
from mcp_notebook.cli.call import EXAMPLE as CALL_EXAMPLE
from mcp_notebook.cli.call import call
from mcp_notebook.cli.config import EXAMPLE as CONFIG_EXAMPLE
from mcp_notebook.cli.config import config
from mcp_notebook.cli.connect import EXAMPLE as CONNECT_EXAMPLE
from mcp_notebook.cli.connect import connect
from mcp_notebook.cli.doctor import EXAMPLE as DOCTOR_EXAMPLE
from mcp_notebook.cli.doctor import doctor
from mcp_notebook.cli.help import Command, Group
from mcp_notebook.cli.install import INSTALL_EXAMPLE, UNINSTALL_EXAMPLE, install, uninstall
from mcp_notebook.cli.options import (
    TAKES_OPTIONS,
    TAKES_WORDS,
    AllowErrors,
    Certfile,
    ConfirmDestructive,
    Host,
    IgnoreErrors,
    Insecure,
    Keyfile,
    MetaTools,
    Notebook,
    Notebooks,
    OAuthFile,
    Port,
    ReadOnly,
    Replicas,
    Tags,
    TokenFile,
    Tools,
    TrustedOnly,
    Watch,
    explain_extra_notebook,
)
from mcp_notebook.cli.runner import exit_with_messages, run_command
from mcp_notebook.cli.stop import EXAMPLE as STOP_EXAMPLE
from mcp_notebook.cli.stop import stop
from mcp_notebook.cli.token import token
from mcp_notebook.settings.settings import Settings

app = typer.Typer(
    name="mcp-notebook",
    cls=Group,
    help="Serve the tools of Jupyter notebooks to AI assistants over MCP.",
    epilog="To declare tools, run `%load_ext mcp_notebook` in a notebook, and put `%%mcp_tool` as "
    "the first line of a cell with functions. `mcp-notebook COMMAND --help` shows an example.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(show: bool) -> None:  # noqa: FBT001 - typer calls it
    if show:
        typer.echo(f"mcp-notebook {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command(
    cls=Command,
    epilog='Example in a client configuration: {"command": "mcp-notebook", "args": ["stdio"]}',
)
def stdio(  # noqa: PLR0913 - one for each option
    notebooks: Notebooks = None,
    *,
    allow_errors: AllowErrors = False,
    trusted_only: TrustedOnly = False,
    meta_tools: MetaTools = False,
    tools: Tools = None,
    tags: Tags = None,
    read_only: ReadOnly = False,
    confirm_destructive: ConfirmDestructive = False,
) -> None:
    """Serve tools over stdin and stdout, to a client that starts this command."""
    settings = Settings.from_environment(
        allow_errors=allow_errors or None,
        trusted_only=trusted_only or None,
        meta_tools=meta_tools or None,
        tools=tools or None,
        tags=tags or None,
        read_only=read_only or None,
        confirm_destructive=confirm_destructive or None,
    )
    run_stdio_bridge(settings, notebooks or [])


@app.command(cls=Command, epilog="Example: mcp-notebook serve notebooks/weather.ipynb")
def serve(  # noqa: PLR0913 - one for each option
    notebooks: Notebooks = None,
    *,
    host: Host = None,
    port: Port = None,
    certfile: Certfile = None,
    keyfile: Keyfile = None,
    insecure: Insecure = False,
    token_file: TokenFile = None,
    oauth_file: OAuthFile = None,
    allow_errors: AllowErrors = False,
    trusted_only: TrustedOnly = False,
    replicas: Replicas = None,
    watch: Watch = False,
    meta_tools: MetaTools = False,
    tools: Tools = None,
    tags: Tags = None,
    read_only: ReadOnly = False,
    confirm_destructive: ConfirmDestructive = False,
    background: Annotated[bool, typer.Option("--background", hidden=True)] = False,
) -> None:
    """Serve tools over HTTP."""
    if background and notebooks:
        raise typer.BadParameter("The background bridge serves open notebooks. Do not name any.")
    if (replicas is not None or watch) and not notebooks:
        option = "--watch" if replicas is None else "--replicas"
        raise typer.BadParameter(f"{option} is for notebooks that this command runs. Name one.")
    settings = Settings.from_environment(
        host=host,
        port=port,
        certfile=certfile,
        keyfile=keyfile,
        insecure=insecure or None,
        token_file=token_file,
        oauth_file=oauth_file,
        allow_errors=allow_errors or None,
        trusted_only=trusted_only or None,
        replicas=replicas,
        watch=watch or None,
        meta_tools=meta_tools or None,
        tools=tools or None,
        tags=tags or None,
        read_only=read_only or None,
        confirm_destructive=confirm_destructive or None,
    )
    run_http_bridge(settings, notebooks or [], background=background)


@app.command(
    "list",
    cls=Command,
    context_settings=TAKES_WORDS,
    epilog="Example: mcp-notebook list --notebook notebooks/weather.ipynb",
)
def list_(
    context: typer.Context,
    *,
    notebook: Notebook = None,
    allow_errors: IgnoreErrors = False,
    trusted_only: TrustedOnly = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print all of it as one JSON object, for programs.")
    ] = False,
) -> None:
    """List the tools of all open notebooks, or of one notebook.

    Below the table are the tools that clients do not see, or see under another name, and why.
    """
    if context.args:
        context.fail(explain_extra_notebook(context.args[0]))
    settings = Settings.from_environment(
        allow_errors=allow_errors or None, trusted_only=trusted_only or None
    )
    from mcp_notebook.cli.commands import list_tools  # noqa: PLC0415

    run_command(list_tools, settings, notebook, as_json=json_)


app.command(cls=Command, context_settings=TAKES_WORDS, epilog=CALL_EXAMPLE)(call)

app.command(
    cls=Command,
    context_settings=TAKES_OPTIONS,
    epilog=CONFIG_EXAMPLE,
)(config)

app.command(cls=Command, context_settings=TAKES_OPTIONS, epilog=INSTALL_EXAMPLE)(install)
app.command(cls=Command, epilog=UNINSTALL_EXAMPLE)(uninstall)
app.command(cls=Command, epilog=DOCTOR_EXAMPLE)(doctor)

app.command(cls=Command, epilog=STOP_EXAMPLE)(stop)
app.command(cls=Command, epilog=CONNECT_EXAMPLE)(connect)
app.command(cls=Command, epilog=AUDIT_EXAMPLE)(audit)
app.add_typer(token, name="token")


def main() -> None:
    """Run the command; exit with 0 (success), 1 (failure), 2 (wrong usage) or 130 (interrupt)."""
    with exit_with_messages():
        app()
