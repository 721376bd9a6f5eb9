"""A kernel starts when a call needs it, and ends when it is not used: with real kernels."""

import json
import os
import re
import time
from functools import partial

import anyio
import psutil
import pytest
from notebook_files import write_notebook
from served_folder import LOAD, PID, offer, served_folder

from mcp_notebook.bridge.headless import served_notebook
from mcp_notebook.bridge.headless.served_notebook import ServedNotebook
from mcp_notebook.bridge.kernels.running_call import BecameTask, Listener
from mcp_notebook.errors import CallError, NotStarted, ToolGone
from mcp_notebook.wire import messages

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked_kernels"),
    pytest.mark.skipif(os.name == "nt", reason="kernels are ended by signals"),
]
SOON = {"idle_minutes": 0.1 / 60}
TRIED_AGAIN = partial(ServedNotebook, retry_after=0.0)
ONCE = "import pathlib\nassert not pathlib.Path('fail').exists(), 'the database is down'"
LONG = """%%mcp_tool
import asyncio, pathlib
async def wait() -> str:
    "Waits."
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.01)
    return "done"
"""


async def _refusal(here, name):
    with pytest.raises(CallError) as caught:
        await here.call(name)
    return str(caught.value)


async def test_the_first_call_starts_a_kernel_and_says_so_and_others_wait_for_the_same_one(
    folder, home
):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID)
    offer(home, path, "pid")
    said, pids = [], []

    async def note(progress: messages.Progress) -> None:
        said.append(progress.message)

    async with served_folder(folder, home) as here:
        assert psutil.Process().children() == []

        async def call():
            pids.append(await here.call("pid", Listener(progress=note)))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call)
        assert len(set(pids)) == 1
        starting = "The kernel of 'sums' is starting: the call waits until it is ready."
        assert all(message.startswith(starting) for message in said)
        assert len(said) >= 3
        assert await here.call("pid") == pids[0]
        assert here.list_names() == ["pid", "suicide"]


async def test_a_call_that_may_run_any_code_is_not_refused_with_one_that_may_not(folder, home):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    async with served_folder(folder, home) as here:
        (notebook,) = here.catalog.entries("notebook")
        with pytest.raises(NotStarted, match=r"changed after a person was asked\. Call again\.$"):
            await here.links.wait_for_kernel(notebook, errors="short", code="of other code")
        async with anyio.create_task_group() as tasks:
            for code in ("of other code", None):
                wait = partial(here.links.wait_for_kernel, errors="full", code=code)
                tasks.start_soon(wait, notebook)
        assert here.list_names() == ["pid", "suicide"]


async def test_a_kernel_that_is_not_used_is_stopped_and_its_tools_stay(folder, home, capsys):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    async with served_folder(folder, home, **SOON) as here:
        (notebook,) = here.catalog.entries("notebook")
        await here.links.wait_for_kernel(notebook, errors="full")
        assert here.list_names() == ["pid", "suicide"]
        assert here.list_names("notebook") == []
        first = await here.call("pid")
        await here.until(lambda: not psutil.Process().children())
        with anyio.move_on_after(0.3):
            await here.catalog.change()
        assert psutil.Process().children() == []  # nobody has called
        assert here.list_names() == ["pid", "suicide"]
        assert await here.call("pid") != first
    said = capsys.readouterr().err
    assert "sums: its kernel was stopped, because it was not used for 200 ms" in said
    assert said.count("is not trusted") == 1


async def test_a_kernel_counts_as_used_when_the_call_that_has_started_it_can_be_sent(
    folder, home, monkeypatch
):
    measured = []

    def measure(pid):
        measured.append(time.monotonic())
        return pid

    monkeypatch.setattr(served_notebook, "measure_kernel", measure)
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    async with served_folder(folder, home) as here:
        (notebook,) = here.catalog.entries("notebook")
        assert await here.links.wait_for_kernel(notebook, errors="full")
        (link,) = here.links.open_links
        await here.until(lambda: measured)
        assert link.last_use >= measured[0]


