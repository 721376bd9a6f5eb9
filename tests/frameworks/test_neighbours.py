"""Other MCP extensions in the environment of the same Jupyter Server: whose address is whose."""

import json
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from clients import over_http, text_of
from frameworks import LIMIT, CannotInstall, bring_in
from jupyter_servers import TOKEN, jupyter_server
from listing import list_tools
from mcp import Client, StdioServerParameters

from mcp_notebook.clients.client import Machine
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.doctor.client_end import check_server
from mcp_notebook.doctor.configured_servers import read_servers
from mcp_notebook.doctor.notebook_end import ask_jupyter_servers

pytestmark = [pytest.mark.frameworks, pytest.mark.anyio, pytest.mark.timeout(LIMIT)]
OWN = Path(__file__).parents[2]
REQUIREMENTS = [text for text in requires("mcp-notebook") if "extra ==" not in text]
PEERS = {
    "jupyter-mcp-server==2.2.4": ("jupyter_mcp_server", "execute_code"),
    "jupyter-mcp-live==0.6.2": ("jupyter_mcp_live", "execute"),
}
"""Packages that serve at /mcp: the extension, and a tool of theirs."""


def bring_python(*packages):
    """Return the Python of an environment with packages, and with what mcp-notebook needs."""
    try:
        return bring_in([*packages, *REQUIREMENTS, "jupyter_server"])
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="module", params=PEERS)
def peer(request, module_home):
    """A Jupyter Server with mcp-notebook and a neighbour, a notebook open, and the neighbour."""
    home = module_home / str(request.param_index)  # short, for the sockets below it
    home.mkdir()
    python = bring_python(request.param)
    extension, tool = PEERS[request.param]
    on = [f"--ServerApp.jpserver_extensions={name}=True" for name in (extension, "mcp_notebook")]
    with jupyter_server(home, *on, python=python, env={"PYTHONPATH": str(OWN)}) as server:
        server.kernel_id = server.start_kernel(
            "%load_ext mcp_notebook",
            "%%mcp_tool\ndef double(n: int) -> int:\n    'Double.'\n    return 2 * n",
            path="rain.ipynb",
        )
        yield server, tool


async def test_each_has_an_address_of_its_own_and_ours_is_what_is_shown(peer):
    server, tool = peer
    async with over_http(f"{server.url}mcp-notebook", "auto", token=TOKEN) as client:
        assert {each.name for each in await list_tools(client)} == {"double"}
    async with over_http(f"{server.url}mcp", "legacy", token=TOKEN) as client:
        assert tool in {each.name for each in await list_tools(client)}
    (shown,) = server.run(server.kernel_id, "%mcp status")
    assert (
        "`/mcp-notebook` on this Jupyter server" in shown.text or "/mcp-notebook on" in shown.text
    )


@pytest.mark.parametrize("page", ["lab", "lab/tree/rain.ipynb", "mcp", ""])
async def test_connect_finds_ours_whichever_address_it_is_given(peer, page):
    server, _ = peer
    words = ["-m", "mcp_notebook", "connect", server.url + page, "--token-file", "env:THE_TOKEN"]
    env = {"HOME": str(server.home), "THE_TOKEN": TOKEN}
    command = StdioServerParameters(command=sys.executable, args=words, env=env)
    async with Client(command, mode="legacy") as client:
        assert {each.name for each in await list_tools(client)} == {"double"}
        assert text_of(await client.call_tool("double", {"n": 4})) == "8"


async def test_doctor_says_who_answers(peer, settings, monkeypatch):
    server, _ = peer
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(server.runtime))
    (finding,) = await ask_jupyter_servers()
    assert (finding.state, finding.text.endswith("at /mcp-notebook.")) == ("right", True)
    found = {}
    for path in ("mcp", "mcp-notebook"):
        entry = {"url": server.url + path, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        file = server.home / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"notebook": entry}}))
        (configured,) = read_servers(CLIENTS["cursor"], Machine.current(), file)
        found[path] = await check_server(configured, settings, Machine.current())
    assert (found["mcp"].state, found["mcp-notebook"].state) == ("wrong", "right")
    assert "not mcp-notebook" in found["mcp"].text
