"""Jupyter Server finds the extension by itself, and its login guards the routes."""

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from jupyter_servers import jupyter_server

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


AUTHORIZER = """
from jupyter_server.auth import Authorizer

class NobodyRunsCode(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return (action, resource) != ("execute", "kernels")

c = get_config()
c.ServerApp.authorizer_class = NobodyRunsCode
"""


def test_whoever_may_not_run_code_in_the_kernels_gets_403(home):
    (home / "config").mkdir()
    (home / "config" / "jupyter_server_config.py").write_text(AUTHORIZER)
    with jupyter_server(home) as server:
        assert server.http.get("api/kernels").status_code == 200
        answer = server.http.post("mcp", json={})
        assert answer.status_code == 403
        assert answer.json()["message"].startswith("This user may not run code in the kernels")


def test_a_server_without_a_token_says_that_clients_need_one(home):
    with jupyter_server(home, token="") as server:
        assert server.http.get("api/kernels").status_code == 200
        for method in ("GET", "POST"):
            answer = server.http.request(method, "mcp")
            assert answer.status_code == 403
            assert answer.json()["message"].startswith("This Jupyter Server has no token")
