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
from forked_command import list_words
from listing import list_tools
from live import TIMEOUT, kernel_env, live_kernel
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.anyio

ADD = "%%mcp_tool\ndef add(a: int, b: int = 1) -> int:\n    'Add.'\n    return a + b"
WAIT = (
    "%%mcp_tool\nimport asyncio\n"
    "async def wait() -> None:\n    'Waits.'\n    await asyncio.sleep(60)"
)
LOAD = "%load_ext mcp_notebook"
OLDER_SLOWLY = pytest.mark.parametrize(
    "era", [pytest.param("legacy", marks=pytest.mark.slow), "auto"]
)
"""For what the kernel and the bridge do alike in all eras."""


# Kernels are started by fixtures: jupyter_client's blocking manager leaves an event loop behind in
# each thread that has a running one.


@pytest.fixture
def sales(home):
    with live_kernel(home, notebook=str(home / "sales.ipynb")) as kernel:
        kernel.ok(LOAD)
        yield kernel


@pytest.fixture
def sales_again(home):
    """The process that takes the place of `sales` when its kernel is restarted."""
    with live_kernel(home, notebook=str(home / "sales.ipynb")) as kernel:
        yield kernel


@pytest.fixture
def costs(home):
    with live_kernel(home, notebook=str(home / "my costs.ipynb")) as kernel:
        kernel.ok(LOAD)
        yield kernel


async def in_thread(function, *arguments):
    return await anyio.to_thread.run_sync(function, *arguments)


@OLDER_SLOWLY
async def test_a_kernel_that_dies_during_a_call_is_told_at_once(home, sales, era):
    sales.ok(WAIT)
    sales.ok(ADD)
    async with connected(home, era, "stdio") as client, anyio.create_task_group() as tasks:
        await client.list_tools()
        before = time.monotonic()
        await client.call_tool("add", {"a": 1})
        plain = time.monotonic() - before
        answered = anyio.Event()
        results = []

        async def call():
            results.append(await client.call_tool("wait", {}))
            answered.set()

        tasks.start_soon(call)
        running = "while 'wait' not in [c.tool for c in ip._mcp_notebook.invoker.calls]:"
        await in_thread(sales.ok, f"ip = get_ipython()\n{running}\n    await asyncio.sleep(0)\n")
        with anyio.fail_after(2 + 20 * plain):
            os.kill(sales.pid, signal.SIGKILL)
            await answered.wait()
        (result,) = results
        assert result.is_error
        assert "died" in text_of(result)


@OLDER_SLOWLY
async def test_tools_come_back_to_the_same_client_after_a_restart(home, sales, sales_again, era):
    sales.ok(ADD)
    changes = Changes()
    async with (
        connected(home, era, "stdio", message_handler=changes.handle) as client,
        changes.watch(client, era),
    ):
        assert len(await list_tools(client)) == 1
        sales.client.shutdown(restart=True)
        while (await client.list_tools(cache_mode="bypass")).tools:
            await changes.wait()
        await in_thread(sales_again.ok, LOAD)
        await in_thread(sales_again.ok, ADD)
        while not (await client.list_tools(cache_mode="bypass")).tools:
            await changes.wait()
        assert text_of(await client.call_tool("add", {"a": 1})) == "2"


@OLDER_SLOWLY
async def test_two_notebooks_with_one_tool_name_are_told_apart(home, sales, costs, era):
    for kernel, number in ((sales, 1), (costs, 2)):
        await in_thread(
            kernel.ok, f"%%mcp_tool\ndef total() -> int:\n    'Total.'\n    return {number}"
        )
    async with connected(home, era, "http") as client:
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


def test_a_notebook_that_cannot_be_served_ends_the_bridge_with_one_sentence(home):
    notebook = home / "broken.ipynb"
    notebook.write_text("no notebook")
    for verb in ("serve", "stdio"):
        ended = subprocess.run(
            list_words(verb, str(notebook)),
            env=kernel_env(home),
            stdin=subprocess.DEVNULL if verb == "serve" else None,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 1
        assert "broken.ipynb" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert ended.stdout == ""


def test_a_taken_port_is_named(home, served):
    port = served.url.split(":")[2].split("/")[0]
    ended = subprocess.run(
        list_words("serve", "--port", port),
        env=kernel_env(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert f"Port {port}" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