@pytest.mark.slow
async def test_a_kernel_is_not_stopped_while_a_call_runs_or_is_being_prepared(folder, home):
    write_notebook(folder / "sums.ipynb", LOAD, LONG)
    async with served_folder(folder, home, **SOON) as here:
        (notebook,) = here.catalog.entries("notebook")
        await here.links.wait_for_kernel(notebook, errors="full")
        (link,) = here.links.open_links
        with link.hold(), anyio.move_on_after(0.5):
            await link.end.wait()
        assert link.is_open
        async with anyio.create_task_group() as tasks:

            async def call():
                assert await here.call("wait") == "done"

            tasks.start_soon(call)
            with anyio.move_on_after(0.5):
                await link.end.wait()
            assert link.is_open
            (folder / "go").touch()
        with anyio.fail_after(10):
            await link.end.wait()


@pytest.mark.slow
async def test_a_kernel_with_results_of_tasks_is_kept_as_long_as_they_are(folder, home):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    async with served_folder(folder, home, task_ttl=1.5, **SOON) as here:
        (notebook,) = here.catalog.entries("notebook")
        await here.links.wait_for_kernel(notebook, errors="full")
        (link,) = here.links.open_links
        call = link.start_call("pid", {}, task_owner="me")
        with pytest.raises(BecameTask):
            await call.follow(Listener())
        with anyio.move_on_after(1):
            await link.end.wait()
        assert link.is_open
        with anyio.fail_after(10):
            await link.end.wait()


async def test_a_kernel_whose_results_were_delivered_is_not_kept_for_them(folder, home):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    async with served_folder(folder, home, task_ttl=3600, **SOON) as here:
        (notebook,) = here.catalog.entries("notebook")
        await here.links.wait_for_kernel(notebook, errors="full")
        (link,) = here.links.open_links
        call = link.start_call("pid", {}, may_become_task=True)
        assert await call.follow(Listener())
        with anyio.fail_after(10):
            await link.end.wait()


async def test_a_call_that_wakes_a_failing_notebook_gets_the_cell_and_its_error(folder, home):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID, ONCE)
    offer(home, path, "pid")
    (folder / "fail").touch()
    async with served_folder(folder, home) as here:
        said = await _refusal(here, "pid")
        assert said.startswith("The notebook 'sums' could not be run, so nothing was called.")
        assert "Code cell 3 of 3 of sums.ipynb failed:\n\n    import pathlib" in said
        assert "AssertionError: the database is down" in said
        assert here.list_names() == ["pid"]
        (folder / "fail").unlink()
        assert await _refusal(here, "pid") == said  # nothing has been saved
        entry = here.catalog.find("pid")
        with pytest.raises(CallError) as caught:
            await here.links.wait_for_kernel(entry, errors="short")
        assert "Its owner sees why" in str(caught.value)
        assert "AssertionError" not in str(caught.value)
        write_notebook(path, LOAD, PID)
        assert (await here.call("pid")).isdecimal()


async def test_calls_that_wait_for_long_are_told_which_cell_is_running(folder, home):
    wait = "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)"
    path = write_notebook(folder / "sums.ipynb", LOAD, wait, PID)
    offer(home, path, "pid")

    async def note(progress: messages.Progress) -> None:
        if progress.message.endswith("until it is ready. Cell 2 of 3 is running."):
            (folder / "go").touch()

    async with served_folder(folder, home) as here:
        entry, listener = here.catalog.find("pid"), Listener(progress=note)
        with anyio.fail_after(60):
            await here.links.wait_for_kernel(entry, listener, errors="full", progress_interval=0.02)
        assert (await here.call("pid")).isdecimal()


async def test_what_nobody_expects_of_one_notebook_ends_no_other(folder, home, monkeypatch):
    def fail():
        raise RuntimeError("a library is broken")

    offer(home, write_notebook(folder / "sums.ipynb", LOAD, PID), "pid")
    async with served_folder(folder, home, make_notebook=TRIED_AGAIN) as here:
        with monkeypatch.context() as patch:
            patch.setattr(served_notebook, "_import_run_notebook", fail)
            assert (await _refusal(here, "pid")).endswith("RuntimeError: a library is broken")
        assert (await here.call("pid")).isdecimal()


