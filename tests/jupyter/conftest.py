"""A Jupyter Server with two notebooks, which the tests of the extension share."""

from pathlib import Path

import pytest
from jupyter_servers import jupyter_server, login

TOOLS = '''%%mcp_tool
import pathlib, time
from mcp_notebook import Context

def {name}(n: int) -> int:
    """Double."""
    return 2 * n

def measure(text: str) -> int:
    """Return how long a text is."""
    return len(text)

def count_to(n: int, release: str, ctx: Context) -> str:
    """Count, and wait after each number for a file."""
    for i in range(n):
        ctx.progress(i + 1, n)
        while not pathlib.Path(f"{{release}}-{{i}}").exists():
            time.sleep(0.01)
    return "counted"

def wait_to_be_stopped(seen: str) -> None:
    """Wait for ever."""
    pathlib.Path(f"{{seen}}-began").touch()
    try:
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        pathlib.Path(f"{{seen}}-stopped").touch()
        raise
'''


@pytest.fixture(scope="module")
def server(module_home):
    """A Jupyter Server below a base URL, in which two notebooks are open."""
    env = {"MCP_NOTEBOOK_ALLOWED_HOSTS": "app.example"}
    with jupyter_server(module_home, "--ServerApp.base_url=/base/", env=env) as server:
        (module_home / "100% of Köln").mkdir()
        for path in ("100% of Köln/sales.ipynb", "rain.ipynb"):
            tools = TOOLS.format(name=f"double_{Path(path).stem}")
            server.start_kernel("%load_ext mcp_notebook", tools, path=path)
        yield server


@pytest.fixture
def page(server):
    """A page of the server: it has the cookies, and no token."""
    with login(server) as page:
        yield page
