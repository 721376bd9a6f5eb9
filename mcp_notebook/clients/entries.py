"""What an entry for a server looks like in each client's settings, and the links that add one.

Pure functions, in every process. Which client has which entry is the business of `known_clients`.
"""

import base64
import json
import shlex
from pathlib import Path
from urllib.parse import quote

from mcp_notebook.clients.client import TOKEN_VARIABLE, Endpoint, Entry, Launch, Server

_STARTUP_SECONDS = 300
"""Seconds for notebooks to run before clients that have a limit give up."""
_CALL_SECONDS = 86_400
"""Seconds for one call in clients that would end it after a minute; the notebook has own limits."""
_GOOSE_SECONDS = 3_600
"""Seconds for one call in Goose, which waits as long for a start that hangs."""


def _launch(launch: Launch) -> Entry:
    env: Entry = {"env": dict(launch.env)} if launch.env else {}
    return {"command": launch.command, "args": list(launch.arguments)} | env


def _bearer(value: str) -> Entry:
    return {"Authorization": f"Bearer {value}"}


def make_claude_code(server: Server) -> Entry:
    """Return Claude Code's entry. It runs a ``headersHelper`` whenever it connects."""
    if isinstance(server, Launch):
        return {"type": "stdio"} | _launch(server)
    entry: Entry = {"type": "http", "url": server.url}
    if server.token_file is None:
        return entry | {"headers": _bearer(f"${{{TOKEN_VARIABLE}}}")}
    return entry | {"headersHelper": _print_header(server.token_file)}


def _print_header(file: Path) -> str:
    script = shlex.quote('s/.*/{"Authorization":"Bearer &"}/')
    return f"sed {script} {shlex.quote(str(file))}"


def make_plain(server: Server) -> Entry:
    """Return the entry that most clients understand."""
    if isinstance(server, Launch):
        return _launch(server)
    return {
        "type": "http",
        "url": server.url,
        "headers": _bearer(f"${{{TOKEN_VARIABLE}}}"),
    }


def make_vscode(server: Server) -> Entry:
    """Return VS Code's entry."""
    if isinstance(server, Launch):
        return {"type": "stdio"} | _launch(server)
    return {
        "type": "http",
        "url": server.url,
        "headers": _bearer(f"${{env:{TOKEN_VARIABLE}}}"),
    }


def make_cursor(server: Server) -> Entry:
    """Return Cursor's entry."""
    if isinstance(server, Launch):
        return {"type": "stdio"} | _launch(server)
    return {"url": server.url, "headers": _bearer(f"${{env:{TOKEN_VARIABLE}}}")}


def make_windsurf(server: Server) -> Entry:
    """Return Windsurf's entry."""
    if isinstance(server, Launch):
        return _launch(server)
    return {"serverUrl": server.url, "headers": _bearer(f"${{env:{TOKEN_VARIABLE}}}")}


def make_gemini(server: Server) -> Entry:
    """Return Gemini CLI's entry; ``url`` would be another transport."""
    if isinstance(server, Launch):
        return _launch(server)
    return {"httpUrl": server.url, "headers": _bearer(f"${{{TOKEN_VARIABLE}}}")}


def make_codex(server: Server) -> Entry:
    """Return Codex's entry. Its limits are ten seconds for a start and a minute for a call."""
    if isinstance(server, Endpoint):
        entry: Entry = {"url": server.url, "bearer_token_env_var": TOKEN_VARIABLE}
    else:
        entry = _launch(server)
        if server.runs_notebooks:
            entry["startup_timeout_sec"] = _STARTUP_SECONDS
    return entry | {"tool_timeout_sec": _CALL_SECONDS}


def make_goose(server: Server) -> Entry:
    """Return Goose's entry. Its one limit is for starts and calls, by default five minutes."""
    entry: Entry = {
        "enabled": True,
        "name": "notebook",
        "description": "Tools of Jupyter notebooks",
        "timeout": _GOOSE_SECONDS,
    }
    if isinstance(server, Endpoint):
        return entry | {
            "type": "streamable_http",
            "uri": server.url,
            "headers": _bearer(f"${{{TOKEN_VARIABLE}}}"),
            "envs": {},
            "env_keys": [TOKEN_VARIABLE],
        }
    return entry | {
        "type": "stdio",
        "cmd": server.command,
        "args": list(server.arguments),
        "envs": dict(server.env),
        "env_keys": [],
    }


def make_continue(server: Server) -> Entry:
    """Return Continue's entry, without the name that is its first member."""
    if isinstance(server, Launch):
        entry: Entry = {"type": "stdio"} | _launch(server)
        if server.runs_notebooks:
            entry["connectionTimeout"] = _STARTUP_SECONDS * 1_000
        return entry
    header = _bearer(f"${{{{ secrets.{TOKEN_VARIABLE} }}}}")
    return {
        "type": "streamable-http",
        "url": server.url,
        "requestOptions": {"headers": header},
    }


def make_vscode_link(name: str, entry: Entry) -> str:
    """Return the link that opens VS Code and asks whether to add the server."""
    return f"vscode:mcp/install?{quote(_compact({'name': name} | entry), safe='')}"


def make_cursor_link(name: str, entry: Entry) -> str:
    """Return the link that opens Cursor and asks whether to add the server."""
    config = quote(base64.b64encode(_compact(entry).encode()).decode(), safe="")
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={quote(name)}&config={config}"


def _compact(entry: Entry) -> str:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
