"""What results show only a part of, read whole by real clients in both eras, while it is kept."""

import base64
import re

import pytest
from clients import ONE_WAY, Changes, tool_kernel, until_listed
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, Implementation, ResourceLink

from mcp_notebook.bridge.server.lists.resources import LEGACY_NOT_FOUND
from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

CELL = """%%mcp_tool
from mcp_notebook import Result, Text
from mcp_notebook.kernel.notebook.loaded_extension import EXTENSION
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original

def content(kind, number):
    if kind == "large":
        return bytes(16 * 2**20 + 1)
    if kind == "broken":
        raise ValueError("no such column")
    return f"original {number}" if kind == "text" else bytes([0, 255, number])

def report(kind: str, number: int = 1, cost: int = 1) -> Result:
    "Shows a part of something large."
    mime = "text/plain" if kind == "text" else "application/octet-stream"
    form = FileFormat(".txt", mime, lambda: content(kind, number))
    original = Original(f"report {number}", f"The whole report {number}", (form,), cost)
    return Result([Text("a part"), *getattr(get_ipython(), EXTENSION).resources.keep(original)])

def keep_many(count: int) -> str:
    "Keep many originals."
    for number in range(count):
        report("text", number)
    return "kept"
"""


CLEAR = (
    "from mcp_notebook.kernel.notebook.loaded_extension import EXTENSION\n"
    "getattr(get_ipython(), EXTENSION).resources.clear()"
)


@pytest.fixture(scope="module")
def sales(module_home):
    with tool_kernel(module_home, CELL, name="sales") as kernel:
        yield kernel


@pytest.fixture(autouse=True)
def _nothing_kept(sales):
    sales.ok(CLEAR)


async def link_of(client, **arguments):
    """Call the tool, and return the URI of its link."""
    _, link = (await client.call_tool("report", arguments)).content
    assert isinstance(link, ResourceLink)
    return str(link.uri)


async def all_of(client):
    """Return the names of all pages."""
    page = await client.list_resources()
    pages = [page]
    while page.next_cursor is not None:
        page = await client.list_resources(cursor=page.next_cursor)
        pages.append(page)
    return [[resource.name for resource in page.resources] for page in pages]


async def refusal(client, uri):
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    return caught.value.error


@pytest.mark.slow
@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_a_cached_result_is_given_again_until_its_links_expire(
    sales, connect, era, transport
):
    sales.ok("%%mcp_tool --read-only --cache 60s\ndef cached() -> str:\n    return 'x' * 100_000")

    async def link(client):
        (found,) = (b for b in (await client.call_tool("cached")).content if b.type != "text")
        return found.uri

    async with connect(era, transport) as client:
        await until_listed(client, "cached")
        first = await link(client)
        assert await link(client) == first
        sales.ok(CLEAR)
        second = await link(client)
        assert second != first
        assert len((await client.read_resource(second)).contents[0].text) == 100_000


@pytest.mark.smoke
async def test_originals_are_listed_and_read_also_while_a_cell_runs(sales, connect, era, transport):
    not_found = LEGACY_NOT_FOUND if era == "legacy" else INVALID_PARAMS
    async with connect(era, transport) as client:
        capability = client.server_capabilities.resources
        assert capability is not None
        assert capability.list_changed
        assert capability.subscribe
        text = await link_of(client, kind="text")
        binary = await link_of(client, kind="bytes", number=2)
        broken = await link_of(client, kind="broken", number=3)
        with sales.busy():
            assert await all_of(client) == [["report 1.txt", "report 2.txt", "report 3.txt"]]
            (read,) = (await client.read_resource(text)).contents
            assert (read.uri, read.mime_type, read.text) == (text, "text/plain", "original 1")
            (read,) = (await client.read_resource(binary)).contents
            assert base64.b64decode(read.blob) == b"\x00\xff\x02"
            error = await refusal(client, broken)
        assert error.code == INTERNAL_ERROR
        assert "ValueError: no such column" in error.message
        error = await refusal(client, await link_of(client, kind="large", number=5))
        assert error.code == INTERNAL_ERROR
        assert "16,777,217 bytes, and at most 16,777,216 are sent" in error.message
        assert (await client.list_resource_templates()).resource_templates == []
        gone = await link_of(client, kind="text", number=4)
        sales.ok(CLEAR)
        for uri, said in (
            (gone, "has expired"),
            (f"{gone.rsplit('/', 2)[0]}/0/a.txt", "does not exist"),
            ("notebook://0/1/a", "the kernel that kept it is gone"),
            ("file:///etc/passwd", "begin with notebook://"),
        ):
            error = await refusal(client, uri)
            assert said in error.message
            assert (error.code, error.data) == (not_found, {"uri": uri})
        assert await all_of(client) == [[]]


async def call_reader(client, **arguments):
    result = await client.call_tool(READ_RESOURCE, arguments)
    return result.is_error, result.content[0]


ROWS = """%%mcp_tool
import pandas
def rows():
    return pandas.DataFrame({'n': range(10_000), 'name': 'x' * 20})
"""


