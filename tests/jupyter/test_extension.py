"""Jupyter Server finds the extension by itself, and its login guards the routes."""

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from forked_command import SERVER, list_words
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
        list_words("list", module="jupyter_server.extension.serverextension", like=SERVER),
        env={"HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "mcp_notebook" in line]
    assert any("enabled" in line for line in lines), done.stderr
    assert any("OK" in line for line in lines), done.stderr


AUTHORIZER = r"""
from jupyter_server.auth import Authorizer

class FewRunCode(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        if "X-Slow" in handler.request.headers:
            return self.decide(handler, action, resource)
        return may(handler, action, resource)

    async def decide(self, handler, action, resource):
        return may(handler, action, resource)

def may(handler, action, resource):
    may_run = "X-May-Run" in handler.request.headers
    return (action, resource) != ("execute", "kernels") or may_run

c = get_config()
c.ServerApp.authorizer_class = FewRunCode
c.ServerApp.allow_origin_pat = r"https://(\w+\.)?good\.example|https://bad"
"""
STOP = {"kernel": "1f0c7d", "action": "stop", "call": 1}


@pytest.fixture(scope="module")
def strict_server(module_home):
    """A server that lets few requests run code, and pages of some origins in.

    Of requests with the header X-Slow, it decides as an authorizer with an `async def` does.
    """
    (module_home / "config").mkdir()
    (module_home / "config" / "jupyter_server_config.py").write_text(AUTHORIZER)
    with jupyter_server(module_home) as server:
        yield server


@pytest.mark.parametrize("headers", [{}, {"X-Slow": "1"}], ids=["def", "async def"])
def test_a_user_who_may_not_run_code_in_the_kernels_gets_403(strict_server, headers):
    http = strict_server.http
    assert http.get("api/kernels").status_code == 200
    for path, body in [("mcp", {}), ("mcp/sales", {}), ("mcp-notebook/api/actions", STOP)]:
        answer = http.post(path, json=body, headers=headers)
        assert answer.status_code == 403
        assert answer.json()["message"].startswith("This user may not run code in the kernels")
    answer = http.post("mcp", json={}, headers={"X-May-Run": "1"} | headers)
    assert answer.status_code == 400  # the bridge's


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("https://good.example", True),
        ("https://app.good.example", True),
        ("https://good.example.evil.example", False),
        ("https://good.example:8443", False),
        ("https://badly.example", False),
        ("http://good.example", False),
        ("xhttps://good.example", False),
        ("https://gooddexample", False),
        ("null", False),
    ],
)
def test_an_origin_is_allowed_if_all_of_it_fits_the_pattern(strict_server, origin, is_allowed):
    headers = {"X-May-Run": "1", "Origin": origin}
    answer = strict_server.http.post("mcp", json={}, headers=headers)
    assert answer.status_code == (400 if is_allowed else 403)


@pytest.mark.slow
def test_a_server_without_a_token_says_that_clients_need_one(home):
    with jupyter_server(home, token="") as server:
        assert server.http.get("api/kernels").status_code == 200
        for method in ("GET", "POST"):
            answer = server.http.request(method, "mcp")
            assert answer.status_code == 403
            assert answer.json()["message"].startswith("This Jupyter Server has no token")
