"""MCP's TypeScript client with its extension for tasks, against a notebook in use."""

import json
import subprocess
from pathlib import Path

import pytest
from clients import TOKEN, http_bridge
from judging_proxy import judging
from live import TIMEOUT
from npm import LIMIT

PROGRAM = Path(__file__).parent / "tasks_client.mjs"
TOOLS = '''%%mcp_tool --task
import asyncio
from mcp_notebook import Context

go = asyncio.Event()
runs = []

async def train(epochs: int) -> str:
    """Train until somebody says so."""
    runs.append(epochs)
    await go.wait()
    return f"trained {epochs}"

async def sleep(seconds: int) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds} s"

async def greet(ctx: Context) -> str:
    """Ask for a name."""
    return f"Hello, {(await ctx.elicit_async('Name?', str)).data}!"
'''
LONG = '''%%mcp_tool
async def long() -> dict[str, int]:
    """Take longer than a client waits."""
    await asyncio.sleep(0.6)
    return {"n": 1}

async def short() -> str:
    """Return at once."""
    return "short"
'''

pytestmark = pytest.mark.timeout(LIMIT)


@pytest.fixture(scope="module")
def url(shared_kernel):
    """The address of a bridge whose calls become tasks soon."""
    shared_kernel.ok(TOOLS)
    shared_kernel.ok(LONG)
    env = {"MCP_NOTEBOOK_TASK_AFTER": "0.3"}
    with http_bridge(shared_kernel.home, env=env) as served, judging(served.url) as url:
        yield url


@pytest.fixture
def start(url, npm_programs):
    """Starts the client; what it says is on its stdout."""
    started = []

    def start(*arguments):
        node, suite = npm_programs.conformance
        modules = Path(suite).parents[3]
        process = subprocess.Popen(
            [node, str(PROGRAM), str(modules), url, TOKEN, *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=TIMEOUT)


def said(process, limit=TIMEOUT):
    """Return what the client says until it ends."""
    lines = process.communicate(timeout=limit)[0].splitlines()
    assert process.returncode == 0
    return [json.loads(line) for line in lines]


@pytest.mark.conformance
def test_a_long_call_becomes_a_task_and_a_short_one_does_not(start):
    task, result = said(start("call", "short", "{}"))
    assert task == {"task": None}
    assert result["result"]["content"][0]["text"] == "short"
    task, result = said(start("call", "long", "{}"))
    assert task["task"].startswith("long-")
    assert result["result"]["content"][0]["text"] == '{"n":1}'


@pytest.mark.conformance
def test_a_task_asks_the_user_of_its_client(start):
    _, asked, result = said(start("call", "greet", "{}"))
    assert asked == {"asked": "Name?"}
    assert result["result"]["content"][0]["text"] == "Hello, Ann!"


@pytest.mark.conformance
def test_a_client_that_was_killed_gets_the_result_of_its_task_later(start, shared_kernel):
    shared_kernel.ok("go.clear(); runs.clear()")
    first = start("call", "train", '{"epochs": 3}')
    task = json.loads(first.stdout.readline())["task"]
    first.kill()
    first.wait(TIMEOUT)
    second = start("resume", task)
    assert json.loads(second.stdout.readline()) == {"task": task}
    shared_kernel.ok("go.set()")
    (result,) = said(second)
    assert result["result"]["content"][0]["text"] == "trained 3"
    shared_kernel.ok("assert runs == [3], runs")


@pytest.mark.exhaustive
def test_a_call_of_60_s_is_completed_although_its_client_is_killed_after_5(start):
    first = start("call", "sleep", '{"seconds": 60}')
    task = json.loads(first.stdout.readline())["task"]
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(5)
    first.kill()
    first.wait(TIMEOUT)
    _, result = said(start("resume", task), limit=2 * TIMEOUT)
    assert result["result"]["content"][0]["text"] == "slept 60 s"
