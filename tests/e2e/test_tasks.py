"""Calls that outlive their clients and bridges, seen by the official client with the extension."""

import itertools
import json
import re
import signal
import subprocess
from contextlib import contextmanager

import anyio
import mcp_types as types
import pytest
from audit_lines import read_ends
from clients import (
    HEADERS,
    answer_of,
    connected,
    http_bridge,
    http_client,
    over_http,
    text_of,
    tool_kernel,
)
from forked_command import list_words
from listing import list_tools
from live import TIMEOUT, kernel_with
from mcp.shared.exceptions import MCPError
from task_client import (
    EXTENSION,
    TasksExtension,
    ask_task,
    start_task,
    wait_for_status,
)

from mcp_notebook.bridge.server.own_tools.meta_tools import RESULT

pytestmark = pytest.mark.anyio

TRAIN = """%%mcp_tool --task --run thread
import threading
from mcp_notebook import Context

go = threading.Event()
runs = []

def train(epochs: int, ctx: Context) -> str:
    "Train until somebody says so."
    runs.append(epochs)
    ctx.progress(1, epochs, "epoch 1")
    go.wait()
    return f"trained {epochs}"
"""
TOOLS = """%%mcp_tool --task
import asyncio, time
from mcp_notebook import Context

def hold() -> None:
    "Hold the main thread."
    while True:
        time.sleep(0.01)

def quick() -> dict[str, int]:
    "Return at once."
    return {"n": 1}

async def sleep(seconds: int) -> str:
    "Sleep."
    await asyncio.sleep(seconds)
    return f"slept {seconds} s"

def wrong() -> str:
    "Fail."
    raise ValueError("no data")

async def trip(ctx: Context) -> list[str]:
    "Ask two things at once, and the first one again."
    answers = await asyncio.gather(
        ctx.elicit_async("Where to?", str, key="where"),
        ctx.elicit_async("How long?", int, key="days"),
    )
    again = await ctx.elicit_async("Really?", str, key="where")
    return [str(answer.data) for answer in (*answers, again)]
"""
ONLY = """%%mcp_tool --task-only
def far() -> str:
    "For clients that can follow a task."
    return "there"
"""
LONG = """%%mcp_tool
long_runs = 0
long_go = asyncio.Event()

async def short() -> str:
    "Return at once."
    return "short"

async def long(ctx: Context) -> str:
    "Return when somebody says so."
    global long_runs
    long_runs += 1
    ctx.progress(1, 3, "begun")
    await long_go.wait()
    return "long"

async def greet_slowly(ctx: Context) -> str:
    "Ask, and return when somebody says so."
    answer = await ctx.elicit_async("Name?", str)
    await long_go.wait()
    return f"Hello, {answer.data}!"
"""


kernel = kernel_with(TRAIN, TOOLS, ONLY, LONG)


@pytest.fixture(scope="module")
def bridge(kernel):
    """An HTTP bridge whose calls become tasks soon."""
    with http_bridge(kernel.home, env={"MCP_NOTEBOOK_TASK_AFTER": "1"}) as served:
        yield served


@pytest.fixture
def training(kernel):
    """A kernel in which `train` waits until the test's end, unless the test lets it go on."""
    kernel.ok("go.clear(); runs.clear()")
    yield kernel
    kernel.ok("go.set()")


@pytest.fixture
def client(kernel, training, served):
    """Connects a client that can follow tasks, to a bridge that starts once the tools are there."""
    return lambda **options: over_http(served.url, "auto", extensions=[TasksExtension()], **options)


@pytest.fixture
def stdio_client(training):
    """Connects one to a bridge of its own."""
    return lambda: _over_stdio(training.home)


async def _never(_context, _params):
    raise AssertionError("the client is asked for nothing but through the task")


