"""Jupyter Server finds the extension by itself, and its login guards the routes."""

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

CONFIG = "etc/jupyter/jupyter_server_config.d/mcp_notebook.json"


def test_installing_the_package_turns_the_extension_on():
    files = [file for file in distribution("mcp-notebook").files if str(file).endswith(CONFIG)]
    (file,) = files
    config = Path(file.locate()).resolve()
    assert config == Path(sys.prefix, CONFIG).resolve()
    assert json.loads(config.read_text())["ServerApp"]["jpserver_extensions"] == {
        "mcp_notebook": True
    }


def test_jupyter_server_lists_the_extension_as_enabled_and_valid(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_server.extension.serverextension", "list"],
        env={"HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "mcp_notebook" in line]
    assert any("enabled" in line for line in lines), done.stderr
    assert any("OK" in line for line in lines), done.stderr
