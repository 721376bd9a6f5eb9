"""What `mcp-notebook install` and `uninstall` do and print."""

import json
import shlex
import sys
import zipfile
from pathlib import Path

import anyio
import listing
import pytest
from live import live_kernel
from mcp import Client, StdioServerParameters
from typer.testing import CliRunner

from mcp_notebook.cli import main
from mcp_notebook.clients.editor_extension import EXTENSION
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.snippets import format_install_command
from mcp_notebook.errors import ClientError
from mcp_notebook.settings.settings import Settings


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A machine with Cursor, and nothing else."""
    (tmp_path / ".cursor").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    for variable in (
        "APPDATA",
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "GEMINI_CLI_HOME",
        "XDG_CONFIG_HOME",
    ):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def run(*arguments, **env):
    env = {"COLUMNS": "200", "TERM": "dumb"} | {f"MCP_NOTEBOOK_{k}": v for k, v in env.items()}
    return CliRunner().invoke(main.app, list(arguments), env=env)


@pytest.mark.smoke
def test_one_command_connects_a_client_and_says_what_to_do_next(home):
    answer = run("install", "cursor")
    assert answer.exit_code == 0, answer.output
    file = home / ".cursor" / "mcp.json"
    assert answer.stdout == f"Connected Cursor: the server 'notebook' is in {file}.\n"
    assert CLIENTS["cursor"].next_step in answer.stderr
    entry = json.loads(file.read_text())["mcpServers"]["notebook"]
    assert entry["args"] == ["-P", "-m", "mcp_notebook", "stdio"]
    again = run("install", "cursor")
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout == f"Cursor is already connected: {file} has this server.\n"


def test_what_is_written_finds_the_open_notebooks_without_any_variable(home, module_home):
    answer = run("install", "cursor", HOME=str(module_home / ".mcp-notebook"))
    assert answer.exit_code == 0, answer.output
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["notebook"]
    with live_kernel(module_home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok("%%mcp_tool\ndef add(a: int, b: int):\n    return a + b")
        assert anyio.run(list_tools, entry, home) == ["add"]


async def list_tools(entry, folder):
    """Start a server as a client would that has nothing to pass on, and ask for its tools."""
    nothing = {"PATH": "", "HOME": str(folder / "nowhere"), "SHELL": "", "USER": "", "LOGNAME": ""}
    server = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=nothing | entry["env"], cwd=folder
    )
    async with Client(server) as client:
        return [tool.name for tool in await listing.list_tools(client)]


@pytest.fixture
def editors(home, monkeypatch):
    """Editors' commands, which note how they were called; a function that adds one."""
    folder = home / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def add(name, *, fails=""):
        script = f'#!/bin/sh\necho "{name} $*" >> {home}/calls\n'
        script += f"echo {shlex.quote(fails)} >&2\nexit 1\n" if fails else ""
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)

    add.read = lambda: (home / "calls").read_text().splitlines()
    return add


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are shell scripts")
def test_vs_code_gets_its_panel_and_needs_no_settings(home, editors):
    editors("code")
    editors("codium")
    answer = run("install", "vscode")
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == "Installed the side panel in VS Code (code, codium).\n"
    options = f"--install-extension {EXTENSION} --force"
    assert editors.read() == [f"code {options}", f"codium {options}"]
    assert not list(home.rglob("mcp.json"))
    gone = run("uninstall", "vscode")
    assert gone.stdout == "Removed the side panel from VS Code (code, codium).\n"
    assert editors.read()[-1] == "codium --uninstall-extension mcp-notebook.mcp-notebook"


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are shell scripts")
def test_an_editor_without_servers_of_extensions_gets_the_panel_and_the_settings(home, editors):
    editors("cursor")
    assert "Connected Cursor" in run("install", "cursor").stdout
    assert "--install-extension" in editors.read()[0]
    assert "notebook" in json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert run("install", "cursor", "--print").exit_code == 0
    assert len(editors.read()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are shell scripts")
def test_where_the_panel_cannot_be_installed_vs_code_gets_settings_and_two_clicks_do_it(
    home, editors
):
    (home / ".config" / "Code" / "User").mkdir(parents=True)
    editors("code", fails="It is full.")
    answer = run("install", "vscode")
    assert "`code --install-extension` failed: It is full." in answer.stderr
    assert answer.stderr.count(f"and choose {EXTENSION}.") == 1
    assert "Connected VS Code" in answer.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are shell scripts")
def test_an_editor_whose_command_does_not_run_loses_its_settings_at_least(home, editors):
    editors("cursor")
    run("install", "cursor")
    (home / "bin" / "cursor").write_bytes(b"\x7fELF")
    answer = run("uninstall", "cursor")
    assert "/cursor` did not run: " in answer.stderr
    assert "Uninstall mcp-notebook among the extensions of Cursor." in answer.stderr
    assert "Disconnected Cursor" in answer.stdout
    again = run("install", "cursor")
    assert again.stderr.count(f"and choose {EXTENSION}.") == 1
    assert "Connected Cursor" in again.stdout


def test_the_panel_is_in_the_package():
    assert zipfile.is_zipfile(EXTENSION)


def test_what_is_installed_can_be_removed(home):
    file = home / ".cursor" / "mcp.json"
    file.write_text('{"mcpServers": {"other": {"url": "x"}}} // mine\n')
    assert "Backup of the previous file: " in run("install", "cursor").stderr
    answer = run("uninstall", "cursor")
    assert answer.stdout == f"Disconnected Cursor: removed the server 'notebook' from {file}.\n"
    assert file.read_text() == '{"mcpServers": {"other": {"url": "x"}}} // mine\n'


def test_a_client_gets_notebooks_and_options_of_stdio(home):
    (home / "a.ipynb").touch()
    answer = run("install", "cursor", "--name", "weather", "--read-only", "a.ipynb")
    assert answer.exit_code == 0, answer.output
    servers = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert servers["weather"]["args"][-2:] == ["--read-only", str(home / "a.ipynb")]


def test_a_client_may_connect_by_http(home):
    answer = run("install", "cursor", "--http", TOKEN="very-secret", PORT="9000")
    text = (home / ".cursor" / "mcp.json").read_text()
    assert '"url": "http://127.0.0.1:9000/mcp"' in text
    assert "Set MCP_NOTEBOOK_TOKEN where Cursor is started" in answer.stderr
    assert "very-secret" not in text + answer.output


def test_a_client_that_is_not_installed_is_refused_unless_its_file_is_named(home):
    with pytest.raises(
        ClientError,
        match=r"Windsurf seems not to be installed: .*no command `windsurf`. Install it",
    ):
        raise run("install", "windsurf").exception
    assert run("install", "windsurf", "--file", "some.json").exit_code == 0
    assert "mcpServers" in (home / "some.json").read_text()


def test_without_a_client_those_on_this_machine_are_listed(home):
    answer = run("install")
    assert answer.exit_code == 0
    words = [line.split("\t")[0] for line in answer.stdout.splitlines()]
    assert words == ["vscode-workspace", "cursor", "mcp.json"]
    assert "Not found on this machine: claude-code, claude-desktop, vscode, " in answer.stderr


@pytest.mark.parametrize("options", [["--http", "--url", "http://127.0.0.1:9/mcp"], ["--print"]])
def test_options_without_a_client_are_not_ignored(home, options):
    answer = run("install", *options)
    assert answer.exit_code == 2
    assert "Missing argument 'CLIENT'" in answer.output


def test_uninstall_needs_a_client(home):
    answer = run("uninstall")
    assert answer.exit_code == 2
    assert "Missing argument 'CLIENT'" in answer.output


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://hub.example.org/mcp", "is on another machine, and the connection is not enc"),
        ("hub.example.org/mcp", "With --http, --url is the whole address of an MCP endpoint"),
        ("https://hub.example.org/lab", "Jupyter server, such as http://127.0.0.1:8888/mcp-noteb"),
        ("binder:a/b@c", "With --http, --url is the whole address of an MCP endpoint"),
        ("https://hub.example.org/mcp", "only bridges on this machine take the token"),
        (
            "http://127.0.0.1:8888/mcp-notebook",
            "Name the file with the token for http://127.0.0.1:8",
        ),
    ],
)
def test_a_client_sends_the_token_to_no_other_address_than_that_of_an_endpoint(home, address, said):
    answer = run("install", "cursor", "--http", "--url", address)
    assert said in str(answer.exception)
    assert not (home / ".cursor" / "mcp.json").exists()


