"""``mcp-notebook token``: adds, lists, removes and replaces tokens.

Tokens and lists go to stdout, or a token to a file; all else goes to stderr. A token is never a
command-line argument.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcp_notebook.cli.help import Command, Group
from mcp_notebook.errors import TokenError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings
from mcp_notebook.text.terminal import print_note, print_output, print_table

if TYPE_CHECKING:
    from mcp_notebook.bridge.access.token_store import TokenRecord, TokenStore

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_LONGEST = 3_650 * 86_400

app = typer.Typer(
    add_completion=False,
    cls=Group,
    help="Manage the tokens with which others use your tools over HTTP.",
    epilog="A running bridge applies changes at once. Your own token, which has all rights, is "
    "not listed: `mcp-notebook serve` prints its place.\n\n"
    "Example: mcp-notebook token add ci --tools 'sales.*' --read-only --expires 7d",
    no_args_is_help=True,
)


def _parse_duration(text: str) -> float:
    match = re.fullmatch(r"([1-9]\d{0,6})([mhdw])", text.strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else _LONGEST + 1
    if seconds > _LONGEST:
        raise typer.BadParameter(
            f"{text!r} is not a duration of at most ten years, such as 30m, 12h, 7d or 4w."
        )
    return seconds


def _split(context: typer.Context, option: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Split an option at commas. An empty option is refused: it must not mean everything."""
    words = tuple(word.strip() for text in texts or () for word in text.split(","))
    if not all(words):
        context.fail(f"{option} is empty.")
    return words


_Tools = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Only tools whose name, or NOTEBOOK.TOOL, matches this pattern, for example "
        "'sales.*'. Repeat the option or separate patterns by commas.",
    ),
]
_Tags = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TAG",
        help="Only tools with this tag. Repeat the option or separate tags by commas to allow "
        "several.",
    ),
]
_ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Only tools that are declared read-only.")
]
_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The token's name."),
]
_Expires = Annotated[
    float | None,
    typer.Option(
        parser=_parse_duration,
        metavar="TIME",
        help="How long the token is valid, for example 30m, 12h, 7d or 4w.",
    ),
]
_Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the token to this file, readable only by you, instead of printing it.",
    ),
]


@app.command(
    cls=Command, epilog="Example: mcp-notebook token add ci --tools 'sales.*' --expires 7d"
)
def add(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The token's name in the list and the audit log.")
    ],
    *,
    tools: _Tools = None,
    tags: _Tags = None,
    read_only: _ReadOnly = False,
    exclusive: Annotated[
        bool,
        typer.Option(
            "--exclusive", help="Hide these tools from all tokens except this one and your own."
        ),
    ] = False,
    expires: _Expires = None,
    save: _Save = None,
) -> None:
    """Add a token and print it once. Without options, it may use all tools."""
    if exclusive and not tools:
        context.fail("--exclusive needs --tools.")
    from mcp_notebook.bridge.access.caller import Permissions

    permissions = Permissions(
        tools=_split(context, "--tools", tools),
        tags=frozenset(_split(context, "--tags", tags)),
        read_only=read_only,
    )
    settings = Settings.from_environment()
    store = _open_store(settings)
    _hand_over(
        settings,
        store,
        name,
        save,
        lambda: store.add(name, permissions, seconds=expires, exclusive=exclusive),
    )


@app.command("list", cls=Command, epilog="Example: mcp-notebook token list --json")
def list_(
    *,
    json_: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, for programs.")
    ] = False,
) -> None:
    """List the tokens and their rights. The tokens themselves cannot be shown again."""
    store = _open_store(Settings.from_environment())
    records = store.read()
    rows = [
        (
            record.name,
            _describe_rights(record),
            _format_time(record.created),
            _describe_expiry(record),
            "never" if (at := store.find_last_use(record)) is None else _format_time(at),
        )
        for record in records
    ]
    if json_:
        print_output(json.dumps([_describe(store, record) for record in records], indent=2))
    elif rows:
        print_table(("Token", "Allows", "Created", "Expires", "Last used"), rows)
    else:
        print_note("There are no tokens but your own. Add one with `mcp-notebook token add NAME`.")


