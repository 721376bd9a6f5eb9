"""Addresses of a real Jupyter Server, as its user pastes them from the browser."""

import json
import subprocess

import pytest
from bridges import INITIALIZE, bridge
from clients import text_of
from jupyter_servers import TOKEN, jupyter_server

from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

TOOL = "%%mcp_tool\ndef double_{}(n: int) -> int:\n    'Double.'\n    return 2 * n"


@pytest.fixture(scope="module")
def jupyter(module_home):
    """A Jupyter Server with two notebooks open."""
    with jupyter_server(module_home, "--ServerApp.base_url=/base/") as server:
        for name in ("sales", "rain"):
            server.start_kernel("%load_ext mcp_notebook", TOOL.format(name), path=f"{name}.ipynb")
        yield server


@pytest.mark.parametrize(
    ("page", "era", "tools"),
    [
        ("lab/tree/rain.ipynb", "legacy", {"double_rain"}),
        ("notebooks/sales.ipynb?token={}", "auto", {"double_sales"}),
        ("lab", "auto", {"double_rain", "double_sales"}),
    ],
)
async def test_the_notebook_of_a_page_has_its_tools_used(jupyter, connect_to, page, era, tools):
    async with connect_to(jupyter.url + page.format(TOKEN), era) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert listed - {READ_RESOURCE} == tools
        assert text_of(await client.call_tool(min(tools), {"n": 4})) == "8"


@pytest.mark.parametrize(
    ("page", "token", "reason"),
    [
        ("lab/tree/snow.ipynb", TOKEN, "Notebooks with tools: rain, sales"),
        pytest.param(
            *("lab", "wrong", "does not accept the token from the environment variable JUPYTER"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("lab?token=wrong", None, "does not accept the token from the address"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("lab", None, "requires a token.*jupyter server list"), marks=pytest.mark.slow
        ),
    ],
)
def test_what_is_missing_is_told_with_the_next_step(jupyter, home, page, token, reason):
    options = ["--token-file", "env:JUPYTER"] if token else []
    env = {"JUPYTER": token} if token else {}
    address = jupyter.url + page
    with bridge(home, "connect", address, *options, env=env, stdin=subprocess.PIPE) as running:
        running.send(json.dumps(INITIALIZE).encode())
        running.wait_said(reason)
        assert running.message()["error"]["message"] in running.said
        running.process.stdin.close()
        assert running.wait() == 1
