"""Real clients over stdio, through `mcp-notebook connect`, to a real bridge over HTTP."""

from functools import partial

import anyio
import pytest
from clients import Changes, text_of
from listing import list_tools
from mcp_types import ElicitResult, ResourceLink

pytestmark = pytest.mark.anyio

UNTIL_STOPPED = """async with asyncio.timeout(60):
    while not stopped.is_set():
        await asyncio.sleep(0.01)
"""


@pytest.mark.smoke
async def test_tools_are_listed_and_called_many_at_a_time(connect, era):
    async with connect(era) as client:
        names = [tool.name for tool in await list_tools(client)]
        assert names == ["add", "size", "sleep", "trip", "talk", "region", "rows"]
        assert text_of(await client.call_tool("add", {"a": 2})) == "3"
        assert text_of(await client.call_tool("region", {"name": "Åland"})) == "Åland"
        results = {}

        async def call(number):
            results[number] = await client.call_tool("add", {"a": number})

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(call, number)
        assert all(text_of(results[number]) == str(number + 1) for number in range(20))
        wrong = await client.call_tool("add", {"a": "two"})
        assert wrong.is_error
        assert "'a'" in text_of(wrong) or "a:" in text_of(wrong)


@pytest.mark.parametrize("era", [pytest.param("legacy", marks=pytest.mark.slow), "auto"])
async def test_large_arguments_and_answers_go_through(connect, era):
    async with connect(era) as client:
        await client.list_tools()
        text = "ä\n" * 500_000
        result = await client.call_tool("size", {"text": text})
        assert text_of(result).startswith("ä\nä\n")
        link = next(block for block in result.content if isinstance(block, ResourceLink))
        (whole,) = (await client.read_resource(str(link.uri))).contents
        assert whole.text == text * 2


async def test_progress_comes_while_a_call_runs_and_a_cancel_stops_it(connect, era, sales):
    async with connect(era) as client:
        await client.list_tools()
        told = []
        half = anyio.Event()

        async def progress(value, total, message):
            told.append((value, total, message))
            if message == "half of it":
                half.set()

        async def call():
            await client.call_tool("sleep", {"seconds": 600}, progress_callback=progress)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await half.wait()
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(sales.ok, UNTIL_STOPPED)
        assert text_of(await client.call_tool("add", {"a": 2})) == "3"


async def test_a_tool_asks_the_clients_user(connect, era):
    async def answer(_context, params):
        assert "Where to?" in params.message
        (name,) = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={name: "Oslo"})

    async with connect(era, elicitation_callback=answer) as client:
        await client.list_tools()
        assert text_of(await client.call_tool("trip", {})) == "Oslo"


async def test_logs_reach_a_client(connect, era):
    heard = []

    async def take(message):
        heard.append(message.data)

    options = {"log_level": "info"} if era == "auto" else {}
    async with connect(era, logging_callback=take, **options) as client:
        await client.list_tools()
        await client.call_tool("talk", {})
    assert "looks odd" in heard


async def test_changes_of_the_tools_are_told(connect, era, sales):
    changes = Changes()
    async with (
        connect(era, message_handler=changes.handle) as client,
        changes.watch(client, era),
    ):
        await client.list_tools()
        await anyio.to_thread.run_sync(
            sales.ok, "%%mcp_tool\ndef late() -> int:\n    'Late.'\n    return 1"
        )
        await changes.wait()
        await anyio.to_thread.run_sync(sales.ok, "del late")


async def test_a_client_that_leaves_stops_its_calls(connect, era, sales):
    half = anyio.Event()

    async def progress(_value, _total, message):
        if message == "half of it":
            half.set()

    with anyio.CancelScope() as scope:
        async with connect(era) as client, anyio.create_task_group() as tasks:
            await client.list_tools()
            tasks.start_soon(
                partial(client.call_tool, "sleep", {"seconds": 600}, progress_callback=progress)
            )
            await half.wait()
            scope.cancel()
    await anyio.to_thread.run_sync(sales.ok, UNTIL_STOPPED)
