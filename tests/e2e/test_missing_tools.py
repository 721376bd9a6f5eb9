"""Each reason why a client misses a tool, provoked with real kernels and read where people look.

They look below the table of ``mcp-notebook list`` and, for what a kernel knows, at ``%mcp status``.
"""

import re
import signal
import time
from contextlib import AsyncExitStack

import anyio
import psutil
import pytest
from clients import (
    ERAS,
    LOAD,
    Changes,
    connected,
    http_bridge,
    over_http,
    text_of,
    tool_kernel,
)
from kernel_records import make_record
from live import TIMEOUT, kernel_env, record_of
from msgspec import structs
from notebook_files import write_notebook

from mcp_notebook.bridge.absent_notebooks import has_kernel
from mcp_notebook.bridge.headless.notebook import run_notebook
from mcp_notebook.cli.call import ToolCall, call_tool
from mcp_notebook.cli.list import list_tools
from mcp_notebook.discovery.departures import KEEP, Departure, write_departure
from mcp_notebook.discovery.records import list_live_records, read_records, write_record
from mcp_notebook.errors import CallError, NotebookError
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio
TOP = '%%mcp_tool\ndef top() -> str:\n    "Top."\n    return "x"'


@pytest.fixture(scope="module")
def shared_sales(module_home):
    with tool_kernel(module_home, TOP, name="sales") as kernel:
        yield kernel


@pytest.fixture
def sales(shared_sales):
    """A notebook with the tool `top`, declared anew for each test."""
    shared_sales.ok("%unload_ext mcp_notebook\n%reset -f")
    for cell in (LOAD, TOP):
        shared_sales.ok(cell)
    return shared_sales


@pytest.fixture
def own_sales(home):
    """The same in a kernel of the test's own."""
    with tool_kernel(home, TOP, name="sales") as kernel:
        yield kernel


@pytest.fixture
def listed(request, capsys):
    """Returns the table of `mcp-notebook list`, and what is below it."""
    is_shared = "sales" in request.fixturenames
    home = request.getfixturevalue("module_home" if is_shared else "home")

    async def read():
        await list_tools(Settings(home=home / ".mcp-notebook"), None)
        printed = capsys.readouterr()
        return printed.out, printed.err

    return read


async def _signal(kernel, signum, status):
    """Send a kernel a signal, and wait until its process has this status."""
    process = psutil.Process(kernel.pid)
    process.send_signal(signum)
    with anyio.fail_after(TIMEOUT):
        while process.is_running() and process.status() != status:  # noqa: ASYNC110
            await anyio.sleep(0.01)  # there is no event for the status of a process


@pytest.mark.parametrize(
    ("cell", "cause"),
    [
        ("del top", "`top` was deleted"),
        ("top = 5", "top"),
        ("def top(**args): 'Any.'", "args"),
    ],
    ids=["deleted", "rebound", "no longer a tool"],
)
async def test_a_tool_that_was_dropped(sales, listed, cell, cause):
    sales.run(cell)
    table, below = await listed()
    assert table == ""
    assert "sales: top (not listed): " in below
    assert cause in below
    status = sales.ok("%mcp status").text
    (line,) = [line for line in status.splitlines() if "  top: " in line]
    assert cause in line
    for text in (below, line):
        assert "If it is still needed, define it again and run its cell." in text
    sales.ok(TOP)
    assert "Problems" not in sales.ok("%mcp status").text
    assert "Missing" not in (await listed())[1]


def test_which_kernels_live_is_known_of_those_here_and_by_their_records_of_others(settings):
    alive, dead, elsewhere = (make_record() for _ in range(3))
    dead = structs.replace(dead, started=1.0)
    elsewhere = structs.replace(elsewhere, started=1.0, host="cluster")
    for record in (alive, dead, elsewhere):
        write_record(settings.records_folder, record)
    assert has_kernel(settings, alive.id)
    assert has_kernel(settings, elsewhere.id)
    assert not has_kernel(settings, dead.id)
    assert not has_kernel(settings, f"../records/{alive.id}")


async def test_a_kernel_on_another_machine(sales, listed):
    record = record_of(sales)
    write_record(sales.home / ".mcp-notebook" / "kernels", structs.replace(record, host="cluster"))
    _, below = await listed()
    assert "sales (not listed): Its kernel runs on another machine, 'cluster'" in below
    assert "Run mcp-notebook on 'cluster'." in below


