"""Cells that the official client proposes, while a page shows the notebook."""

import json

import anyio
import anyio.to_thread
import nbformat
import psutil
import pytest
from audit_lines import read_ends
from clients import LOAD, connected, http_bridge, over_http, text_of, tool_kernel
from jupyter_client.blocking import BlockingKernelClient
from live import LiveKernel, soon
from nbformat.v4 import new_code_cell, new_notebook
from notebook_page import Page
from oauth_issuer import serve_issuer
from typer.testing import CliRunner

from mcp_notebook.cli import main
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

TOOL = '%%mcp_tool\ndef area(r: float) -> float:\n    """Area of a circle of radius r."""'
CELL = {"source": "n = 6 * 7\nprint(n)", "reason": "To have n."}


@pytest.fixture(scope="module")
def sales(module_home):
    """A notebook in which clients may propose cells."""
    with tool_kernel(module_home, "rate = 1.5\napi_key = 'sk-1'", name="sales") as kernel:
        yield kernel


@pytest.fixture
def page(sales):
    for cell in ("%unload_ext mcp_notebook", LOAD, "%mcp propose on"):
        sales.ok(cell)
    page = Page(sales)
    yield page
    page.link.socket.close()


async def names(client):
    return {tool.name for tool in (await client.list_tools()).tools}


async def propose(client, act, **arguments):
    """Propose a cell, and do as a person with it; return the result."""
    results = []

    async def call():
        results.append(await client.call_tool("propose_cell", CELL | arguments))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.to_thread.run_sync(act)
    return results[0]


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_proposes_and_a_person_decides(page, sales, transport, era):
    async with connected(sales.home, era, transport) as client:
        await soon(lambda: _has(client, "propose_cell"))
        result = await propose(client, lambda: page.accept(page.find()))
        assert not result.is_error
        assert text_of(result).endswith("42")
        result = await propose(client, lambda: page.reject(page.find(), "no"))
        assert text_of(result) == "The user has rejected it. She said: no"
        tool = {"source": TOOL, "kind": "tool"}
        result = await propose(client, lambda: page.accept(page.find(), cell="b"), **tool)
        assert "The tool `area` is listed now." in text_of(result)
        assert "area" in await names(client)
        log = await anyio.to_thread.run_sync(sales.ok, "%mcp log")
        assert "propose_cell" in log.text
    records = read_ends(sales.home / ".mcp-notebook" / "audit.jsonl")[-3:]
    assert [each["tool"] for each in records] == ["propose_cell"] * 3
    assert [each["outcome"] for each in records] == ["ok", "error", "ok"]
    assert "n = 6" not in json.dumps(records)


async def _has(client, name):
    return name in await names(client)


async def test_instructions_and_resources_come_with_the_switch(page, sales):
    async with connected(sales.home, "auto", "http") as client:
        await soon(lambda: _has(client, "propose_cell"))
        uris = {str(each.uri) for each in (await client.list_resources()).resources}
        assert {"notebook://sales/cells", "variable://rate"} <= uris
        (contents,) = (await client.read_resource("notebook://sales/cells")).contents
        assert "sk-1" not in contents.text
        assert isinstance(json.loads(contents.text), list)
    async with connected(sales.home, "auto", "http") as client:
        await soon(lambda: _has(client, "propose_cell"))
        assert "propose cells to the person" in (client.instructions or "")
        page.ask(messages.SwitchProposals, on=False)
        await soon(lambda: _lacks(client, "propose_cell"))
        assert not (await client.list_resources()).resources


async def _lacks(client, name):
    return name not in await names(client)


ALLOWED = {
    "any": (),
    "pattern": ("--tools", "*"),
    "prefix": ("--tools", "propose_*"),
    "tag": ("--tags", "report"),
    "named": ("--tools", "propose_cell,area"),
    "reader": ("--tools", "propose_cell", "--read-only"),
}


async def test_no_pattern_lets_a_restricted_client_propose(page, sales):
    home = sales.home
    env = {"HOME": str(home), "MCP_NOTEBOOK_HOME": str(home / ".mcp-notebook")}
    seen = {}
    with http_bridge(home) as served:
        for name, words in ALLOWED.items():
            added = CliRunner().invoke(main.app, ["token", "add", name, *words], env=env)
            async with over_http(served.url, "auto", token=added.stdout.strip()) as client:
                await client.list_tools()
                uris = {str(each.uri) for each in (await client.list_resources()).resources}
                seen[name] = "notebook://sales/cells" in uris
                assert (await _has(client, "propose_cell")) is seen[name]
                if not seen[name]:
                    refused = await client.call_tool("propose_cell", CELL)
                    assert "Unknown tool: 'propose_cell'" in text_of(refused)
    assert seen == {name: name in ("any", "named") for name in ALLOWED}
    page.wait(lambda state: not state["proposals"])


