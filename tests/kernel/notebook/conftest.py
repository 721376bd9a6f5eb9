"""A shared kernel that each test finds empty, and a shell without a kernel."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

RAIN = '''%%mcp_tool
from typing import Literal

def rain(city: Literal["Seattle", "New York"], year: int = 2012) -> str:
    """Rain per year.

    Args:
        city: Where.
        year: When.
    """
    return f"{city} {year}"
'''


@pytest.fixture
def kernel(shared_kernel):
    """A kernel with the extension and nothing else."""
    shared_kernel.ok("%unload_ext mcp_notebook")
    # IPython's %reset takes away what process pools read since Python 3.14, with or without us.
    shared_kernel.ok("%reset -f\n__spec__ = None")
    shared_kernel.ok("%load_ext mcp_notebook")
    return shared_kernel


@pytest.fixture(scope="session")
def rain_cell():
    """The cell that declares the tool `rain`."""
    return RAIN


@pytest.fixture
def rain(kernel):
    """A notebook that has the tool `rain`."""
    kernel.ok(RAIN)
    return kernel


@pytest.fixture(scope="module")
def shared_shell():
    """IPython without a kernel."""
    options = {"HistoryManager": {"enabled": False}, "InteractiveShell": {"warn_venv": False}}
    shell = InteractiveShell(config=Config(options))
    yield shell
    shell.restore_sys_module_state()


@pytest.fixture
def shell(shared_shell):
    """IPython without a kernel, in which a test may define what it likes."""
    before = dict(shared_shell.user_ns)
    yield shared_shell
    shared_shell.user_ns.clear()
    shared_shell.user_ns.update(before)