def test_a_client_is_connected_to_a_jupyter_server_by_its_endpoint(home):
    address = "http://127.0.0.1:8888/mcp-notebook"
    token_file = home / "token"
    token_file.touch()
    answer = show("cursor", "--http", "--url", address, "--token-file", str(token_file))
    assert json.loads(answer.stdout)["mcpServers"]["notebook"]["url"] == address


@pytest.mark.parametrize("address", ["http://127.0.0.1:9123/mcp", "https://example.org/mcp"])
@pytest.mark.parametrize("token", [None, "very-secret"])
def test_the_line_that_serve_prints_connects_a_client(home, address, token):
    (home / ".claude").mkdir()
    settings = Settings(home=home, token=token)
    settings.token_path.touch()
    command = format_install_command(settings, address)
    env = {"TOKEN": token} if token else {}
    answer = run(*shlex.split(command)[1:], **env)
    assert answer.exit_code == 0, answer.output
    text = (home / ".claude.json").read_text()
    assert f'"url": "{address}"' in text
    assert ("headersHelper" in text) == (token is None)
    assert ("${MCP_NOTEBOOK_TOKEN}" in text) == (token is not None)
    assert "very-secret" not in text


# -- what to copy ----------------------------------------------------------------------------------


def show(*arguments, **env):
    """Print what a client needs, on a machine that may not have it."""
    return run("install", *arguments, "--print", **env)


