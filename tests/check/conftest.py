"""A shell without a kernel, in which the tools of a test are declared."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture
def shell():
    options = {"HistoryManager": {"enabled": False}, "InteractiveShell": {"warn_venv": False}}
    shell = InteractiveShell(config=Config(options))
    yield shell
    shell.restore_sys_module_state()
