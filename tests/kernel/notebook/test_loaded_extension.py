"""Where the loaded extension is found."""

from IPython.core import getipython

from mcp_notebook.kernel.notebook import loaded_extension
from mcp_notebook.kernel.notebook.loaded_extension import EXTENSION, find_extension


def test_without_ipython_there_is_none():
    assert getipython.get_ipython() is None
    assert find_extension() is None


def test_the_shell_holds_it(shell, monkeypatch):
    monkeypatch.setattr(loaded_extension, "get_ipython", lambda: shell)
    assert find_extension() is None
    extension = object()
    monkeypatch.setattr(shell, EXTENSION, extension, raising=False)
    assert find_extension() is extension
