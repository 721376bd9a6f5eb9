"""MCP's requests for resources, where no kernel has any; with kernels: `e2e/test_resources.py`."""

import anyio
import pytest
from kernel_stand_ins import keeping, peer
from live import TIMEOUT
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.resources import LEGACY_NOT_FOUND
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
async def client(request):
    catalog = Catalog()
    async with (
        Links(catalog, on_change=lambda: None) as links,
        Client(NotebookServer(catalog, links).mcp, mode=request.param) as client,
    ):
        with anyio.fail_after(TIMEOUT):
            yield client


async def test_without_kernels_the_lists_are_empty(client):
    listed = await client.list_resources()
    assert (listed.resources, listed.next_cursor) == ([], None)
    assert (await client.list_resource_templates()).resource_templates == []


async def test_the_pages_of_several_kernels_have_each_resource_once(home):
    def infos(kernel, numbers):
        return [
            messages.ResourceInfo(number=number, uri=f"notebook://{kernel}/{number}/a", name="a")
            for number in numbers
        ]

    catalog = Catalog()
    async with (
        peer(home, keeping("f")) as first,
        peer(home, keeping("g")) as second,
        Links(catalog, on_change=lambda: None) as links,
        Client(NotebookServer(catalog, links, page_size=3).mcp) as client,
    ):
        first.resources = infos("1", range(3, 8))
        second.resources = infos("2", range(1, 5))
        await links.connect(first.record)
        await links.connect(second.record)
        uris, cursor = [], None
        with anyio.fail_after(TIMEOUT):
            while cursor is not None or not uris:
                page = await client.list_resources(cursor=cursor)
                uris += [str(resource.uri) for resource in page.resources]
                cursor = page.next_cursor
        assert uris == [info.uri for info in (*first.resources, *second.resources)]


@pytest.mark.parametrize("cursor", ["", "1.2", "1.2.abc", "\N{SNOWMAN}", "1.2." + "0" * 32])
async def test_a_cursor_that_a_client_made_up_is_unknown(client, cursor):
    for ask in (client.list_resources, client.list_resource_templates):
        with pytest.raises(MCPError, match="Unknown cursor") as caught:
            await ask(cursor=cursor)
        assert caught.value.error.code == INVALID_PARAMS


async def test_an_unknown_resource_has_the_code_of_its_era(client):
    with pytest.raises(MCPError, match="cannot be read") as caught:
        await client.read_resource("notebook://k/1/a.csv")
    assert caught.value.error.code in (INVALID_PARAMS, LEGACY_NOT_FOUND)
    assert caught.value.error.data == {"uri": "notebook://k/1/a.csv"}
