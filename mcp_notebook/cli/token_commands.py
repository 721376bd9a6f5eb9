"""``mcp-notebook token``: shows what it does to the file of tokens.

Runs in the process of the command. A token goes to stdout or into a file, and everything else that
is no list to stderr; it is among no process's arguments.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcp_notebook.bridge.access.caller import Permissions
from mcp_notebook.bridge.access.token_store import TokenRecord, TokenStore
from mcp_notebook.clients.snippets import format_claude_command
from mcp_notebook.discovery.records import read_bridge
from mcp_notebook.errors import McpNotebookError, TokenError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings
from mcp_notebook.text.terminal import print_note, print_output, print_table


def add_token(  # noqa: PLR0913 - one for each option
    settings: Settings,
    name: str,
    permissions: Permissions,
    *,
    seconds: float | None,
    exclusive: bool,
    metrics: bool,
    save: Path | None,
) -> None:
    """Add a token, and show or save it.

    Raises:
        TokenError: The name is taken or not allowed, or a file cannot be used.
    """
    store = TokenStore(settings.tokens_file)
    _hand_over(
        settings,
        store,
        name,
        save,
        lambda: store.add(name, permissions, seconds=seconds, exclusive=exclusive, metrics=metrics),
    )


def rotate_token(
    settings: Settings, name: str, *, seconds: float | None, save: Path | None
) -> None:
    """Replace a token, and show or save the new one.

    Raises:
        TokenError: There is none of this name, or a file cannot be used.
    """
    store = TokenStore(settings.tokens_file)
    _hand_over(settings, store, name, save, lambda: store.rotate(name, seconds=seconds))


def remove_token(settings: Settings, name: str) -> None:
    """Remove a token.

    Raises:
        TokenError: There is none of this name, or the file cannot be used.
    """
    TokenStore(settings.tokens_file).remove(name)
    print_note(f"The token {name!r} is removed, and void at once.")


def list_tokens(settings: Settings, *, as_json: bool) -> None:
    """Print the tokens: as a table, as tab-separated lines, or as a JSON array.

    Raises:
        TokenError: The file cannot be used.
    """
    store = TokenStore(settings.tokens_file)
    records = store.read()
    rows = [
        (
            record.name,
            describe_rights(record),
            _format_time(record.created),
            _describe_expiry(record),
            _describe_use(store.find_last_use(record)),
        )
        for record in records
    ]
    if as_json:
        print_output(json.dumps([_describe(store, record) for record in records], indent=2))
    elif not records:
        print_note("There are no tokens but your own. Add one with `mcp-notebook token add NAME`.")
    elif sys.stdout.isatty():
        print_table(("Token", "For", "Created", "Expires", "Last used"), rows)
    else:
        for row in rows:
            print_output("\t".join(row))


def list_names(settings: Settings) -> list[str]:
    """Return the names of all tokens, for completion; none if they cannot be read."""
    try:
        return [record.name for record in TokenStore(settings.tokens_file).read()]
    except McpNotebookError:
        return []


def describe_rights(record: TokenRecord) -> str:
    """Return what a token may do, in a few words."""
    if record.metrics:
        return "the metrics, and no tool"
    parts = [
        ", ".join(record.tools),
        f"tagged {' or '.join(record.tags)}" if record.tags else "",
        "reading only" if record.read_only else "",
        "for no other token" if record.exclusive else "",
    ]
    return "; ".join(filter(None, parts)) or "all tools"


def _hand_over(
    settings: Settings, store: TokenStore, name: str, save: Path | None, make: Callable[[], str]
) -> None:
    """Make a token, and show it or write it to a file."""
    if save is None:
        token = make()
    else:
        # The file comes first: there is no second chance to write a token that counts already.
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
    print_note(f"The token {name!r} is for: {describe_rights(record)}{until}.")
    url = _find_url(settings)
    if record.metrics:
        print_note(f"Prometheus reads {url.removesuffix('/mcp')}/metrics with it.")
        if save is None:
            print_output(token)
        return
    if save is not None:
        command = format_claude_command(replace(settings, token=None, token_file=save), url)
        print_note(f"It is in the file {save}. Connect Claude Code with:\n{command}")
        return
    print_note(
        "It is shown this one time. Put it in the place of TOKEN in a client's configuration:"
    )
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
    """Return the address of the background bridge, or that of one which is started next."""
    bridge = read_bridge(settings.bridge_file)
    if bridge is not None:
        return bridge.url
    scheme = "http" if settings.certfile is None else "https"
    return f"{scheme}://{settings.host}:{settings.port or DEFAULT_PORT}/mcp"


def _describe(store: TokenStore, record: TokenRecord) -> dict[str, Any]:
    last_use = store.find_last_use(record)
    return {
        "name": record.name,
        "tools": list(record.tools),
        "tags": list(record.tags),
        "readOnly": record.read_only,
        "exclusive": record.exclusive,
        "metrics": record.metrics,
        "created": _format_utc(record.created),
        "expires": None if record.expires is None else _format_utc(record.expires),
        "expired": record.has_expired(),
        "void": record.is_void,
        "lastUsed": None if last_use is None else _format_utc(last_use),
    }


def _describe_expiry(record: TokenRecord) -> str:
    if record.is_void:
        return "void: another user may know it, so rotate it"
    if record.expires is None:
        return "never"
    return f"{_format_time(record.expires)}{' (expired)' if record.has_expired() else ''}"


def _describe_use(at: float | None) -> str:
    return "never" if at is None else _format_time(at)


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _format_utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
