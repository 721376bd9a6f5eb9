"""``mcp-notebook settings``: all settings, and the source of each value."""

import json
from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from mcp_notebook.cli.help import Command
from mcp_notebook.cli.options import TAKES_OPTIONS, drop_unset, parse_options_of
from mcp_notebook.settings.settings import Settings, list_sources, list_unknown_variables
from mcp_notebook.settings.values import to_text
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.text.wording import suggest

_HIDDEN = "***"
_PLACES = {"audit_file": "audit_path", "token_file": "token_path"}
"""The properties with the default places of these files."""
_Row = tuple[Field[Any], Any, str]
"""A setting, its value, and the source of the value."""

app = typer.Typer(add_completion=False)


@app.command(
    "settings",
    cls=Command,
    context_settings=TAKES_OPTIONS,
    epilog="Example: mcp-notebook settings --port 8000",
)
def show_settings(
    context: typer.Context,
    *,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs.")
    ] = False,
) -> None:
    """Print all settings: name, value, and where the value comes from.

    Options of `serve` may follow; they take precedence over environment variables. Tokens are not
    shown.
    """
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
        print_note(f"The variable {variable} is set, but no setting has this name.{hint}")


def _parse_serve_options(context: typer.Context) -> dict[str, Any]:
    """Return the settings given by options of ``serve`` on the command line."""
    names = {setting.name for setting in fields(Settings)}
    _, values = parse_options_of("serve", context, context.args)
    if values["notebooks"]:
        context.fail(f"This command takes no notebook ({values['notebooks'][0]}).")
    return drop_unset({name: value for name, value in values.items() if name in names})


def _find_value(settings: Settings, name: str) -> Any:
    """Return a setting's value, or the default place of its file."""
    value = getattr(settings, name)
    return getattr(settings, _PLACES[name]) if value is None and name in _PLACES else value


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
