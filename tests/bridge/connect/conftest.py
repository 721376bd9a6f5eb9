"""Clients that start ``mcp-notebook connect``, and a bridge over HTTP that they connect to."""

from contextlib import asynccontextmanager
from functools import partial

import pytest
from clients import TOKEN, http_bridge
from forked_command import list_words
from listing import KNOWN
from live import live_kernel
from mcp import Client, StdioServerParameters

TOOLS = """%%mcp_tool
import asyncio, pathlib, threading, time
from typing import Annotated
from mcp_notebook import Context, Header
stopped = threading.Event()

def add(a: int, b: int = 1) -> int:
    "Add."
    return a + b

def size(text: str) -> str:
    "Send a text back, twice."
    return text * 2

async def sleep(seconds: float, ctx: Context) -> str:
    "Sleep."
    stopped.clear()
    ctx.progress(1, 2, "half of it")
    pathlib.Path("sleeps").touch()
    try:
        await asyncio.sleep(seconds)
    except BaseException:
        stopped.set()
        raise
    return "slept"

def trip(ctx: Context) -> str:
    "Ask where to."
    return str(ctx.elicit("Where to?", str).data)

def talk(ctx: Context) -> str:
    "Log."
    ctx.log("looks odd", "warning")
    return "said"

def region(name: Annotated[str, Header("Region")]) -> str:
    "Has its argument in a header, too."
    return name

def rows() -> list[int]:
    "More than fits."
    return list(range(100_000))
"""


@pytest.fixture(scope="module")
def sales(module_home):
    """A kernel that a user has open."""
    with live_kernel(module_home, notebook=str(module_home / "sales.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(TOOLS)
        yield kernel


@pytest.fixture(scope="module")
def bridge(sales):
    """The remote side: a bridge over HTTP."""
    with http_bridge(sales.home) as served:
        yield served


@asynccontextmanager
async def connected(home, url, era, *arguments, **options):
    """Connect the official client through the command, with the environment of a desktop client."""
    program, *words = list_words("connect", url, "--token-file", "env:SALES_TOKEN", *arguments)
    server = StdioServerParameters(
        command=program,
        args=words,
        env={"HOME": str(home), "SALES_TOKEN": TOKEN},
    )
    async with Client(server, mode=era, client_info=KNOWN, **options) as client:
        yield client


@pytest.fixture
def connect_to(home):
    """Connect a client to an address."""
    return partial(connected, home)


@pytest.fixture
def connect(connect_to, bridge):
    """Connect a client to the bridge."""
    return partial(connect_to, bridge.url)
