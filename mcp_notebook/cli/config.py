"""``mcp-notebook config``: a client's settings to copy, or all settings and where they come from.

Runs in the process of the command. What the settings are is the business of `settings`, what
clients need that of `clients`.
"""

import json
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcp_notebook.cli.options import (
    ClientName,
    Http,
    RemoteTokenEntry,
    RemoteTokenFile,
    RemoteTokenVariable,
    ServerName,
    Url,
    parse_options_of,
    parse_remote,
    parse_stdio,
)
from mcp_notebook.clients.client import Machine
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.settings.settings import Settings, list_sources, list_unknown_variables
from mcp_notebook.settings.values import to_text
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.text.wording import suggest

if TYPE_CHECKING:
    from mcp_notebook.clients.snippets import Snippet

_HIDDEN = "***"
_PLACES = {"audit_file": "audit_path", "token_file": "token_path"}
"""The properties that say where a file is that no setting names."""
_Row = tuple[Field[Any], Any, str]
"""A setting, its value, and where this comes from."""

EXAMPLE = "Example: mcp-notebook config cursor"
"""For the command's help."""


def config(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    client: ClientName = None,
    *,
    http: Http = False,
    url: Url = None,
    token_file: RemoteTokenFile = None,
    token_env: RemoteTokenVariable = None,
    token_keyring: RemoteTokenEntry = None,
    name: ServerName = "notebook",
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
    """Print what to copy into a client's settings, or the settings of mcp-notebook itself.

    Notebooks and options of `stdio` may follow CLIENT, and options of `serve` may follow --show.
    Tokens are not shown.
    """
    # The first of them looks like a client, also if it is an option of another command.
    words = [client, *context.args] if client else context.args
    if show and client in CLIENTS:
        context.fail(
            "`--show` prints the settings of mcp-notebook itself, which are not those of "
            f"{client}: leave one of the two out."
        )
    if show:
        words += ["--token-file", str(token_file)] if token_file else []  # an option of `serve`
        _show_settings(context, words, as_json=json_)
    elif words:
        from mcp_notebook.clients.servers import build_server  # noqa: PLC0415 - only if asked
        from mcp_notebook.clients.snippets import render_snippet  # noqa: PLC0415

        notebooks, options = parse_stdio(context, words[1:])
        remote = parse_remote(context, url, token_file, token_env, token_keyring)
        program, settings = find_client(words[0]), Settings.from_environment()
        server = build_server(program, settings, notebooks, options, http=http, remote=remote)
        snippet = render_snippet(program, server, Machine.current(), name)
        print_snippet(snippet)
    else:
        typer.echo(context.get_help())


def print_snippet(snippet: "Snippet") -> None:
    """Print what to paste, and beside it where to and what else to do."""
    print_output(snippet.text.rstrip("\n"))
    notes = [f"This belongs into {snippet.file}.", *snippet.steps]
    if snippet.link:
        notes.append(f"Or open this link, and {snippet.client.title} adds it:\n{snippet.link}")
    print_note("\n" + "\n".join(notes))


def _show_settings(context: typer.Context, words: list[str], *, as_json: bool) -> None:
    options = _parse_serve_options(context, words)
    settings, sources = Settings.from_environment(**options), list_sources(**options)
    rows = [
        (setting, _find_value(settings, setting.name), sources.get(setting.name, "default"))
        for setting in sorted(fields(Settings), key=lambda setting: setting.name)
    ]
    print_output(_format_json(rows) if as_json else _format_table(rows))
    names = [setting.metadata["env"] for setting in fields(Settings)]
    for variable in list_unknown_variables():
        close = suggest(variable, names)
        hint = f" Did you mean {close}?" if close else ""
        print_note(f"The variable {variable} is set, but it is no setting.{hint}")


def _find_value(settings: Settings, name: str) -> Any:
    """Return a setting's value, or what is used in its place if it has none."""
    value = getattr(settings, name)
    return getattr(settings, _PLACES[name]) if value is None and name in _PLACES else value


def _parse_serve_options(context: typer.Context, words: list[str]) -> dict[str, Any]:
    """Return the settings that options of ``serve`` on the command line give."""
    names = {setting.name for setting in fields(Settings)}
    _, values = parse_options_of("serve", context, words)
    # What is not given says nothing: its variable may be set.
    return {
        name: None if value is False or value == () else value
        for name, value in values.items()
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