@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_a_model_that_cannot_read_resources_reads_the_rest_by_a_tool(
    sales, connect, era, transport
):
    sales.ok(ROWS)
    plain = Implementation(name="mcp", version="0.1.0")
    async with connect(era, transport, client_info=plain) as client:
        await until_listed(client, "rows")
        names = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
        assert names[-1] == READ_RESOURCE
        (said,) = (await client.call_tool("rows")).content
        (uri,) = re.findall(r'read_notebook_resource\(uri="(notebook://\S+?)"\)', said.text)
        with sales.busy():
            first = (await call_reader(client, uri=uri))[1].text
            part = (await call_reader(client, uri=uri, first_line=5_001, lines=2))[1].text
        assert first.splitlines()[1:3] == ["n,name", f"0,{'x' * 20}"]
        assert part == (
            f"[{uri}: lines 5,001 to 5,002 of 10,001. Continue with first_line=5003. "
            "Line 1: n,name]\n"
            f"4999,{'x' * 20}\n5000,{'x' * 20}"
        )
        picked = await call_reader(client, uri=uri, first_line=10_001, columns=["name"])
        assert picked[1].text.endswith(f"Line 1: name]\n{'x' * 20}")
        for wrong, words in (
            ({"uri": uri, "columns": ["nam"]}, "no column 'nam'. Did you mean 'name'? Its columns"),
            (
                {"uri": uri, "columns": "name"},
                "must be an array of names of columns, as texts, not",
            ),
            ({"uri": uri, "columns": [1]}, "must be an array of names of columns"),
            ({"uri": uri, "first_line": 20_000}, "there is no line 20,000"),
            ({"uri": "notebook://0/1/a"}, "the kernel that kept it is gone"),
            ({"uri": "file:///etc/passwd"}, "begin with notebook://: copy the whole"),
            ({"uri": "table.csv"}, "begin with notebook://: copy the whole"),
            ({"uri": uri, "first_line": 0}, "'first_line' must be a whole number, at least 1."),
            ({"uri": uri, "lines": 1.5}, "must be a whole number, at least 1, not a fraction."),
            ({"uri": uri, "row": 3}, "'row'; it has 'uri', 'first_line', 'lines', 'first_charac"),
            ({}, "'uri' is missing"),
        ):
            failed, block = await call_reader(client, **wrong)
            assert failed, wrong
            assert words in block.text


@pytest.mark.needs("pyarrow")
async def test_the_tool_that_reads_originals_reads_text_only(sales, connect):
    sales.ok(ROWS)
    async with connect("auto", "http") as client:
        await until_listed(client, "rows")
        links = [block.uri for block in (await client.call_tool("rows")).content[1:]]
        (uri,) = (uri for uri in links if uri.endswith(".parquet"))
        failed, block = await call_reader(client, uri=uri)
        assert failed
        assert "is not text" in block.text


@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_pages_are_of_one_content_until_the_first_is_read_again(
    sales, connect, era, transport
):
    sales.ok("%%mcp_tool\nnumbers = [1] * 30_000\ndef changing():\n    return numbers")
    plain = Implementation(name="mcp", version="0.1.0")
    async with connect(era, transport, client_info=plain) as client:
        await until_listed(client, "changing")
        (said,) = (await client.call_tool("changing")).content
        (uri,) = re.findall(r'read_notebook_resource\(uri="(notebook://\S+)"\)\]', said.text)
        first = (await call_reader(client, uri=uri))[1].text
        sales.ok("numbers[:] = [2] * 30_000")
        later = (await call_reader(client, uri=uri, first_line=15_000))[1].text
        assert set(first.splitlines()[2:]) == set(later.splitlines()[1:]) == {" 1,"}
        again = (await call_reader(client, uri=uri))[1].text
        assert set(again.splitlines()[2:]) == {" 2,"}


@pytest.mark.slow
@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_a_client_is_told_when_a_kernel_leaves_with_its_originals(
    sales, connect, era, transport
):
    sales.ok("%mcp call report kind=text")
    changes = Changes()
    async with connect(era, transport, message_handler=changes.handle_resources) as client:
        async with changes.watch(client, era, resources_list_changed=True):
            assert await all_of(client) == [["report 1.txt"]]
            try:
                sales.ok("%unload_ext mcp_notebook")
                await changes.wait()
            finally:
                sales.ok(f"%load_ext mcp_notebook\nget_ipython().run_cell({CELL!r})")
        await until_listed(client, "report")  # so that the next test can call it
        assert await all_of(client) == [[]]


@pytest.mark.parametrize(("era", "transport"), ONE_WAY)
async def test_pages_stay_right_while_originals_come_and_expire(sales, connect, era, transport):
    async with connect(era, transport) as client:
        kept = await client.call_tool("keep_many", {"count": 205})
        assert not kept.is_error, kept.content
        page = await client.list_resources()
        assert len(page.resources) == 100
        await link_of(client, kind="text", number=205)
        # Those of the first page expire, and five that were not listed yet.
        await link_of(client, kind="text", number=206, cost=256 * 2**20 - 101)
        second = await client.list_resources(cursor=page.next_cursor)
        third = await client.list_resources(cursor=second.next_cursor)
        names = [resource.name for page in (second, third) for resource in page.resources]
        assert names == [f"report {number}.txt" for number in range(105, 207)]
        assert third.next_cursor is None
        for cursor in ("", "x", f"{page.next_cursor}x", "0.0."):
            with pytest.raises(MCPError, match="Unknown cursor") as caught:
                await client.list_resources(cursor=cursor)
            assert caught.value.error.code == INVALID_PARAMS


@pytest.mark.slow
async def test_two_notebooks_and_one_that_goes(sales, connect):
    costs = CELL.replace("def report", "def costs")
    with tool_kernel(sales.home, costs, name="costs") as other:
        async with connect("auto", "http") as client:
            await until_listed(client, "costs")
            mine = await link_of(client, kind="text")
            _, link = (await client.call_tool("costs", {"kind": "text", "number": 2})).content
            assert sorted(*await all_of(client)) == ["report 1.txt", "report 2.txt"]
            (read,) = (await client.read_resource(link.uri)).contents
            assert read.text == "original 2"
            other.ok("%unload_ext mcp_notebook")
            error = await refusal(client, link.uri)
            assert "is gone" in error.message
            assert "Call the tool again" in error.message
            (read,) = (await client.read_resource(mine)).contents
            assert read.text == "original 1"
            assert await all_of(client) == [["report 1.txt"]]
