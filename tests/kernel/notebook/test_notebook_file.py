"""The notebook's file keeps being known when it is renamed."""

import os
import sys

import pytest
from live import live_kernel, record_of, tools_of
from msgspec import structs

from mcp_notebook.discovery.departures import Departure
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A notebook's file, as a Jupyter server tells the kernel of it."""
    path = tmp_path / "Untitled.ipynb"
    path.write_text("{}")
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    return path


def test_a_file_that_is_renamed_is_found_each_time(path):
    file = NotebookFile({})
    assert not file.follow()
    for name in ("a.ipynb", "b.ipynb", "Untitled.ipynb"):
        new = file.path.rename(path.parent / name)
        assert file.follow()
        assert file.path == new
    assert not file.follow()


def test_a_file_that_is_saved_anew_under_its_name_is_the_notebook(path):
    file = NotebookFile({})
    (path.parent / "other.ipynb").write_text("{}")
    path.rename(path.parent / "backup.ipynb")
    path.write_text("{}")
    assert not file.follow()
    path.rename(path.parent / "new.ipynb")
    assert file.follow()
    assert file.path.name == "new.ipynb"


@pytest.mark.parametrize("end", ["deleted", "moved", "no notebook any more"])
def test_what_is_not_there_any_more_keeps_its_name(path, end):
    file = NotebookFile({})
    if end == "deleted":
        path.unlink()
    else:
        (path.parent / "sub").mkdir()
        path.rename(path.parent / ("sub/x.ipynb" if end == "moved" else "x.txt"))
    assert not file.follow()
    assert file.path == path


def test_vs_code_may_name_the_file_later_and_again(path):
    namespace = {}
    file = NotebookFile(namespace)
    for name in ("x.ipynb", "y.ipynb"):
        namespace["__vsc_ipynb_file__"] = str(path.parent / name)
        assert file.follow()
        assert file.path.name == name


def test_the_record_names_a_renamed_notebook_anew_before_the_next_cell_runs(home):
    path = home / "Untitled.ipynb"
    path.write_text("{}")
    with live_kernel(home, notebook=str(path)) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        before = record_of(kernel)
        path.rename(home / "sales.ipynb")
        with kernel.busy():
            after = record_of(kernel)
        assert (after.name, after.notebook) == ("sales", str(home / "sales.ipynb"))
        assert after == structs.replace(before, name=after.name, notebook=after.notebook)
        kernel.ok("%reload_ext mcp_notebook")
        assert record_of(kernel).name == "sales"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="their paths are Unicode")
def test_a_path_that_is_not_utf_8_is_not_published_and_its_name_can_be_read(home):
    path = home / os.fsdecode(b"caf\xe9.ipynb")
    path.write_text("{}")
    with live_kernel(home, notebook=str(path)) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        record = record_of(kernel)
        assert (record.notebook, record.name) == (None, "caf?")
        path = path.rename(home / "cafe.ipynb")
        kernel.ok("1")
        assert record_of(kernel).notebook == str(path)
        path.rename(home / os.fsdecode(b"th\xe9.ipynb"))
        assert kernel.ok("1").text.strip() == "1"
        assert (record_of(kernel).notebook, record_of(kernel).name) == (None, "th?")
        kernel.ok("%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1")
        assert list(tools_of(kernel)) == ["one"]


def test_a_restarted_kernel_which_is_told_the_first_path_finds_the_renamed_notebook(path):
    new = path.rename(path.parent / "sales.ipynb")
    departure = Departure(
        notebook=str(new), first_notebook=str(path), name="sales", reason=None, at=0.0
    )
    other = structs.replace(departure, first_notebook="other.ipynb", notebook=str(path))
    assert NotebookFile({}, lambda: [other, departure]).path == new
    new.unlink()
    assert NotebookFile({}, lambda: [departure]).path == path
    path.write_text("{}")  # another notebook of the first name
    assert NotebookFile({}, lambda: [departure]).path == path


@pytest.mark.slow
def test_a_kernel_that_is_restarted_after_the_renaming_keeps_the_new_name(home):
    path = home / "Untitled.ipynb"
    path.write_text("{}")
    for name in ("Untitled", "sales"):
        with live_kernel(home, notebook=str(path)) as kernel:
            kernel.ok("%load_ext mcp_notebook")
            assert record_of(kernel).name == name
            if name == "Untitled":
                path.rename(home / "sales.ipynb")
                kernel.ok("1")