@app.command(cls=Command, epilog="Example: mcp-notebook token remove ci")
def remove(name: _Name) -> None:
    """Revoke a token. Its open streams, sessions and calls end."""
    _open_store(Settings.from_environment()).remove(name)
    print_note(f"Removed the token {name!r}.")


@app.command(cls=Command, epilog="Example: mcp-notebook token rotate ci --save ci.token")
def rotate(name: _Name, *, expires: _Expires = None, save: _Save = None) -> None:
    """Replace a token by a new one with the same rights and lifetime. The old one is revoked."""
    settings = Settings.from_environment()
    store = _open_store(settings)
    _hand_over(settings, store, name, save, lambda: store.rotate(name, seconds=expires))


def _open_store(settings: Settings) -> "TokenStore":
    from mcp_notebook.bridge.access.token_store import TokenStore

    return TokenStore(settings.tokens_file)


def _describe_rights(record: "TokenRecord") -> str:
    """Return a token's rights in a few words."""
    parts = [
        ", ".join(record.tools),
        f"tagged {' or '.join(record.tags)}" if record.tags else "",
        "read-only" if record.read_only else "",
        "exclusive" if record.exclusive else "",
    ]
    return "; ".join(filter(None, parts)) or "all tools"


def _hand_over(
    settings: Settings, store: "TokenStore", name: str, save: Path | None, make: Callable[[], str]
) -> None:
    """Make a token, and print it or write it to a file."""
    if save is None:
        token = make()
    else:
        # Open the file first: a valid token that cannot be written would be lost.
        temporary = _open_beside(save)
        try:
            token = make()
            temporary.write_text(f"{token}\n")
            temporary.replace(save)
        except OSError as error:
            raise _make_save_error(save, error) from None
        finally:
            temporary.unlink(missing_ok=True)
    record = next(record for record in store.read() if record.name == name)
    until = "" if record.expires is None else f", until {_format_time(record.expires)}"
    print_note(f"The token {name!r} allows: {_describe_rights(record)}{until}.")
    url = _find_url(settings)
    if save is not None:
        from mcp_notebook.clients.snippets import format_install_command

        command = format_install_command(replace(settings, token=None, token_file=save), url)
        print_note(f"It was written to {save}. Connect Claude Code with:\n{command}")
        return
    print_note("It is shown only once. In a client's configuration, replace TOKEN by it:")
    header = {"Authorization": "Bearer TOKEN"}
    print_note(json.dumps({"type": "http", "url": url, "headers": header}))
    print_output(token)


def _open_beside(path: Path) -> Path:
    """Create a temporary file that only the user can read, in the folder of another one."""
    if path.is_dir():
        raise TokenError(f"Cannot save to {path}: it is a folder. Choose a file with --save.")
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    except OSError as error:
        raise _make_save_error(path, error) from None
    os.close(descriptor)
    return Path(temporary)


def _make_save_error(path: Path, error: OSError) -> TokenError:
    return TokenError(
        f"Cannot save to {path}: {error.strerror or error}. Choose another file with --save."
    )


def _find_url(settings: Settings) -> str:
    """Return the address of the background bridge, or the one that it would get."""
    from mcp_notebook.discovery.records import read_bridge

    bridge = read_bridge(settings.bridge_file)
    if bridge is not None:
        return bridge.url
    scheme = "http" if settings.certfile is None else "https"
    return f"{scheme}://{settings.host}:{settings.port or DEFAULT_PORT}/mcp"


def _describe(store: "TokenStore", record: "TokenRecord") -> dict[str, Any]:
    last_use = store.find_last_use(record)
    return {
        "name": record.name,
        "tools": list(record.tools),
        "tags": list(record.tags),
        "readOnly": record.read_only,
        "exclusive": record.exclusive,
        "created": _format_utc(record.created),
        "expires": None if record.expires is None else _format_utc(record.expires),
        "expired": record.has_expired(),
        "void": record.is_void,
        "lastUsed": None if last_use is None else _format_utc(last_use),
    }


def _describe_expiry(record: "TokenRecord") -> str:
    if record.is_void:
        return "revoked: other users could read it; rotate it"
    if record.expires is None:
        return "never"
    return f"{_format_time(record.expires)}{' (expired)' if record.has_expired() else ''}"


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _format_utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
