"""Live views of results (MCP Apps), through the official client in both eras and over both ways."""

import json
from urllib.parse import quote

import pytest
from clients import VIEW_WAYS, Changes, tool_kernel, until_listed
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.views.pages import MIME_TYPE, RESULT_URI
from mcp_notebook.meta_keys import VIEW
from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool --read-only
import pandas as pd

weather = pd.DataFrame({
    "city": ["Seattle", "New York", "<img src=x onerror=alert(1)>"] * 100,
    "rain": range(300),
})

def rain(rows: int = 300) -> pd.DataFrame:
    "Rain."
    return weather.head(rows)

def records() -> list[dict[str, int]]:
    "Rows."
    return [{"x": 1, "y": 2}, {"x": 3, "y": 4}]

def text() -> str:
    "No table."
    return "rain"
"""
LARGE = """%%mcp_tool --read-only
large = pd.DataFrame({"x": range(36_000_000)})

def held() -> pd.DataFrame:
    "A variable."
    return large

def passing() -> pd.DataFrame:
    "Not a variable."
    return large.head(len(large))
"""
HIDDEN = """%%mcp_tool --read-only --no-ui
def hidden() -> pd.DataFrame:
    "Rain, without a view."
    return weather
"""


@pytest.fixture(scope="module")
def notebook(module_home):
    with tool_kernel(module_home, TOOLS, HIDDEN, name="weather") as kernel:
        yield kernel


def pages(tools):
    """Return the URIs of the pages that the list names for tools, by the tools' names."""
    return {
        name: ((tool.meta or {}).get("ui") or {}).get("resourceUri") for name, tool in tools.items()
    }


def address(view, **query):
    """Return the URI of a view's query."""
    return f"{view['uri']}?{quote(json.dumps(query))}"


async def ask(client, view, **query):
    """Read what a view is answered."""
    (read,) = (await client.read_resource(address(view, **query))).contents
    return json.loads(read.text)


async def view_of(client, tool, **arguments):
    """Call a tool, and return what its result says about its view."""
    return ((await client.call_tool(tool, arguments)).meta or {}).get(VIEW)


@pytest.mark.parametrize(("era", "transport"), VIEW_WAYS)
async def test_the_list_says_which_tools_have_a_view_to_clients_that_show_views_and_to_no_others(
    notebook, connect, host, era, transport
):
    async with host(era, transport) as client:
        tools = pages(await until_listed(client, "hidden"))
    page = RESULT_URI
    assert (tools["rain"], tools["records"]) == (page, page)
    assert (tools["text"], tools["hidden"]) == (None, None)
    async with connect(era, transport) as client:
        assert set(pages(await until_listed(client, "hidden")).values()) == {None}


async def test_a_view_reads_its_table_in_pages_and_other_clients_get_what_they_always_got(
    notebook, connect, host
):
    async with connect("auto", "http") as client:
        await until_listed(client, "rain")
        plain = await client.call_tool("rain", {"rows": 5})
    assert VIEW not in (plain.meta or {})
    async with host("auto", "http") as client:
        await until_listed(client, "rain")
        (page,) = (await client.read_resource(RESULT_URI)).contents
        assert page.mime_type == MIME_TYPE
        assert "<script>" in page.text
        shown = await client.call_tool("rain", {"rows": 5})
        assert shown.content == plain.content
        view = shown.meta[VIEW]
        assert view["kind"] == "table"
        answer = await ask(client, view, kind="page", rows={"sort": 1, "descending": True}, count=2)
        assert answer["rows"] == [["New York", "4"], ["Seattle", "3"]]
        assert (answer["matching"], answer["height"]) == (5, 5)
        (csv,) = (await client.read_resource(view["files"]["csv"]["uri"])).contents
        assert csv.text.splitlines()[:2] == ["city,rain", "Seattle,0"]
        answer = await ask(client, view, kind="page", rows={"sort": 7})
        assert answer == {"error": "The table has no column 8."}
        asked = {"uri": address(view, kind="summary", column=1)}
        by_tool = await client.call_tool(READ_RESOURCE, asked)  # for hosts without resources
        assert json.loads(by_tool.content[0].text)["max"] == 4


@pytest.mark.parametrize(("era", "transport"), VIEW_WAYS[1:])
async def test_the_list_changes_once_when_a_tool_without_annotation_has_returned_a_table(
    notebook, host, era, transport
):
    name = f"untyped_{era}"
    notebook.ok(
        f"%%mcp_tool\ndef {name}(kind: str):\n    'Something.'\n"
        "    return weather.head(2) if kind == 'table' else kind"
    )
    changes = Changes()
    async with host(era, transport, message_handler=changes.handle) as client:
        tools = pages(await until_listed(client, name))
        assert tools[name] is None
        assert await view_of(client, name, kind="a text") is None
        async with changes.watch(client, era):
            assert (await view_of(client, name, kind="table"))["kind"] == "table"
            await changes.seen.wait()
        tools = pages(await until_listed(client, name))
        assert tools[name] == RESULT_URI
        assert await view_of(client, name, kind="a text") is None


async def test_a_view_whose_table_is_gone_is_told_so(notebook, host):
    async with host("auto", "http") as client:
        await until_listed(client, "rain")
        view = await view_of(client, "rain", rows=3)
        notebook.ok(
            "from mcp_notebook.kernel.notebook.loaded_extension import EXTENSION\n"
            "getattr(get_ipython(), EXTENSION).resources.clear()"
        )
        with pytest.raises(MCPError, match="has expired"):
            await ask(client, view, kind="page")
        unknown = {**view, "uri": view["uri"].replace("/view", "0/view")}
        with pytest.raises(MCPError, match="does not exist"):
            await ask(client, unknown, kind="page")


@pytest.mark.slow
async def test_a_table_above_the_limit_has_a_view_while_the_notebook_has_it(notebook, host):
    async with host("auto", "http") as client:
        notebook.ok(LARGE)
        await until_listed(client, "passing")
        held, passing = [await view_of(client, name) for name in ("held", "passing")]
        answer = await ask(client, held, kind="page", rows={"sort": 0, "descending": True}, count=1)
        assert (answer["rows"], answer["live"]) == ([["35999999"]], True)
        assert held["files"] == {}
        assert not [
            each for each in (await client.list_resources()).resources if "view" in each.uri
        ]
        with pytest.raises(MCPError, match=r"no longer has this table\. It took 275 MiB"):
            await ask(client, passing, kind="page")
        notebook.ok("del large")
        with pytest.raises(MCPError, match="no longer has this table"):
            await ask(client, held, kind="page")


async def test_a_query_that_is_too_long_is_refused_and_not_cut(notebook, host):
    async with host("auto", "http") as client:
        await until_listed(client, "rain")
        view = await view_of(client, "rain", rows=3)
        answer = await ask(client, view, kind="page", rows={"search": "漢" * 3_000})
        assert "The query has 18,040 characters; at most 4,000 fit." in answer["error"]
        with pytest.raises(MCPError, match=r"The view asks with [\d,]+ characters; at most 50,000"):
            await ask(client, view, kind="page", rows={"search": "漢" * 7_000})
