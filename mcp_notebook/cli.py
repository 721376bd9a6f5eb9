"""The ``mcp-notebook`` command: argv -> Settings -> one call, and errors -> one message.

Each command imports what it runs only when it is called, so that ``--help`` and shell completion
are quick. The process becomes a bridge (`bridge.app`) or ends with the command (`bridge.commands`).
"""

import gc
import json
import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from mcp_notebook._version import __version__
from mcp_notebook.cli_audit import EXAMPLE as AUDIT_EXAMPLE
from mcp_notebook.cli_audit import audit
from mcp_notebook.cli_config import TAKES_OPTIONS, config
from mcp_notebook.cli_help import Command, Group
from mcp_notebook.cli_options import (
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
    Tags,
    TokenFile,
    Tools,
    TrustedOnly,
)
from mcp_notebook.cli_token import token
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.settings import Settings
from mcp_notebook.terminal import format_logs, print_note
from mcp_notebook.termination import list_termination_signals

T = TypeVar("T")


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


def _parse_json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not JSON: {error}.", param_hint="'--json'") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(
            f"{text!r} is not a JSON object. Write '{{\"name\": value}}'.", param_hint="'--json'"
        )
    return value


def _parse_argument(context: typer.Context, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    quoted = shlex.quote(text)
    if not equals:
        context.fail(f"`--arg {quoted}` has no value. Write `--arg {quoted}=VALUE`.")
    if not name:
        context.fail(f"`--arg {quoted}` has no name. Write `--arg NAME{quoted}`.")
    return name, value


_EXTRA_WORDS = {"allow_extra_args": True}
"""The command checks for unexpected words itself, to say where they belong."""


def _explain_extra_notebook(word: str) -> str:
    return f"Name the notebook with `--notebook {shlex.quote(word)}`."


def _explain_extra_argument(word: str) -> str:
    if "=" not in word and word.endswith(".ipynb"):
        return _explain_extra_notebook(word)
    return f"Write arguments as `--arg {shlex.quote(word if '=' in word else f'NAME={word}')}`."


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
    if os.isatty(0):
        typer.echo(
            "This command is started by an MCP client, which talks to it over stdin and stdout. "
            "Press Ctrl-C to stop it; `mcp-notebook list` shows the tools.",
            err=True,
        )
    from mcp_notebook.bridge.app import run_stdio  # noqa: PLC0415

    _run(run_stdio, settings, notebooks or [])


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
        meta_tools=meta_tools or None,
        tools=tools or None,
        tags=tags or None,
        read_only=read_only or None,
        confirm_destructive=confirm_destructive or None,
    )
    from mcp_notebook.bridge.app import run_http  # noqa: PLC0415

    _run(run_http, settings, notebooks or [], background=background)


@app.command(
    "list",
    cls=Command,
    context_settings=_EXTRA_WORDS,
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
        context.fail(_explain_extra_notebook(context.args[0]))
    settings = Settings.from_environment(
        allow_errors=allow_errors or None, trusted_only=trusted_only or None
    )
    from mcp_notebook.bridge.commands import list_tools  # noqa: PLC0415

    _run(list_tools, settings, notebook, as_json=json_)


@app.command(
    cls=Command,
    context_settings=_EXTRA_WORDS,
    epilog="Example: mcp-notebook call monthly_rain --arg year=2015 "
    "--notebook notebooks/weather.ipynb",
)
def call(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="The tool's name, as `mcp-notebook list` shows it."),
    ],
    *,
    arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument. Repeat the option for more."),
    ] = None,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="OBJECT", help="All arguments as a JSON object.")
    ] = None,
    notebook: Notebook = None,
    allow_errors: IgnoreErrors = False,
    trusted_only: TrustedOnly = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before a tool that wants to be confirmed.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save pictures and files to this folder.")
    ] = None,
) -> None:
    """Call a tool and print its result."""
    if context.args:
        context.fail(_explain_extra_argument(context.args[0]))
    if arg and json_ is not None:
        context.fail("Give the arguments with either --arg or --json, not both.")
    settings = Settings.from_environment(
        allow_errors=allow_errors or None, trusted_only=trusted_only or None
    )
    from mcp_notebook.bridge.commands import ToolCall, call_tool  # noqa: PLC0415

    request = ToolCall(
        tool=tool,
        arguments={} if json_ is None else _parse_json_object(json_),
        texts=[_parse_argument(context, text) for text in arg or ()],
        notebook=notebook,
        is_confirmed=yes,
        save=save,
    )
    if not _run(call_tool, settings, request):
        raise typer.Exit(1)


