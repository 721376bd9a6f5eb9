"""``mcp-notebook call TOOL``: one call from the shell, its arguments as options or as JSON.

Runs in the process of the command; the call itself is the business of `cli.commands`.
"""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_notebook.cli.options import (
    IgnoreErrors,
    Notebook,
    TrustedOnly,
    Yes,
    explain_extra_notebook,
)
from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings

EXAMPLE = (
    "Example: mcp-notebook call monthly_rain --arg year=2015 --notebook notebooks/weather.ipynb"
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
    yes: Yes = False,
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
    from mcp_notebook.cli.commands import ToolCall, call_tool  # noqa: PLC0415

    request = ToolCall(
        tool=tool,
        arguments={} if json_ is None else _parse_json_object(json_),
        texts=[_parse_argument(context, text) for text in arg or ()],
        notebook=notebook,
        is_confirmed=yes,
        save=save,
    )
    if not run_command(call_tool, settings, request):
        raise typer.Exit(1)


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


def _explain_extra_argument(word: str) -> str:
    if "=" not in word and word.endswith(".ipynb"):
        return explain_extra_notebook(word)
    if word.startswith("{"):
        return f"Write all arguments as one object: `--json {shlex.quote(word)}`."
    return f"Write arguments as `--arg {shlex.quote(word if '=' in word else f'NAME={word}')}`."
