"""What results show only a part of, read whole by real clients in both eras, while it is kept."""

import base64
import re

import pytest
from clients import tool_kernel, until_listed
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, Implementation, ResourceLink

from mcp_notebook.bridge.server.resources.resources import LEGACY_NOT_FOUND
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


async def test_a_model_that_cannot_read_resources_reads_the_rest_by_a_tool(sales, connect):
    sales.ok(ROWS)
    plain = Implementation(name="mcp", version="0.1.0")
    async with connect("auto", "http", client_info=plain) as client:
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
        for wrong, words in (
            ({"uri": uri, "first_line": 20_000}, "there is no line 20,000"),
            ({"uri": "notebook://0/1/a"}, "the kernel that kept it is gone"),
            ({"uri": "file:///etc/passwd"}, "begin with notebook://: copy the whole"),
            ({"uri": "table.csv"}, "begin with notebook://: copy the whole"),
            ({"uri": uri, "first_line": 0}, "Expected `int` >= 1 - at `$.first_line`"),
            ({"uri": uri, "lines": 1.5}, "Expected `int`, got `float` - at `$.lines`"),
            ({"uri": uri, "row": 3}, "unknown field `row`. Its arguments: 'uri', 'first_line', 'l"),
            ({}, "missing required field `uri`"),
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


async def test_pages_are_of_one_content_until_the_first_is_read_again(sales, connect):
    sales.ok("%%mcp_tool\nnumbers = [1] * 30_000\ndef changing():\n    return numbers")
    plain = Implementation(name="mcp", version="0.1.0")
    async with connect("auto", "http", client_info=plain) as client:
        await until_listed(client, "changing")
        (said,) = (await client.call_tool("changing")).content
        (uri,) = re.findall(r'read_notebook_resource\(uri="(notebook://\S+)"\)\]', said.text)
        first = (await call_reader(client, uri=uri))[1].text
        sales.ok("numbers[:] = [2] * 30_000")
        later = (await call_reader(client, uri=uri, first_line=15_000))[1].text
        assert set(first.splitlines()[2:]) == set(later.splitlines()[1:]) == {" 1,"}
        again = (await call_reader(client, uri=uri))[1].text
        assert set(again.splitlines()[2:]) == {" 2,"}
