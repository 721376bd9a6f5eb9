"""Calls that wait in their kernel until a test lets them go, on both sides of `short_way`."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import pytest
from generated_requests import CAPABILITIES, CLIENT, MODERN_VERSION, VERSION, Request
from live import record_of, soon
from short_way import both_sides, normalise_message, opened_pipes

TOOLS = '''%%mcp_tool
import asyncio
from mcp_notebook import Context, mcp_tool
gates, inside, left = {}, [], []

async def hold(name: str) -> str:
    """Wait until it is let go."""
    inside.append(name)
    try:
        await gates.setdefault(name, asyncio.Event()).wait()
    finally:
        inside.remove(name)
        left.append(name)
    return f"{name} was let go"

async def let_go(name: str) -> str:
    """Let those go that hold."""
    gates.setdefault(name, asyncio.Event()).set()
    return "ok"

def count() -> list[str]:
    """Return who holds."""
    return sorted(inside)

def echo(value: object = None) -> object:
    """Return what comes."""
    return value

def size_of(text: str) -> int:
    """Return how long a text is."""
    return len(text)

@mcp_tool(task=True)
def may_be_task() -> str:
    """Be a task of clients that can follow one."""
    return "done"

@mcp_tool(task="only")
def is_task() -> str:
    """Be a task, or nothing."""
    return "done"

@mcp_tool(confirm=True)
def drop(year: int) -> str:
    """Drop a year."""
    return f"dropped {year}"

async def tell(name: str, ctx: Context) -> str:
    """Tell how far it is, and wait."""
    ctx.progress(1, 2, "half")
    ctx.log("It waits.")
    return await hold(name)
'''


@pytest.fixture(scope="module", name="kernel")
def holding_kernel(shared_kernel):
    """A kernel with tools that wait until they are told to go on."""
    shared_kernel.ok(TOOLS)
    return shared_kernel


@pytest.fixture(params=["handshake", "modern"], name="era")
def protocol_era(request):
    """Either way in which a client may begin."""
    return request.param


"""A cell with tools that wait until they are told to go on."""


def make_call(  # noqa: PLR0913 - one for each part
    era,
    tool,
    number=1,
    *,
    session="usual",
    meta=None,
    capabilities=None,
    client="test",
    **arguments,
):
    """Return a plain request for a call."""
    params = {"name": tool, "arguments": arguments, "_meta": dict(meta or {})}
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]
    if era == "modern":
        params["_meta"] |= {VERSION: MODERN_VERSION, CAPABILITIES: capabilities or {}}
        params["_meta"][CLIENT] = {"name": client, "version": "1"}
        headers += [("mcp-protocol-version", MODERN_VERSION), ("mcp-method", "tools/call")]
        headers.append(("mcp-name", tool))
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    session = None if era == "modern" else session
    return Request(
        era, message, body=json.dumps(message).encode(), headers=headers, session=session
    )


def make_notification(method, session="usual", **params):
    """Return a notification of the handshake era."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    request = make_call("handshake", "", session=session)
    request.body = json.dumps(message).encode()
    return request


def check_alike(pairs):
    """Compare what was found out on both sides."""
    first, second = pairs
    assert first == second


async def on_both(sides, act, name):
    """Do the same on both sides at once, with names as long, and return what came of it."""
    return await asyncio.gather(*(act(side, f"{name}-{side.way[:3]}") for side in sides))


async def until(side, name, count=1):
    """Wait until so many calls hold."""

    async def hold():
        return (await ask_who_holds(side)).count(name) >= count

    await soon(hold)


async def ask_who_holds(side):
    await side.ask(make_call("modern", "count", 99))
    side.watch.noted = [each for each in side.watch.noted if "'count'" not in str(each)]
    body = side.body[side.body.index(b"{") :]  # on a slow machine, pings may be before it
    return json.loads(json.loads(body)["result"]["content"][0]["text"])


async def let_go(side, name):
    await side.ask(make_call("modern", "let_go", 98, name=name))
    side.watch.noted = [each for each in side.watch.noted if "'let_go'" not in str(each)]


def take_notes(side, name="(no name)"):
    """Return what the observers have heard, without the name that differs between the sides."""
    return [str(each).replace(name, "NAME") for each in side.watch.take()]


async def has_ended(side):
    """Wait until the bridge has heard of the end of all calls."""
    await soon(lambda: not sum(side.server._room._running._counts.values()))


@asynccontextmanager
async def asking(side, request, leaving=None):
    """Have a request open within the block; yields the list that gets its answer."""
    answers = []

    async def ask():
        answers.append(await side.ask(request, leaving))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        yield answers


@asynccontextmanager
async def both_pipes(kernel, era, **options):
    """Yield both sides with a client over stdio that has begun."""
    async with (
        both_sides([record_of(kernel)], kernel.home, with_http=False, **options) as sides,
        AsyncExitStack() as stack,
    ):
        yield [(side, await stack.enter_async_context(opened_pipes(side, era))) for side in sides]


async def wait_for_notes(side, kind, count=1):
    """Wait until the observers have heard so much of this kind."""
    await side.watch.wait_for(kind, count)


async def take_lines(pipes, last):
    """Return all lines up to the answer with this id."""
    lines = []
    with anyio.fail_after(30):
        while True:
            line = await pipes.receive()
            lines.append(normalise_message(line))
            if json.loads(line).get("id") == last:
                return lines