async def test_a_task_is_found_by_its_id_while_it_runs_and_after_its_end(kernel, stdio_client):
    async with stdio_client() as first:
        task = await start_task(first, "train", epochs=3)
        assert task.task_id.startswith("train-")
        assert task.status == "working"
        state = await wait_for_status(first, task.task_id, "working")
        while state.get("statusMessage") != "epoch 1 (1 of 3)":
            state = await ask_task(first, "tasks/get", task.task_id)
        assert (state["ttlMs"], state["pollIntervalMs"]) == (None, 1000)
        assert state["resultType"] == "complete"
    # Client and bridge are gone; the task runs on, and another bridge has it.
    async with stdio_client() as second:
        state = await ask_task(second, "tasks/get", task.task_id)
        assert state["status"] == "working"
        kernel.ok("go.set()")
        state = await wait_for_status(second, task.task_id, "completed")
        assert state["result"]["content"][0]["text"] == "trained 3"
        assert "statusMessage" not in state
        assert state["createdAt"] <= state["lastUpdatedAt"]
        assert state["ttlMs"] >= 3_600_000
        kernel.ok("assert runs == [3], runs")


async def test_people_see_which_calls_are_tasks(kernel, client):
    async with client() as one:
        task = await start_task(one, "train", epochs=2)
        await wait_for_status(one, task.task_id, "working")
        status = kernel.ok("%mcp status").text
        assert "train(epochs=2) (" in status
        assert f", as the task {task.task_id}; `%mcp stop " in status
        kernel.ok("go.set()")
        await wait_for_status(one, task.task_id, "completed")
        log = kernel.ok("%mcp log train -n 1").text
        assert "train(epochs=2)" in log
        assert "done, a task" in log
    log = kernel.home / ".mcp-notebook" / "audit.jsonl"
    records = []
    while task.task_id not in records:
        records = {line["task"]: line for line in read_ends(log) if "task" in line}
    record = records[task.task_id]
    assert (record["tool"], record["outcome"]) == ("train", "ok")
    assert "result_size" not in record


@pytest.mark.smoke
async def test_a_client_that_waits_gets_results_and_failures_as_from_any_call(client):
    async with client() as one:
        result = await one.call_tool("quick", {})
        assert text_of(result) == '{"n":1}'
        result = await one.call_tool("wrong", {})
        assert result.is_error
        assert "ValueError: no data" in text_of(result)


async def test_what_a_task_asks_is_answered_through_it(client):
    async with client(elicitation_callback=_never) as one:
        task = await start_task(one, "trip")
        state = await wait_for_status(one, task.task_id, "input_required")
        while len(state["inputRequests"]) < 2:
            state = await ask_task(one, "tasks/get", task.task_id)
        where = state["inputRequests"]["where"]
        assert where["method"] == "elicitation/create"
        assert where["params"]["message"] == "Where to?"
        assert where["params"]["requestedSchema"]["type"] == "object"

        async def answer(**responses):
            await ask_task(one, "tasks/update", task.task_id, inputResponses=responses)
            return await ask_task(one, "tasks/get", task.task_id)

        state = await answer(where=_accept("Rome"), nobody={"asked": True})
        assert state["inputRequests"].keys() == {"days"}
        with pytest.raises(
            MCPError, match="The response to 'days' is not a valid elicitation result"
        ):
            await answer(days="seven")
        state = await ask_task(one, "tasks/get", task.task_id)
        assert (state["status"], state["inputRequests"].keys()) == ("input_required", {"days"})
        await answer(days=_accept(7))
        state = await wait_for_status(one, task.task_id, "input_required")
        (key,) = state["inputRequests"]
        assert key != "where"  # a key stands for one question, as long as the task lives
        await answer(**{key: _accept("yes")})
        state = await wait_for_status(one, task.task_id, "completed")
        assert state["result"]["content"][0]["text"] == '["Rome","7","yes"]'
        await answer(**{key: _accept("no")})  # nothing is asked any more


def _accept(value):
    return {"action": "accept", "content": {"value": value}}


