"""What `mcp-notebook doctor` says of what clients' settings tell them."""

import json
import sys

import pytest
from bridges import TOKEN, http_bridge
from live import live_kernel
from typer.testing import CliRunner

from mcp_notebook import cli
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.servers import build_launch
from mcp_notebook.errors import ClientError
from mcp_notebook.settings import Settings


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A machine without clients."""
    monkeypatch.chdir(tmp_path)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    for variable in ("APPDATA", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("XDG_CONFIG_HOME", "MCP_NOTEBOOK_HOME", "MCP_NOTEBOOK_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def write(user, entry):
    """Connect Cursor in a certain way."""
    file = user / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {"notebook": entry}}))
    return file


def doctor(*arguments, **env):
    return CliRunner().invoke(cli.app, ["doctor", *arguments], env=env)


def check(user, entry, *problems, **env):
    """Check that a certain entry is found to be wrong."""
    file = write(user, entry)
    answer = doctor(**env)
    assert answer.exit_code == 1
    assert answer.stdout.startswith(f"Cursor, {file}:\n  Problem: ")
    for problem in problems:
        assert problem in answer.stdout


def test_the_tools_of_a_client_that_works_are_listed(user, module_home):
    launch = build_launch(CLIENTS["cursor"], Settings(home=module_home / ".mcp-notebook"))
    entry = {"command": launch.command, "args": launch.arguments, "env": dict(launch.env)}
    file = write(user, entry)
    with live_kernel(module_home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok("%%mcp_tool\ndef add(a: int, b: int):\n    return a + b")
        answer = doctor("cursor")
    assert answer.stdout == f"Cursor, {file}:\n  Works: 1 tool: add.\n"
    assert answer.exit_code == 0


def test_a_client_that_works_without_notebooks_is_told_what_is_missing(user):
    runner = CliRunner()
    (user / ".codex").mkdir()
    assert runner.invoke(cli.app, ["install", "codex"]).exit_code == 0
    answer = doctor()
    assert "Works, but there are no tools: no open notebook has run `%load_ext" in answer.stdout
    assert answer.exit_code == 0


def test_a_python_that_is_gone_is_named(user):
    entry = {"command": str(user / "gone" / "python"), "args": ["-m", "mcp_notebook", "stdio"]}
    check(user, entry, f"There is no program {entry['command']}: ", "install CLIENT --replace`")


def test_a_python_without_mcp_notebook_is_named(user):
    entry = {"command": sys.executable, "args": ["-I", "-S", "-m", "mcp_notebook", "stdio"]}
    check(user, entry, "no longer installed there: ", "    ", "No module named mcp_notebook")


def test_a_command_that_ends_is_shown_with_what_it_said(user):
    entry = {"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]}
    check(user, entry, "It does not answer as a server does", "\n      no licence")


def test_an_entry_without_a_command_is_named(user):
    check(user, {"disabled": True}, "has neither a command nor an address")


def test_settings_that_are_not_valid_are_named(user):
    file = user / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{")
    answer = doctor()
    assert answer.exit_code == 1
    assert "is not valid JSON: line 1: it ends too early" in answer.stdout


def test_an_address_that_nothing_answers_at_is_named(user):
    check(user, {"url": "http://127.0.0.1:9/mcp"}, "You serve nothing at http://127.0.0.1:9/mcp")


def test_an_address_elsewhere_gets_no_token(user):
    check(user, {"url": "https://hub.example.org/mcp"}, "so it was not tried")


def test_an_address_of_this_machine_is_tried_with_the_token(user, module_home):
    with http_bridge(module_home) as served:
        write(user, {"url": served.url})
        assert "Works, but there are no tools" in doctor(MCP_NOTEBOOK_TOKEN=TOKEN).stdout
        check(user, {"url": served.url}, f"{served.url} does not work (", MCP_NOTEBOOK_TOKEN="x")
        check(user, {"url": served.url}, f"There is no token in the file {user}", "`%mcp serve`")


def test_where_nothing_is_connected_the_next_step_is_named(user):
    with pytest.raises(ClientError, match="No client on this machine is connected as 'notebook'"):
        raise doctor().exception
    with pytest.raises(ClientError, match=r"Windsurf is not connected .* install windsurf`"):
        raise doctor("windsurf").exception
