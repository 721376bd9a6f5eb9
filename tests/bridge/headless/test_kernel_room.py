"""A kernel that starts on call has room on the machine, or gets that of one that is not used."""

import os
import time
from functools import partial

import anyio
import psutil
import pytest
from notebook_files import write_notebook
from served_folder import LOAD, offer, served_folder

from mcp_notebook.bridge.headless import kernel_room, served_notebook
from mcp_notebook.bridge.headless.kernel_room import LEAST_MEMORY
from mcp_notebook.bridge.headless.machine_limits import measure_kernel
from mcp_notebook.bridge.headless.served_notebook import ServedNotebook
from mcp_notebook.errors import NotStarted

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked_kernels"),
    pytest.mark.skipif(os.name == "nt", reason="kernels are ended by signals"),
]
UNSPARED = partial(ServedNotebook, spared=0.2)
"""A kernel can be stopped soon after its last use."""
TOOL = """%%mcp_tool
import asyncio, os, pathlib
async def {0}() -> int:
    "The kernel's process."
    while pathlib.Path("{0}-waits").exists():
        await asyncio.sleep(0.01)
    return os.getpid()
"""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The machine has memory for two kernels."""

    def find_free_memory():
        return (2 - len(psutil.Process().children())) * LEAST_MEMORY

    monkeypatch.setattr(kernel_room, "find_free_memory", find_free_memory)
    monkeypatch.setattr(served_notebook, "measure_kernel", lambda _pid: LEAST_MEMORY)


def _write(folder, home, *names):
    for name in names:
        path = write_notebook(folder / f"{name}.ipynb", LOAD, TOOL.format(name))
        offer(home, path, name)


async def _call(here, name, guest=""):
    """Call a tool, and wait until its kernel counts as idle."""
    pid = await here.call(name, guest=guest)
    now = time.monotonic()
    await here.until(lambda: time.monotonic() > now + 0.3)
    return pid


@pytest.mark.slow
async def test_the_kernel_that_was_not_used_for_longest_makes_way_for_another(folder, home, capsys):
    _write(folder, home, "one", "two", "three")
    async with served_folder(folder, home, make_notebook=UNSPARED) as here:
        first, second = await _call(here, "one"), await _call(here, "two")
        assert await _call(here, "one") == first  # so the other one is older
        await _call(here, "three")
        assert len(psutil.Process().children()) == 2
        assert await _call(here, "one") == first
        assert here.list_names() == ["one", "three", "two"]
        assert await _call(here, "two") != second
    said = capsys.readouterr().err
    stopped = "its kernel was stopped, because another notebook needed its room"
    assert [line for line in said.splitlines() if stopped in line] == [
        f"two: {stopped}",
        f"three: {stopped}",
    ]


async def test_a_kernel_with_a_call_is_kept_and_who_has_no_room_is_told(folder, home):
    _write(folder, home, "one", "two", "three")
    waits = [folder / f"{name}-waits" for name in ("one", "two")]
    async with (
        served_folder(folder, home, make_notebook=UNSPARED) as here,
        anyio.create_task_group() as tasks,
    ):
        for number, path in enumerate(waits, start=1):
            path.touch()
            tasks.start_soon(here.call, path.name.removesuffix("-waits"))
            await here.until(
                lambda n=number: sum(link.open_calls for link in here.links.open_links) == n
            )
        with pytest.raises(NotStarted) as caught:
            await here.call("three")
        assert caught.value.details == (
            "The notebook 'three' could not be run, so nothing was called: its kernel needs about "
            "200 MB of memory, and 0 bytes is free. Free some, or call again later: other "
            "notebooks have calls, were used in the last 30 seconds, or have results that clients "
            "still fetch."
        )
        waits[0].unlink()
        await here.until(lambda: sum(link.open_calls for link in here.links.open_links) == 1)
        assert await _call(here, "one")
        assert (await here.call("three")).isdecimal()  # at once: the refusal was not a failure
        waits[1].unlink()


async def test_a_kernel_with_results_is_kept(folder, home):
    _write(folder, home, "one", "two", "three")
    async with served_folder(folder, home, make_notebook=UNSPARED) as here:
        for name in ("one", "two"):
            await _call(here, name)
        for link in here.links.open_links:
            link.keeps_results = True
        with pytest.raises(NotStarted, match="results that clients still fetch"):
            await here.call("three")


async def test_a_guest_never_ends_the_kernel_that_the_user_used_last(folder, home):
    _write(folder, home, "one", "two", "three")
    async with served_folder(folder, home, make_notebook=UNSPARED) as here:
        users = await _call(here, "one")
        for name in ("two", "three", "two"):
            await _call(here, name, "a")
        assert await _call(here, "one") == users
        assert len(psutil.Process().children()) == 2


async def test_a_kernel_that_the_user_has_used_is_his(folder, home):
    _write(folder, home, "one", "two")
    async with served_folder(folder, home, make_notebook=UNSPARED, max_kernels=1) as here:
        guests = await _call(here, "one", "a")
        assert await _call(here, "one") == guests
        with pytest.raises(NotStarted, match="1 kernel runs already"):
            await here.call("two", guest="a")
        assert await _call(here, "one") == guests


async def test_the_user_s_call_ends_a_guest_s_kernel_that_was_just_used(folder, home):
    _write(folder, home, "one", "two")
    async with served_folder(folder, home, max_kernels=1) as here:
        await _call(here, "one", "a")
        with pytest.raises(NotStarted, match="were used in the last 30 seconds"):
            await here.call("two", guest="b")
        assert (await here.call("two")).isdecimal()


@pytest.mark.slow
async def test_guests_leave_kernels_to_each_other_and_to_the_user(folder, home, monkeypatch):
    monkeypatch.setattr(kernel_room, "find_free_memory", lambda: 10**12)
    names = ["one", "two", "three", "four"]
    _write(folder, home, *names, "five")
    waits = [folder / f"{name}-waits" for name in names]
    served = served_folder(folder, home, max_kernels=4)
    async with served as here, anyio.create_task_group() as jobs:

        async def start(number, guest):
            waits[number].touch()
            jobs.start_soon(partial(here.call, names[number], guest=guest))
            await here.until(
                lambda: sum(link.open_calls for link in here.links.open_links) == number + 1
            )

        await start(0, "a")
        await start(1, "a")
        with pytest.raises(NotStarted, match="2 kernels run that you have started"):
            await here.call("five", guest="a")
        await start(2, "b")
        with pytest.raises(NotStarted, match="3 kernels of the user's guests run"):
            await here.call("five", guest="b")
        await start(3, "")
        with pytest.raises(NotStarted, match="4 kernels run already"):
            await here.call("five")
        for path in waits:
            path.unlink()


async def test_a_quarter_of_the_memory_is_kept_for_the_user(folder, home):
    _write(folder, home, "one", "two")
    async with served_folder(folder, home) as here:
        first = await _call(here, "one", "a")
        with pytest.raises(NotStarted, match="a quarter of what is free is kept for the user"):
            await here.call("two", guest="b")
        assert (await here.call("two")).isdecimal()
        assert await here.call("one", guest="a") == first


async def test_a_kernel_that_was_just_used_is_kept(folder, home):
    _write(folder, home, "one", "two", "three")
    async with served_folder(folder, home) as here:
        pids = [await _call(here, name) for name in ("one", "two")]
        with pytest.raises(NotStarted, match="were used in the last 30 seconds"):
            await here.call("three")
        assert [await here.call(name) for name in ("one", "two")] == pids


async def test_no_kernel_is_stopped_if_that_would_not_make_enough_room(folder, home, monkeypatch):
    _write(folder, home, "one", "two", "three")
    async with served_folder(folder, home, make_notebook=UNSPARED) as here:
        pids = [await _call(here, name) for name in ("one", "two")]
        monkeypatch.setattr(served_notebook, "measure_kernel", lambda _pid: LEAST_MEMORY // 3)
        with pytest.raises(NotStarted, match=r"0 bytes is free\. Free some, and call again\.$"):
            await here.call("three")
        assert [await here.call(name) for name in ("one", "two")] == pids


@pytest.mark.slow
async def test_a_call_waits_for_a_kernel_that_is_ending_anyway(folder, home, monkeypatch):
    def find_free_memory():
        return (1 - len(psutil.Process().children())) * LEAST_MEMORY

    monkeypatch.setattr(kernel_room, "find_free_memory", find_free_memory)
    _write(folder, home, "one", "two")
    async with served_folder(folder, home, idle_minutes=0.5 / 60) as here:
        await here.call("one")
        entry = here.catalog.find("one")
        await here.until(lambda: here.links.is_expected(entry.kernel_id))
        assert psutil.Process().children()
        assert (await here.call("two")).isdecimal()


@pytest.mark.slow
async def test_what_a_starting_kernel_needs_is_not_promised_to_another(folder, home, monkeypatch):
    monkeypatch.setattr(kernel_room, "find_free_memory", lambda: 450_000_000)
    monkeypatch.setattr(served_notebook, "measure_kernel", lambda _pid: 300_000_000)
    _write(folder, home, "two")
    wait = "import pathlib, time\nwhile pathlib.Path('hold').exists():\n    time.sleep(0.01)"
    offer(home, write_notebook(folder / "one.ipynb", LOAD, wait, TOOL.format("one")), "one")
    async with served_folder(folder, home, idle_minutes=0.1 / 60) as here:
        await here.call("one")
        await here.until(lambda: not psutil.Process().children())
        (folder / "hold").touch()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.call, "one")
            await here.until(lambda: psutil.Process().children())
            with pytest.raises(NotStarted, match="200 MB of memory, and 150 MB is free"):
                await here.call("two")
            (folder / "hold").unlink()


@pytest.mark.slow
async def test_many_calls_at_once_start_no_more_kernels_than_there_is_room_for(folder, home):
    names = ["one", "two", "three", "four", "five", "six"]
    _write(folder, home, *names)
    most, refused = 0, []
    async with served_folder(folder, home) as here:

        async def call(name):
            try:
                await here.call(name)
            except NotStarted:
                refused.append(name)

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(call, name)
            while len(refused) + len(here.links) < len(names):
                most = max(most, len(psutil.Process().children()))
                await here.catalog.change()
    assert most <= 2
    assert refused


@pytest.mark.slow
async def test_what_its_kernel_took_after_its_cells_has_to_be_free_for_the_next_one(
    folder, home, monkeypatch
):
    monkeypatch.setattr(kernel_room, "find_free_memory", lambda: LEAST_MEMORY)
    monkeypatch.setattr(served_notebook, "measure_kernel", measure_kernel)
    large = f"data = bytes(b'x' * {LEAST_MEMORY + 20_000_000})"
    path = write_notebook(folder / "one.ipynb", LOAD, TOOL.format("one"), large)
    offer(home, path, "one")
    async with served_folder(folder, home, idle_minutes=0.1 / 60) as here:
        await here.call("one")
        await here.until(lambda: not psutil.Process().children())
        with pytest.raises(NotStarted, match=r"needs about 2[2-9]\d MB of memory, and 200 MB is"):
            await here.call("one")
        write_notebook(path, LOAD, TOOL.format("one"))
        assert (await here.call("one")).isdecimal()  # nobody knows what other code needs


async def test_without_open_files_it_says_which_limit_to_raise(folder, home, monkeypatch):
    _write(folder, home, "one")
    monkeypatch.setattr(kernel_room, "allow_open_files", lambda kernels: kernels - 1)
    async with served_folder(folder, home) as here:
        with pytest.raises(NotStarted) as caught:
            await here.links.wait_for_kernel(here.catalog.find("one"), errors="short")
    assert str(caught.value) == (
        "The notebook 'one' could not be run, so nothing was called: there is no room for its "
        "kernel. Call again later."
    )
    assert caught.value.details == (
        "The notebook 'one' could not be run, so nothing was called: its kernel needs more open "
        "files than this process may have. Raise the limit (`ulimit -Hn`), and call again."
    )
