"""All clients that this package can set up: their settings files, entries and links.

Pure functions and data, in every process. A comment at each client cites the source of the facts.
"""

import base64
import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from mcp_notebook.clients.client import (
    TOKEN_VARIABLE,
    Client,
    Endpoint,
    Entry,
    Launch,
    Machine,
    Server,
)
from mcp_notebook.errors import ClientError
from mcp_notebook.text.wording import suggest

_STARTUP_SECONDS = 300
"""Seconds for notebooks to run, in clients with a startup timeout."""
_CALL_SECONDS = 86_400
"""Seconds for one call, in clients with a timeout of a minute; notebooks have their own limits."""
_PLAIN, _OF_ENV = f"${{{TOKEN_VARIABLE}}}", f"${{env:{TOKEN_VARIABLE}}}"
"""How clients write the variable with the token."""


# -- where settings are ----------------------------------------------------------------------------


def _find_claude_code(machine: Machine) -> Path:
    # The variable moves the settings folder, and this file into it.
    variable = machine.env.get("CLAUDE_CONFIG_DIR")
    return Path(variable or machine.home) / ".claude.json"


def _find_zed(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.app_data / "Zed" / "settings.json"
    folder = machine.home / ".config" if machine.platform == "darwin" else machine.config
    return folder / "zed" / "settings.json"


# -- entries ---------------------------------------------------------------------------------------


def _launch(launch: Launch) -> Entry:
    env: Entry = {"env": dict(launch.env)} if launch.env else {}
    return {"command": launch.command, "args": list(launch.arguments)} | env


def _bearer(value: str) -> Entry:
    return {"Authorization": f"Bearer {value}"}


def _make_claude_code(server: Server) -> Entry:
    """Return Claude Code's entry. Claude Code runs ``headersHelper`` whenever it connects."""
    if isinstance(server, Launch):
        return {"type": "stdio"} | _launch(server)
    entry = {"type": "http", "url": server.url}
    if server.token_file is None:
        return entry | {"headers": _bearer(_PLAIN)}
    return entry | {"headersHelper": _print_header(server.token_file)}


def _print_header(file: Path) -> str:
    script = shlex.quote('s/.*/{"Authorization":"Bearer &"}/')
    return f"sed {script} {shlex.quote(str(file))}"


def _form(
    token: str, *, launch: Entry | None = None, http: Entry | None = None, url: str = "url"
) -> Callable[[Server], Entry]:
    """Return how a client writes entries: where the token is, and members besides the usual."""

    def make_entry(server: Server) -> Entry:
        if isinstance(server, Launch):
            return (launch or {}) | _launch(server)
        return (http or {}) | {url: server.url, "headers": _bearer(token)}

    return make_entry


_STDIO, _HTTP = {"type": "stdio"}, {"type": "http"}
_make_plain = _form(_PLAIN, http=_HTTP)
"""Returns the entry that most clients understand."""
_make_vscode = _form(_OF_ENV, launch=_STDIO, http=_HTTP)


def _make_codex(server: Server) -> Entry:
    """Return Codex's entry. Its default timeouts are 10 s for a start and 60 s for a call."""
    if isinstance(server, Endpoint):
        entry: Entry = {"url": server.url, "bearer_token_env_var": TOKEN_VARIABLE}
    else:
        entry = _launch(server)
        if server.runs_notebooks:
            entry["startup_timeout_sec"] = _STARTUP_SECONDS
    return entry | {"tool_timeout_sec": _CALL_SECONDS}


def _make_jupyter_ai(server: Server) -> Entry:
    """Return Jupyter AI's entry, in the form of the Agent Client Protocol."""
    entry = _make_vscode(server)
    env = [{"name": name, "value": value} for name, value in entry.pop("env", {}).items()]
    return entry | ({"env": env} if env else {})


def _make_vscode_link(name: str, entry: Entry) -> str:
    """Return the link that opens VS Code and asks whether to add the server."""
    return f"vscode:mcp/install?{quote(_compact({'name': name} | entry), safe='')}"


def _make_cursor_link(name: str, entry: Entry) -> str:
    """Return the link that opens Cursor and asks whether to add the server."""
    config = quote(base64.b64encode(_compact(entry).encode()).decode(), safe="")
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={quote(name)}&config={config}"


def _compact(entry: Entry) -> str:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))


# -- the clients -----------------------------------------------------------------------------------

