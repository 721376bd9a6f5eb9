"""A notebook that is saved is served by a new kernel: with real ones, which are killed or fail."""

import os
import signal
import tempfile

import anyio
import nbformat
import psutil
import pytest
from file_events import appears
from kept_notebook import kept_notebook, write_notebook
from live import TIMEOUT
from trusted_notebooks import sign

from mcp_notebook.bridge.headless.kernel_room import SPARED
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.errors import ToolGone

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked_kernels"),
    pytest.mark.skipif(os.name == "nt", reason="kernels are ended by signals"),
]

TOOLS = """%%mcp_tool
import os, pathlib, time

def pid() -> int:
    "The kernel's process."
    return os.getpid()

def meet(here: str, there: str) -> int:
    "Waits until the other one is there, too."
    pathlib.Path(here).touch()
    while not pathlib.Path(there).exists():
        time.sleep(0.01)
    return os.getpid()
"""


async def wait_until_said(capsys, text):
    """Wait until stderr has a text, and return all that is there since it was last read."""
    said = ""
    with anyio.fail_after(TIMEOUT):
        while text not in said:
            await anyio.sleep(0.02)
            said += capsys.readouterr().err
    return said


MORE = "%%mcp_tool\ndef more() -> int:\n    return 1"
SUICIDE = "%%mcp_tool\ndef suicide() -> None:\n    os.kill(os.getpid(), 9)"


async def test_a_saved_file_is_served_by_a_new_kernel_and_calls_that_run_end_on_the_old_one(
    folder, home, capsys
):
    results = []

    async def meet():
        results.append(int(await here.call("meet", here="a", there="b")))

    async with kept_notebook(write_notebook(folder, TOOLS), home, watch=True) as here:
        old = await here.pid()
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(meet)
                await appears(folder / "a")
                write_notebook(folder, TOOLS, MORE)
                await here.catalog.wait_for("pid", "meet", "more")
                new = await here.pid()
                write_notebook(folder, TOOLS)
                await here.catalog.wait_for("pid", "meet")
                newest = await here.pid()
                assert len({old, new, newest}) == 3
                (folder / "b").touch()
            assert results == [old]
        with anyio.fail_after(SPARED / 2):  # the one before the last is not spared
            while psutil.pid_exists(old):
                assert await here.pid() == newest
    said = capsys.readouterr().err
    assert "sums.ipynb was saved and is being run" in said
    assert "restarted" not in said


@pytest.mark.slow
async def test_a_kernel_of_an_old_version_that_dies_is_not_restarted(folder, home, capsys):
    async with kept_notebook(write_notebook(folder, TOOLS), home, watch=True) as here:
        old = await here.pid()
        write_notebook(folder, TOOLS, MORE)
        await here.catalog.wait_for("pid", "meet", "more")
        os.kill(old, signal.SIGKILL)
        with anyio.fail_after(TIMEOUT):
            while len(list_live_records(home / "state" / "kernels")) > 1:
                await here.pid()
        await here.pid()
        assert [entry.name for entry in here.catalog.entries()] == ["pid", "meet", "more"]
    assert "restarted" not in capsys.readouterr().err


@pytest.mark.slow
async def test_a_saved_file_that_cannot_be_run_leaves_the_version_before(folder, home, capsys):
    async with kept_notebook(write_notebook(folder, TOOLS, SUICIDE), home, watch=True) as here:
        pid = await here.pid()
        said = ""

        async def wait_until_said(text):
            nonlocal said
            with anyio.fail_after(TIMEOUT):
                while text not in said:
                    assert await here.pid() == pid
                    said += capsys.readouterr().err

        write_notebook(folder, TOOLS, "1 / 0")
        await wait_until_said("sums.ipynb is still served with its previous code. Code cell 3 of")
        (folder / "sums.ipynb").write_text("{")
        await wait_until_said("is not a Jupyter notebook")
        # A kernel that dies is replaced by one that runs the version that is served.
        assert "waits until it has been started again" in await here.gone("suicide")
        assert await here.pid() != pid
        write_notebook(folder, TOOLS, MORE)
        await here.catalog.wait_for("pid", "meet", "more")
        assert len(psutil.Process().children()) <= 3  # the old one lingers