async def test_a_task_that_has_to_ask_a_client_that_cannot_has_failed(client):
    async with client() as one:
        task = await start_task(one, "trip")
        state = await wait_for_status(one, task.task_id, "failed")
        assert state["error"]["code"] == types.MISSING_REQUIRED_CLIENT_CAPABILITY
        assert state["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
        assert "has not declared MCP's elicitation" in state["error"]["message"]


@pytest.mark.usefixtures("kernel")
async def test_clients_that_cannot_follow_tasks_wait_or_are_refused(served):
    async with over_http(served.url, "auto") as plain:
        assert text_of(await plain.call_tool("quick", {})) == '{"n":1}'
        for call in (
            plain.call_tool("far", {}),
            ask_task(plain, "tasks/get", "x"),
            ask_task(plain, "tasks/update", "x", inputResponses={}),
            ask_task(plain, "tasks/cancel", "x"),
        ):
            with pytest.raises(MCPError) as caught:
                await call
            assert caught.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert caught.value.error.data == {
                "requiredCapabilities": {"extensions": {EXTENSION: {}}}
            }


@pytest.mark.slow
async def test_more_tasks_than_there_is_room_for_are_refused_when_they_are_called(kernel, client):
    most, too_many = 64, 30
    async with client() as one:
        with kernel.busy():
            answers = [
                await one.session.call_tool("quick", {}, allow_claimed=True)
                for _ in range(most + too_many)
            ]
            refused = [answer for answer in answers if isinstance(answer, types.CallToolResult)]
            assert len(refused) >= too_many  # another test may have left a call
            assert all(answer.is_error and "busy" in text_of(answer) for answer in refused)
            started = [answer for answer in answers if answer not in refused]
            states = [await ask_task(one, "tasks/get", task.task_id) for task in started]
            assert {state["status"] for state in states} == {"working"}
            place, last = f"{len(started) - 1} calls before this one", states[-1]
            while place not in last.get("statusMessage", ""):
                last = await ask_task(one, "tasks/get", started[-1].task_id)
        for task in started:
            state = await wait_for_status(one, task.task_id, "completed")
            assert state["result"]["content"][0]["text"] == '{"n":1}'


@pytest.mark.usefixtures("kernel")
async def test_clients_of_older_eras_have_no_tasks(served):
    async with over_http(served.url, "legacy") as old:
        assert text_of(await old.call_tool("quick", {})) == '{"n":1}'
        with pytest.raises(MCPError) as caught:
            await ask_task(old, "tasks/get", "x")
        assert caught.value.code == types.METHOD_NOT_FOUND


@contextmanager
def _raw_bridge(home):
    """Run a bridge, speak to it by hand, and kill it."""
    meta = {
        types.PROTOCOL_VERSION_META_KEY: "2026-07-28",
        types.CLIENT_CAPABILITIES_META_KEY: {"extensions": {EXTENSION: {}}},
    }
    ids = itertools.count(1)

    def send(method, **params):
        request = {"jsonrpc": "2.0", "id": next(ids), "method": method}
        print(json.dumps(request | {"params": params | {"_meta": meta}}), file=bridge.stdin)
        bridge.stdin.flush()

    def receive():
        return json.loads(bridge.stdout.readline())

    with subprocess.Popen(
        list_words("stdio"),
        env={"HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as bridge:
        yield send, receive
        bridge.kill()


# -- what dies -------------------------------------------------------------------------------------


async def test_a_task_goes_on_when_client_and_bridge_are_killed(kernel, stdio_client):
    created = await anyio.to_thread.run_sync(_start_and_kill, kernel.home)
    async with stdio_client() as second:
        state = await ask_task(second, "tasks/get", created["taskId"])
        assert state["status"] == "working"
        kernel.ok("go.set()")
        state = await wait_for_status(second, created["taskId"], "completed")
        assert state["result"]["content"][0]["text"] == "trained 7"
        kernel.ok("assert runs == [7], runs")


def _start_and_kill(home):
    """Start a task, and kill the bridge that has started it."""
    with _raw_bridge(home) as (send, receive):
        send("tools/call", name="train", arguments={"epochs": 7})
        return receive()["result"]


async def test_a_task_fails_when_its_kernel_dies_and_a_new_bridge_says_so_too(home):
    with tool_kernel(home, TRAIN) as kernel:
        async with _over_stdio(home) as first:
            task = await start_task(first, "train", epochs=1)
            await wait_for_status(first, task.task_id, "working")
            kernel.manager.signal_kernel(signal.SIGKILL)
            state = await wait_for_status(first, task.task_id, "failed")
            assert state["error"]["code"] == types.INTERNAL_ERROR
            assert "and the task was lost with it" in state["error"]["message"]
        async with _over_stdio(home) as second:
            with pytest.raises(MCPError, match="and the task was lost with it"):
                await ask_task(second, "tasks/get", task.task_id)


def _over_stdio(home):
    return connected(home, "auto", "stdio", extensions=[TasksExtension()])


# -- clients without tasks -------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["legacy", pytest.param("auto", marks=pytest.mark.slow)])
async def test_a_client_without_tasks_gets_a_handle_and_the_result_from_any_bridge(kernel, era):
    kernel.ok("go.clear(); runs.clear()")
    env = {"MCP_NOTEBOOK_TASK_AFTER": "0.3"}
    with http_bridge(kernel.home, env=env) as served:
        async with over_http(served.url, era) as one:
            assert RESULT in [tool.name for tool in await list_tools(one)]
            told = text_of(await one.call_tool("train", {"epochs": 3}))
    assert told.startswith("The call of 'train' is still running (epoch 1 (1 of 3)).")
    handle = re.search(r"with the handle '([^']+)'", told)[1]
    kernel.ok("go.set()")
    with http_bridge(kernel.home) as served:
        async with over_http(served.url, era) as other:
            for _ in range(2):
                result = await other.call_tool(RESULT, {"handle": handle})
                assert text_of(result) == "trained 3"
    kernel.ok("assert runs == [3], runs")


# -- as long as in life ----------------------------------------------------------------------------


# -- over HTTP -------------------------------------------------------------------------------------


async def test_a_long_call_becomes_a_task_over_http_and_a_short_one_does_not(bridge, kernel):
    kernel.ok("long_go.clear()")
    async with over_http(bridge.url, "auto", extensions=[TasksExtension()]) as one:
        result = await one.session.call_tool("short", {}, allow_claimed=True)
        assert text_of(result) == "short"
        task = await start_task(one, "long")  # which does not ask for progress
        assert task.status_message == "begun (1 of 3)"
        kernel.ok("long_go.set()")
        state = await wait_for_status(one, task.task_id, "completed")
        assert state["result"]["content"][0]["text"] == "long"
        kernel.ok("assert long_runs == 1")


async def test_a_question_is_asked_of_the_call_before_that_becomes_a_task(bridge, kernel):
    kernel.ok("long_go.clear()")

    async def answer(_context, params):
        assert params.message == "Name?"
        return types.ElicitResult(action="accept", content={"value": "Ann"})

    async def let_go():
        try:
            with anyio.fail_after(TIMEOUT):
                await extension.has_task.wait()
        finally:
            kernel.ok("long_go.set()")

    extension = TasksExtension()
    async with (
        over_http(bridge.url, "auto", extensions=[extension], elicitation_callback=answer) as one,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(let_go)
        assert text_of(await one.call_tool("greet_slowly", {})) == "Hello, Ann!"
    assert [task.task_id.partition("-")[0] for task in extension.created] == ["greet_slowly"]


async def test_a_task_of_another_token_is_not_there(bridge, stdio_client):
    async with stdio_client() as stdio:
        task = await start_task(stdio, "train", epochs=1)
        async with over_http(bridge.url, "auto", extensions=[TasksExtension()]) as other:
            for method in ("tasks/get", "tasks/cancel"):
                with pytest.raises(MCPError, match="This client has no task 'train-"):
                    await ask_task(other, method, task.task_id)
            told = await other.call_tool(RESULT, {"handle": task.task_id})
            assert told.is_error
            assert text_of(told).startswith("This client has no task 'train-")
        assert (await ask_task(stdio, "tasks/get", task.task_id))["status"] == "working"


@pytest.mark.parametrize("name", [None, "train-1-2", "=?base64?dHJhaW4=?="])
async def test_a_request_whose_header_names_another_task_is_refused(bridge, name):
    params = {
        "taskId": "train",
        "_meta": {
            types.PROTOCOL_VERSION_META_KEY: "2026-07-28",
            types.CLIENT_CAPABILITIES_META_KEY: {"extensions": {EXTENSION: {}}},
        },
    }
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tasks/get"}
    if name is not None:
        headers["Mcp-Name"] = name
    request = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": params}
    async with http_client(headers=HEADERS) as http:
        response = await http.post(bridge.url, json=request, headers=headers)
    is_right = name is not None and "base64" in name
    code = types.INVALID_PARAMS if is_right else types.HEADER_MISMATCH
    assert (response.status_code, answer_of(response)["error"]["code"]) == (400, code)
