"""What happens at the edges: deaths, name clashes, restarts, stops."""

import json
import os
import signal
import subprocess
import time

import anyio
import httpx2
import pytest
from clients import COMMAND, TOKEN, Changes, connected, http_bridge, text_of
from listing import list_tools
from live import TIMEOUT, live_kernel
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.anyio

LOAD = "%load_ext mcp_notebook"


# Kernels are started by fixtures: jupyter_client's blocking manager leaves an event loop behind in
# each thread that has a running one.


@pytest.fixture
def sales(home):
    with live_kernel(home, notebook=str(home / "sales.ipynb")) as kernel:
        kernel.ok(LOAD)
        yield kernel


@pytest.fixture
def costs(home):
    with live_kernel(home, notebook=str(home / "my costs.ipynb")) as kernel:
        kernel.ok(LOAD)
        yield kernel


async def in_thread(function, *arguments):
    return await anyio.to_thread.run_sync(function, *arguments)


async def test_two_notebooks_with_one_tool_name_are_told_apart(home, sales, costs):
    for kernel, number in ((sales, 1), (costs, 2)):
        await in_thread(
            kernel.ok, f"%%mcp_tool\ndef total() -> int:\n    'Total.'\n    return {number}"
        )
    async with connected(home, "auto", "http") as client:
        names = {tool.name for tool in await list_tools(client)}
        assert names == {"sales_total", "my_costs_total"}
        assert text_of(await client.call_tool("sales_total", {})) == "1"
        assert text_of(await client.call_tool("my_costs.total", {})) == "2"
        result = await client.call_tool("total", {})
        assert result.is_error
        assert "sales_total" in text_of(result)
        assert "my_costs_total" in text_of(result)


# What a stop and what an end of the input takes is said beside what the start took: both are a
# matter of how busy the machine is.


@pytest.mark.parametrize(
    "how", ["eof", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGINT"))]
)
def test_a_stdio_bridge_ends_soon_and_printed_protocol_only(home, how):
    before = time.monotonic()
    bridge = subprocess.Popen(
        [*COMMAND, "stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
    )
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    bridge.stdin.write(json.dumps(request).encode() + b"\n")
    bridge.stdin.flush()
    assert json.loads(bridge.stdout.readline())["result"]["protocolVersion"] == "2025-06-18"
    asked = time.monotonic()
    if how == "eof":
        bridge.stdin.close()
    else:
        bridge.send_signal(signal.Signals[how])
    status = bridge.wait(TIMEOUT)
    assert time.monotonic() - asked < 1 + (asked - before)
    assert status == (130 if how == "SIGINT" else 0)
    assert bridge.stdout.read() == b""
    bridge.stdout.close()
    if how != "eof":
        bridge.stdin.close()


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_an_http_bridge_ends_soon_although_streams_are_open(home, era):
    before = time.monotonic()
    with http_bridge(home) as served:
        started = time.monotonic() - before
        ended = []
        with pytest.raises(BaseException):  # noqa: B017, PT011, PT012 - the client has its own way
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
                Client(streamable_http_client(served.url, http_client=http), mode=era) as client,
                Changes().watch(client, era),
            ):
                await client.list_tools()
                asked = time.monotonic()
                served.process.terminate()
                ended.append(
                    (await in_thread(served.process.wait, TIMEOUT), time.monotonic() - asked)
                )
                raise EOFError
        ((status, seconds),) = ended
        assert status == 0
        assert seconds < 2 + 10 * started


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "null"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
    ],
)
async def test_who_has_no_token_or_comes_from_a_strange_page_is_refused(served, headers, status):
    async with httpx2.AsyncClient() as http:
        answer = await http.post(served.url, headers=headers, json={})
    assert answer.status_code == status
    assert TOKEN not in answer.text
    if status == 401:
        assert answer.headers["WWW-Authenticate"] == "Bearer"
