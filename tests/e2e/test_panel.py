"""What a notebook shows of the official client, over every transport."""

import anyio.to_thread
import pytest
from clients import LOAD, connected, text_of
from live import until
from mcp_types import Implementation

pytestmark = pytest.mark.anyio

CELL = '%%mcp_tool\ndef look() -> str:\n    "Look."\n    return "seen"'


def show(kernel, words):
    """Wait until `%mcp panel` has these words."""
    until(lambda: words in kernel.ok("%mcp panel").displays[0]["text/plain"])


@pytest.mark.smoke
async def test_a_client_and_its_calls_are_shown_with_its_name(shared_kernel):
    for cell in ("%unload_ext mcp_notebook", LOAD, CELL):  # a new log of calls
        shared_kernel.ok(cell)
    editor = Implementation(name="editor", version="1.2")
    async with connected(shared_kernel.home, "auto", "http", client_info=editor) as client:
        await client.list_tools()
        await anyio.to_thread.run_sync(show, shared_kernel, " editor 1.2\n")
        assert text_of(await client.call_tool("look", {})) == "seen"
        await anyio.to_thread.run_sync(show, shared_kernel, " editor 1.2: done in ")
    await anyio.to_thread.run_sync(show, shared_kernel, " none connected")