@pytest.mark.slow
async def test_a_failing_notebook_is_tried_again_after_a_while(folder, home):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID, ONCE)
    offer(home, path, "pid")
    (folder / "fail").touch()
    async with served_folder(folder, home, make_notebook=TRIED_AGAIN) as here:
        await _refusal(here, "pid")
        (folder / "fail").unlink()
        assert (await here.call("pid")).isdecimal()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "it is not JSON, so it is not a notebook"),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}', "offers no tools"),
    ],
)
async def test_a_file_that_is_gone_or_broken_when_it_is_called_says_so(folder, home, content, said):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID)
    offer(home, path, "pid")
    async with served_folder(folder, home, look_interval=60) as here:
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
        assert said in await _refusal(here, "pid")


async def test_changed_code_runs_with_the_next_call(folder, home, capsys):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID)
    offer(home, path, "pid")
    async with served_folder(folder, home) as here:
        first = await here.call("pid")
        document = json.loads(path.read_text())
        document["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ""}]
        path.write_text(json.dumps(document))  # the same code
        (folder / "other.ipynb").write_text(path.read_text().replace("pid", "number"))
        await here.until(lambda: here.list_names("notebook") == ["other"])
        assert await here.call("pid") == first
        write_notebook(path, LOAD, PID.replace("os.getpid()", "-1"))
        await here.until(lambda: not psutil.Process().children())
        assert here.list_names("notebook") == ["sums", "other"]
        assert await here.call("pid") == "-1"
        assert here.list_names("notebook") == ["other"]
    assert re.search(
        "its kernel was stopped, because its code has changed", capsys.readouterr().err
    )


async def test_a_tool_that_new_code_does_not_have_is_gone_and_it_is_said(folder, home):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID)
    offer(home, path, "pid", "old")
    async with served_folder(folder, home) as here:
        with pytest.raises(ToolGone, match="'old' of the notebook 'sums' is gone"):
            await here.call("old")
        assert here.list_names() == ["pid", "suicide"]


async def test_what_a_notebook_no_longer_declares_is_not_listed_after_a_call(folder, home):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID)
    offer(home, path, "pid")
    write_notebook(path, LOAD, "1 + 1")
    async with served_folder(folder, home) as here:
        assert here.list_names() == ["pid"]
        assert "offers no tools: it runs `%load_ext mcp_notebook`" in await _refusal(here, "pid")
        assert here.list_names() == []
        assert here.list_names("notebook") == ["sums"]
    async with served_folder(folder, home) as here:
        assert here.list_names() == []


@pytest.mark.slow
async def test_a_running_call_of_a_deleted_notebook_ends_as_usual(folder, home):
    path = write_notebook(folder / "sums.ipynb", LOAD, LONG)
    offer(home, path, "wait")
    async with served_folder(folder, home) as here:
        async with anyio.create_task_group() as tasks:

            async def call():
                assert await here.call("wait") == "done"

            tasks.start_soon(call)
            await here.until(lambda: here.links.open_links and here.links.open_links[0].open_calls)
            path.unlink()
            await here.until(lambda: here.list_names() == [])
            (folder / "go").touch()
        await here.until(lambda: not psutil.Process().children())
        with pytest.raises(ToolGone, match="Its file was moved or deleted"):
            await here.call("wait")


async def test_a_notebook_that_is_deleted_while_its_cells_run_is_stopped_and_its_calls_are_told(
    folder, home
):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID, "import time\ntime.sleep(600)")
    offer(home, path, "pid")
    said = []
    async with served_folder(folder, home) as here:
        async with anyio.create_task_group() as tasks:

            async def call():
                said.append(await _refusal(here, "pid"))

            tasks.start_soon(call)
            await here.until(lambda: psutil.Process().children())
            path.unlink()
        await here.until(lambda: not psutil.Process().children())
        assert here.list_names() == []
        with pytest.raises(ToolGone):
            await here.call("pid")
        write_notebook(path, LOAD, PID)
        await here.until(lambda: here.list_names("notebook") == ["sums"])
    (text,) = said
    assert text.startswith(
        "The notebook 'sums' has not run to its end, and nothing was called. Its"
    )
    assert " Its file was moved or deleted, or declares nothing any more, at " in text


@pytest.mark.slow
async def test_an_untrusted_notebook_is_not_run_if_the_settings_say_so(folder, home):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID)
    offer(home, path, "pid")
    async with served_folder(folder, home, trusted_only=True) as here:
        assert "is not trusted" in await _refusal(here, "pid")
