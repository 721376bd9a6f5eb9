"""The MCP server of a bridge, asked by the SDK's client in the same process, in both eras."""

import base64
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from judge import in_process
from kernel_stand_ins import peer, welcome
from linked_servers import linked_client, make_server
from listing import KNOWN, list_tools
from live import TIMEOUT, kernel_with
from mcp import Client
from mcp_types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.own_tools.meta_tools import NO_TOOLS
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

ONE = Limits(max_caller_calls=1)

TOOLS = """%%mcp_tool
from mcp_notebook import Audio, Image, Resource, ResourceLink, Result, Text, mcp_tool

def everything():
    "One block of each kind."
    import io, PIL.Image
    PIL.Image.new("RGB", (2, 2)).save(data := io.BytesIO(), "png")
    return [
        Text("for the user", audience="user", priority=0.5, last_modified="2025-01-12T15:00:58Z"),
        Image(data.getvalue()),
        Audio(b"OggS", audience=["user", "assistant"]),
        ResourceLink("https://example.com/a.csv", name="a.csv"),
        Resource("file:///a.txt", data="text", mime_type="text/plain"),
    ]

def structured(kind: str):
    "A result with a structured part."
    value = {"object": {"a": 1}, "list": [1, 2], "null": None}[kind]
    return Result([Text(kind)], structured=value, meta={"com.example/a": 1})

async def forever():
    "Never ends."
    import asyncio
    await asyncio.sleep(600)
"""


sales = kernel_with(TOOLS)


def info(name, schema=None, **changed):
    return messages.ToolInfo(name=name, input_schema=schema or {"type": "object"}, **changed)


@asynccontextmanager
async def listed(catalog, era, **options):
    """Yield a client of a server that has this catalogue and no kernel."""
    async with (
        Links(catalog) as links,
        Client(in_process(make_server(catalog, links, **options)), mode=era) as client,
    ):
        with anyio.fail_after(TIMEOUT):
            yield client


async def test_each_kind_of_block_reaches_the_client_as_mcps(sales, era):
    async with linked_client(sales, era, KNOWN) as client:
        result = await client.call_tool("everything", {})
    text, image, audio, link, resource = result.content
    assert isinstance(text, TextContent)
    assert text.text == "for the user"
    assert text.annotations.audience == ["user"]
    assert text.annotations.priority == 0.5
    assert text.annotations.last_modified == "2025-01-12T15:00:58Z"
    assert isinstance(image, ImageContent)
    assert image.mime_type == "image/png"
    assert image.annotations is None
    assert base64.b64decode(image.data).startswith(b"\x89PNG\r\n\x1a\n")
    assert isinstance(audio, AudioContent)
    assert base64.b64decode(audio.data) == b"OggS"
    assert audio.mime_type == "audio/ogg"
    assert audio.annotations.audience == ["user", "assistant"]
    assert isinstance(link, ResourceLink)
    assert str(link.uri) == "https://example.com/a.csv"
    assert link.name == "a.csv"
    assert isinstance(resource, EmbeddedResource)
    assert isinstance(resource.resource, TextResourceContents)
    assert resource.resource.text == "text"


async def test_a_structured_object_is_served_in_each_era(sales, era):
    async with linked_client(sales, era) as client:
        result = await client.call_tool("structured", {"kind": "object"})
    assert result.structured_content == {"a": 1, "about_this_result": "object"}
    assert result.meta["com.example/a"] == 1


async def test_structured_content_other_than_objects_is_a_property_of_one(sales, era):
    async with linked_client(sales, era) as client:
        result = await client.call_tool("structured", {"kind": "list"})
    assert result.structured_content == {"result": [1, 2], "about_this_result": "list"}
    assert result.content[0].text == "list"


async def test_a_tool_that_mcp_does_not_take_hides_no_other(era):
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=[info("bad", {"type": "string"}), info("good")])
    async with listed(catalog, era) as client:
        assert [tool.name for tool in await list_tools(client)] == ["good"]


async def test_all_that_a_kernel_says_of_a_tool_is_listed(era):
    catalog = Catalog()
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    tool = info(
        "top",
        schema,
        title="Top customers",
        description="The best.",
        annotations={"readOnlyHint": True},
        meta={"com.example/a": [1]},
    )
    catalog.set_kernel("1", notebook="sales", tools=[tool])
    async with listed(catalog, era) as client:
        (served,) = await list_tools(client)
    assert (served.title, served.description) == ("Top customers", "The best.")
    assert served.input_schema == schema
    assert served.annotations.read_only_hint is True
    assert served.meta["com.example/a"] == [1]


async def test_the_instructions_say_what_to_do_without_tools(era):
    async with listed(Catalog(), era) as client:
        assert NO_TOOLS in client.instructions
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=[info("top")])
    async with listed(catalog, era) as client:
        assert NO_TOOLS not in client.instructions


@pytest.mark.parametrize("are_known", [True, False])
async def test_the_instructions_say_nothing_of_tools_that_may_still_come(era, are_known):
    async def settle():
        return are_known

    async with listed(Catalog(), era, settled=settle) as client:
        assert (NO_TOOLS in client.instructions) == are_known


async def test_a_kernel_that_went_before_the_call_is_a_result_that_says_so(era):
    catalog = Catalog()
    catalog.set_kernel("1", notebook="sales", tools=[info("top")])
    async with listed(catalog, era) as client:
        result = await client.call_tool("top", {})
    assert result.is_error
    assert "'top' is gone" in result.content[0].text


async def test_a_call_past_what_a_bridge_carries_is_told_to_come_later(sales, era):
    refused = []
    async with linked_client(sales, era, limits=ONE) as client, anyio.create_task_group() as tasks:

        async def call():
            refused.append(await client.call_tool("forever", {}))
            tasks.cancel_scope.cancel()

        tasks.start_soon(call)
        tasks.start_soon(call)
    (result,) = refused
    assert "one caller can have 1 at a time" in result.content[0].text


async def test_a_call_that_has_ended_leaves_its_place_to_the_next(sales, era):
    async with linked_client(sales, era, limits=ONE) as client:
        for kind in ("null", "none", "null", "null"):
            result = await client.call_tool("structured", {"kind": kind})
            assert "Too many" not in str(result.content)
        async with anyio.create_task_group() as tasks:

            async def call():
                await client.call_tool("forever", {})  # the second one is refused
                tasks.cancel_scope.cancel()

            tasks.start_soon(call)
            tasks.start_soon(call)
        with anyio.fail_after(TIMEOUT):
            while "Too many" in str(
                (await client.call_tool("structured", {"kind": "null"})).content
            ):
                await anyio.lowlevel.checkpoint()


async def test_a_call_that_comes_while_the_bridge_stops_is_told_so(home, era):
    catalog = Catalog()
    async with peer(home, welcome("top")) as kernel, Links(catalog) as links:
        await links.connect(kernel.record)
        server = make_server(catalog, links)
        async with Client(in_process(server), mode=era) as client:
            server.close()
            with anyio.fail_after(TIMEOUT):
                result = await client.call_tool("top", {})
    assert result.is_error
    assert result.content[0].text.startswith("The bridge has been stopped, and the call was not")
    assert not any(isinstance(message, messages.Call) for message in kernel.heard)
