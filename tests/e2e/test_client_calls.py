"""The life of a call, seen by the official client: progress, cancelling, every protocol version."""

import itertools
import json
import os
import subprocess

import anyio
import pytest
from clients import (
    INITIALIZED,
    initialize,
    raw_session,
    text_of,
)
from forked_command import list_words
from live import kernel_with
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
import asyncio, logging, pathlib, threading, time
from mcp_notebook import Context
import tqdm
stopped = threading.Event()

def add(a: int, b: int = 1) -> int:
    "Add."
    return a + b

def sleep(seconds: float) -> str:
    "Sleep."
    stopped.clear()
    try:
        time.sleep(seconds)
    except BaseException:
        stopped.set()
        raise
    return "slept"

def hold(until: str) -> str:
    "Run until there is a file."
    while not pathlib.Path(until).exists():
        time.sleep(0.01)
    return "released"

def train(epochs: int) -> str:
    "Show a bar."
    from tqdm import tqdm
    for epoch in tqdm(range(epochs), desc="epochs"):
        for batch in tqdm(range(10), desc="batches", leave=False):
            time.sleep(0.003)
    return "trained"

def talk(ctx: Context) -> str:
    "Log and print."
    ctx.log("begins", "debug")
    logging.getLogger("sales").warning("looks odd")
    for number in range(3):
        print("line", number)
        time.sleep(0.12)
    return "said"

def steps(ctx: Context, numbers: list[float]) -> str:
    "Report progress, quickly."
    for number in numbers:
        ctx.progress(number, 10, f"step {number:g}")
    return "stepped"

def odd() -> str:
    "A text that is no UTF-8."
    return "a\\ud800b\\0c"
