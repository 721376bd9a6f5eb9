"""What every test may use."""

import shutil
import tempfile
from pathlib import Path

import pytest
from live import live_kernel


@pytest.fixture
def anyio_backend():
    return "asyncio"


def _short_folder():
    # Sockets live below it, and a socket's path is short: pytest's own folders are too deep.
    return Path(tempfile.mkdtemp(prefix="mcpnb-"))


@pytest.fixture
def home():
    """An empty home folder."""
    folder = _short_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def module_home():
    """An empty home folder for a kernel that a module's tests share."""
    folder = _short_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def kernel(home):
    """A kernel of the test's own with the extension loaded."""
    with live_kernel(home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        yield kernel


@pytest.fixture(scope="module")
def shared_kernel(module_home):
    """A kernel with the extension loaded that a module's tests share."""
    with live_kernel(module_home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        yield kernel
