"""Finds, adds and removes a server in the text of a client's settings, and changes nothing else.

Pure functions on strings, in the process of the command. `json_text` and `toml_text` edit the text;
here the new text is parsed and compared with the expected settings.
"""

import copy
from collections.abc import Callable
from typing import Any

from mcp_notebook.clients.client import Client, Entry, Syntax
from mcp_notebook.clients.json_text import cut_json, put_json, read_json
from mcp_notebook.clients.rendering import render_document
from mcp_notebook.clients.toml_text import cut_toml, put_toml, read_toml

_READERS: dict[Syntax, Callable[[str], Any]] = {
    "json": read_json,
    "toml": read_toml,
}
_MARK = "\ufeff"
"""The byte order mark that some editors write."""


def find_entry(client: Client, text: str, name: str) -> Entry | None:
    """Return the entry of a server; None if there is none.

    Args:
        client: The client.
        text: Its settings.
        name: The server's name.

    Raises:
        ValueError: The settings are not valid; the message ends a sentence about the file.
    """
    return list_entries(client, text).get(name)


def list_entries(client: Client, text: str) -> dict[str, Entry]:
    """Return the entries of all servers, by name.

    Args:
        client: The client.
        text: Its settings.

    Raises:
        ValueError: As for `find_entry`.
    """
    servers = _read_servers(client, _read(client, text))
    return {str(name): entry if isinstance(entry, dict) else {} for name, entry in servers.items()}


def add_entry(client: Client, text: str, name: str, entry: Entry) -> str:
    """Return the settings with a server added, or replaced if it exists.

    Args:
        client: The client.
        text: Its settings; "" for none.
        name: The server's name.
        entry: The server's entry.

    Raises:
        ValueError: As for `find_entry`, or the text cannot be edited in place.
    """
    mark, text = _split_mark(text)
    document = _read(client, text)
    servers = _read_servers(client, document)
    if servers.get(name) == entry:
        return mark + text
    expected = copy.deepcopy(document)
    expected[client.section] = dict(servers) | {name: entry}
    if client.syntax == "json":
        changed = put_json(text, client.section, name, entry, in_list=client.has_list)
    else:
        changed = put_toml(text, client.section, name, entry)
    return mark + _check(client, changed, expected)


def remove_entry(client: Client, text: str, name: str) -> str:
    """Return the settings with a server removed; "" if nothing else is left.

    Args:
        client: The client.
        text: Its settings, which have the server.
        name: The server's name.

    Raises:
        ValueError: As for `find_entry`, or the text cannot be edited in place.
    """
    mark, text = _split_mark(text)
    document = _read(client, text)
    servers = _read_servers(client, document)
    if text == render_document(client, servers[name], name):
        return ""
    expected = copy.deepcopy(document)
    expected[client.section] = {key: servers[key] for key in servers if key != name}
    cut = cut_json if client.syntax == "json" else cut_toml
    changed = cut(text, client.section, name)
    if client.syntax == "toml" and not expected[client.section]:
        # TOML may omit an empty table.
        expected = {key: value for key, value in expected.items() if key != client.section}
        if client.section in _read(client, changed):
            expected[client.section] = {}
    return mark + _check(client, changed, expected)


def _split_mark(text: str) -> tuple[str, str]:
    return (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)


def _read(client: Client, text: str) -> dict[str, Any]:
    try:
        document = _READERS[client.syntax](_split_mark(text)[1])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not valid {client.syntax.upper()}: {error}") from None
    if not isinstance(document, dict):
        raise ValueError("is not valid: its top level is not an object")  # noqa: TRY004 - the text is wrong
    if client.has_list and client.section in document:
        document[client.section] = _index_servers(client, document[client.section])
    return document


def _index_servers(client: Client, servers: Any) -> dict[str, Entry]:
    """Return the servers of a list by their names, as other clients have them."""
    entries = [
        dict(each) if isinstance(each, dict) else {}
        for each in (servers if isinstance(servers, list) else ())
    ]
    names = [entry.pop("name", None) for entry in entries]
    if not isinstance(servers, list | None) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"has a member {client.section!r} that is not a list of named objects")
    return dict(zip(names, entries, strict=True))


def _read_servers(client: Client, document: dict[str, Any]) -> Any:
    servers = document.get(client.section)
    if servers is None:
        return {}
    if not isinstance(servers, dict):
        raise ValueError(f"has a member {client.section!r} that is not an object")  # noqa: TRY004
    return servers


def _check(client: Client, text: str, expected: dict[str, Any]) -> str:
    """Return a string if it parses to the expected settings.

    Raises:
        ValueError: It does not.
    """
    try:
        document = _read(client, text)
    except ValueError:
        document = None
    # Compare as strings, because NaN is not equal to itself.
    if repr(_sort(document)) != repr(_sort(expected)):
        raise ValueError("has a layout that this command cannot edit")
    return text


def _sort(value: Any) -> Any:
    """Sort the members of all objects."""
    if isinstance(value, dict):
        return {key: _sort(value[key]) for key in sorted(value, key=repr)}
    return [_sort(item) for item in value] if isinstance(value, list) else value