_LIST = (
    Client(
        # code.claude.com/docs/en/mcp; tried with 2.1.197.
        name="claude-code",
        program="claude-code",
        title="Claude Code",
        find_file=_find_claude_code,
        make_entry=_make_claude_code,
        header_from="file",
        commands=("claude",),
        trace=".claude",
        start_seconds=30,
        next_step="Start `claude` again; `/mcp` shows the connection.",
    ),
    Client(
        # modelcontextprotocol.io/docs/develop/connect-local-servers. Remote servers
        # can only be added in its UI, and a changed list drops all tools (claude-ai-mcp issue 960).
        name="claude-desktop",
        title="Claude Desktop",
        find_file=lambda machine: machine.app_data / "Claude" / "claude_desktop_config.json",
        make_entry=_make_plain,
        header_from="nowhere",
        sees_new_tools=False,
        next_step="Quit Claude Desktop and start it again; closing its window is not enough.",
    ),
    Client(
        # code.visualstudio.com/docs/copilot/reference/mcp-configuration.
        name="vscode",
        title="VS Code",
        find_file=lambda machine: machine.app_data / "Code" / "User" / "mcp.json",
        section="servers",
        make_entry=_make_vscode,
        commands=("code",),
        make_link=_make_vscode_link,
        next_step="Run 'MCP: List Servers' in VS Code's command palette, and start the server.",
    ),
    Client(
        name="vscode-workspace",
        title="VS Code (this folder)",
        find_file=lambda machine: machine.folder / ".vscode" / "mcp.json",
        section="servers",
        make_entry=_make_vscode,
        belongs_to_folder=True,
        make_link=_make_vscode_link,
        next_step="Open this folder in VS Code, run 'MCP: List Servers' in its command palette, "
        "and start the server.",
    ),
    Client(
        # cursor.com/docs/mcp and cursor.com/docs/mcp/install-links.
        name="cursor",
        title="Cursor",
        find_file=lambda machine: machine.home / ".cursor" / "mcp.json",
        make_entry=_form(_OF_ENV, launch=_STDIO),
        commands=("cursor",),
        make_link=_make_cursor_link,
        next_step="Start Cursor again; its settings list the server under 'Tools & MCP'.",
    ),
    Client(
        # docs.windsurf.com/windsurf/cascade/mcp, which does not mention changed tool lists.
        name="windsurf",
        title="Windsurf",
        find_file=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        make_entry=_form(_OF_ENV, url="serverUrl"),
        sees_new_tools=False,
        commands=("windsurf",),
        next_step="Press the refresh button of 'MCPs' in Windsurf's Cascade panel.",
    ),
    Client(
        # docs/tools/mcp-server.md of its package; tried with 0.61.
        name="gemini",
        program="gemini-cli-mcp-client",
        title="Gemini CLI",
        find_file=lambda machine: (
            machine.find_folder("GEMINI_CLI_HOME", "") / ".gemini" / "settings.json"
        ),
        make_entry=_form(_PLAIN, url="httpUrl"),  # `url` would select another transport
        commands=("gemini",),
        start_seconds=600,
        start_member=("timeout", 0.001),
        next_step="Start `gemini` again; `/mcp` shows the connection.",
    ),
    Client(
        # developers.openai.com/codex/mcp; tried with 0.169. It never lists the tools again.
        name="codex",
        program="codex-mcp-client",
        title="Codex CLI",
        find_file=lambda machine: machine.find_folder("CODEX_HOME", ".codex") / "config.toml",
        syntax="toml",
        section="mcp_servers",
        make_entry=_make_codex,
        sees_new_tools=False,
        commands=("codex",),
        start_seconds=10,
        start_member=("startup_timeout_sec", 1),
        next_step="Start `codex` again; `/mcp` shows the connection.",
    ),
    Client(
        # docs/src/ai/mcp.md and docs/src/configuring-zed.md in its repository. Headers are
        # literal, so a token could only be given by writing it into the file.
        name="zed",
        title="Zed",
        find_file=_find_zed,
        section="context_servers",
        make_entry=_make_plain,
        header_from="nowhere",
        commands=("zed", "zeditor"),
        next_step="Zed starts the server at once; its Agent panel's settings show a green dot.",
    ),
    Client(
        # docs/app/mcp of lmstudio.ai: the notation is Cursor's, and headers are literal. It does
        # not mention changed tool lists.
        name="lm-studio",
        title="LM Studio",
        find_file=lambda machine: machine.home / ".lmstudio" / "mcp.json",
        make_entry=_make_plain,
        header_from="nowhere",
        sees_new_tools=False,
        next_step="Start LM Studio again; 'Program' in its sidebar lists the server.",
    ),
    Client(
        # persona_manager.py and mcp_server_models.py of jupyter-ai-persona-manager 0.2.2: it looks
        # from the folder of the chat up to Jupyter's root folder. Headers are literal.
        name="jupyter-ai",
        title="Jupyter AI (this folder)",
        find_file=lambda machine: machine.folder / ".jupyter" / "mcp_settings.json",
        section="mcp_servers",
        has_list=True,
        make_entry=_make_jupyter_ai,
        header_from="nowhere",
        package="jupyter_ai",
        belongs_to_folder=True,
        next_step="Start a new chat in Jupyter AI, in the folder where Jupyter runs or below it.",
    ),
    Client(
        # config.py and mcp_manager.py of notebook-intelligence 6.2, which lists tools once, and in
        # its Claude mode uses Claude Code with that program's settings. Headers are literal.
        name="notebook-intelligence",
        title="Notebook Intelligence",
        find_file=lambda machine: machine.home / ".jupyter" / "nbi" / "mcp.json",
        make_entry=_make_plain,
        header_from="nowhere",
        sees_new_tools=False,
        package="notebook_intelligence",
        next_step="Start Jupyter again, and choose the tools in the agent mode of its chat. Its "
        "Claude mode needs `mcp-notebook install claude-code` instead.",
    ),
    Client(
        # Read by Claude Code, VS Code's Copilot and others in a project's folder.
        name="mcp.json",
        title="Project (.mcp.json)",
        find_file=lambda machine: machine.folder / ".mcp.json",
        make_entry=_make_plain,
        belongs_to_folder=True,
        next_step="Start the client in this folder, and allow it to use the server.",
    ),
)

CLIENTS: Mapping[str, Client] = {client.name: client for client in _LIST}
"""All clients by name, in display order."""


def find_client(name: str) -> Client:
    """Return the client with a name.

    Raises:
        ClientError: No client has this name.
    """
    client = CLIENTS.get(name.lower())
    if client is None:
        close = suggest(name.lower(), CLIENTS)
        hint = f"Did you mean {close}? " if close else ""
        raise ClientError(
            f"Unknown client {name!r}. {hint}The known clients are {', '.join(CLIENTS)}; most "
            "others accept the entry of mcp.json."
        )
    return client
