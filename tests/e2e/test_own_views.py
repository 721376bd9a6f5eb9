"""Own pages of live views, through the official client in both eras and over both ways."""

import json
import re

import pytest
from clients import (
    VIEW_WAYS,
    Changes,
    http_bridge,
    over_http,
    text_of,
    tool_kernel,
    until_listed,
)
from listing import list_tools
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.views.pages import MIME_TYPE, find_page_uri

pytestmark = pytest.mark.anyio

VIEW = """%%mcp_view map --allow tiles.example.org
<!doctype html>
<html><head><title>Map</title></head>
<body><h1>Map</h1><script>notebook.onresult(r => { document.title = r.text })</script></body></html>
"""
TOOLS = """%%mcp_tool --read-only --ui map
def places() -> list[dict[str, str]]:
    "Places."
    return [{"name": "Seattle"}]
"""
FILE = """%%mcp_tool rain() --ui view.html
"Rain."
"rain"
"""
OTHER = """%%mcp_tool
def numbers():
    "Numbers, which a page may ask for."
    return {"n": list(range(10_000))}
"""


@pytest.fixture(scope="module")
def notebook(module_home):
    file = module_home / "view.html"
    file.write_text("<p>a file</p>")
    with tool_kernel(
        module_home, f"%cd {module_home}", "%reload_ext mcp_notebook", VIEW, TOOLS, FILE
    ) as kernel:
        yield kernel


def uri_of(tool):
    return ((tool.meta or {}).get("ui") or {}).get("resourceUri")


async def read(client, tool):
    """Return the page of a tool, and its `_meta`."""
    (page,) = (await client.read_resource(f"ui://mcp-notebook/tools/{tool}.html")).contents
    assert page.mime_type == MIME_TYPE
    return page.text, page.meta


def body(page):
    """Return an author's page without the script that the bridge puts in front."""
    return re.sub(r'<meta charset="utf-8"><script>.*?</script>', "", page, count=1, flags=re.DOTALL)


@pytest.mark.parametrize(("era", "transport"), VIEW_WAYS)
async def test_a_tool_with_a_page_names_it_to_clients_that_show_views_and_to_no_others(
    notebook, connect, host, era, transport
):
    async with host(era, transport) as client:
        tools = await until_listed(client, "rain")
        for name in ("places", "rain"):
            assert uri_of(tools[name]) == find_page_uri("own", name)
            page, _ = await read(client, name)
            assert page.count("window.notebook = ") == 1
    async with connect(era, transport) as client:
        tools = await until_listed(client, "rain")
        assert {uri_of(tool) for tool in tools.values()} == {None}
        with pytest.raises(MCPError, match="begin with notebook://"):
            await read(client, "places")


async def test_a_page_comes_with_its_helper_in_front_and_loads_from_its_hosts_only(notebook, host):
    async with host("auto", "http") as client:
        await until_listed(client, "rain")
        page, meta = await read(client, "places")
        assert page.startswith('<!doctype html>\n<html><head><meta charset="utf-8"><script>')
        assert page.index("window.notebook = ") < page.index("notebook.onresult(")
        assert body(page) == VIEW.partition("\n")[2]
        hosts = ["https://tiles.example.org"]
        assert meta == {"ui": {"csp": {"connectDomains": hosts, "resourceDomains": hosts}}}
        page, meta = await read(client, "rain")
        assert body(page) == "<!doctype html><p>a file</p>"
        assert meta == {"ui": {}}


async def test_a_page_gets_data_of_all_tools_and_other_clients_none(notebook, host, connect):
    notebook.ok(OTHER)
    data = "io.github.mcp-notebook/data"
    async with host("auto", "http") as client:
        await until_listed(client, "numbers")
        places, numbers = [await client.call_tool(name, {}) for name in ("places", "numbers")]
        assert places.meta[data] == [{"name": "Seattle"}]
        assert numbers.meta[data]["n"] == list(range(10_000))  # whole: no model reads it
        assert numbers.structured_content is places.structured_content is None
        assert "9,980 of 10,000 items left out" in text_of(numbers)
    async with connect("auto", "http") as client:
        await until_listed(client, "numbers")
        assert data not in ((await client.call_tool("places", {})).meta or {})


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_caller_reads_only_the_pages_of_tools_that_it_may_call(notebook, module_home, era):
    with http_bridge(module_home, "--tools", "rain") as bridge:
        async with over_http(bridge.url, era, shows_views=True) as client:
            assert [tool.name for tool in await list_tools(client)] == ["rain"]
            assert body((await read(client, "rain"))[0]) == "<!doctype html><p>a file</p>"
            with pytest.raises(MCPError, match="there is no tool 'places' with a page"):
                await read(client, "places")
            with pytest.raises(MCPError, match="begin with notebook://"):
                await read(client, "../tools/rain")


@pytest.mark.parametrize(("era", "transport"), VIEW_WAYS[1:])
async def test_the_list_changes_when_a_tool_gets_a_page(notebook, host, era, transport):
    changes = Changes()
    name = f"later_{era}"
    notebook.ok(f"def {name}():\n    'Later.'\n%mcp_tool {name}")
    async with host(era, transport, message_handler=changes.handle) as client:
        assert uri_of((await until_listed(client, name))[name]) is None
        async with changes.watch(client, era):
            notebook.ok(f"%mcp_tool {name} --ui map")
            while (page := uri_of((await until_listed(client, name))[name])) is None:
                await changes.wait()
        assert page == find_page_uri("own", name)
    notebook.ok(f"del {name}")


async def test_a_page_calls_the_notebooks_tools_by_the_names_that_clients_see(
    notebook, module_home, host
):
    other = "%%mcp_tool\ndef rain():\n    'Rain of another notebook.'\n"
    with tool_kernel(module_home, other, name="other"):
        async with host("auto", "http") as client:
            tools = await until_listed(client, "other_rain")
            served = next(name for name in tools if name.endswith("_rain") and name != "other_rain")
            page, _ = await read(client, served)
            assert json.dumps({"rain": served}) in page
            with pytest.raises(MCPError, match="Several open notebooks have a tool"):
                await read(client, "rain")
