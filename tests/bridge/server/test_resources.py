"""MCP's requests for resources, where no kernel has any; with kernels: `e2e/test_resources.py`."""

import anyio
import pytest
from live import TIMEOUT
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.resources import LEGACY_NOT_FOUND
from mcp_notebook.bridge.server.server import NotebookServer

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