@pytest.mark.slow
async def test_a_watched_notebook_that_is_given_up_is_served_again_when_it_is_saved(
    folder, home, capsys
):
    cells = "import os\nif os.path.exists('broken'): 1 / 0", TOOLS, SUICIDE
    async with kept_notebook(write_notebook(folder, *cells), home, watch=True) as here:
        (folder / "broken").touch()
        await here.gone("suicide")
        said = await wait_until_said(capsys, "sums.ipynb is no longer served: 3 starts in a row")
        with pytest.raises(ToolGone, match=r"Fix the notebook and save it\.$"):
            here.catalog.find("pid")
        write_notebook(folder, *cells)
        said = await wait_until_said(capsys, "sums.ipynb is still not served. Code cell 2 of 4")
        assert "as it was" not in said
        (folder / "broken").unlink()
        write_notebook(folder, *cells)
        await here.catalog.wait_for("pid", "meet", "suicide")


@pytest.mark.slow
async def test_code_that_could_not_be_run_is_run_again_when_it_is_saved_again(folder, home, capsys):
    async with kept_notebook(write_notebook(folder, TOOLS), home, watch=True) as here:
        cells = "open('rain.csv')", TOOLS, MORE
        write_notebook(folder, *cells)
        await wait_until_said(capsys, "No such file or directory: 'rain.csv'")
        (folder / "rain.csv").touch()
        write_notebook(folder, *cells)
        await here.catalog.wait_for("pid", "meet", "more")


@pytest.mark.slow
async def test_what_is_saved_as_it_is_served_ends_the_start_of_what_was_saved_before(
    folder, home, capsys
):
    waits = "import pathlib, time\npathlib.Path('began').touch()\nwhile True: time.sleep(0.01)"
    async with kept_notebook(write_notebook(folder, TOOLS), home, watch=True) as here:
        pid = await here.pid()
        write_notebook(folder, TOOLS, waits)
        with anyio.fail_after(TIMEOUT):
            await appears(folder / "began")
            write_notebook(folder, TOOLS)
            await wait_until_said(
                capsys, "sums.ipynb was saved with the code that is already served"
            )
            while len(list_live_records(home / "state" / "kernels")) > 1:
                assert await here.pid() == pid


@pytest.mark.slow
async def test_a_full_disk_leaves_the_version_before_a_saved_file(
    folder, home, capsys, monkeypatch
):
    async with kept_notebook(write_notebook(folder, TOOLS), home, watch=True) as here:
        usual = tempfile.gettempdir()
        monkeypatch.setattr(tempfile, "tempdir", str(home / "nowhere"))
        write_notebook(folder, TOOLS, MORE)
        said = await wait_until_said(capsys, "No such file or directory")
        assert "The kernel 'python3' of sums.ipynb cannot be started: " in said
        await here.pid()
        monkeypatch.setattr(tempfile, "tempdir", usual)
        write_notebook(folder, TOOLS, MORE)
        await here.catalog.wait_for("pid", "meet", "more")


@pytest.mark.parametrize("is_saved_again", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_saved_file_that_is_not_trusted_is_run_as_soon_as_it_is(
    folder, home, capsys, monkeypatch, is_saved_again
):
    data = home / "jupyter"
    data.mkdir()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(data))
    sign(path := write_notebook(folder, TOOLS), data)
    async with kept_notebook(path, home, watch=True, trusted_only=True) as here:
        write_notebook(folder, TOOLS, MORE)
        said = ""
        with anyio.fail_after(TIMEOUT):
            while "sums.ipynb is still served with its previous code." not in said:
                await here.pid()
                said += capsys.readouterr().err
        await here.pid()
        assert "it was before it was saved" not in capsys.readouterr().err
        if is_saved_again:  # as Jupyter does, with what the cells have said
            document = read_notebook(path)[1]
            document.cells[-1].outputs = [nbformat.v4.new_output("stream", text="said")]
            nbformat.write(document, path)
        sign(path, data)
        await here.catalog.wait_for("pid", "meet", "more")


async def test_a_saved_file_with_the_same_code_starts_nothing(folder, home):
    path = write_notebook(folder, TOOLS)
    version = read_notebook(path)
    document = read_notebook(path)[1]
    document.cells[1].metadata["execution"] = {"shell.execute_reply": "now"}
    document.cells[1].outputs = [nbformat.v4.new_output("stream", text="said")]
    document.cells.append(nbformat.v4.new_markdown_cell("# Title"))
    nbformat.write(document, path)
    assert describe_code(read_notebook(path)[1]) == describe_code(version[1])
    document.cells[1].metadata["tags"] = ["skip-execution"]
    nbformat.write(document, path)
    assert describe_code(read_notebook(path)[1]) != describe_code(version[1])
