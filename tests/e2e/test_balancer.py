"""Several bridges of one notebook behind a plain TCP balancer, as on several machines."""

import asyncio
import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from clients import TOKEN, http_bridge, text_of
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from notebook_files import write_notebook

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
import os, pathlib

def pid() -> int:
    "The kernel's process."
    return os.getpid()
"""


@pytest.fixture(scope="module")
def ports(module_home):
    """The ports of two bridges that serve the same notebook, with the same token."""
    path = module_home / "sums.ipynb"
    write_notebook(path, "%load_ext mcp_notebook", TOOLS)
    with ExitStack() as stack, ThreadPoolExecutor(2) as both:
        ends = [http_bridge(module_home, str(path)) for _ in range(2)]
        yield [urlsplit(bridge.url).port for bridge in both.map(stack.enter_context, ends)]


@asynccontextmanager
async def balanced(ports, *, affinity):
    """Pass connections on: by turns, or those of one address to one port; yields the URL."""
    turns = itertools.cycle(ports)
    homes = {}

    async def copy(reader, writer):
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        address = writer.get_extra_info("peername")[0]
        port = homes.setdefault(address, next(turns)) if affinity else next(turns)
        there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


@asynccontextmanager
async def client_at(url, era, address="127.0.0.1", **limits):
    transport = httpx2.AsyncHTTPTransport(local_address=address, limits=httpx2.Limits(**limits))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, transport=transport, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        yield client


async def call_pid(client):
    result = await client.call_tool("pid", {})
    assert not result.is_error
    return text_of(result)


@pytest.mark.slow
async def test_modern_clients_call_through_any_balancer(ports):
    async with (
        balanced(ports, affinity=False) as url,
        client_at(url, "auto", max_keepalive_connections=0) as client,  # each call a connection
    ):
        pids = [await call_pid(client) for _ in range(6)]
    assert len(set(pids)) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="others have one loopback address")
async def test_older_clients_stay_with_their_bridge_if_the_balancer_keeps_them_there(ports):
    async with balanced(ports, affinity=True) as url:
        pids = []
        for address in ("127.0.0.1", "127.0.0.2"):
            async with client_at(url, "legacy", address, max_keepalive_connections=0) as client:
                of_client = {await call_pid(client) for _ in range(4)}
            assert len(of_client) == 1
            pids += of_client
    assert len(set(pids)) == 2


@pytest.mark.slow
async def test_each_bridge_says_that_it_is_up(ports):
    async with httpx2.AsyncClient() as http:
        for port in ports:
            with anyio.fail_after(60):
                answer = await http.get(f"http://127.0.0.1:{port}/healthz")
            assert answer.status_code == 200
