"""Large requests over HTTP; the kernel is a stand-in that never answers a call."""

import json

import anyio
import pytest
from bridges import PARSE_ERROR, PING
from endpoints import call, called, modern, served

from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

DEEP = json.loads("[" * 100 + "]" * 100)
ROWS = {"rows": [[1, "a]"]] * 100_000, "n": 3}


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_the_arguments_of_a_large_call_reach_the_kernel(home, era):
    async with served(home) as here, anyio.create_task_group() as tasks:
        message, headers = call(arguments=ROWS), {}
        if era == "modern":
            message, headers = modern(message)
        else:
            headers = {"Mcp-Session-Id": await here.open_session()}
        tasks.start_soon(lambda: here.ask(message, **headers))
        (received,) = await called(here.kernel)
        assert received.arguments == ROWS
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("era", "cases"),
    [
        ("handshake", [([DEEP], "too deep")]),
        ("modern", [([DEEP] * 9_000, "too deep"), ([[1, 2]] * 400_000, "too many")]),
    ],
)
async def test_arguments_that_are_too_deep_or_too_many_never_reach_the_kernel(home, era, cases):
    async with served(home) as here:
        session = {"Mcp-Session-Id": await here.open_session()} if era == "handshake" else {}
        for rows, said in cases:
            message, headers = call(arguments={"rows": rows}), session
            if era == "modern":
                message, headers = modern(message)
            answer = await here.ask(message, **headers)
            result = json.loads(answer.body.decode().rpartition("data: ")[2])["result"]
            assert result["isError"]
            assert said in result["content"][0]["text"]
        assert not any(isinstance(item, messages.Call) for item in here.kernel.heard)


async def test_a_header_that_repeats_an_argument_is_compared_with_it_in_a_large_call(home):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    async with served(home, schema=schema) as here, anyio.create_task_group() as tasks:
        message, headers = modern(call(arguments=ROWS))
        assert (await here.ask(message, **headers, Mcp_Param_N="4")).status == 400
        tasks.start_soon(lambda: here.ask(message, **headers, Mcp_Param_N="3"))
        await called(here.kernel)
        tasks.cancel_scope.cancel()


async def test_a_large_request_that_is_not_json_is_refused(home):
    async with served(home) as here:
        headers = {"Mcp-Session-Id": await here.open_session()}
        answer = await here.send(b"x" * 2_000_000, headers=headers)
        assert (answer.status, answer.error["code"]) == (400, PARSE_ERROR)


async def test_chunks_that_are_too_large_together_are_refused(home):
    async with served(home, max_request_bytes=2**20) as here:
        headers = {"Mcp-Session-Id": await here.open_session()}
        for count, status in [(16, 200), (17, 413)]:
            chunks = [b" " * 2**16] * count
            chunks[0] = json.dumps(PING).encode().ljust(2**16)
            assert (await here.send(iter(chunks), headers=headers)).status == status
