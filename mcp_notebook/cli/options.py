"""The arguments and options that commands of ``mcp-notebook`` share, each with its help.

What the values mean is defined in `settings` and in the commands.
"""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup

from mcp_notebook.cli.help import META_TOOLS_OPTION
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.settings.settings import Settings


def parse_server_name(text: str) -> str:
    """Check the name of a server in a client, and return it."""
    # Gemini CLI cuts a name at its first underscore; TOML would need quotes for other characters.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}", text):
        raise typer.BadParameter(f"{text!r} is not valid: use letters, digits and hyphens.")
    return text


Notebooks = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="NOTEBOOK",
        help="Notebooks to run and serve, or folders of notebooks, each of which runs when one of "
        "its tools is called. If none is given, all open notebooks are served.",
        show_default=False,
    ),
]
Packages = Annotated[
    list[str] | None,
    typer.Option(
        "--package",
        metavar="NAME",
        help="Serve the tools of an installed package, by the name of its entry point in the group "
        "mcp_notebook.tools, in a kernel of its own. Repeat the option for several.",
    ),
]
Notebook = Annotated[
    Path | None,
    typer.Option(
        metavar="NOTEBOOK",
        help="Only this notebook: the name of an open one, as `mcp-notebook list` shows it, or a "
        "file. A file that is not open runs for this command.",
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Only tools whose name, or NOTEBOOK.TOOL, matches this pattern, for example "
        "'sales.*'. Repeat the option or separate patterns by commas.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="No tools whose name, or NOTEBOOK.TOOL, matches this pattern, even if they match "
        "--tools. Repeat the option or separate patterns by commas.",
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TAG",
        help="Only tools with this tag. Repeat the option or separate tags by commas to allow "
        "several.",
    ),
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Only tools that are declared read-only.")
]

RUNNING: Mapping[str, Any] = {
    "allow_errors": Annotated[
        bool, typer.Option("--allow-errors", help="Continue after a cell that fails.")
    ],
    "trusted_only": Annotated[
        bool,
        typer.Option(
            "--trusted-only", help="Run a notebook only if it is trusted (`jupyter trust FILE`)."
        ),
    ],
}
"""The options of all commands that run notebooks, by the names of their settings."""
OFFERING: Mapping[str, Any] = {
    "meta_tools": Annotated[
        str | None,
        typer.Option(
            META_TOOLS_OPTION,
            metavar="[=only]",
            help="Add four tools that list, describe and call the notebooks' tools and fetch late "
            "results, for a client that does not notice when the list of tools changes. With "
            "`=only`, these are the only tools in the list, and one of them searches: for hundreds "
            "of tools.",
        ),
    ],
    "tools": Tools,
    "exclude": Exclude,
    "tags": Tags,
    "read_only": ReadOnly,
    "inspect": Annotated[
        bool,
        typer.Option(
            "--inspect",
            help="Let clients list the notebooks' variables and read a summary of each.",
        ),
    ],
    "errors": Annotated[
        str | None,
        typer.Option(
            metavar="full|short|masked",
            help="What clients get of a failing tool's error (default: you, on this machine, get "
            "it in full, and all others get its type and message).",
        ),
    ],
    "confirm_destructive": Annotated[
        bool,
        typer.Option(
            "--confirm-destructive",
            help="Ask a person before each call of a tool that may delete or overwrite something, "
            "that is, of any tool not marked --read-only or --non-destructive, and before "
            "run_notebook runs a notebook of a folder.",
        ),
    ],
}
"""The options of the commands that serve tools."""


def takes_options(
    *groups: Mapping[str, Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command with groups of options, which it gets as a mapping ``options``.

    Args:
        groups: The options by their names, each with its type and help.
    """
    shared = {name: kind for group in groups for name, kind in group.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            command(options={name: values.pop(name) for name in shared}, **values)

        signature = inspect.signature(command, eval_str=True)
        own = [each for each in signature.parameters.values() if each.name != "options"]
        # typer reads the options from the signature.
        vars(run)["__signature__"] = signature.replace(
            parameters=[*own, *(_make_parameter(name, kind) for name, kind in shared.items())]
        )
        return run

    return decorate


def _make_parameter(name: str, kind: Any) -> inspect.Parameter:
    is_flag = get_args(kind)[0] is bool
    default = False if is_flag else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


ClientName = Annotated[
    str | None,
    typer.Argument(
        metavar="CLIENT",
        help=f"The client: {', '.join(CLIENTS)}.",
        autocompletion=lambda incomplete: [n for n in CLIENTS if n.startswith(incomplete)],
        show_default=False,
    ),
]
Http = Annotated[
    bool,
    typer.Option(
        "--http",
        help="Connect over HTTP instead of starting a command: to the bridge of `%mcp serve`, or "
        "to the address in --url. The token stays in its file or in MCP_NOTEBOOK_TOKEN.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Connect to a server that runs already, through `mcp-notebook connect ADDRESS`: the "
        "address of a bridge, or of any page of a Jupyter server. With --http, the client connects "
        "to this address itself.",
    ),
]
TokenSourceOption = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File with the token for a remote server, env:VARIABLE for an environment variable, "
        "or keyring:NAME for an entry of the system's keyring (`keyring set mcp_notebook NAME` "
        "adds one).",
    ),
]
ServerName = Annotated[
    str,
    typer.Option(
        "--name", metavar="NAME", help="The server's name in the client.", parser=parse_server_name
    ),
]

SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="The client's settings file, if it is not in its usual place.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]

TAKES_WORDS = {"allow_extra_args": True}
"""Context settings of a command that explains unexpected arguments itself."""

NO_TOOLS = (
    "No open notebook offers a tool. Open one in Jupyter, run `%load_ext mcp_notebook` and a cell "
    "that begins with `%%mcp_tool`, or run a notebook with `--notebook FILE.ipynb`."
)


def explain_extra_notebook(word: str) -> str:
    """Explain how to name a notebook that was given as an argument."""
    return f"Name the notebook with `--notebook {shlex.quote(word)}`."


TAKES_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Context settings of a command that also takes the options of another command."""


def parse_options_of(
    name: str, context: typer.Context, words: Sequence[str]
) -> tuple[list[Any], dict[str, Any]]:
    """Parse arguments as another command does, and return its parameters and their values.

    Args:
        name: The name of the other command.
        context: The context of the command that was called.
        words: The arguments that this command does not know.
    """
    assert context.parent is not None
    group = context.parent.command
    assert isinstance(group, TyperGroup)
    command = group.get_command(context.parent, name)
    assert command is not None
    # Under the name of the command that the user typed, for errors.
    other = command.make_context(context.info_name, list(words), parent=context.parent)
    return list(other.command.params), other.params


def drop_unset(options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace flags and lists that were not given by None, so that their variables count."""
    return {
        # 0 is a value: for example, any free port.
        name: None if value is False or value in ((), []) else value
        for name, value in options.items()
    }


def read_settings(**options: Any) -> Settings:
    """Build the settings from options, environment variables and defaults, in this order.

    Raises:
        SettingsError: A value cannot be used.
    """
    return Settings.from_environment(**drop_unset(options))


def list_served(
    notebooks: Sequence[Path] | None, packages: Sequence[str] | None, settings: Settings
) -> list[Path]:
    """Return the notebooks to run and serve, with those that stand for packages.

    Raises:
        NotebookError: A package cannot be served.
    """
    if not packages:
        return [*(notebooks or ())]
    from mcp_notebook.bridge.headless.package_notebook import write_package_notebooks

    return [*(notebooks or ()), *write_package_notebooks(packages, settings)]
