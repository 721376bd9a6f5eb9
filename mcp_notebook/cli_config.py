"""``mcp-notebook config --show``: all settings, their values, and where these come from.

Runs in the process of the command. What the settings are is the business of `settings`.
"""

import json
from dataclasses import Field, fields
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mcp_notebook.settings import Settings, list_sources, list_unknown_variables
from mcp_notebook.settings_values import to_text
from mcp_notebook.terminal import print_note, print_output
from mcp_notebook.wording import suggest

_HIDDEN = "***"
_PLACES = {"audit_file": "audit_path", "token_file": "token_path"}
"""The properties that say where a file is that no setting names."""
_Row = tuple[Field[Any], Any, str]
"""A setting, its value, and where this comes from."""

TAKES_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""For the context of `config`: it passes on what are options of ``serve``."""


def config(
    context: typer.Context,
    *,
    show: Annotated[
        bool,
        typer.Option(
            "--show", help="Print all settings: name, value, and where the value comes from."
        ),
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="With --show: print one JSON object, for programs.")
    ] = False,
) -> None:
    """Show the settings that `serve` and `stdio` have here.

    Options of `serve` may follow, and are taken into account. Tokens are not shown.
    """
    if not show:
        typer.echo(context.get_help())
        return
    options = _parse_serve_options(context)
    settings, sources = Settings.from_environment(**options), list_sources(**options)
    rows = [
        (setting, _find_value(settings, setting.name), sources.get(setting.name, "default"))
        for setting in sorted(fields(Settings), key=lambda setting: setting.name)
    ]
    print_output(_format_json(rows) if json_ else _format_table(rows))
    names = [setting.metadata["env"] for setting in fields(Settings)]
    for variable in list_unknown_variables():
        close = suggest(variable, names)
        hint = f" Did you mean {close}?" if close else ""
        print_note(f"The variable {variable} is set, but it is no setting.{hint}")


def _find_value(settings: Settings, name: str) -> Any:
    """Return a setting's value, or what is used in its place if it has none."""
    value = getattr(settings, name)
    return getattr(settings, _PLACES[name]) if value is None and name in _PLACES else value


def _parse_serve_options(context: typer.Context) -> dict[str, Any]:
    """Return the settings that options of ``serve`` on the command line give."""
    assert context.parent is not None
    group = context.parent.command
    assert isinstance(group, TyperGroup)
    serve = group.get_command(context.parent, "serve")
    assert serve is not None
    names = {setting.name for setting in fields(Settings)}
    parameters = serve.make_context("serve", list(context.args), parent=context.parent).params
    # What is not given says nothing: its variable may be set.
    return {
        name: None if value is False or value == () else value
        for name, value in parameters.items()
        if name in names
    }


def _format_table(rows: list[_Row]) -> str:
    texts = [(setting.name, _to_text(setting, value), source) for setting, value, source in rows]
    widths = [max(len(row[column]) for row in texts) for column in (0, 1)]
    return "\n".join(
        f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}" for name, value, source in texts
    )


def _to_text(setting: Field[Any], value: Any) -> str:
    if value is None or value == ():
        return "none"
    text = to_text(value) if setting.repr else _HIDDEN
    return text if text.isprintable() else repr(text)


def _format_json(rows: list[_Row]) -> str:
    described = {
        setting.name: {
            "value": _HIDDEN if value is not None and not setting.repr else value,
            "source": source,
            "variable": setting.metadata["env"],
        }
        for setting, value, source in rows
    }
    return json.dumps(described, indent=2, ensure_ascii=False, default=to_text)
