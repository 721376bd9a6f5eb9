"""A headless notebook is kept served: with real kernels that are killed, leave, or fail."""

import contextlib
import json
import os
import signal
from pathlib import Path

import anyio
import psutil
import pytest
from bridges import INITIALIZE, bridge, http_bridge
from file_events import appears
from forked_command import find_pid
from kept_notebook import kept_notebook, write_notebook
from live import TIMEOUT, soon
from trusted_notebooks import sign

from mcp_notebook.bridge.headless import kernel_process
from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.served_notebook import ServedNotebook
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.errors import KernelGone, NotebookError, NotStarted, ToolGone
from mcp_notebook.settings.settings import Settings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked_kernels"),
    pytest.mark.skipif(os.name == "nt", reason="kernels are ended by signals"),
]

TOOLS = """%%mcp_tool
import asyncio, os, pathlib, signal

def pid() -> int:
    "The kernel's process."
    return os.getpid()

def leave(status: int) -> None:
    "Ends the process."
    os._exit(status)

def suicide() -> None:
    "Kills the process."
    os.kill(os.getpid(), signal.SIGKILL)

async def wait() -> None:
    "Waits."
    pathlib.Path("waiting").touch()
    await asyncio.sleep(60)

async def crowd() -> None:
    "Leaves a process behind that holds all that the kernel has open."
    for fd in os.listdir("/proc/self/fd"):
        if os.path.lexists(f"/proc/self/fd/{fd}"):
            os.set_inheritable(int(fd), True)
    child = os.posix_spawn("/bin/sleep", ["sleep", "20"], os.environ, setpgroup=0)
    pathlib.Path("left").write_text(str(child))
    os._exit(1)
"""
NAMES = ["pid", "leave", "suicide", "wait", "crowd"]


@pytest.mark.smoke
async def test_calls_are_told_the_exit_status_and_the_next_waits_for_the_new_kernel(
    folder, home, capsys
):
    async with kept_notebook(write_notebook(folder, TOOLS), home) as here:
        before = await here.pid()
        said = await here.gone("leave", status=3)
        assert said == (
            "The kernel of 'sums' ended with exit status 3, and the call was lost. The next call "
            "waits until it has been started again."
        )
        assert [entry.name for entry in here.catalog.entries()] == NAMES
        assert await here.pid() != before
        assert len(list_live_records(home / "state" / "kernels")) == 1
    said = capsys.readouterr().err
    assert "sums.ipynb: the kernel ended with exit status 3. It is being restarted now." in said
    assert said.count("sums.ipynb: 2 cells have run") == 2


@pytest.mark.slow
async def test_calls_are_told_the_signal_that_killed_the_kernel(folder, home):
    async with kept_notebook(write_notebook(folder, TOOLS), home) as here:
        said = await here.gone("suicide")
        assert "was killed by SIGKILL (out of memory, perhaps)" in said
        async with anyio.create_task_group() as tasks:
            told = []

            async def wait():
                with pytest.raises(KernelGone) as caught:
                    await here.call("wait")
                told.append(str(caught.value))

            pid = await here.pid()
            tasks.start_soon(wait)
            await appears(folder / "waiting")
            os.kill(pid, signal.SIGSEGV)
        assert "was killed by SIGSEGV, and" in told[0]
        assert await here.pid() != pid


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
async def test_a_process_that_a_kernel_leaves_behind_does_not_keep_it_alive(folder, home):
    async with kept_notebook(write_notebook(folder, TOOLS), home) as here:
        said = await here.gone("crowd")
        child = int((folder / "left").read_text())
        assert psutil.pid_exists(child)
        os.kill(child, signal.SIGKILL)
        assert "ended with exit status 1" in said
        await here.pid()


async def test_a_link_that_fails_is_made_again_and_the_kernel_lives(folder, home):
    async with kept_notebook(write_notebook(folder, TOOLS), home) as here:
        pid = await here.pid()
        (link,) = here.links._links.values()
        link._connection.connection_lost(ConnectionResetError())
        await link.end.wait()
        assert await here.pid() == pid


