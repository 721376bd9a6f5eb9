"""Renders an entry as JSON, TOML or YAML, without their libraries.

Pure functions, in every process: kernels also show entries, and must not load a library for it. An
entry has strings, numbers, lists and objects.
"""

import json
import re
from typing import Any

from mcp_notebook.clients.client import Client, Entry

_PLAIN_KEY = re.compile(r"(?!(?i:true|false|null|yes|no|on|off|y|n)\Z)[A-Za-z_][A-Za-z0-9_-]*")
"""Excludes the words that YAML reads as booleans."""


def name_entry(client: Client, entry: Entry, name: str) -> Entry:
    """Add the server's name to an entry, for clients whose entries contain it."""
    if client.is_list:
        return {"name": name} | entry
    return entry | {"name": name} if "name" in entry else entry


def render_document(client: Client, entry: Entry, name: str) -> str:
    """Return the text of a settings file with a single entry."""
    servers: Any = [entry] if client.is_list else {name: entry}
    document = {**(client.required or {}), client.section: servers}
    if client.syntax == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if client.syntax == "toml":
        return render_toml_table(client.section, name, entry)
    return render_yaml(document)


def render_toml_table(section: str, name: str, table: Entry) -> str:
    """Return an entry as a TOML table, with nested objects inline."""
    lines = [f"{render_key(key)} = {_render_toml(value)}" for key, value in table.items()]
    return "\n".join([f"[{section}.{render_key(name)}]", *lines]) + "\n"


def _render_toml(value: Any) -> str:
    if isinstance(value, dict):
        members = ", ".join(f"{render_key(key)} = {_render_toml(v)}" for key, v in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_render_toml, value))}]"
    return render_scalar(value)


def render_yaml(value: Entry, indent: str = "") -> str:
    """Return an object as a YAML block, with lists of strings inline."""
    lines = []
    for key, member in value.items():
        head = f"{indent}{render_key(key)}:"
        if isinstance(member, dict) and member:
            lines.append(f"{head}\n{render_yaml(member, f'{indent}  ')}")
        elif isinstance(member, list) and any(isinstance(item, dict) for item in member):
            lines.append(f"{head}\n" + "".join(render_yaml_item(m, f"{indent}  ") for m in member))
        elif isinstance(member, list):
            lines.append(f"{head} [{', '.join(map(render_scalar, member))}]\n")
        else:
            lines.append(f"{head} {'{}' if member == {} else render_scalar(member)}\n")
    return "".join(lines)


def render_yaml_item(item: Entry, indent: str) -> str:
    """Return an object as an item of a YAML list."""
    block = render_yaml(item, f"{indent}  ")
    return f"{indent}- {block.removeprefix(f'{indent}  ')}"


def render_key(key: str) -> str:
    """Return a key as TOML and YAML write it."""
    return key if _PLAIN_KEY.fullmatch(key) else render_scalar(key)


def render_scalar(value: str | float) -> str:
    """Return a string, number or boolean as TOML and YAML write it, which is JSON's form.

    Characters that one of the formats rejects are escaped.
    """
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", _escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