SCOPES = """issuer = "{issuer}"
[scopes.all]
[scopes.calls]
tools = ["*"]
[scopes.propose]
tools = ["propose_cell"]
[scopes.reader]
tools = ["propose_cell"]
read_only = true
"""


async def test_an_oauth_user_proposes_with_a_scope_that_names_it(page, sales):
    home = sales.home
    sales.ok(TOOL)
    with serve_issuer() as issuer:
        path = home / "oauth.toml"
        path.write_text(SCOPES.format(issuer=issuer.url))
        with http_bridge(home, "--oauth-file", str(path)) as served:
            for scope, may in {
                "all": {"area"},
                "calls": {"area"},
                "reader": set(),
                "propose": {"propose_cell"},
                "all propose": {"area", "propose_cell"},
            }.items():
                token = issuer.make_token(aud=served.url, scope=scope)
                async with over_http(served.url, "auto", token=token) as client:
                    tools = await names(client)
                    assert tools & {"area", "propose_cell"} == may, scope
                    uris = {str(each.uri) for each in (await client.list_resources()).resources}
                    assert ("notebook://sales/cells" in uris) is ("propose_cell" in may)
                    if "propose_cell" not in may:
                        refused = await client.call_tool("propose_cell", CELL)
                        assert "Unknown tool: 'propose_cell'" in text_of(refused)
                        continue
                    result = await propose(client, lambda: page.reject(page.find(), "no"))
                    assert text_of(result).endswith("She said: no")
    user = read_ends(home / ".mcp-notebook" / "audit.jsonl")[-1]["caller"]
    assert user == f"oauth:{issuer.url}#u-1"


@pytest.mark.parametrize(
    ("option", "may"),
    [
        (("--read-only",), False),
        (("--tools", "*"), False),
        (("--exclude", "propose_cell"), False),
        (("--exclude", "other"), True),
        (("--tools", "propose_cell"), True),
    ],
)
async def test_the_options_of_a_bridge_decide_who_proposes(page, sales, option, may):
    async with connected(sales.home, "auto", "stdio", *option) as client:
        await client.list_tools()
        uris = {str(each.uri) for each in (await client.list_resources()).resources}
        assert ("notebook://sales/cells" in uris) is may
        assert (await _has(client, "propose_cell")) is may


@pytest.mark.slow
async def test_two_notebooks_have_a_tool_each(home):
    with (
        tool_kernel(home, "%mcp propose on", name="sales") as sales,
        tool_kernel(home, "%mcp propose on", name="stock"),
    ):
        page = Page(sales)
        async with connected(home, "auto", "http") as client:
            await soon(lambda: _has(client, "stock_propose_cell"))

            async def call():
                await client.call_tool("sales_propose_cell", CELL)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await anyio.to_thread.run_sync(lambda: page.reject(page.find()))
        page.link.socket.close()


@pytest.mark.slow
async def test_a_headless_notebook_takes_proposals_while_a_frontend_is_connected(home):
    path = home / "headless.ipynb"
    cells = [new_code_cell(LOAD), new_code_cell(TOOL), new_code_cell("n = 1")]
    nbformat.write(new_notebook(cells=cells), path)
    async with connected(home, "auto", "stdio", str(path), "--propose") as client:
        await soon(lambda: _has(client, "propose_cell"))
        refused = await client.call_tool("propose_cell", CELL)
        assert "No person has this notebook open" in text_of(refused)
        (record,) = list_live_records(home / ".mcp-notebook" / "kernels")
        words = psutil.Process(record.pid).cmdline()
        file = next(word for word in words if word.endswith("kernel.json"))
        console = BlockingKernelClient(connection_file=file)
        console.load_connection_file()
        console.start_channels()
        kernel = LiveKernel(None, console, home)

        def accept():
            while "1. " not in kernel.ok("%mcp propose").stdout:
                pass
            assert kernel.insert("%mcp propose accept 1") == CELL["source"]

        await anyio.to_thread.run_sync(kernel.ok, "pass")
        result = await propose(client, accept)
        assert "The user has not run it." in text_of(result)
        console.stop_channels()