"""


kernel = kernel_with(TOOLS)


async def test_a_client_that_asks_for_progress_is_told_what_a_call_waits_for(
    kernel, connect, era, transport
):
    async with connect(era, transport) as client:
        await client.list_tools()
        told = []
        release = kernel.home / "release"

        async def progress(value, total, message):
            told.append((value, message))
            release.touch()

        result = await client.call_tool("hold", {"until": str(release)}, progress_callback=progress)
        release.unlink()
        assert text_of(result) == "released"
        assert "running" in told[0][1]
        assert told == sorted(told)


@pytest.mark.smoke
async def test_a_cancelled_call_stops_in_the_kernel(kernel, connect, era, transport):
    async with connect(era, transport) as client:
        await client.list_tools()
        running = anyio.Event()

        async def progress(value, total, message):
            running.set()

        async with anyio.create_task_group() as tasks:

            async def call():
                await client.call_tool("sleep", {"seconds": 60}, progress_callback=progress)

            tasks.start_soon(call)
            await running.wait()
            tasks.cancel_scope.cancel()
        if era == "legacy" and transport == "http":
            return  # by that protocol a lost stream is no cancel; the SDK's client sends none
        await anyio.to_thread.run_sync(kernel.ok, "assert stopped.wait(60)")
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"
        log = await anyio.to_thread.run_sync(kernel.ok, "%mcp log sleep")
        assert "unknown client" not in log.text


async def test_a_call_of_a_tool_that_does_not_exist_is_in_the_notebooks_log(kernel, connect):
    async with connect("auto", "http") as client:
        await client.list_tools()
        assert "Did you mean 'add'?" in text_of(
            await client.call_tool("ad", {"a": 1, "key": "hunter2"})
        )
        # The kernel has what the bridge sent it before this call.
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"
        log = await anyio.to_thread.run_sync(kernel.ok, "%mcp log ad")
    assert "Unknown tool: 'ad'" in log.text
    assert "key" in log.text
    assert "hunter2" not in log.text


@pytest.mark.smoke
async def test_a_progress_bar_in_a_tool_is_progress_and_no_part_of_its_result(kernel, connect):
    async with connect("auto", "http") as client:
        await client.list_tools()
        told = []

        async def progress(value, total, message):
            told.append((value, total, message))

        began = anyio.current_time()
        result = await client.call_tool("train", {"epochs": 8}, progress_callback=progress)
        seconds = anyio.current_time() - began
    assert text_of(result) == "trained"
    values = [value for value, *_ in told]
    assert all(earlier < later for earlier, later in itertools.pairwise(values))
    assert len(told) >= 3
    assert {total for _, total, *_ in told} == {8}
    assert told[-1][2].startswith("epochs")
    assert len(told) <= 10 * seconds + 2


async def test_printed_lines_are_told_while_the_tool_runs_and_are_in_its_result(kernel, connect):
    async with connect("auto", "http") as client:
        await client.list_tools()
        told = []

        async def progress(value, total, message):
            told.append(message)

        result = await client.call_tool("talk", {}, progress_callback=progress)
    assert text_of(result).splitlines()[-4:] == ["line 0", "line 1", "line 2", "said"]
    assert {"line 0", "line 1", "line 2"} & set(told)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("mode", "way", "level", "heard"),
    [
        ("legacy", "http", None, {"looks odd"}),
        pytest.param(
            *("legacy", "stdio", "debug", {"begins", "looks odd"}), marks=pytest.mark.slow
        ),
        ("legacy", "http", "error", set()),
        pytest.param("auto", "stdio", None, set(), marks=pytest.mark.slow),
        ("auto", "http", "info", {"looks odd"}),
        ("auto", "stdio", "debug", {"begins", "looks odd"}),
    ],
)
async def test_log_messages_reach_clients_that_may_and_want_to_hear_them(
    connect, mode, way, level, heard
):
    logs = []

    async def take(message):
        logs.append((message.level, message.logger, message.data))

    options = {"logging_callback": take}
    if mode == "auto":
        options["log_level"] = level
    async with connect(mode, way, **options) as client:
        await client.list_tools()
        if mode == "legacy" and level is not None:
            with pytest.warns(match="deprecated"):
                await client.set_logging_level(level)
        assert text_of(await client.call_tool("talk", {})).endswith("said")
    assert {data for *_, data in logs} == heard
    assert {("warning", "sales", "looks odd")} <= set(logs) or "looks odd" not in heard


async def test_a_notice_cancels_a_call_over_http_in_the_handshake_era(kernel, served):
    call = {
        **CALL,
        "params": {
            "name": "sleep",
            "arguments": {"seconds": 60},
            "_meta": {"progressToken": "p"},
        },
    }
    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": call["id"]},
    }
    async with (
        raw_session(served.url) as (http, _),
        http.stream("POST", served.url, json=call) as stream,
    ):
        lines = stream.aiter_lines()
        while "notifications/progress" not in await anext(lines):
            pass
        await http.post(served.url, json=cancel)
        rest = [line async for line in lines]
    assert any('"error"' in line for line in rest), rest
    await anyio.to_thread.run_sync(kernel.ok, "assert stopped.wait(60)")


async def test_invalid_utf8_is_repaired(kernel, connect):
    async with connect("auto", "http") as client:
        await client.list_tools()
        text = text_of(await client.call_tool("odd", {}))
        assert text.startswith("a")
        assert "b" in text
        assert "\0" not in text


NAMES = ["add", "sleep", "hold", "train", "talk", "steps", "odd"]


LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
CALL = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "add", "arguments": {"a": 41}},
}


def _check(version, hello, tools, result):
    """Check what a client of this version is answered: text, as nobody asked for data."""
    assert hello["protocolVersion"] == version
    assert hello["capabilities"]["tools"]["listChanged"] is True
    assert [tool["name"] for tool in tools["tools"]] == [*NAMES, READ_RESOURCE]
    add = tools["tools"][NAMES.index("add")]
    assert result["content"] == [{"type": "text", "text": "42"}]
    assert "outputSchema" not in add
    assert "structuredContent" not in result


OLDEST, *BETWEEN, NEWEST = HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize(
    "version", [OLDEST, *(pytest.param(it, marks=pytest.mark.slow) for it in BETWEEN), NEWEST]
)
def test_every_handshake_version_is_spoken_over_stdio(kernel, version):
    with subprocess.Popen(
        list_words("stdio"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"HOME": str(kernel.home), "PATH": os.environ["PATH"]},
    ) as bridge:
        answers = []
        for message in (initialize(version), INITIALIZED, LIST, CALL):
            bridge.stdin.write(json.dumps(message).encode() + b"\n")
            bridge.stdin.flush()
            while "id" in message:
                answer = json.loads(bridge.stdout.readline())
                if answer.get("id") == message["id"]:
                    answers.append(answer["result"])
                    break
        bridge.stdin.close()
    _check(version, *answers)


async def test_arguments_that_are_nested_too_deep_are_refused(kernel, connect):
    deep = []
    for _ in range(150):
        deep = [deep]
    async with connect("auto", "http") as client:
        result = await client.call_tool("add", {"a": deep})
        assert result.is_error
        assert "at most 100 levels" in text_of(result)


@pytest.mark.parametrize("padding", [0, 300_000], ids=["small", "large"])
async def test_a_number_beyond_floats_is_refused_and_not_null(kernel, served, padding):
    async with raw_session(served.url) as (http, _):
        call = json.dumps(CALL).replace("41", f"1e400{' ' * padding}")
        answer = await http.post(
            served.url, content=call, headers={"Content-Type": "application/json"}
        )
    assert "a: got inf (number); numbers go up to 1.8e308." in answer.text