def test_a_client_gets_what_to_copy_and_where_it_goes(tmp_path):
    answer = show("cursor", HOME=str(tmp_path))
    assert answer.exit_code == 0, answer.output
    server = json.loads(answer.stdout)["mcpServers"]["notebook"]
    assert server["args"][-1] == "stdio"
    assert server["env"] == {"MCP_NOTEBOOK_HOME": str(tmp_path)}
    assert f"Paste this into {Path.home() / '.cursor' / 'mcp.json'}." in answer.stderr
    assert "cursor://anysphere.cursor-deeplink/mcp/install?name=notebook&config=" in answer.stderr


def test_a_client_may_connect_by_http_without_a_token_in_its_settings():
    answer = show("vscode", "--http", TOKEN="very-secret", PORT="9000")
    assert '"url": "http://127.0.0.1:9000/mcp"' in answer.stdout
    assert "${env:MCP_NOTEBOOK_TOKEN}" in answer.stdout
    assert "very-secret" not in answer.output


def test_a_remote_server_is_reached_by_a_command_that_reads_the_token(tmp_path):
    token = tmp_path / "hub.token"
    token.write_text("very-secret")
    address = "https://hub.example.org/user/ada/lab"
    answer = show("claude-desktop", "--url", address, "--token-file", str(token))
    server = json.loads(answer.stdout)["mcpServers"]["notebook"]
    assert server["args"] == [
        "-P",
        "-m",
        "mcp_notebook",
        "connect",
        address,
        "--token-file",
        str(token),
    ]
    assert "very-secret" not in answer.output


def test_the_place_of_a_token_is_for_a_remote_server():
    assert "--token-file needs --url" in show("cursor", "--token-file", "env:T").output


def test_a_client_or_an_option_that_there_is_not_is_refused():
    with pytest.raises(ClientError, match=r"Unknown client 'curser'. Did you mean cursor\?"):
        raise show("curser").exception
    assert "No such option: --recursive" in show("cursor", "--recursive").output
    assert "use letters, digits and hyphens" in show("cursor", "--name", "a_b").output
