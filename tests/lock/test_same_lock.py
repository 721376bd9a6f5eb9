"""One notebook has the same lock with each Python and library: `all_types.tools.lock`.

After a change on purpose, write it anew: ``python tests/lock/test_same_lock.py``.
"""

from pathlib import Path, PurePath, PureWindowsPath

from all_types import FUNCTIONS

from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.lock.lock_file import describe, read_lock, write_lock

NOTEBOOK = Path(__file__).with_name("all_types.ipynb")


def describe_all():
    """Return the entries of tools with all types."""
    return {function.__name__: describe(make_tool(function).info) for function in FUNCTIONS}


def test_each_python_and_library_gives_the_same_lock():
    lock = read_lock(NOTEBOOK)
    assert [(each.name, each.text) for each in lock.compare(describe_all())] == []
    assert lock.entries == describe_all()


def test_a_path_has_slashes_on_windows_too():
    windows = PureWindowsPath(r"data\sales.csv")

    def load(source: PurePath = windows, other=windows):
        """Load."""

    properties = make_tool(load).info.input_schema["properties"]
    assert [each["default"] for each in properties.values()] == ["data/sales.csv"] * 2


if __name__ == "__main__":
    write_lock(NOTEBOOK, describe_all())