app.command(
    cls=Command,
    context_settings=TAKES_OPTIONS,
    epilog="Example: mcp-notebook config --show --host 0.0.0.0",
)(config)

app.command(cls=Command, epilog=AUDIT_EXAMPLE)(audit)


cache = typer.Typer(
    cls=Group,
    help="Manage the cache of tool schemas, which makes notebooks start faster.",
    epilog="Kernels fill the cache by themselves; MCP_NOTEBOOK_SCHEMA_CACHE=0 turns it off. A "
    "schema is only used for the exact function that it was built from, so you need not clear the "
    "cache after a change.\n\nExample: mcp-notebook cache warm notebooks/weather.ipynb",
    no_args_is_help=True,
)
app.add_typer(cache, name="cache")
app.add_typer(token, name="token")


@cache.command(cls=Command, epilog="Example: mcp-notebook cache warm notebooks/weather.ipynb")
def warm(
    notebooks: Annotated[
        list[Path], typer.Argument(metavar="NOTEBOOK", help="Notebooks to run.", show_default=False)
    ],
    *,
    allow_errors: IgnoreErrors = False,
    trusted_only: TrustedOnly = False,
) -> None:
    """Run notebooks once, and cache the schemas of their tools for the next start."""
    settings = Settings.from_environment(
        allow_errors=allow_errors or None, trusted_only=trusted_only or None
    )
    from mcp_notebook.bridge.cache_commands import warm_cache  # noqa: PLC0415

    _run(warm_cache, settings, notebooks)


@cache.command(cls=Command, epilog="Example: mcp-notebook cache clear")
def clear() -> None:
    """Remove all cached schemas. The next start builds and caches them again."""
    settings = Settings.from_environment()
    from mcp_notebook.bridge.cache_commands import clear_cache  # noqa: PLC0415

    _run(clear_cache, settings)


def _run(function: Callable[..., Awaitable[T]], *args: Any, **keywords: Any) -> T:
    """Run a coroutine function to its end, on the fastest event loop available.

    SIGTERM and SIGHUP cancel it, so that no headless kernel is left behind; bridges take these
    signals themselves. Python's handler of SIGINT would not do: ``command &`` in a script ignores
    SIGINT.
    """
    import asyncio  # noqa: PLC0415

    import anyio  # noqa: PLC0415

    async def run() -> T:
        with anyio.CancelScope() as scope:
            with suppress(NotImplementedError):  # Windows has no such signals
                for number in list_termination_signals():
                    asyncio.get_running_loop().add_signal_handler(number, scope.cancel)
            return await function(*args, **keywords)
        raise _Terminated

    uvloop = find_spec("uvloop") is not None
    try:
        return anyio.run(run, backend_options={"use_uvloop": uvloop})
    except _Terminated:
        raise KeyboardInterrupt from None
    finally:
        # The interpreter's last collections would look through all that a bridge's clients have
        # left, for seconds after thousands of them.
        gc.freeze()


class _Terminated(Exception):
    """A signal ended the command."""


def main() -> None:
    """Run the command; exit with 0 (success), 1 (failure), 2 (wrong usage) or 130 (interrupt)."""
    failed = False
    format_logs()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # so that a closed pipe is noticed here and not at exit
    # Task groups wrap errors in groups, which may be nested.
    except* McpNotebookError as group:
        failed = True
        print_note("\n".join(dict.fromkeys(_list_messages(group))))
    except* BrokenPipeError:
        failed = True
        # The interpreter flushes stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if failed:
        sys.exit(1)


def _list_messages(group: BaseExceptionGroup[Any]) -> Iterator[str]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _list_messages(error)
        else:
            yield str(error)
