"""A notebook that several kernels run, seen by the official client in both eras."""

import anyio
import nbformat
import pytest
from clients import http_bridge, over_http, text_of
from file_events import appears
from listing import list_tools
from live import TIMEOUT
from mcp_types import ElicitResult, ResourceLink
from task_client import TasksExtension, ask_task, start_task, wait_for_status

from mcp_notebook.bridge.absent_notebooks import find_absent_notebooks
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
import os, pathlib, time
from mcp_notebook import Context

def pid() -> int:
    "The kernel's process."
    return os.getpid()

def table() -> str:
    "A long table of this kernel."
    return "n,pid" + "".join(f"\\n{n},{os.getpid()}" for n in range(20_000))

def block() -> int:
    "Holds the main thread until somebody says so."
    pathlib.Path("block.began").touch()
    while not pathlib.Path("released").exists():
        time.sleep(0.01)
    return os.getpid()

async def ask(ctx: Context) -> str:
    "Asks, and says which kernel has asked and which has got the answer."
    asked = os.getpid()
    answer = await ctx.elicit_async("Which?", str)
    return f"{answer.data} {asked} {os.getpid()}"
"""
STATEFUL = """%%mcp_tool --stateful
basket = []

def add(item: str) -> list[str]:
    "Put an item into the basket."
    basket.append(item)
    return basket
"""
TASK = """%%mcp_tool --task
def train(name: str) -> str:
    "Trains until somebody says so."
    while not pathlib.Path(name).exists():
        time.sleep(0.01)
    return f"trained {os.getpid()}"
"""
APART = """%%mcp_tool --run thread
def hold(mark: str) -> int:
    "Waits in a thread until somebody says so."
    pathlib.Path(f"{mark}.began").touch()
    while not pathlib.Path("released").exists():
        time.sleep(0.01)
    return os.getpid()
"""
KEPT = """%%mcp_tool --keep --run thread
def count(mark: str) -> int:
    "Counts its runs."
    with open(f"{mark}.runs", "a") as file:
        file.write("x")
    while not pathlib.Path(mark).exists():
        time.sleep(0.01)
    return len(pathlib.Path(f"{mark}.runs").read_text())
"""


@pytest.fixture(scope="module")
def folder(module_home):
    (module_home / "work").mkdir()
    return module_home / "work"


@pytest.fixture(scope="module")
def url(module_home, folder):
    """The address of a bridge with two kernels of one notebook."""
    cells = ("%load_ext mcp_notebook", TOOLS, STATEFUL, TASK, APART, KEPT)
    made = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made), folder / "sums.ipynb")
    with http_bridge(module_home, str(folder / "sums.ipynb"), "--replicas", "2") as served:
        yield served.url


async def call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def test_two_kernels_are_one_notebook_whose_calls_they_share(url, era):
    async with over_http(url, era) as client:
        names = [tool.name for tool in await list_tools(client)]
        assert names == ["pid", "table", "block", "ask", "add", "train", "hold", "count"]
        pids = {await call(client, "pid") for _ in range(4)}
        assert len(pids) == 2
        assert await call(client, "sums.pid") in pids


async def test_who_looks_for_the_notebook_is_told_once_where_it_runs(url, module_home):
    (absent,) = find_absent_notebooks(Settings(home=module_home / ".mcp-notebook"))
    assert str(absent).startswith("sums (not listed): Another mcp-notebook process runs this")


async def test_what_a_result_links_to_is_read_from_its_kernel(url, era):
    async with over_http(url, era) as client:
        pids = set()
        for _ in range(2):
            result = await client.call_tool("table", {})
            uris = [block.uri for block in result.content if isinstance(block, ResourceLink)]
            contents = (await client.read_resource(uris[0])).contents
            _, pid = contents[0].text.splitlines()[1].split(",")
            pids.add(pid)
        assert len(pids) == 2


async def test_a_question_is_answered_where_it_was_asked(url, era):
    async def answer(*_):
        return ElicitResult(action="accept", content={"value": "this"})

    async with over_http(url, era, elicitation_callback=answer) as client:
        texts = [(await call(client, "ask")).split() for _ in range(2)]
    for said, asked, answered in texts:
        assert said == "this"
        assert asked == answered
    assert len({asked for _, asked, _ in texts}) == 2


async def test_tasks_are_found_in_their_kernels(url, folder):
    async with over_http(url, "auto", extensions=[TasksExtension()]) as client:
        tasks = [await start_task(client, "train", name=name) for name in ("rain", "snow")]
        for task, name in zip(tasks, ("rain", "snow"), strict=True):
            (folder / name).touch()
            await wait_for_status(client, task.task_id, "completed")
        ends = [await ask_task(client, "tasks/get", task.task_id) for task in tasks]
    assert len({end["result"]["content"][0]["text"] for end in ends}) == 2


async def test_a_client_of_stateful_tools_stays_at_one_kernel(url, era):
    item = f"apple of {era}"
    async with over_http(url, era) as client:
        for number in range(1, 5):
            basket = await call(client, "add", item=item)
            assert basket.count(item) == number
            if number % 2:
                await call(client, "pid")  # goes anywhere


async def test_the_same_kept_call_gets_the_result_of_the_one_that_was_given_up(url, folder, era):
    name = f"kept-{era}"
    async with over_http(url, era) as client:
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "count", {"mark": name})
                await appears(folder / f"{name}.runs")
                tasks.cancel_scope.cancel()
            for _ in range(3):  # calls that change which kernel is the least busy
                await call(client, "pid")
            (folder / name).touch()
            assert await call(client, "count", mark=name) == "1"
            assert await call(client, "count", mark=name) == "2"


async def test_a_call_does_not_wait_for_a_main_thread_while_another_kernels_is_free(url, folder):
    async with over_http(url, "auto") as client:
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                # Three calls are in the kernel of "a"; two in the other, one on its main thread.
                for name, mark in zip(("hold",) * 3 + ("block", "hold"), "abcde", strict=True):
                    arguments = {} if name == "block" else {"mark": mark}
                    tasks.start_soon(client.call_tool, name, arguments)
                    await appears(folder / f"{'block' if name == 'block' else mark}.began")
                free = {await call(client, "pid") for _ in range(4)}
                (folder / "released").touch()
            assert len(free) == 1
