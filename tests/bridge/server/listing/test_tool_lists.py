"""The list of tools, put together once for each change, and its pages."""

import logging

import anyio
import pytest
from judge import in_process
from linked_servers import make_server
from listing import list_tools
from live import TIMEOUT
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.listing.tool_lists import ListVariant, ToolPages
from mcp_notebook.bridge.server.own_tools import meta_tools
from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.wire import messages

KIND = ListVariant("2026-07-28")


def info(name, **changed):
    return messages.ToolInfo(**{"name": name, "input_schema": {"type": "object"}} | changed)


def catalog_of(*names):
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=[info(name) for name in names])
    return catalog


def plain(name, tool, version):
    return {"name": name, "description": tool.description, "version": version}


def pages_of(size, made=None):
    def form(name, info, protocol_version, *, shows_views):
        if made is not None:
            made.append(name)
        return plain(name, info, protocol_version)

    return ToolPages(form, page_size=size)


def followed(pages, catalog):
    """Return the names on each page, as a client finds them."""
    found, cursor = [], None
    while True:
        page = pages.find_page(catalog.entries(), KIND, cursor)
        found.append([tool["name"] for tool in page.items])
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (None, [["a", "b", "c", "d", "e"]]),
        (1, [["a"], ["b"], ["c"], ["d"], ["e"]]),
        (2, [["a", "b"], ["c", "d"], ["e"]]),
        (5, [["a", "b", "c", "d", "e"]]),
        (9, [["a", "b", "c", "d", "e"]]),
    ],
)
def test_a_client_that_follows_the_cursors_finds_each_tool_once_in_order(size, expected):
    assert followed(pages_of(size), catalog_of(*"abcde")) == expected


def test_a_list_is_made_once_until_it_changes():
    made = []
    pages, catalog = pages_of(None, made), catalog_of(*"abc")
    followed(pages, catalog)
    followed(pages, catalog)
    assert made == ["a", "b", "c"]
    changed = [info("a"), info("b", description="New."), info("c")]
    catalog.set_kernel("1", notebook="sales", tools=changed)
    followed(pages, catalog)
    assert made == [*"abc", *"abc"]


def test_a_cursor_is_good_as_long_as_the_list_is_the_same_also_after_a_restart():
    catalog = catalog_of(*"abc")
    cursor = pages_of(2).find_page(catalog.entries(), KIND, None).next_cursor
    catalog.set_kernel("2", notebook="empty", tools=[])
    again = pages_of(2).find_page(catalog.entries(), KIND, cursor)
    assert [tool["name"] for tool in again.items] == ["c"]


@pytest.mark.parametrize(
    "tools",
    [
        [info("a"), info("b")],
        [info("b"), info("a"), info("c")],
        [info("a"), info("b"), info("c"), info("d")],
        [info("a"), info("b"), info("c", description="New.")],
    ],
)
def test_a_cursor_of_another_list_is_unknown(tools):
    pages, catalog = pages_of(1), catalog_of(*"abc")
    cursor = pages.find_page(catalog.entries(), KIND, None).next_cursor
    catalog.set_kernel("1", notebook="sales", tools=tools)
    with pytest.raises(ProtocolError, match="Unknown cursor"):
        pages.find_page(catalog.entries(), KIND, cursor)


def listed(catalog, era, **options):
    server = make_server(catalog, Links(catalog), **options)
    return Client(in_process(server), mode=era)


@pytest.mark.anyio
async def test_a_list_that_changes_between_pages_is_an_error_and_no_mixture(era):
    catalog = catalog_of(*"abc")
    async with listed(catalog, era, page_size=2) as client:
        with anyio.fail_after(TIMEOUT):
            first = await client.list_tools()
            catalog.set_kernel("1", notebook="sales", tools=[info("z"), info("a")])
            with pytest.raises(MCPError, match="changed"):
                await client.list_tools(cursor=first.next_cursor)
            assert [tool.name for tool in await list_tools(client)] == ["z", "a"]


@pytest.mark.anyio
async def test_the_bridges_own_tools_come_first_and_count(era):
    async with listed(catalog_of("a"), era, page_size=2, meta_tools=True) as client:
        first = await client.list_tools()
        second = await client.list_tools(cursor=first.next_cursor)
        third = await client.list_tools(cursor=second.next_cursor)
    names = [tool.name for tool in [*first.tools, *second.tools, *third.tools]]
    assert len(first.tools) == 2
    assert set(names[:-2]) == {tool.name for tool in meta_tools.TOOLS}
    assert names[-2:] == ["a", meta_tools.READER.name]


@pytest.mark.anyio
async def test_every_page_says_how_long_it_is_good_where_the_era_knows_that(era):
    async with listed(catalog_of(*"abc"), era, page_size=1) as client:
        page = await client.list_tools()
        later = await client.list_tools(cursor=page.next_cursor)
    for each in (page, later):
        said = each.model_dump(by_alias=True, exclude_unset=True)
        if era == "legacy":
            assert "ttlMs" not in said
            assert "cacheScope" not in said
        else:
            assert (said["ttlMs"], said["cacheScope"]) == (0, "private")


DEEP = {"type": "object", "properties": {}}
for _ in range(2_000):
    DEEP = {"type": "object", "properties": {"a": DEEP}}
ODD = {
    "no_object": {"input_schema": {"type": "string"}},
    "no_type": {"input_schema": {}},
    "annotations": {"annotations": {"readOnlyHint": {"no": "bool"}}},
    "icon_without_source": {"icons": [{"sizes": ["any"]}]},
    "icon_sizes": {"icons": [{"src": "https://example.com/a.png", "sizes": "48x48"}]},
    "icon_theme": {"icons": [{"src": "https://example.com/a.png", "theme": "blue"}]},
    "meta_no_json": {"meta": {"com.example/a": object()}},
    "surrogate": {"description": "\ud800"},
    "deep": {"input_schema": DEEP},
}


@pytest.mark.anyio
async def test_odd_tools_are_left_out_and_hide_no_other(era, caplog):
    catalog = Catalog()
    odd = [info(name, **changed) for name, changed in ODD.items()]
    catalog.set_kernel("1", notebook="sales", tools=[info("first"), *odd, info("last")])
    with caplog.at_level(logging.WARNING):
        async with listed(catalog, era) as client:
            with anyio.fail_after(TIMEOUT):
                for _ in range(2):
                    tools = await list_tools(client)
                    assert [tool.name for tool in tools] == ["first", "last"]
    for name in ODD:  # each is said once
        assert sum(f"{name!r} is left out" in text for text in caplog.messages) == 1


@pytest.mark.anyio
async def test_a_null_in_a_schema_reaches_the_client(era):
    catalog = Catalog()
    schema = {"type": "object", "properties": {"a": {"type": ["null", "string"], "default": None}}}
    catalog.set_kernel("1", notebook="sales", tools=[info("a", input_schema=schema)])
    async with listed(catalog, era) as client:
        (tool,) = await list_tools(client)
    assert tool.input_schema == schema
