"""Each client's file and entry, on each platform, as its documentation has them."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from mcp_notebook.clients.client import Endpoint, Launch, Machine
from mcp_notebook.clients.known_clients import CLIENTS, find_client
from mcp_notebook.errors import ClientError

HOME = Path("/home/ada")
FOLDER = HOME / "work"
MAC = HOME / "Library" / "Application Support"
ROAMING = Path("/roaming")
COMMAND = {"command": "/env/bin/python", "args": ["-m", "mcp_notebook"], "env": {"A": "b"}}
LAUNCH = Launch(
    command="/env/bin/python",
    arguments=("-m", "mcp_notebook"),
    env={"A": "b"},
    runs_notebooks=False,
)
HEADLESS = Launch(command="py", arguments=("a.ipynb",), env={}, runs_notebooks=True)
URL = "http://127.0.0.1:8791/mcp"
ENDPOINT = Endpoint(url=URL, token_file=None, token_place="a file")

FILES = {
    "claude-code": [HOME / ".claude.json"] * 3,
    "claude-desktop": [
        folder / "Claude" / "claude_desktop_config.json"
        for folder in (HOME / ".config", MAC, ROAMING)
    ],
    "vscode": [folder / "Code/User/mcp.json" for folder in (HOME / ".config", MAC, ROAMING)],
    "vscode-workspace": [FOLDER / ".vscode" / "mcp.json"] * 3,
    "cursor": [HOME / ".cursor" / "mcp.json"] * 3,
    "windsurf": [HOME / ".codeium" / "windsurf" / "mcp_config.json"] * 3,
    "gemini": [HOME / ".gemini" / "settings.json"] * 3,
    "codex": [HOME / ".codex" / "config.toml"] * 3,
    "zed": [
        HOME / ".config/zed/settings.json",
        HOME / ".config/zed/settings.json",
        ROAMING / "Zed/settings.json",
    ],
    "lm-studio": [HOME / ".lmstudio" / "mcp.json"] * 3,
    "jupyter-ai": [FOLDER / ".jupyter" / "mcp_settings.json"] * 3,
    "notebook-intelligence": [HOME / ".jupyter" / "nbi" / "mcp.json"] * 3,
    "mcp.json": [FOLDER / ".mcp.json"] * 3,
}
"""On Linux, macOS and Windows."""


def machine(platform, **env):
    env = {"APPDATA": str(ROAMING)} | env
    return Machine(platform=platform, home=HOME, folder=FOLDER, env=env)


def entry(name, server):
    return CLIENTS[name].make_entry(server)


def test_the_files_of_all_clients_are_known():
    assert list(FILES) == list(CLIENTS)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_clients_file_is_where_the_client_looks_on_each_platform(name):
    find = CLIENTS[name].find_file
    assert [find(machine(platform)) for platform in ("linux", "darwin", "win32")] == FILES[name]


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
    ],
)
def test_a_variable_moves_a_clients_file(name, variable, file):
    moved = machine("linux", **{variable: "/elsewhere"})
    assert CLIENTS[name].find_file(moved) == Path("/elsewhere") / file


@pytest.mark.parametrize("name", ["claude-code", "vscode", "cursor"])
def test_some_clients_want_to_know_that_a_server_is_a_command(name):
    assert entry(name, LAUNCH) == {"type": "stdio"} | COMMAND


def test_codex_waits_for_notebooks_that_are_run_first():
    assert entry("codex", HEADLESS)["startup_timeout_sec"] == 300
    assert "startup_timeout_sec" not in entry("codex", LAUNCH)


BEARER = {"Authorization": "Bearer ${MCP_NOTEBOOK_TOKEN}"}
ENV_BEARER = {"Authorization": "Bearer ${env:MCP_NOTEBOOK_TOKEN}"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-code", {"type": "http", "url": URL, "headers": BEARER}),
        ("vscode", {"type": "http", "url": URL, "headers": ENV_BEARER}),
        ("vscode-workspace", {"type": "http", "url": URL, "headers": ENV_BEARER}),
        ("cursor", {"url": URL, "headers": ENV_BEARER}),
        ("windsurf", {"serverUrl": URL, "headers": ENV_BEARER}),
        ("gemini", {"httpUrl": URL, "headers": BEARER}),
        ("codex", {"url": URL, "bearer_token_env_var": "MCP_NOTEBOOK_TOKEN"}),
        ("mcp.json", {"type": "http", "url": URL, "headers": BEARER}),
    ],
)
def test_a_client_gets_an_address_and_the_name_of_the_tokens_variable(name, expected):
    assert entry(name, ENDPOINT).items() >= expected.items()


def test_claude_code_reads_the_tokens_file_itself():
    helper = entry(
        "claude-code", Endpoint(url=URL, token_file=Path("/my home/token"), token_place="")
    )
    assert helper == {
        "type": "http",
        "url": URL,
        "headersHelper": """sed 's/.*/{"Authorization":"Bearer &"}/' '/my home/token'""",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="a command for a POSIX shell")
def test_what_claude_code_runs_prints_the_header_wherever_the_file_is(tmp_path):
    """Claude Code 2.1.197 runs it in a shell whenever it connects."""
    file = tmp_path / 'my "home\'s" ü $x'
    file.write_text("secret\n")
    helper = entry("claude-code", Endpoint(url=URL, token_file=file, token_place=""))
    words = ["/bin/sh", "-c", helper["headersHelper"]]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"Authorization": "Bearer secret"}


def test_a_link_of_vs_code_has_the_entry_and_its_name():
    client = CLIENTS["vscode"]
    scheme, _, text = client.make_link("weather", client.make_entry(LAUNCH)).partition("?")
    assert scheme == "vscode:mcp/install"
    assert json.loads(unquote(text)) == {"name": "weather", "type": "stdio"} | COMMAND


def test_a_link_of_cursor_has_the_entry_in_base64():
    client = CLIENTS["cursor"]
    address = urlsplit(client.make_link("weather", client.make_entry(LAUNCH)))
    assert (address.scheme, address.netloc, address.path) == (
        "cursor",
        "anysphere.cursor-deeplink",
        "/mcp/install",
    )
    query = parse_qs(address.query)
    assert query["name"] == ["weather"]
    assert json.loads(base64.b64decode(query["config"][0])) == {"type": "stdio"} | COMMAND


def test_an_unknown_client_is_answered_with_those_that_there_are():
    assert find_client("Cursor") is CLIENTS["cursor"]
    with pytest.raises(ClientError, match=r"Unknown client 'curser'. Did you mean cursor\?"):
        find_client("curser")
    with pytest.raises(ClientError, match=r"claude-code, claude-desktop, .*accept the entry"):
        find_client("emacs")
