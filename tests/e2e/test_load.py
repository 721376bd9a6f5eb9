"""Many clients at once, over all transports and in both eras: each call gets its own answer, once.

Afterwards the bridge has what it had before: no task, thread, descriptor, session or memory more.
"""

import json
import re
from collections import Counter
from contextlib import AsyncExitStack
from itertools import cycle

import anyio
import httpx2
import psutil
import pytest
from clients import COMMAND, TOKEN, connected, http_bridge, over_http, text_of
from limits_files import set_limits
from live import live_kernel

pytestmark = pytest.mark.anyio

TOOLS = '''%%mcp_tool
import asyncio
from mcp_notebook import mcp_tool

seen = []

def sync(client: int, number: int) -> str:
    """Return who called, on the main thread."""
    seen.append((client, number))
    return f"{client}:{number}"

async def coroutine(client: int, number: int) -> str:
    """Return who called, on the loop, after others had a turn."""
    seen.append((client, number))
    await asyncio.sleep(0)
    return f"{client}:{number}"

@mcp_tool(run="thread")
def thread(client: int, number: int) -> str:
    """Return who called, in a thread."""
    seen.append((client, number))
    return f"{client}:{number}"
'''
NAMES = ("sync", "coroutine", "thread")
STDIO = 4
"""Clients over stdio, each with a bridge of its own."""
POOL = 3
"""Worker threads by which a bridge may have more: they stay for the next ones."""
MEMORY = 32 * 2**20
"""Bytes by which the bridge may grow: its allocator keeps some of what it had."""


async def call_many(client, client_number, calls):
    """Make calls, one after the other, and return how many of each answer came."""
    answers = Counter()
    for number, name in zip(range(calls), cycle(NAMES), strict=False):
        arguments = {"client": client_number, "number": number}
        answers[text_of(await client.call_tool(name, arguments))] += 1
    return answers


async def call_from_all(home, url, clients, calls):
    """Let all clients call at the same time, and return the answers that each got."""
    answers = {}

    async def work(client, number):
        answers[number] = await call_many(client, number, calls)

    async with AsyncExitStack() as stack:
        everyone = []
        for number in range(clients):
            era = ("legacy", "auto")[number % 2]
            one = connected(home, era, "stdio") if number < STDIO else over_http(url, era)
            everyone.append(await stack.enter_async_context(one))
        async with anyio.create_task_group() as tasks:
            for number, client in enumerate(everyone):
                tasks.start_soon(work, client, number)
    return answers


async def read_metrics(url):
    """Return the bridge's own numbers."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient() as http:
        text = (await http.get(url.replace("/mcp", "/metrics"), headers=headers)).text
    return {
        name: float(value) for name, value in re.findall(r"^(\w+) (\d\S*)$", text, re.MULTILINE)
    }


async def take_stock(served):
    """Return what the bridge has, once its clients have gone."""
    process = psutil.Process(served.process.pid)
    numbers = {
        "descriptors": process.num_fds(),
        "threads": process.num_threads(),
        "children": len(process.children()),
    }
    metrics = await read_metrics(served.url)
    kept = {
        name: value for name, value in metrics.items() if name.endswith(("sessions", "running"))
    }
    assert kept
    return numbers | kept, process.memory_info().rss


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "calls"),
    [
        (8, 6),
        pytest.param(24, 12, marks=pytest.mark.slow),
        pytest.param(200, 40, marks=[pytest.mark.exhaustive, pytest.mark.timeout(900)]),
    ],
)
async def test_each_call_of_many_clients_is_answered_once_with_its_own_result(home, clients, calls):
    with (
        live_kernel(home, env=set_limits(home, max_waiting_calls=1000)) as kernel,
        http_bridge(home, command=COMMAND) as served,
    ):
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(TOOLS)
        await call_from_all(home, served.url, clients, 3)  # what it keeps once
        kernel.ok("seen.clear()")
        before, memory = await take_stock(served)
        answers = await call_from_all(home, served.url, clients, calls)
        for client in range(clients):
            assert answers[client] == {f"{client}:{number}": 1 for number in range(calls)}, client
        counts = kernel.ok("print(len(seen), len(set(seen)))").stdout.split()
        assert counts == [str(clients * calls)] * 2
        await wait_until_as_before(served, before)
        assert psutil.Process(served.process.pid).memory_info().rss - memory < MEMORY
    check_audit_log(home, clients * (calls + 3))


def check_audit_log(home, calls):
    """Check that the log, which all bridges wrote at once, has each call once."""
    log = home / ".mcp-notebook" / "audit.jsonl"
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert {line["outcome"] for line in lines} == {"ok"}
    assert len({line["id"] for line in lines}) == len(lines) == calls


async def wait_until_as_before(served, before):
    """Wait until the bridge has no more of anything than it had, and fail if that never comes."""
    growth = {}
    with anyio.move_on_after(60):
        while growth := _list_growth((await take_stock(served))[0], before):  # noqa: ASYNC110
            await anyio.sleep(0.1)  # another process; the connection of before may still be counted
    assert not growth


def _list_growth(now, before):
    allowed = before | {"threads": before["threads"] + POOL}
    return {name: (before[name], value) for name, value in now.items() if value > allowed[name]}