@pytest.mark.slow
async def test_a_notebook_that_another_bridge_runs(home, listed, settings, monkeypatch):
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    write_notebook(home / "sums.ipynb", LOAD, TOP)
    async with run_notebook(home / "sums.ipynb", settings, progress=lambda _: None):
        _, below = await listed()
    assert "sums (not listed): Another mcp-notebook process runs this notebook" in below
    assert (await listed())[1].count("sums") == 0


# -- what clients are told who call a tool that was there ------------------------------------------


async def test_calls_of_a_tool_that_was_there_are_told_what_became_of_it(own_sales, home, settings):
    sales = own_sales
    sales.ok(TOP.replace("top", "best").replace("Top", "Best"))
    async with AsyncExitStack() as stack:
        url = stack.enter_context(http_bridge(home)).url
        changes = Changes()
        clients = [
            await stack.enter_async_context(over_http(url, era, message_handler=changes.handle))
            for era in ERAS
        ]

        async def told(tool, *sentences):
            """Call the tool once it is not in the list, in both eras."""
            for client in clients:
                with anyio.fail_after(TIMEOUT):
                    while tool in [tool.name for tool in (await client.list_tools()).tools]:
                        await changes.wait()
                    # The streams of a process that is killed end a moment before the process.
                    while "try again in a moment" in text_of(
                        result := await client.call_tool(tool, {})
                    ):
                        pass
                assert result.is_error
                text = text_of(result)
                assert text.startswith(f"The tool '{tool}' of the notebook 'sales' is gone. ")
                for sentence in sentences:
                    assert re.search(sentence, text), text

        async def returns(tool):
            with anyio.fail_after(TIMEOUT):
                while (await clients[0].call_tool(tool, {})).is_error:
                    await changes.wait()

        await returns("top")
        sales.ok("del top")
        await told("top", r"`top` was deleted\. That was at \d\d:\d\d\.", "define it again")
        sales.ok(TOP)
        await returns("top")
        sales.ok("%mcp_tool --name summit top\n__import__('mcp_notebook').registry.remove('top')")
        await told("top", r"none of them declared it\. List the tools again\.")
        assert "is gone" in text_of(await clients[0].call_tool("sales_top", {}))

        sales.manager.restart_kernel()
        await told("best", r"The kernel was restarted at \d\d:\d\d\. Its tools return when")
        with pytest.raises(
            NotebookError, match=r"sales \(not listed\): The kernel was restarted at"
        ):
            await call_tool(settings, ToolCall(tool="best"))
        sales.client.wait_for_ready(timeout=TIMEOUT)
        sales.ok(f"{LOAD}\nget_ipython().run_cell({TOP!r})")
        await returns("top")
        with pytest.raises(
            CallError, match=r"(?s)Unknown tool: 'best'.*sales \(not listed\): The ker"
        ):
            await call_tool(settings, ToolCall(tool="best"))

        await _signal(sales, signal.SIGKILL, psutil.STATUS_ZOMBIE)
        await told("top", r"Its kernel crashed or was killed at \d\d:\d\d\. Restart the notebook's")


async def test_a_notebook_that_crashed_is_named_for_minutes_although_its_record_is_pruned(
    own_sales, settings, listed
):
    await _signal(own_sales, signal.SIGKILL, psutil.STATUS_ZOMBIE)
    list_live_records(settings.records_folder)
    assert read_records(settings.records_folder) == ()
    for _ in range(2):
        _, below = await listed()
        assert "sales (not listed): Its kernel crashed or was killed. Restart" in below


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param(False, id="a tool"),
        pytest.param(True, marks=pytest.mark.slow, id="through a meta-tool"),
    ],
)
async def test_a_bridge_that_starts_later_names_the_notebooks_that_have_left(settings, home, meta):
    at = time.time()
    folder = settings.records_folder
    restart = "The kernel was restarted."
    write_departure(folder, Departure(notebook=None, name="sales", reason=restart, at=at))
    write_departure(folder, Departure(notebook=None, name="costs", reason=None, at=at - KEEP))
    async with connected(home, "auto", "stdio", *(["--meta-tools"] if meta else [])) as client:
        if meta:
            asked = {"name": "top", "arguments": {}}
            said = text_of(await client.call_tool("call_notebook_tool", asked))
        else:
            said = text_of(await client.call_tool("top", {}))
    assert said.startswith("Unknown tool: 'top'. No open notebook offers a tool now.")
    assert (
        "Notebooks that have left lately:\nsales (not listed): The kernel was restarted at" in said
    )
    assert "costs" not in said
