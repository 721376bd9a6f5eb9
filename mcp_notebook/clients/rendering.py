"""Writes an entry in the formats of settings: JSON, TOML and YAML, without their libraries.

Pure functions, in every process: kernels show entries, too, and load no library for that. An entry
has texts, numbers, lists and objects.
"""

import json
import re
from typing import Any

from mcp_notebook.clients.client import Client, Entry

_PLAIN_KEY = re.compile(r"(?!(?i:true|false|null|yes|no|on|off|y|n)\Z)[A-Za-z_][A-Za-z0-9_-]*")
"""Not what YAML takes for a truth value."""


def name_entry(client: Client, entry: Entry, name: str) -> Entry:
    """Return an entry with the name that it has within, in clients where it has one there."""
    if client.is_list:
        return {"name": name} | entry
    return entry | {"name": name} if "name" in entry else entry


def render_document(client: Client, entry: Entry, name: str) -> str:
    """Return the text of a settings file that holds nothing but one entry."""
    servers: Any = [entry] if client.is_list else {name: entry}
    document = {**(client.required or {}), client.section: servers}
    if client.syntax == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if client.syntax == "toml":
        return render_toml_table(client.section, name, entry)
    return render_yaml(document)


def render_toml_table(section: str, name: str, table: Entry) -> str:
    """Return a table of TOML in another one; objects in it are on one line."""
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
    """Return an object as a block of YAML; lists of texts are on one line."""
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
    """Return an object as an item of a list in YAML."""
    block = render_yaml(item, f"{indent}  ")
    return f"{indent}- {block.removeprefix(f'{indent}  ')}"


def render_key(key: str) -> str:
    """Return a key of TOML or YAML."""
    return key if _PLAIN_KEY.fullmatch(key) else render_scalar(key)


def render_scalar(value: str | float) -> str:
    """Return a text, number or truth value as TOML and YAML write it: as JSON does.

    Characters that one of them refuses unescaped are escaped.
    """
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", _escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
