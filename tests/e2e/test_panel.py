"""The live panel of a notebook that the official client calls, over every transport."""

import anyio
import anyio.to_thread
import pytest
from clients import LOAD, ONE_WAY, connected, text_of
from mcp_types import Implementation

pytestmark = pytest.mark.anyio

CELL = '%%mcp_tool\ndef look() -> str:\n    "Look."\n    return "seen"'


def follow(kernel, words):
    """Wait until the panel has these words."""
    while words not in kernel.wait_for("update_display_data")["data"]["text/plain"]:
        pass


@pytest.mark.smoke
@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_a_client_and_its_calls_are_shown_with_its_name(shared_kernel, era, transport):
    for cell in ("%unload_ext mcp_notebook", LOAD, CELL):  # a new log of calls
        shared_kernel.ok(cell)
    shared_kernel.ok("%mcp panel")
    editor = Implementation(name="editor", version="1.2")
    async with connected(shared_kernel.home, era, transport, client_info=editor) as client:
        await client.list_tools()
        await anyio.to_thread.run_sync(follow, shared_kernel, "Clients: editor 1.2\n")
        async with anyio.create_task_group() as tasks:
            with shared_kernel.busy():
                tasks.start_soon(client.call_tool, "look", {})
                await anyio.to_thread.run_sync(
                    follow, shared_kernel, "look (editor 1.2): waiting for the end of the cell"
                )
        assert text_of(await client.call_tool("look", {})) == "seen"
        await anyio.to_thread.run_sync(follow, shared_kernel, "look: 2 calls; last: ")
    await anyio.to_thread.run_sync(follow, shared_kernel, "Clients: none connected")
