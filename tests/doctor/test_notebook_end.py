"""What `doctor` says about the notebooks' end."""

import os

import pytest
from jupyter_servers import jupyter_server
from live import live_kernel
from msgspec import structs

from mcp_notebook._version import __version__
from mcp_notebook.discovery.records import BridgeRecord, read_start_time
from mcp_notebook.doctor.notebook_end import ask_bridge, ask_jupyter_servers, ask_notebooks
from mcp_notebook.settings.private_files import write_private_json

pytestmark = pytest.mark.anyio


async def find(settings, word):
    """Return the one finding that has a word."""
    findings = [*await ask_notebooks(settings), await ask_bridge(settings)]
    findings += await ask_jupyter_servers()
    (finding,) = [one for one in findings if word in one.text]
    return finding


@pytest.mark.smoke
async def test_without_an_open_notebook_it_says_how_to_open_one(settings):
    finding = await find(settings, "No open notebook has loaded")
    assert (finding.state, "%load_ext mcp_notebook" in finding.next_step) == ("noted", True)
    assert not settings.home.exists(), "it changes nothing"


async def test_open_notebooks_are_listed_with_their_tools(home, settings):
    with live_kernel(home, notebook=str(home / "rain.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        finding = await find(settings, "The notebook rain")
        assert finding.state == "noted"
        kernel.ok("%%mcp_tool\ndef add(a: int):\n    return a")
        finding = await find(settings, "The notebook rain")
    assert (finding.state, finding.text) == ("right", "The notebook rain: 1 tool (add).")


async def test_a_background_bridge_that_does_not_answer_or_is_older_is_named(settings):
    record = BridgeRecord(
        pid=os.getpid(),
        started=read_start_time(os.getpid()),
        version=__version__,
        url="http://127.0.0.1:9/mcp",
    )
    write_private_json(settings.bridge_file, record)
    finding = await find(settings, "does not answer at http://127.0.0.1:9/mcp")
    assert "%mcp serve" in finding.next_step
    older = structs.replace(record, version="0.0.1")
    write_private_json(settings.bridge_file, older)
    assert (await find(settings, "is mcp-notebook 0.0.1")).state == "wrong"


@pytest.mark.slow
@pytest.mark.parametrize("is_on", [True, False])
async def test_a_jupyter_server_says_whether_it_serves_tools(home, settings, monkeypatch, is_on):
    with jupyter_server(home, f"--ServerApp.jpserver_extensions=mcp_notebook={is_on}") as server:
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(server.runtime))
        finding = await find(settings, "The Jupyter server at http")
        assert server.find_bridges() == []
    assert finding.state == ("right" if is_on else "wrong")
    if not is_on:
        assert "jupyter server extension enable mcp_notebook" in finding.next_step
