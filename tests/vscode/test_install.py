"""`mcp-notebook install` with the command of a real VS Code, by the names that it has."""

import json
import os
import subprocess
import sys

import pytest
from vs_code import CodeServer

pytestmark = pytest.mark.vscode

ID = "mcp-notebook.mcp-notebook"


def run(server, *words):
    env = os.environ | {"HOME": str(server.home), "PATH": str(server.home / "bin")}
    command = [sys.executable, "-m", "mcp_notebook", *words]
    ended = subprocess.run(
        command, cwd=server.home, env=env, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("name", ["code-server", "codium", "code"])
def test_install_brings_the_panel_and_uninstall_removes_it(modules, tmp_path, name):
    server = CodeServer(modules, tmp_path)
    (tmp_path / "bin").mkdir()
    server.write_command(tmp_path / "bin" / name)
    installed = f"Installed the side panel in VS Code ({name}).\n"
    assert run(server, "install", "vscode") == installed
    assert server.list_extensions() == [ID]
    assert run(server, "install", "vscode") == installed  # over the same version
    assert run(server, "uninstall", "vscode") == f"Removed the side panel from VS Code ({name}).\n"
    assert server.list_extensions() == []


def test_cursor_gets_the_panel_and_an_entry_and_loses_both(modules, tmp_path):
    server = CodeServer(modules, tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / ".cursor").mkdir()
    server.write_command(tmp_path / "bin" / "cursor")
    run(server, "install", "cursor")
    settings = tmp_path / ".cursor" / "mcp.json"
    assert server.list_extensions() == [ID]
    assert "notebook" in json.loads(settings.read_text("utf-8"))["mcpServers"]
    run(server, "uninstall", "cursor")
    assert server.list_extensions() == []
    assert not settings.exists()
