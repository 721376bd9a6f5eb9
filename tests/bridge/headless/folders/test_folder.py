"""What a folder's notebooks offer is listed without a kernel, and follows their files."""

import errno
import os
import re

import anyio
import pytest
from notebook_files import write_notebook
from served_folder import LOAD, PID, ServedFolder, offer, served_folder

from mcp_notebook.errors import ToolGone
from mcp_notebook.lock.lock_file import write_lock

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path):
    """The folder that is served."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def _note_new_names(here):
    """Return the names of notebooks that have to run, each with what is said of it."""
    return {entry.name: entry.tool.description for entry in here.catalog.entries("notebook")}


async def test_what_notebooks_last_offered_is_listed_and_others_with_how_they_are_run(
    folder, tmp_path
):
    known = write_notebook(folder / "sales.ipynb", LOAD, PID, title="# Sales")
    write_notebook(folder / "reports" / "new.ipynb", LOAD, PID, title="# What is new")
    offer(tmp_path, known, "top", "total")
    async with served_folder(folder, tmp_path) as here:
        assert here.list_names() == ["top", "total", "pid", "suicide"]
        assert here.catalog.find("suicide").tool.description == (
            "The first call runs the notebook 'reports/new.ipynb'. "
            'Its source says: "Kills the process."'
        )
        assert _note_new_names(here) == {"reports--new": "What is new."}
        assert len(here.links) == 0


async def test_if_a_person_is_asked_first_no_call_of_a_tool_runs_what_has_never_run(
    folder, tmp_path
):
    write_notebook(folder / "sub" / "new.ipynb", LOAD, PID, "%mcp_tool print", title="# 1. Set-up")
    async with served_folder(folder, tmp_path, confirm_destructive=True) as here:
        assert here.list_names() == []
        said = "sub/new.ipynb. Its code declares pid (The kernel's process), suicide (Kills the"
        assert _note_new_names(here) == {"sub--new": f"{said} process)."}


async def test_the_code_of_what_is_listed_may_have_changed_since(folder, tmp_path):
    path = write_notebook(folder / "sales.ipynb", LOAD, PID)
    offer(tmp_path, path, "top")
    write_notebook(path, LOAD, PID.replace("pid", "process"), title="# Sales")
    async with served_folder(folder, tmp_path) as here:
        assert here.list_names() == ["top", "process", "suicide"]
        (said,) = _note_new_names(here).values()
        assert said == "Sales. Its code has changed since it last ran."


async def test_tools_of_the_same_name_are_told_apart(folder, tmp_path):
    for name in ("sales", "costs", "sub/sales"):
        offer(tmp_path, write_notebook(folder / f"{name}.ipynb", LOAD, PID), "top")
    async with served_folder(folder, tmp_path) as here:
        assert here.list_names() == ["costs_top", "sales_top", "sub--sales_top"]


async def test_new_changed_and_deleted_notebooks_are_followed(folder, tmp_path):
    async with served_folder(folder, tmp_path) as here:
        assert here.list_names() == []
        path = write_notebook(folder / "sales.ipynb", LOAD, PID)
        await here.until(lambda: "sales" in _note_new_names(here))
        write_notebook(path, LOAD, PID, title="# Sales")
        write_notebook(path, LOAD, PID.replace("pid", "process"), title="# Sales of today")
        await here.until(lambda: "Sales of today" in _note_new_names(here)["sales"])
        path.unlink()
        await here.until(lambda: _note_new_names(here) == {})
        offer(tmp_path, write_notebook(folder / "costs.ipynb", LOAD, PID), "top")
        await here.until(lambda: here.list_names() == ["top"])
        (folder / "costs.ipynb").unlink()
        await here.until(lambda: here.list_names() == [])
        with pytest.raises(ToolGone, match=r"of the notebook 'costs' is gone. Its file was moved"):
            here.catalog.find("top")


async def test_what_is_seen_once_is_not_believed(folder, tmp_path):
    here = ServedFolder([folder], tmp_path)
    await here.folders.list_all()
    path = write_notebook(folder / "sales.ipynb", LOAD, PID)
    await here.folders._follow()
    assert _note_new_names(here) == {}
    write_notebook(path, LOAD, PID, title="# Sales")
    await here.folders._follow()
    assert _note_new_names(here) == {}
    await here.folders._follow()
    assert "Sales" in _note_new_names(here)["sales"]


async def test_half_a_file_is_not_believed_and_a_broken_one_keeps_its_tools(folder, tmp_path):
    path = write_notebook(folder / "sales.ipynb", LOAD, PID)
    offer(tmp_path, path, "top")
    async with served_folder(folder, tmp_path) as here:
        whole = path.read_bytes()
        path.write_bytes(whole[:100])
        await here.until(lambda: path in here.folders.skipped)
        assert here.folders.skipped[path] == "it is not JSON, so it is not a notebook"
        assert here.list_names() == ["top"]
        path.write_bytes(whole)
        await here.until(lambda: here.folders.skipped == {})


async def test_what_declares_nothing_is_left_out_and_comes_back_when_it_does(folder, tmp_path):
    path = write_notebook(folder / "plain.ipynb", "1 + 1")
    (folder / "broken.ipynb").write_text("{")
    async with served_folder(folder, tmp_path) as here:
        assert _note_new_names(here) == {}
        assert {each.name: reason for each, reason in here.folders.skipped.items()} == {
            "plain.ipynb": "its code does not use mcp_notebook",
            "broken.ipynb": "it is not JSON, so it is not a notebook",
        }
        write_notebook(path, LOAD, PID)
        await here.until(lambda: "plain" in _note_new_names(here))
        write_notebook(path, "1 + 1")
        await here.until(lambda: _note_new_names(here) == {})


async def test_a_notebook_without_a_lock_is_left_out_if_locks_are_needed(folder, tmp_path):
    for name in ("a.ipynb", "b.ipynb"):
        offer(tmp_path, write_notebook(folder / name, LOAD, PID), name[0])
    write_lock(folder / "a.ipynb", {})
    async with served_folder(folder, tmp_path, locked=True) as here:
        assert here.list_names() == ["a"]
        (reason,) = here.folders.skipped.values()
        assert reason == "b.ipynb has no lock: `mcp-notebook check b.ipynb --lock` writes one."
        write_lock(folder / "b.ipynb", {})
        await here.until(lambda: here.list_names() == ["a", "b"])
        assert not here.folders.skipped


async def test_a_notebook_whose_code_does_not_say_that_it_has_tools_is_known_by_its_last_run(
    folder, tmp_path
):
    path = write_notebook(folder / "sales.ipynb", "%run setup.py")
    offer(tmp_path, path, "top")
    async with served_folder(folder, tmp_path) as here:
        assert here.list_names() == ["top"]


async def test_a_folder_that_is_gone_keeps_its_tools_and_it_is_said_once(folder, tmp_path, capsys):
    offer(tmp_path, write_notebook(folder / "sales.ipynb", LOAD, PID), "top")
    async with served_folder(folder, tmp_path) as here:
        folder.rename(tmp_path / "moved")
        said = ""

        def is_said():
            nonlocal said
            said += capsys.readouterr().err
            return "cannot be read: No such file or directory" in said

        await here.until(is_said)
        assert here.list_names() == ["top"]
        (tmp_path / "moved").rename(folder)
        write_notebook(folder / "new.ipynb", LOAD, PID)
        await here.until(lambda: "new" in _note_new_names(here))
        assert said.count("cannot be read") == 1


async def test_what_cannot_be_looked_at_for_a_while_is_not_taken_for_deleted(
    folder, tmp_path, monkeypatch
):
    path = write_notebook(folder / "sub" / "sales.ipynb", LOAD, PID)
    offer(tmp_path, path, "top")
    scan = os.scandir

    def refuse(place):
        if place == folder / "sub":
            raise OSError(errno.ESTALE, "Stale file handle")
        return scan(place)

    here = ServedFolder([folder], tmp_path)
    await here.folders.list_all()
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        for _ in range(3):
            await here.folders._follow()
            assert here.list_names() == ["top"]
        assert here.folders.skipped == {folder / "sub": "it cannot be read: Stale file handle"}
    path.unlink()
    await here.folders._follow()
    assert here.list_names() == ["top"]  # it may just be replaced
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        await here.folders._follow()
    assert here.list_names() == ["top"]
    await here.folders._follow()
    assert here.list_names() == []


async def test_a_notebook_keeps_its_place_when_there_are_too_many(folder, tmp_path):
    for name in ("b", "c"):
        offer(tmp_path, write_notebook(folder / f"{name}.ipynb", LOAD, PID), f"tool_{name}")
    here = ServedFolder([folder], tmp_path, max_notebooks=2)
    await here.folders.list_all()
    offer(tmp_path, write_notebook(folder / "a.ipynb", LOAD, PID), "tool_a")
    for _ in range(3):
        await here.folders._follow()
        assert here.list_names() == ["tool_b", "tool_c"]
    assert here.folders.skipped == {folder / "a.ipynb": "only 2 notebooks are served"}
    (folder / "b.ipynb").unlink()
    for _ in range(4):
        await here.folders._follow()
    assert here.list_names() == ["tool_c", "tool_a"]


async def test_a_notebook_that_is_served_anyway_is_not_served_twice(folder, tmp_path):
    path = write_notebook(folder / "sales.ipynb", LOAD, PID)
    offer(tmp_path, path, "top")
    here = ServedFolder([folder], tmp_path, besides={"sales": path})
    await here.folders.list_all()
    assert here.list_names() == []


async def test_a_notebook_has_its_name_whatever_is_beside_the_folder_and_in_it(folder, tmp_path):
    async def list_notebooks():
        here = ServedFolder([folder], tmp_path, besides={"sales": tmp_path / "sales.ipynb"})
        await here.folders.list_all()
        return {entry.name for entry in here.catalog.entries("notebook")}

    write_notebook(folder / "sales.ipynb", LOAD, PID)
    (name,) = await list_notebooks()
    assert re.fullmatch("sales-[0-9a-f]{10}", name)
    write_notebook(folder / "sales-2.ipynb", LOAD, PID)
    assert await list_notebooks() == {name, "sales-2"}


async def test_a_thousand_tools_of_fifty_notebooks_are_listed_at_once(folder, tmp_path):
    for number in range(50):
        path = write_notebook(folder / f"notebook{number:02}.ipynb", LOAD, PID)
        offer(tmp_path, path, *(f"tool{number}_{tool}" for tool in range(20)))
    here = ServedFolder([folder], tmp_path)
    with anyio.fail_after(5):  # it takes a twentieth
        await here.folders.list_all()
    assert len(here.list_names()) == 1_000
