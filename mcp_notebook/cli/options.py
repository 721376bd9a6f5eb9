"""The arguments and options that commands of ``mcp-notebook`` share, each with its help.

What the values mean is defined in `settings` and in the commands.
"""

import inspect
import re
import shlex
from collections.abc import Callable
from dataclasses import Field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from mcp_notebook.cli.help import META_TOOLS_OPTION
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.settings.settings import Settings
from mcp_notebook.settings.values import read_docstrings


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
Notebook = Annotated[
    Path | None,
    typer.Option(
        metavar="NOTEBOOK",
        help="Only this notebook: the name of an open one, as `mcp-notebook list` shows it, or a "
        "file. A file that is not open runs for this command.",
    ),
]


def takes_settings(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a function with the settings that are options of a command, as ``options``.

    Args:
        command: The name of the command.
    """
    texts = read_docstrings(Settings)
    types = get_type_hints(Settings)
    shared = [
        _make_option(setting, types[setting.name], texts[setting.name])
        for setting in fields(Settings)
        if command in setting.metadata["on"]
    ]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**values: Any) -> None:
            function(options={option.name: values.pop(option.name) for option in shared}, **values)

        signature = inspect.signature(function, eval_str=True)
        own = [each for each in signature.parameters.values() if each.name != "options"]
        # typer reads the options from the signature.
        vars(run)["__signature__"] = signature.replace(parameters=[*own, *shared])
        return run

    return decorate


def _make_option(setting: Field[Any], kind: Any, text: str) -> inspect.Parameter:
    """Return a setting as a parameter of a command; `Settings` checks the value."""
    name = f"--{setting.name.replace('_', '-')}"
    annotation: Any = str | None
    metavar: str | None = "FILE" if Path in get_args(kind) else "VALUE"
    if setting.default is False:
        text = text.removeprefix("Whether ").removeprefix("to ")
        text = text[0].upper() + text[1:]
    if kind is bool:
        annotation, metavar = bool, None
    elif isinstance(setting.default, tuple):
        annotation, metavar = list[str] | None, "A,B"
    elif name == META_TOOLS_OPTION:
        metavar = "[=only]"
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if kind is bool else None,
        annotation=Annotated[annotation, typer.Option(name, metavar=metavar, help=text)],
    )


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
        help="File with the token for a remote server, or env:VARIABLE for an environment "
        "variable.",
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
TAKES_WORDS = {"allow_extra_args": True}
"""Context settings of a command that explains unexpected arguments itself."""

NO_TOOLS = (
    "No open notebook offers a tool. Open one in Jupyter, run `%load_ext mcp_notebook` and a cell "
    "that begins with `%%mcp_tool`, or run a notebook with `--notebook FILE.ipynb`."
)


def explain_extra_notebook(word: str) -> str:
    """Explain how to name a notebook that was given as an argument."""
    return f"Name the notebook with `--notebook {shlex.quote(word)}`."


def read_settings(**options: Any) -> Settings:
    """Build the settings from options, environment variables and defaults, in this order.

    Raises:
        SettingsError: A value cannot be used.
    """
    given = {
        # A flag or list that was not given leaves it to the variable; 0 is a value: any free port.
        name: None if value is False or value in ((), []) else value
        for name, value in options.items()
    }
    return Settings.from_environment(**given)