@pytest.mark.slow
async def test_a_kernel_that_no_longer_accepts_links_is_replaced(folder, home):
    unload = (
        "def unload() -> None:\n    ip = get_ipython()\n    ip.kernel.io_loop.asyncio_loop."
        "call_soon(ip.run_line_magic, 'unload_ext', 'mcp_notebook')"
    )
    async with kept_notebook(write_notebook(folder, TOOLS, f"%%mcp_tool\n{unload}"), home) as here:
        pid = await here.pid()
        (link,) = here.links.open_links
        with contextlib.suppress(KernelGone):  # the goodbye may come before the answer
            await here.call("unload")
        await link.end.wait()
        assert await here.pid() != pid


# -- starts that fail ------------------------------------------------------------------------------

NEEDS_DATA = "import os\nif not os.path.exists('data'): {}"


async def test_the_first_start_that_fails_is_the_callers(folder, home):
    path = write_notebook(folder, NEEDS_DATA.format("1 / 0"), TOOLS)
    with pytest.raises(NotebookError, match="Code cell 2 of 3 of sums"):
        async with Links(Catalog()) as links:
            await ServedNotebook(path, Settings(home=home / "state"), links, SharedProgress()).run()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fails", "told"),
    [("1 / 0", "ZeroDivisionError"), ("os._exit(4)", "ended with exit status 4")],
    ids=["raises", "dies"],
)
async def test_three_starts_in_a_row_that_fail_end_it(folder, home, capsys, fails, told):
    data = folder / "data"
    data.touch()
    async with kept_notebook(write_notebook(folder, NEEDS_DATA.format(fails), TOOLS), home) as here:
        data.unlink()
        await here.gone("leave", status=0)
        with anyio.fail_after(TIMEOUT):
            await here.ended.wait()
        assert here.reason.startswith(
            "sums.ipynb is no longer served: 3 starts in a row failed. The last failure: "
        )
        assert "cell 2 of 3" in here.reason
        assert told in here.reason
        with pytest.raises(ToolGone, match=r"no longer served.*Fix the notebook and start mcp-"):
            here.catalog.find("pid")
        assert here.catalog.entries() == ()
    said = capsys.readouterr().err
    assert said.count("Code cell 2 of 3") == 2  # the last is told by whoever started it


@pytest.mark.slow
async def test_a_start_that_succeeds_is_not_counted_with_those_before(folder, home):
    data = folder / "data"
    data.touch()
    # Fails twice of three times.
    fails = (
        "import os, pathlib\ncount = pathlib.Path('count')\n"
        "number = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(number + 1))\nassert number % 3 == 0"
    )
    async with kept_notebook(write_notebook(folder, fails, TOOLS), home) as here:
        for _ in range(2):
            await here.gone("leave", status=0)
            await here.pid()
        assert here.reason is None
        assert (folder / "count").read_text() == "7"


@pytest.mark.slow
async def test_a_kernel_that_is_retired_before_its_restart_is_not_restarted(folder, home, capsys):
    async with kept_notebook(write_notebook(folder, TOOLS), home, first_delay=2.0) as here:
        await here.gone("leave", status=0)
        await here.gone("leave", status=3)
        await soon(lambda: "It is being restarted in 2 s" in capsys.readouterr().err)
        with anyio.fail_after(TIMEOUT):
            here.keeper.retire()
            await here.ended.wait()
    assert here.reason == "sums.ipynb has been saved, and its new version is served."


# -- a notebook that is not trusted any more -------------------------------------------------------


@pytest.mark.slow
async def test_a_changed_notebook_is_restarted_only_when_it_is_trusted_again(
    folder, home, monkeypatch, capsys
):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(folder))
    path = write_notebook(folder, TOOLS)
    sign(path, folder)
    async with kept_notebook(path, home, trusted_only=True) as here:
        write_notebook(folder, "open('ran', 'w').close()", TOOLS)
        await here.gone("leave", status=0)
        with pytest.raises(NotStarted) as caught, anyio.fail_after(TIMEOUT):
            await here.pid()
        said = str(caught.value)
        assert said.startswith(
            "The kernel of 'sums' ended and was not started again, because the notebook is no "
            "longer trusted"
        )
        assert str(folder) not in said  # clients need not know where it is
        assert not (folder / "ran").exists()
        assert psutil.Process().children() == []
        sign(path, folder)
        await appears(folder / "ran")
        await soon(lambda: here.links.open_links)
        await here.pid()
        assert here.reason is None
    said = capsys.readouterr().err
    assert said.count(f"Read its code, then trust it with `jupyter trust {path}`. Then it is") == 1


