"""Kernels that are restarted or killed, bridges that are killed, and clients that stay."""

import os
import signal
import time
from contextlib import asynccontextmanager

import anyio
import pytest
from clients import (
    LOAD,
    ONE_WAY,
    Changes,
    connected,
    text_of,
    tool_kernel,
)
from file_events import appears
from listing import list_tools
from live import TIMEOUT
from notebook_files import write_notebook

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
import asyncio, os, pathlib, signal, time

def pid() -> int:
    "The kernel's process."
    return os.getpid()

def leave(status: int) -> None:
    "Ends the process."
    os._exit(status)

async def wait() -> str:
    "Waits."
    pathlib.Path("waiting").touch()
    while not pathlib.Path("release").exists():
        await asyncio.sleep(0.01)
    pathlib.Path("waited").touch()

def wait_on_main() -> str:
    "Waits, and keeps the main thread."
    pathlib.Path("waiting").touch()
    while True:
        time.sleep(0.01)
"""
RESOURCE = "%%mcp_resource data://{name}\nname"
NAMES = ["pid", "leave", "wait", "wait_on_main"]


@pytest.fixture
def sums(home):
    """A notebook to be run without a frontend."""
    return write_notebook(home / "sums.ipynb", LOAD, TOOLS, RESOURCE)


@pytest.fixture
def sales(home):
    """A kernel that a user's frontend has started."""
    with tool_kernel(home, TOOLS, name="sales") as kernel:
        yield kernel


async def names(client):
    return [tool.name for tool in await list_tools(client, cache_mode="bypass")]


async def until(client, changes, *expected):
    """Wait for notices until these are the tools."""
    with anyio.fail_after(TIMEOUT):
        while await names(client) != list(expected):
            await changes.wait()


@asynccontextmanager
async def waiting(client, home, tool="wait"):
    """Have a call run for the length of the block; yield where its result will be."""
    results = []

    async def call():
        results.append(await client.call_tool(tool, {}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await appears(home / "waiting")
        yield results


@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_a_headless_kernel_that_dies_comes_back_to_the_same_client(
    home, sums, era, transport
):
    async with connected(home, era, transport, str(sums)) as client:
        assert await names(client) == NAMES
        called = time.monotonic()
        before = int(text_of(await client.call_tool("pid", {})))
        soon = 1 + 20 * (time.monotonic() - called)
        async with waiting(client, home) as results:
            killed = time.monotonic()
            os.kill(before, signal.SIGKILL)
        answered = time.monotonic() - killed
        (result,) = results
        assert result.is_error
        assert "'sums' was killed by SIGKILL (out of memory, perhaps)" in text_of(result)
        assert answered < soon
        assert (await client.read_resource("data://orders")).contents[0].text == "orders"
        assert int(text_of(await client.call_tool("pid", {}))) != before
        result = await client.call_tool("leave", {"status": 3})
        assert "ended with exit status 3" in text_of(result)
        assert await names(client) == NAMES


@pytest.mark.parametrize(
    ("era", "how"),
    [
        ("auto", "SIGKILL"),
        ("legacy", "os._exit"),
        pytest.param("auto", "os._exit", marks=pytest.mark.slow),
        pytest.param("legacy", "SIGKILL", marks=pytest.mark.slow),
    ],
)
async def test_the_death_of_a_live_kernel_is_told_within_a_second(home, sales, era, how):
    changes = Changes()
    async with (
        connected(home, era, "stdio", message_handler=changes.handle) as client,
        changes.watch(client, era),
    ):
        await until(client, changes, *NAMES)
        called = time.monotonic()
        await client.call_tool("pid", {})
        soon = 1 + 20 * (time.monotonic() - called)
        async with waiting(client, home) as results:
            killed = time.monotonic()
            if how == "SIGKILL":
                os.kill(sales.pid, signal.SIGKILL)
            else:
                result = await client.call_tool("leave", {"status": 1})
                assert "The kernel of 'sales' died" in text_of(result)
        assert time.monotonic() - killed < soon
        assert results[0].is_error
        assert "The kernel of 'sales' died" in text_of(results[0])
        assert "run its cells again" in text_of(results[0])
        await until(client, changes)


@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
@pytest.mark.parametrize("tool", ["wait_on_main", pytest.param("wait", marks=pytest.mark.slow)])
async def test_a_restart_by_the_user_is_told_and_the_tools_come_back(
    home, sales, era, transport, tool
):
    changes = Changes()
    async with (
        connected(home, era, transport, message_handler=changes.handle) as client,
        changes.watch(client, era),
    ):
        await until(client, changes, *NAMES)
        called = time.monotonic()
        await client.call_tool("pid", {})
        soon = 2 + 20 * (time.monotonic() - called)
        async with waiting(client, home, tool) as results:
            asked = time.monotonic()
            # As frontends do it: an interrupt, then a request on the control channel.
            await anyio.to_thread.run_sync(sales.manager.interrupt_kernel)
            await anyio.to_thread.run_sync(sales.manager.request_shutdown, True)
        assert time.monotonic() - asked < soon
        assert results[0].is_error
        assert "The kernel was restarted." in text_of(results[0])
        await until(client, changes)
        await anyio.to_thread.run_sync(_start_again, sales)
        await until(client, changes, *NAMES)
        result = await client.call_tool("pid", {})
        assert int(text_of(result)) == sales.pid


def _start_again(kernel):
    kernel.manager.finish_shutdown(restart=True)
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=TIMEOUT)
    kernel.ok(LOAD)
    kernel.ok(TOOLS)
