"""Own pages of live views, through the official client in both eras and over both ways."""

import json
import re

import pytest
from clients import (
    VIEW_WAYS,
    Changes,
    http_bridge,
    over_http,
    structured,
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
FUNCTION = """from mcp_notebook import mcp_tool

def page():
    return f"<p>{word}</p>"

@mcp_tool(ui=page, run="fork", read_only=True)
def snow() -> str:
    "Snow."
    return "snow"
word = "first"
"""
WAYS = pytest.mark.parametrize(("era", "transport"), VIEW_WAYS)


@pytest.fixture(scope="module")
def notebook(module_home):
    file = module_home / "view.html"
    file.write_text("<p>a file</p>")
    with tool_kernel(
        module_home, f"%cd {module_home}", "%reload_ext mcp_notebook", VIEW, TOOLS, FILE, FUNCTION
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


@WAYS
async def test_a_tool_with_a_page_names_it_to_clients_that_show_views_and_to_no_others(
    notebook, connect, host, era, transport
):
    async with host(era, transport) as client:
        tools = await until_listed(client, "snow")
        for name in ("places", "rain", "snow"):
            assert uri_of(tools[name]) == find_page_uri("own", name)
            page, _ = await read(client, name)
            assert page.count("window.notebook = ") == 1
    async with connect(era, transport) as client:
        tools = await until_listed(client, "snow")
        assert {uri_of(tool) for tool in tools.values()} == {None}
        with pytest.raises(MCPError, match="begin with notebook://"):
            await read(client, "places")


@WAYS
async def test_a_page_comes_with_its_helper_in_front_and_loads_from_its_hosts_only(
    notebook, host, era, transport
):
    async with host(era, transport) as client:
        await until_listed(client, "snow")
        page, meta = await read(client, "places")
        assert page.startswith('<!doctype html>\n<html><head><meta charset="utf-8"><script>')
        assert page.index("window.notebook = ") < page.index("notebook.onresult(")
        assert body(page) == VIEW.partition("\n")[2]
        hosts = ["https://tiles.example.org"]
        assert meta == {"ui": {"csp": {"connectDomains": hosts, "resourceDomains": hosts}}}
        page, meta = await read(client, "rain")
        assert body(page) == "<!doctype html><p>a file</p>"
        assert meta == {"ui": {}}
        result = await client.call_tool("places", {})
        assert result.structured_content == structured([{"name": "Seattle"}], era)
        marked = (result.meta or {}).get("io.github.mcp-notebook/wrapped")
        assert marked == (True if era == "legacy" else None)


@WAYS
async def test_a_page_is_made_anew_each_time_from_its_cell_file_or_function(
    notebook, module_home, host, era, transport
):
    try:
        async with host(era, transport) as client:
            await until_listed(client, "snow")
            notebook.ok("%%mcp_view map\n<p>another</p>")
            page, meta = await read(client, "places")
            assert (body(page), meta) == ("<!doctype html><p>another</p>\n", {"ui": {}})
            notebook.ok("word = 'second'")
            assert body((await read(client, "snow"))[0]) == "<!doctype html><p>second</p>"
            notebook.ok("def page():\n    return '<p>redefined</p>'")
            assert body((await read(client, "snow"))[0]) == "<!doctype html><p>redefined</p>"
            (module_home / "view.html").write_text("<p>changed</p>")
            assert body((await read(client, "rain"))[0]) == "<!doctype html><p>changed</p>"
    finally:
        (module_home / "view.html").write_text("<p>a file</p>")
        notebook.ok(VIEW)
        notebook.ok(FUNCTION)


@WAYS
async def test_a_page_that_fails_is_answered_with_the_cause_and_the_next_step(
    notebook, module_home, host, era, transport
):
    try:
        async with host(era, transport) as client:
            await until_listed(client, "snow")
            (module_home / "view.html").unlink()
            with pytest.raises(MCPError, match=r"There is no file view\.html\. Put the file there"):
                await read(client, "rain")
            notebook.ok("del word")
            with pytest.raises(MCPError, match="its function `page` failed with NameError"):
                await read(client, "snow")
            with pytest.raises(MCPError, match="there is no tool 'no_such_tool' with a page"):
                await read(client, "no_such_tool")
    finally:
        (module_home / "view.html").write_text("<p>a file</p>")
        notebook.ok("word = 'first'")


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


@pytest.mark.slow
async def test_a_function_that_does_not_return_is_not_waited_for(notebook, host):
    notebook.ok(
        "import threading\nreleased = threading.Event()\n"
        "@mcp_tool(ui=lambda: str(released.wait()))\ndef late():\n    'Late.'"
    )
    try:
        async with host("auto", "http") as client:
            await until_listed(client, "late")
            with pytest.raises(MCPError, match="its page was not ready within 15 s"):
                await read(client, "late")
            assert body((await read(client, "rain"))[0]) == "<!doctype html><p>a file</p>"
    finally:
        notebook.ok("released.set()\ndel late")


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