@pytest.mark.slow
async def test_a_notebook_that_changed_is_said_to_be_not_trusted_when_it_is_run_again(
    folder, home, monkeypatch, capsys
):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(folder))
    path = write_notebook(folder, TOOLS)
    sign(path, folder)
    async with kept_notebook(path, home) as here:
        assert "trust" not in capsys.readouterr().err
        write_notebook(folder, "1 + 1", TOOLS)
        await here.gone("leave", status=0)
        await here.pid()
    assert f"{path} is not trusted (Jupyter has not signed its present content)" in (
        capsys.readouterr().err
    )


# -- how it ends -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("during", ["a delay", "a start", "a cell"])
async def test_it_ends_in_time_also_while_the_kernel_is_restarted(folder, home, during):
    busy = (
        "import pathlib, time\nif pathlib.Path('again').exists():\n"
        "    pathlib.Path('began').touch()\n    while True: time.sleep(0.01)\n"
        "pathlib.Path('again').touch()"
    )
    path, delay = write_notebook(folder, busy, TOOLS), 30 if during == "a delay" else 0.05
    before = anyio.current_time()
    async with kept_notebook(path, home, first_delay=delay) as here:
        limit = kernel_process._SHUTDOWN_LIMIT + 2 * (anyio.current_time() - before)
        if during == "a delay":
            (folder / "again").unlink()
            await here.gone("leave", status=0)
        await here.gone("leave", status=0)
        await soon(lambda: during != "a start" or psutil.Process().children())
        with anyio.fail_after(TIMEOUT):
            if during == "a cell":
                await appears(folder / "began")
        began = anyio.current_time()
    assert anyio.current_time() - began < limit
    assert list_live_records(home / "state" / "kernels") == ()


def serves(running, verb):
    """Wait until a bridge's tools are there."""
    if verb == "stdio":
        for message in (
            INITIALIZE,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pid"}},
        ):
            running.send(json.dumps(message).encode())
        while running.message().get("id") != 1:
            pass


def kernel_of(record_folder, name):
    return next(record.pid for record in list_live_records(record_folder) if record.name == name)


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "names"), [("serve", ["one", "two"]), ("stdio", ["one"])])
def test_the_last_notebook_that_cannot_be_restarted_ends_the_bridge(folder, home, verb, names):
    data = folder / "data"
    data.touch()
    paths = [
        str(write_notebook(folder, NEEDS_DATA.format("1 / 0"), TOOLS, name=f"{name}.ipynb"))
        for name in names
    ]
    running = http_bridge(home, *paths) if verb == "serve" else bridge(home, verb, *paths, stdin=-1)
    with running as here:
        serves(here, verb)
        data.unlink()
        records = home / ".mcp-notebook" / "kernels"
        for name in names:
            assert here.process.poll() is None
            os.kill(kernel_of(records, name), signal.SIGKILL)
            here.wait_said(f"{name}.ipynb is no longer served: 3 starts in a row failed")
        assert here.wait() == 1
        assert here.said.count("is no longer served") == len(names)
        assert "mcp_notebook/" not in here.said  # no traceback of ours
        assert list_live_records(records) == ()
        if here.process.stdin:
            here.process.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["serve", "stdio"])
def test_a_bridge_ends_in_time_while_a_restarted_notebook_runs(folder, home, verb):
    busy = (
        "import pathlib, time\nif pathlib.Path('again').exists():\n"
        "    while True: time.sleep(0.01)\npathlib.Path('again').touch()"
    )
    path = str(write_notebook(folder, TOOLS, busy))
    running = http_bridge(home, path) if verb == "serve" else bridge(home, verb, path, stdin=-1)
    with running as here:
        serves(here, verb)
        (kernel,) = psutil.Process(find_pid(here.process.pid)).children()
        kernel.kill()
        here.wait_said(r"(?s)was killed by SIGKILL.*sums.ipynb: cell 3 of 3")
        (kernel,) = psutil.Process(find_pid(here.process.pid)).children()
        status, seconds = here.end()
        assert status == 0
        assert seconds < here.soon
        assert not kernel.is_running()
        if here.process.stdin:
            here.process.stdin.close()
