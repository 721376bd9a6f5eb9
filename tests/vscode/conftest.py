"""One server of VS Code and one browser for all tests of a worker, a window for each."""

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_[!m]*.py"]  # they need the extra `browser`
else:
    from npm_packages import CannotInstall, bring_in
    from playwright.sync_api import expect
    from vs_code import SOON, CodeServer, StdioAssistant, Window

from notebooks import LOAD


@pytest.fixture(scope="session")
def modules():
    """VS Code, brought in by npm."""
    try:
        return bring_in(Path(__file__).parent)
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def server(modules):
    """The server that all tests use, and its address."""
    home = Path(tempfile.mkdtemp(prefix="mcpnb-"))  # sockets live below it: a short path
    server = CodeServer(modules, home)
    with server.running() as server.address:
        yield server
    shutil.rmtree(home, ignore_errors=True)  # its last processes may still write


@pytest.fixture
def open_window(server, chromium):
    """Open windows: a function, given the cells of a notebook in which the tools are declared."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 860}, permissions=["clipboard-read", "clipboard-write"]
    )

    def open_window(*cells):
        folder = Path(tempfile.mkdtemp(prefix="folder", dir=server.home))
        window = Window(context.new_page(), server.address, folder)
        if cells:
            window.open("weather.ipynb", LOAD, *cells)
            window.run_all()
            tools = sum("%%mcp_tool" in cell for cell in cells)
            expect(window.status_bar).to_contain_text(f"{tools} tool", timeout=SOON)
        return window

    yield open_window
    server.end_kernels()
    context.close()


@pytest.fixture
def assistant(server):
    """An assistant outside of VS Code."""
    assistant = StdioAssistant(server.home)
    yield assistant
    assistant.close()
