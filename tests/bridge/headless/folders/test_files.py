"""Which notebooks of a folder are found, and why others are left out."""

import os
import sys

import pytest

from mcp_notebook.bridge.headless.folders.files import find_notebooks
from mcp_notebook.errors import NotebookError


def _touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _list_paths(found, folder):
    return [path.relative_to(folder).as_posix() for path in found.files]


def test_notebooks_in_a_folder_and_below_it_are_found(tmp_path):
    paths = ["A.ipynb", "b.ipynb", "reports/b.ipynb", "reports/old/c.IPYNB"]
    _touch(tmp_path, *reversed(paths), "notes.txt")
    assert _list_paths(find_notebooks([tmp_path]), tmp_path) == paths


@pytest.mark.parametrize(
    "path",
    [
        ".ipynb_checkpoints/a-checkpoint.ipynb",
        ".hidden/a.ipynb",
        ".a.ipynb",
        "node_modules/a.ipynb",
        "lib/site-packages/a.ipynb",
    ],
)
def test_what_is_hidden_or_installed_is_left_out(tmp_path, path):
    _touch(tmp_path, path)
    found = find_notebooks([tmp_path])
    assert (found.files, found.skipped) == ({}, {})


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta/history"])
def test_an_environment_is_left_out_unless_it_is_named(tmp_path, mark):
    _touch(tmp_path, f"env/{mark}", "env/share/a.ipynb")
    found = find_notebooks([tmp_path])
    assert found.files == {}
    assert found.skipped == {tmp_path / "env": "it is an environment with installed packages"}
    inside = tmp_path / "env"
    assert _list_paths(find_notebooks([inside]), inside) == ["share/a.ipynb"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_are_not_followed(tmp_path):
    served, elsewhere = tmp_path / "served", tmp_path / "elsewhere"
    _touch(served, "a.ipynb", "sub/b.ipynb")
    _touch(elsewhere, "c.ipynb", "data.csv")
    (served / "again.ipynb").symlink_to(served / "a.ipynb")
    (served / "loop").symlink_to(served)
    (served / "data.csv").symlink_to(elsewhere / "data.csv")
    (served / "out.ipynb").symlink_to(elsewhere / "c.ipynb")
    (served / "outer").symlink_to(elsewhere)
    (served / "gone.ipynb").symlink_to(elsewhere / "gone.ipynb")
    found = find_notebooks([served])
    assert _list_paths(found, served) == ["a.ipynb", "sub/b.ipynb"]
    assert {path.name for path in found.skipped} == {"out.ipynb", "outer", "gone.ipynb"}
    assert set(found.skipped.values()) == {"it is a link to a place outside the folder"}
    (tmp_path / "link").symlink_to(served)
    assert _list_paths(find_notebooks([tmp_path / "link"]), tmp_path / "link") == [
        "a.ipynb",
        "sub/b.ipynb",
    ]


def test_the_search_has_bounds_and_says_so(tmp_path):
    _touch(tmp_path, "a.ipynb", "b.ipynb", "c.ipynb", "one/two/d.ipynb")
    found = find_notebooks([tmp_path], max_notebooks=2, max_depth=1)
    assert _list_paths(found, tmp_path) == ["a.ipynb", "b.ipynb"]
    assert found.skipped == {
        tmp_path / "c.ipynb": "only 2 notebooks are served",
        tmp_path / "one" / "two": "it is more than 1 levels deep",
    }
    reason = find_notebooks([tmp_path], max_entries=2).skipped[tmp_path / "one"]
    assert reason == "more than 2 files are not searched"


def test_a_folder_that_is_gone_or_unreadable_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(NotebookError, match=r"The folder .*nowhere cannot be read: No such file"):
        find_notebooks([tmp_path / "nowhere"])
    _touch(tmp_path, "sub/a.ipynb", "b.ipynb")
    scan = os.scandir

    def refuse(path):
        if path == tmp_path / "sub":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find_notebooks([tmp_path])
    assert _list_paths(found, tmp_path) == ["b.ipynb"]
    assert found.skipped == {tmp_path / "sub": "it cannot be read: Permission denied"}


def test_a_notebook_in_two_folders_is_found_once(tmp_path):
    _touch(tmp_path, "sub/a.ipynb")
    found = find_notebooks([tmp_path, tmp_path / "sub"])
    assert [*found.files] == [tmp_path / "sub" / "a.ipynb"]
