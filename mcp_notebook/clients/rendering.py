"""Renders an entry as JSON or TOML, without a library.

Pure functions, in every process: kernels also show entries, and must not load a library for it. An
entry has strings, numbers, lists and objects.
"""

import json
import re
from typing import Any

from mcp_notebook.clients.client import Client, Entry

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def render_document(client: Client, entry: Entry, name: str) -> str:
    """Return the text of a settings file with a single entry."""
    if client.syntax == "toml":
        return render_toml_table(client.section, name, entry)
    servers = [{"name": name} | entry] if client.has_list else {name: entry}
    return json.dumps({client.section: servers}, indent=2, ensure_ascii=False) + "\n"


def render_toml_table(section: str, name: str, table: Entry) -> str:
    """Return an entry as a TOML table, with nested objects inline."""
    lines = [f"{_render_key(key)} = {_render_toml(value)}" for key, value in table.items()]
    return "\n".join([f"[{section}.{_render_key(name)}]", *lines]) + "\n"


def _render_toml(value: Any) -> str:
    if isinstance(value, dict):
        members = ", ".join(f"{_render_key(key)} = {_render_toml(v)}" for key, v in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_render_toml, value))}]"
    return _render_scalar(value)


def _render_key(key: str) -> str:
    """Return a key as TOML writes it."""
    return key if _PLAIN_KEY.fullmatch(key) else _render_scalar(key)


def _render_scalar(value: str | float) -> str:
    """Return a string, number or boolean as TOML writes it, which is JSON's form.

    Characters that TOML rejects are escaped.
    """
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", _escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
