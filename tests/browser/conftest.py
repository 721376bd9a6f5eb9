"""One server and one browser for all tests of a worker, a page for each."""

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcp_notebook.kernel.notebook.background_bridge import stop_bridge
from mcp_notebook.settings.settings import Settings

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]  # they need the extra `browser`
else:
    import assistant
    from lab_page import Guard, NotebookPage
    from lab_server import lab_server

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="session")
def server():
    """The Jupyter server that all tests use."""
    home = Path(tempfile.mkdtemp(prefix="mcpnb-"))  # sockets live below it: a short path
    with lab_server(home) as server:
        yield server
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def context(chromium):
    """What pages share in a test: cookies, and what they may do. They reach loopback only."""
    context = chromium.new_context(
        viewport={"width": 1100, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
    )
    guard = Guard(context)
    yield context
    context.close()
    assert guard.refused == []


@pytest.fixture
def open_notebook(server, context):
    """Open copies of notebooks of ours: a function, whose notebooks' kernels end with the test."""
    opened = []

    def open_notebook(name, *, app="lab"):
        path = f"{Path(name).stem}-{len(list(server.folder.glob('*.ipynb')))}.ipynb"
        shutil.copy(NOTEBOOKS / name, server.folder / path)
        notebook = NotebookPage(context.new_page())
        notebook.open(server, path, app=app)
        opened.append(notebook)
        return notebook

    yield open_notebook
    for notebook in opened:
        notebook.shut_down()


@pytest.fixture
def find_assistant(server):
    """Return an assistant that connects to what `%mcp serve` says."""
    found = []

    def find_assistant(served):
        found.append(assistant.find_assistant(served.inner_text(), server.home))
        return found[-1]

    yield find_assistant
    for each in found:
        each.close()
    # It would outlive its notebooks.
    stop_bridge(Settings(home=server.home / ".mcp-notebook"))
