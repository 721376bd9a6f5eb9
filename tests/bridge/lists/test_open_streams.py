"""How many streams callers may have open, in both eras; the kernel is a stand-in."""

import json
from contextlib import ExitStack

import anyio
import pytest
from endpoints import modern, served
from live import TIMEOUT
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.settings.limits import Limits

pytestmark = pytest.mark.anyio

LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {"notifications": {"toolsListChanged": True}},
}


async def open_stream(here, era):
    """Return the connection of a new stream, and the beginning of the answer on it."""
    if era == "handshake":
        session = await here.open_session()
        client = here.connect(f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session}")
    else:
        message, headers = modern(LISTEN)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(["POST /mcp HTTP/1.1", *lines])
        client = here.connect(head, json.dumps(message).encode())
    return client, await anyio.to_thread.run_sync(client.recv, 10_000)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("limit", ["max_caller_streams", "max_streams"])
async def test_streams_over_http_are_bounded_and_one_that_is_closed_makes_room(home, era, limit):
    async with served(home, **{limit: 2}) as here:
        with ExitStack() as stack:
            for kind in ("handshake", "modern"):
                client, answer = await open_stream(here, kind)
                stack.enter_context(client)
                assert answer.startswith(b"HTTP/1.1 200 ")
            client, answer = await open_stream(here, era)
            with client:
                while b"}" not in answer:
                    answer += await anyio.to_thread.run_sync(client.recv, 10_000)
            assert b"Too many open streams" in answer
            assert b"can have 2 at a time. Try again when one has ended." in answer
            if era == "handshake":
                assert answer.startswith(b"HTTP/1.1 429 ")
        refused = True
        while refused:  # the server has to notice that the others are closed
            client, answer = await open_stream(here, era)
            with client:
                refused = b"Too many" in answer or not answer.startswith(b"HTTP/1.1 200 ")


async def test_streams_over_stdio_are_bounded_too():
    catalog = Catalog()
    async with Links(catalog, on_change=lambda: None) as links:
        server = NotebookServer(catalog, links, limits=Limits(max_caller_streams=1))
        async with Client(server.mcp) as client:
            with anyio.fail_after(TIMEOUT):
                async with client.listen(tools_list_changed=True):
                    with pytest.raises(MCPError, match="Too many open streams: one caller can"):
                        async with client.listen(tools_list_changed=True):
                            pass
                while server.open_streams.shares.explain_lack(OWNER):
                    await anyio.lowlevel.checkpoint()
                async with client.listen(tools_list_changed=True):
                    pass


async def test_a_stream_takes_a_short_filter_only():
    """The filter is kept as long as the stream is open."""
    catalog = Catalog()
    async with Links(catalog, on_change=lambda: None) as links:
        server = NotebookServer(catalog, links)
        async with Client(server.mcp) as client:
            with anyio.fail_after(TIMEOUT):
                with pytest.raises(MCPError, match="16,384 bytes"):
                    async with client.listen(resource_subscriptions=["x:y"] * 10_000):
                        pass
                async with client.listen(resource_subscriptions=["x:y"] * 100):
                    pass
