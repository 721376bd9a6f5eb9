"""Other extensions of Jupyter Server: those that serve MCP, too, and those that are clients.

The assistants inside Jupyter are brought in with their client code, which reads the settings that
``mcp-notebook install`` wrote, and calls a tool of a live kernel. There is no model.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from clients import over_http, text_of
from frameworks import LIMIT, CannotInstall, bring_in
from jupyter_servers import TOKEN, jupyter_server, login
from listing import list_tools
from live import live_kernel
from mcp import Client, StdioServerParameters
from stand_in import PATIENCE

from mcp_notebook.clients.client import Machine
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.doctor.client_end import check_server
from mcp_notebook.doctor.configured_servers import read_servers
from mcp_notebook.doctor.notebook_end import ask_jupyter_servers

pytestmark = [pytest.mark.frameworks, pytest.mark.anyio, pytest.mark.timeout(LIMIT)]
OWN = Path(__file__).parents[2]
AGENTS = Path(__file__).parent / "agents"
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


TOOL = "%%mcp_tool\ndef double(n: int) -> int:\n    'Double.'\n    return 2 * n"
AI = ("jupyter-ai==3.2.0", "jupyter-mcp-manager==0.2.1")
NBI = "notebook-intelligence==6.2.0"


@pytest.fixture(scope="module", params=PEERS)
def peer(request, module_home):
    """A Jupyter Server with mcp-notebook and a neighbour, a notebook open, and the neighbour."""
    home = module_home / str(request.param_index)  # short, for the sockets below it
    home.mkdir()
    python = bring_python(request.param)
    extension, tool = PEERS[request.param]
    on = [f"--ServerApp.jpserver_extensions={name}=True" for name in (extension, "mcp_notebook")]
    with jupyter_server(home, *on, python=python, env={"PYTHONPATH": str(OWN)}) as server:
        server.kernel_id = server.start_kernel("%load_ext mcp_notebook", TOOL, path="rain.ipynb")
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


# -- assistants inside Jupyter ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def notebook_home(module_home):
    """The home folder of a user who has a notebook open, and starts Jupyter there."""
    home = module_home / "ai"
    (home / "2024").mkdir(parents=True)
    with live_kernel(home, notebook=str(home / "rain.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(TOOL)
        yield home


def run(home, *words):
    """Run a command in a home folder as its user, and return what it prints."""
    env = {"HOME": str(home), "PATH": os.defpath}
    ended = subprocess.run(
        list(map(str, words)), cwd=home, env=env, check=False, capture_output=True, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def install(home, client):
    (home / ".jupyter" / "nbi").mkdir(parents=True, exist_ok=True)
    run(home, sys.executable, "-m", "mcp_notebook", "install", client)


def test_jupyter_ai_finds_the_tools_from_any_folder_below(notebook_home):
    install(notebook_home, "jupyter-ai")
    agent = AGENTS / "jupyter_ai_agent.py"
    for folder in (notebook_home, notebook_home / "2024"):
        said = run(notebook_home, bring_python(*AI), agent, notebook_home, folder)
        names, answer = json.loads(said)
        assert ("double" in names, answer) == (True, "8")


def test_notebook_intelligence_finds_the_tools(notebook_home):
    install(notebook_home, "notebook-intelligence")
    agent = AGENTS / "notebook_intelligence_agent.py"
    names, answer = json.loads(run(notebook_home, bring_python(NBI), agent, PATIENCE / 2))
    assert ("double" in names, "call_notebook_tool" in names, answer) == (True, True, "8")


def test_in_the_environment_of_jupyter_ai_its_neighbours_are_served(module_home):
    """jupyter-mcp-manager offers the tools without any file; the side panel connects Jupyter AI."""
    home = module_home / "manager"
    home.mkdir()
    python = bring_python(*AI)
    names = ("jupyter_mcp_manager", "mcp_notebook")
    on = [f"--ServerApp.jpserver_extensions={name}=True" for name in names]
    with jupyter_server(home, *on, python=python, env={"PYTHONPATH": str(OWN)}) as server:
        servers = server.http.get("jupyter-mcp-manager/servers").raise_for_status().json()
        (ours,) = servers["mcp_servers"]
        with login(server) as page:
            order = {"client": "jupyter-ai"}
            said = page.post("mcp-notebook/api/clients", json=order).raise_for_status().json()
    file = home / ".jupyter" / "mcp_settings.json"
    assert str(file) in said["message"]
    assert json.loads(file.read_text())["mcp_servers"][0]["name"] == "notebook"
    assert (ours["name"], ours["type"], ours["command"]) == ("notebook", "stdio", str(python))
    assert ours["args"] == ["-P", "-m", "mcp_notebook", "stdio"]
