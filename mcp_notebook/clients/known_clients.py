"""All clients that this package can set up, with where each fact about them is from.

In every process. `install` writes the entries, `snippets` shows them.
"""

from collections.abc import Mapping
from pathlib import Path

from mcp_notebook.clients import entries
from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.errors import ClientError
from mcp_notebook.text.wording import suggest


def _find_claude_code(machine: Machine) -> Path:
    # Its settings folder moves with the variable, and this file moves into it.
    variable = machine.env.get("CLAUDE_CONFIG_DIR")
    return Path(variable or machine.home) / ".claude.json"


def _find_goose(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.app_data / "Block" / "goose" / "config" / "config.yaml"
    return machine.config / "goose" / "config.yaml"


def _find_zed(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.app_data / "Zed" / "settings.json"
    folder = machine.home / ".config" if machine.platform == "darwin" else machine.config
    return folder / "zed" / "settings.json"


_LIST = (
    Client(
        # code.claude.com/docs/en/mcp; tried with 2.1.197.
        name="claude-code",
        title="Claude Code",
        find_file=_find_claude_code,
        make_entry=entries.make_claude_code,
        header_from="file",
        commands=("claude",),
        trace=".claude",
        start_seconds=30,
        next_step="Start `claude` again; `/mcp` shows the connection.",
    ),
    Client(
        # modelcontextprotocol.io/docs/develop/connect-local-servers. It adds remote servers by
        # its own pages only, and drops the tools of a changed list (claude-ai-mcp issue 960).
        name="claude-desktop",
        title="Claude Desktop",
        find_file=lambda machine: machine.app_data / "Claude" / "claude_desktop_config.json",
        make_entry=entries.make_plain,
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
        make_entry=entries.make_vscode,
        commands=("code",),
        make_link=entries.make_vscode_link,
        next_step="Run *MCP: List Servers* in VS Code's command palette, and start the server.",
    ),
    Client(
        name="vscode-workspace",
        title="VS Code (this folder)",
        find_file=lambda machine: machine.folder / ".vscode" / "mcp.json",
        section="servers",
        make_entry=entries.make_vscode,
        belongs_to_folder=True,
        make_link=entries.make_vscode_link,
        next_step="Open this folder in VS Code, run *MCP: List Servers* in its command palette, "
        "and start the server.",
    ),
    Client(
        # cursor.com/docs/mcp and cursor.com/docs/mcp/install-links.
        name="cursor",
        title="Cursor",
        find_file=lambda machine: machine.home / ".cursor" / "mcp.json",
        make_entry=entries.make_cursor,
        commands=("cursor",),
        make_link=entries.make_cursor_link,
        next_step="Start Cursor again; its settings list the server under *Tools & MCP*.",
    ),
    Client(
        # docs.windsurf.com/windsurf/cascade/mcp. It does not say that it follows a changed list.
        name="windsurf",
        title="Windsurf",
        find_file=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        make_entry=entries.make_windsurf,
        sees_new_tools=False,
        commands=("windsurf",),
        next_step="Press the refresh button of *MCPs* in Windsurf's Cascade panel.",
    ),
    Client(
        # docs/tools/mcp-server.md of its package; tried with 0.61.
        name="gemini",
        title="Gemini CLI",
        find_file=lambda machine: (
            machine.find_folder("GEMINI_CLI_HOME", "") / ".gemini" / "settings.json"
        ),
        make_entry=entries.make_gemini,
        commands=("gemini",),
        start_seconds=600,
        start_member=("timeout", 0.001),
        next_step="Start `gemini` again; `/mcp` shows the connection.",
    ),
    Client(
        # developers.openai.com/codex/mcp; tried with 0.169. It never lists the tools again.
        name="codex",
        title="Codex CLI",
        find_file=lambda machine: machine.find_folder("CODEX_HOME", ".codex") / "config.toml",
        syntax="toml",
        section="mcp_servers",
        make_entry=entries.make_codex,
        sees_new_tools=False,
        commands=("codex",),
        start_seconds=10,
        start_member=("startup_timeout_sec", 1),
        next_step="Start `codex` again; `/mcp` shows the connection.",
    ),
    Client(
        # documentation/docs/guides/config-files.md and crates/goose/src/agents/ in its
        # repository. It lists the tools again before the user's next turn (issue 10433).
        name="goose",
        title="Goose",
        find_file=_find_goose,
        syntax="yaml",
        section="extensions",
        make_entry=entries.make_goose,
        commands=("goose",),
        start_seconds=300,
        start_member=("timeout", 1),
        next_step="Start a new session in Goose.",
    ),
    Client(
        # docs/src/ai/mcp.md and docs/src/configuring-zed.md in its repository. Headers are
        # written out there, so that it cannot be given a token without one in the file.
        name="zed",
        title="Zed",
        find_file=_find_zed,
        section="context_servers",
        make_entry=entries.make_plain,
        header_from="nowhere",
        commands=("zed", "zeditor"),
        next_step="Zed starts the server at once; its Agent panel's settings show a green dot.",
    ),
    Client(
        # docs/customize/deep-dives/mcp.mdx and the schemas in its repository. It has no handler
        # for a changed list. Secrets are read from its own .env and the environment.
        name="continue",
        title="Continue",
        find_file=lambda machine: (
            machine.find_folder("CONTINUE_GLOBAL_DIR", ".continue") / "config.yaml"
        ),
        syntax="yaml",
        is_list=True,
        required={"name": "Main Config", "version": "1.0.0", "schema": "v1"},
        former_file="config.json",
        make_entry=entries.make_continue,
        sees_new_tools=False,
        commands=("cn",),
        start_seconds=20,
        start_member=("connectionTimeout", 0.001),
        next_step="Continue reads it at once; its tools are there in agent mode.",
    ),
    Client(
        # What Claude Code, VS Code's Copilot and others read in the folder of a project.
        name="mcp.json",
        title="Project (.mcp.json)",
        find_file=lambda machine: machine.folder / ".mcp.json",
        make_entry=entries.make_plain,
        belongs_to_folder=True,
        next_step="Start the client in this folder, and allow it to use the server.",
    ),
)

CLIENTS: Mapping[str, Client] = {client.name: client for client in _LIST}
"""All of them, by name, in the order in which people are shown them."""


def find_client(name: str) -> Client:
    """Return the client of a name.

    Raises:
        ClientError: There is none.
    """
    client = CLIENTS.get(name.lower())
    if client is None:
        close = suggest(name.lower(), CLIENTS)
        hint = f"Did you mean {close}? " if close else ""
        raise ClientError(
            f"There is no client {name!r}. {hint}Those that can be set up are "
            f"{', '.join(CLIENTS)}; most others read the lines of mcp.json."
        )
    return client
