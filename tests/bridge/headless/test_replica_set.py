"""A notebook is kept served by several real kernels, which are killed or fail to start."""

import os
import signal
import subprocess
import sys
import tempfile
from functools import partial

import anyio
import nbformat
import psutil
import pytest
from file_events import appears
from kept_notebook import kept_notebook, write_notebook
from live import TIMEOUT, kernel_env
from trusted_notebooks import sign

from mcp_notebook.bridge.headless import replica_set, restarts
from mcp_notebook.bridge.headless.cell_progress import SharedProgress
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.bridge.headless.replica_set import ReplicaSet, decide_number
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.errors import KernelGone, NotebookError
from mcp_notebook.settings.settings import Settings

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
FAILS_LATER = """import os, signal
try:
    os.close(os.open("first", os.O_CREAT | os.O_EXCL))
except FileExistsError:
    {}"""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Delays of tests."""
    monkeypatch.setattr(restarts, "FIRST_DELAY", 0.05)


kept = partial(kept_notebook, ReplicaSet)


async def pids_of(here, number):
    """Return the processes that idle kernels answer from, one call after another."""
    return [await here.pid() for _ in range(number)]


async def wait_until_said(capsys, text):
    """Wait until stderr has a text, and return all that is there since it was last read."""
    said = ""
    with anyio.fail_after(TIMEOUT):
        while text not in said:
            await anyio.sleep(0.02)
            said += capsys.readouterr().err
    return said


async def fail_to_start(path, home, **options):
    """Return what whoever starts a notebook is told."""
    settings = Settings(home=home / "state", **options)
    async with Links(Catalog(), on_change=lambda: None) as links:
        with pytest.raises(NotebookError) as caught, anyio.fail_after(TIMEOUT):
            await ReplicaSet(path, settings, links, SharedProgress()).run()
    assert psutil.Process().children() == []
    return str(caught.value)


@pytest.mark.slow
async def test_calls_run_at_once_and_a_kernel_that_dies_is_replaced_while_the_other_answers(
    folder, home, capsys
):
    async with kept(write_notebook(folder, TOOLS), home, replicas=2) as here:
        assert [entry.name for entry in here.catalog.entries()] == ["pid", "meet"]
        met = []

        async def meet(name, other):
            met.append(int(await here.call("meet", here=name, there=other)))

        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(meet, "a", "b")
                tasks.start_soon(meet, "b", "a")
        assert len(set(met)) == 2
        assert set(await pids_of(here, 4)) == set(met)

        told = []

        async def wait():
            with pytest.raises(KernelGone) as caught:
                await here.call("meet", here="c", there="never")
            told.append(str(caught.value))

        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await appears(folder / "c")
                (living,) = set(await pids_of(here, 2))  # the other one is busy
                (busy,) = set(met) - {living}
                os.kill(busy, signal.SIGKILL)
                assert await pids_of(here, 2) == [living, living]
            while len(pids := set(await pids_of(here, 2))) == 1:
                assert [entry.name for entry in here.catalog.entries()] == ["pid", "meet"]
        assert living in pids
        assert busy not in pids
    assert "was killed by SIGKILL" in told[0]
    assert "the call was lost. Other kernels of the notebook are available. Call again." in told[0]
    said = capsys.readouterr().err
    assert "sums.ipynb: 2 kernels have run its cells" in said
    assert said.count("is not trusted") <= 2  # when it is started, and if it was the first one


@pytest.mark.slow
async def test_a_cell_that_fails_fails_in_the_first_kernel_and_no_other_is_started(folder, home):
    path = write_notebook(folder, "open('tries', 'a').write('x')", "1 / 0", TOOLS)
    said = await fail_to_start(path, home, replicas=3)
    assert said.startswith("Code cell 3 of 4 of sums.ipynb failed")
    assert (folder / "tries").read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL (out of memory, perhaps"),
        ("raise MemoryError", "MemoryError"),
    ],
)
async def test_kernels_that_do_not_all_start_are_an_error_that_says_how_to_go_on(
    folder, home, failure, told
):
    path = write_notebook(folder, FAILS_LATER.format(failure), TOOLS)
    said = await fail_to_start(path, home, replicas=2)
    assert said.startswith("2 kernels of sums.ipynb could not be started, only fewer: choose a")
    assert told in said


@pytest.mark.slow
async def test_a_notebook_is_given_up_with_the_last_of_its_kernels(folder, home, capsys):
    broken = "import os\nif os.path.exists('broken'): 1 / 0"
    async with kept(write_notebook(folder, broken, TOOLS), home, replicas=2) as here:
        pids = set(await pids_of(here, 2))
        (folder / "broken").touch()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        with anyio.fail_after(TIMEOUT):
            await here.ended.wait()
        assert "A kernel of sums.ipynb is no longer served: 3 starts in a row" in here.reason
        with pytest.raises(KernelGone, match="3 starts in a row failed"):
            here.catalog.find("pid")
    assert "A kernel of sums.ipynb is no longer served" in capsys.readouterr().err


# -- a file that is saved --------------------------------------------------------------------------

MORE = "%%mcp_tool\ndef more() -> int:\n    return 1"
SUICIDE = "%%mcp_tool\ndef suicide() -> None:\n    os.kill(os.getpid(), 9)"


async def test_a_saved_file_is_served_by_new_kernels_and_calls_that_run_end_on_the_old_ones(
    folder, home, capsys, monkeypatch
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    results = []

    async def meet():
        results.append(int(await here.call("meet", here="a", there="b")))

    async with kept(write_notebook(folder, TOOLS), home, replicas=2, watch=True) as here:
        old = set(await pids_of(here, 2))
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(meet)
                await appears(folder / "a")
                write_notebook(folder, TOOLS, MORE)
                await here.catalog.wait_for("pid", "meet", "more")
                new = set(await pids_of(here, 2))
                assert len(new) == 2
                assert not new & old
                monkeypatch.setattr(replica_set, "LINGER", 0.0)  # of those that are current now
                write_notebook(folder, TOOLS)
                await here.catalog.wait_for("pid", "meet")
                newest = set(await pids_of(here, 2))
                assert not newest & (new | old)
                (folder / "b").touch()
            assert results[0] in old
            while any(map(psutil.pid_exists, old | new)):
                assert set(await pids_of(here, 2)) == newest
    said = capsys.readouterr().err
    assert "sums.ipynb was saved and is being run" in said
    assert "restarted" not in said


@pytest.mark.slow
async def test_a_kernel_of_an_old_version_that_dies_is_not_restarted(
    folder, home, capsys, monkeypatch
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    async with kept(write_notebook(folder, TOOLS), home, watch=True) as here:
        (old,) = await pids_of(here, 1)
        write_notebook(folder, TOOLS, MORE)
        await here.catalog.wait_for("pid", "meet", "more")
        os.kill(old, signal.SIGKILL)
        with anyio.fail_after(TIMEOUT):
            while len(list_live_records(home / "state" / "kernels")) > 1:
                await pids_of(here, 1)
        await pids_of(here, 5)
        assert [entry.name for entry in here.catalog.entries()] == ["pid", "meet", "more"]
    assert "restarted" not in capsys.readouterr().err


@pytest.mark.slow
async def test_a_saved_file_that_cannot_be_run_leaves_the_version_before(
    folder, home, capsys, monkeypatch
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    async with kept(write_notebook(folder, TOOLS, SUICIDE), home, watch=True) as here:
        (pid,) = await pids_of(here, 1)
        said = ""

        async def wait_until_said(text):
            nonlocal said
            with anyio.fail_after(TIMEOUT):
                while text not in said:
                    assert await pids_of(here, 1) == [pid]
                    said += capsys.readouterr().err

        write_notebook(folder, TOOLS, "1 / 0")
        await wait_until_said("sums.ipynb is still served with its previous code. Code cell 3 of")
        (folder / "sums.ipynb").write_text("{")
        await wait_until_said("is not a Jupyter notebook")
        # A kernel that dies is replaced by one that runs the version that is served.
        assert "It is being restarted, and its tools return when" in await here.gone("suicide")
        await here.catalog.wait_for("pid", "meet", "suicide")
        write_notebook(folder, TOOLS, MORE)
        await here.catalog.wait_for("pid", "meet", "more")
        assert len(psutil.Process().children()) <= 3  # the old one lingers


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
async def test_a_new_kernel_that_is_killed_while_it_starts_is_started_again(
    folder, home, capsys, monkeypatch, replicas
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    killed = FAILS_LATER.replace("O_EXCL))", "O_EXCL))\n    os.kill(os.getpid(), signal.SIGKILL)")
    async with kept(write_notebook(folder, TOOLS), home, watch=True, replicas=replicas) as here:
        write_notebook(folder, killed.format("pass"), TOOLS, MORE)
        await here.catalog.wait_for("pid", "meet", "more")
        said = capsys.readouterr().err
        assert "was killed by SIGKILL" in said
        assert "It is being restarted." in said
        assert "as it was before it was saved" not in said
        write_notebook(folder, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", TOOLS)
        said = await wait_until_said(capsys, "sums.ipynb is still served with its previous code.")
        assert said.count("It is being restarted.") == restarts.MAX_FAILURES - 1


@pytest.mark.slow
async def test_a_watched_notebook_that_is_given_up_is_served_again_when_it_is_saved(
    folder, home, capsys, monkeypatch
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    cells = "import os\nif os.path.exists('broken'): 1 / 0", TOOLS, SUICIDE
    async with kept(write_notebook(folder, *cells), home, watch=True) as here:
        (folder / "broken").touch()
        await here.gone("suicide")
        said = await wait_until_said(capsys, "sums.ipynb is no longer served: 3 starts in a row")
        with pytest.raises(KernelGone, match=r"Fix the notebook and save it\.$"):
            here.catalog.find("pid")
        write_notebook(folder, *cells)
        said = await wait_until_said(capsys, "sums.ipynb is still not served. Code cell 2 of 4")
        assert "as it was" not in said
        (folder / "broken").unlink()
        write_notebook(folder, *cells)
        await here.catalog.wait_for("pid", "meet", "suicide")


@pytest.mark.slow
async def test_code_that_could_not_be_run_is_run_again_when_it_is_saved_again(
    folder, home, capsys, monkeypatch
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    async with kept(write_notebook(folder, TOOLS), home, watch=True) as here:
        cells = "open('rain.csv')", TOOLS, MORE
        write_notebook(folder, *cells)
        await wait_until_said(capsys, "No such file or directory: 'rain.csv'")
        (folder / "rain.csv").touch()
        write_notebook(folder, *cells)
        await here.catalog.wait_for("pid", "meet", "more")


@pytest.mark.slow
async def test_what_is_saved_as_it_is_served_ends_the_start_of_what_was_saved_before(
    folder, home, capsys, monkeypatch
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    waits = "import pathlib, time\npathlib.Path('began').touch()\nwhile True: time.sleep(0.01)"
    async with kept(write_notebook(folder, TOOLS), home, watch=True) as here:
        (pid,) = await pids_of(here, 1)
        write_notebook(folder, TOOLS, waits)
        with anyio.fail_after(TIMEOUT):
            await appears(folder / "began")
            write_notebook(folder, TOOLS)
            await wait_until_said(
                capsys, "sums.ipynb was saved with the code that is already served"
            )
            while len(list_live_records(home / "state" / "kernels")) > 1:
                assert await pids_of(here, 1) == [pid]


@pytest.mark.slow
async def test_a_full_disk_leaves_the_version_before_a_saved_file(
    folder, home, capsys, monkeypatch
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    async with kept(write_notebook(folder, TOOLS), home, watch=True) as here:
        usual = tempfile.gettempdir()
        monkeypatch.setattr(tempfile, "tempdir", str(home / "nowhere"))
        write_notebook(folder, TOOLS, MORE)
        said = await wait_until_said(capsys, "No such file or directory")
        assert "The kernel 'python3' of sums.ipynb cannot be started: " in said
        await pids_of(here, 1)
        monkeypatch.setattr(tempfile, "tempdir", usual)
        write_notebook(folder, TOOLS, MORE)
        await here.catalog.wait_for("pid", "meet", "more")


@pytest.mark.parametrize("is_saved_again", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_saved_file_that_is_not_trusted_is_run_as_soon_as_it_is(
    folder, home, capsys, monkeypatch, is_saved_again
):
    monkeypatch.setattr(replica_set, "_LOOK_INTERVAL", 0.02)
    monkeypatch.setattr(restarts, "TRUST_INTERVAL", 0.02)
    data = home / "jupyter"
    data.mkdir()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(data))
    sign(path := write_notebook(folder, TOOLS), data)
    async with kept(path, home, watch=True, trusted_only=True) as here:
        write_notebook(folder, TOOLS, MORE)
        said = ""
        with anyio.fail_after(TIMEOUT):
            while "sums.ipynb is still served with its previous code." not in said:
                await pids_of(here, 1)
                said += capsys.readouterr().err
        await pids_of(here, 20)
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


# -- how many --------------------------------------------------------------------------------------


def test_as_many_kernels_as_processors_and_memory_allow_and_at_least_one():
    decide = decide_number
    assert decide("auto", "a.ipynb", each=100, free=10_000, most=8) == 8
    assert decide("auto", "a.ipynb", each=100, free=250, most=8) == 3
    assert decide("auto", "a.ipynb", each=100, free=0, most=8) == 1
    assert decide(3, "a.ipynb", each=100, free=200, most=1) == 3
    assert decide("auto", "a.ipynb", each=0, free=10**9) >= 1


def test_a_watched_notebook_gets_as_many_kernels_as_leave_memory_for_those_of_the_next_version():
    first = decide_number("auto", "a.ipynb", each=100, free=750, most=8, versions=2)
    assert first == 4
    free = 750 - 3 * 100 - 100  # beside them, and the first one of the next version
    assert decide_number("auto", "a.ipynb", each=100, free=free, most=first) == 4
    assert decide_number("auto", "a.ipynb", each=250, free=free, most=first) == 2


def test_kernels_that_have_no_memory_are_not_started_and_one_sentence_says_how_many_could_be():
    with pytest.raises(NotebookError) as caught:
        decide_number(9, "a.ipynb", each=2 * 10**9, free=5 * 10**9)
    assert str(caught.value) == (
        "There is not enough memory for 9 kernels of a.ipynb: each needs about 2.0 GB, and 5.0 GB "
        "is free beside the first. Start at most 3 (--replicas 3), or as many as fit (--replicas "
        "auto)."
    )


@pytest.mark.slow
def test_kernels_that_need_more_open_files_than_there_may_be_are_not_started(folder, home):
    import resource  # noqa: PLC0415 - not on Windows

    command = [sys.executable, "-m", "mcp_notebook", "serve", str(write_notebook(folder, TOOLS))]
    done = subprocess.run(
        [*command, "--replicas", "3", "--port", "0"],
        check=False,
        env=kernel_env(home),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)),
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "3 kernels of sums.ipynb need more open files than this process may have. Start at most 1 "
        "(--replicas 1), or raise the limit (`ulimit -Hn`).\n"
    )
