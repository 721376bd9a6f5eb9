"""One server of VS Code and one browser for all tests of a worker, a window for each."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_[!m]*.py"]  # they need the extra `browser`
else:
    from npm_packages import CannotInstall, bring_in
    from vs_code import CodeServer, StdioAssistant, Window, remove
    from web_browser import launched_chromium


def pytest_collection_modifyitems(items):
    """Let a window open even where that takes minutes."""
    for item in items:
        if item.nodeid.startswith("tests/vscode/"):
            item.add_marker(pytest.mark.timeout(600))


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
    remove(home)


@pytest.fixture(scope="session")
def chromium():
    """The one browser."""
    with launched_chromium() as browser:
        yield browser


@pytest.fixture
def context(chromium):
    """What windows share in a test."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 860}, permissions=["clipboard-read", "clipboard-write"]
    )
    yield context
    context.close()


@pytest.fixture
def open_window(server, context):
    """Open windows: a function, given the folder."""

    def open_window(folder=None):
        folder = folder or Path(tempfile.mkdtemp(prefix="folder", dir=server.home))
        return Window(context.new_page(), server.address, folder)

    yield open_window
    server.end_kernels()


@pytest.fixture
def assistant(server):
    """An assistant outside of VS Code."""
    assistant = StdioAssistant(server.home)
    yield assistant
    assistant.close()
