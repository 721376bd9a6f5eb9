"""Resources and templates that a notebook declares, read by real clients in both eras."""

import base64
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from clients import ERAS, connected, over_http, tool_kernel, until_listed
from live import TIMEOUT
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ResourceTemplateReference
from typer.testing import CliRunner

from mcp_notebook.bridge.server.resources.resources import LEGACY_NOT_FOUND
from mcp_notebook.cli import main
from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

SETUP = """
import matplotlib
matplotlib.use("agg")
import pandas as pd
from pathlib import Path
from mcp_notebook import Resource, mcp_resource
orders = pd.DataFrame({"region": ["EU", "US"], "revenue": [3, 4]})
customers = pd.DataFrame({"name": ["Ann"]})
rate = 1.5
Path("notes.txt").write_text("Some notes.")
"""
CELLS = (
    "%%mcp_resource data://orders --title Orders\n# All orders\norders",
    "%%mcp_resource text://rate\nf'The rate is {rate}.'",
    '''%%mcp_resource frame://{name}{?rows} --mime-type application/json
def frame(name: str, rows: int = 10):
    """A table by its name.

    Args:
        name: The table's name.
    """
    return globals()[name].head(rows)
''',
    """
@mcp_resource("file://notes/{+path}")
def note(path: str):
    "A file."
    return Path(path)

@mcp_resource("bytes://zero")
def zero():
    "Bytes."
    return bytes([0, 255])

@mcp_resource("plot://revenue")
def plot():
    "A plot."
    return orders.plot(x="region", y="revenue").figure

@mcp_resource("config://all")
def config():
    "Data."
    return {"rate": rate, "regions": list(orders.region)}

@mcp_resource("broken://x")
def broken():
    "It fails."
    raise ValueError("no such column")

@mcp_resource("slow://x", timeout=0.2)
def slow():
    "It takes long."
    while True:
        pass

@mcp_resource("nothing://x")
def nothing():
    "It has no content."

@mcp_resource("number://x", mime_type="text/csv")
def number():
    "Not a table."
    return 7

@mcp_resource("picture://x", mime_type="image/png")
def picture():
    "Not a picture."
    return object()

@mcp_resource("endless://x")
def endless():
    "It never ends."
    while True:
        yield 1

@mcp_resource("year://{year}")
def by_year(year: int):
    "A year."
    return str(year)
""",
)


@pytest.fixture(scope="module")
def sales(module_home):
    with tool_kernel(module_home, SETUP, *CELLS, name="sales") as kernel:
        yield kernel


async def read(client, uri):
    """Return the only content of a resource."""
    (content,) = (await client.read_resource(uri, cache_mode="bypass")).contents
    assert str(content.uri) == uri
    return content


async def refusal(client, uri):
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri, cache_mode="bypass")
    return caught.value.error


@pytest.mark.smoke
async def test_values_are_read_whole_in_the_form_of_their_mime_type(sales, connect, era, transport):
    async with connect(era, transport) as client:
        resources = {str(each.uri): each for each in (await client.list_resources()).resources}
        assert list(resources) == [
            "data://orders",
            "text://rate",
            "bytes://zero",
            "plot://revenue",
            "config://all",
            "broken://x",
            "slow://x",
            "nothing://x",
            "number://x",
            "picture://x",
            "endless://x",
        ]
        orders = resources["data://orders"]
        assert (orders.name, orders.title, orders.description) == (
            "data_orders",
            "Orders",
            "All orders",
        )
        templates = (await client.list_resource_templates()).resource_templates
        assert [(each.uri_template, each.name, each.mime_type) for each in templates] == [
            ("frame://{name}{?rows}", "frame", "application/json"),
            ("file://notes/{+path}", "note", None),
            ("year://{year}", "by_year", None),
        ]
        content = await read(client, "data://orders")
        assert (content.mime_type, content.text) == (
            "text/csv",
            "region,revenue\nEU,3\nUS,4\n",
        )
        assert (await read(client, "text://rate")).text == "The rate is 1.5."
        rows = await read(client, "frame://customers")
        assert (rows.mime_type, json.loads(rows.text)) == ("application/json", [{"name": "Ann"}])
        assert len(json.loads((await read(client, "frame://orders?rows=1")).text)) == 1
        notes = await read(client, "file://notes/notes.txt")
        assert (notes.mime_type, notes.text) == ("text/plain", "Some notes.")
        zero = await read(client, "bytes://zero")
        assert base64.b64decode(zero.blob) == b"\x00\xff"
        assert zero.mime_type == "application/octet-stream"
        plot = await read(client, "plot://revenue")
        assert plot.mime_type == "image/png"
        assert base64.b64decode(plot.blob).startswith(b"\x89PNG")
        assert json.loads((await read(client, "config://all")).text)["regions"] == ["EU", "US"]


async def test_what_cannot_be_read_gets_a_sentence(sales, connect, era, transport):
    not_found = LEGACY_NOT_FOUND if era == "legacy" else INVALID_PARAMS
    async with connect(era, transport) as client:
        for uri, code, said in (
            ("frame://a/b", not_found, "No resource has the address 'frame://a/b'."),
            ("year://5#x", not_found, "Did you mean 'year://{year}'? The notebooks'"),
            ("data://stock", not_found, "The notebooks' resources: data://orders, text://rate"),
            ("data://order", not_found, "'data://order'. Did you mean 'data://orders'? The"),
            ("", not_found, "No resource has the address ''. The notebooks'"),
            ("no URI", not_found, "No resource has the address 'no URI'. The notebooks'"),
            ("skill://none/SKILL.md", not_found, "No resource has the address 'skill://none/"),
            ("odd://" + "x" * 3_000, not_found, "No resource has the address 'odd://xxxxx"),
            (
                "year://soon",
                INVALID_PARAMS,
                "The resource 'by_year' was not read. year: got 'soon'",
            ),
            ("year://", INVALID_PARAMS, "The resource 'by_year' was not read. year: missing"),
            ("frame://a%", INTERNAL_ERROR, "KeyError: 'a%'"),
            ("frame://%ff", not_found, "No resource has the address 'frame://%ff'."),
            ("frame://or%2Fders", not_found, "No resource has the address"),
            ("frame://%2e%2e", not_found, "No resource has the address"),
            ("frame://none", INTERNAL_ERROR, "KeyError: 'none'"),
            ("frame://orders?rows=many", INVALID_PARAMS, "rows"),
            ("broken://x", INTERNAL_ERROR, "no such column"),
            (
                "slow://x",
                INTERNAL_ERROR,
                "The resource 'slow' was stopped: it ran longer than 0.2 s",
            ),
            (
                "nothing://x",
                INTERNAL_ERROR,
                "The resource 'nothing' cannot be read. Its function returned nothing: it has to",
            ),
            (
                "number://x",
                INTERNAL_ERROR,
                (
                    "The resource 'number' cannot be read. Its function returned a value of type "
                    "int, which cannot be written as text/csv: it has to return a table, text, "
                ),
            ),
            ("picture://x", INTERNAL_ERROR, "of type object, which cannot be written as image/png"),
            ("file://notes//etc/passwd", not_found, "No resource has the address"),
        ):
            error = await refusal(client, uri)
            assert (error.code, uri) == (code, uri), error.message
            assert said in error.message, uri
            assert len(error.message) < 1_000
        endless = (await client.read_resource("endless://x")).contents
        assert "only the first 1,000 items were taken" in str(endless)


class Updates:
    """Collects the URIs of `resources/updated`, in whichever way the era sends them."""

    def __init__(self):
        self.uris = []
        self.seen = anyio.Event()

    def note(self, uri):
        self.uris.append(str(uri))
        self.seen.set()

    async def handle(self, message):
        if type(message).__name__ == "ResourceUpdatedNotification":
            self.note(message.params.uri)

    async def next(self, number=1):
        """Wait for so many further notices, and return their URIs."""
        with anyio.fail_after(TIMEOUT):
            while len(self.uris) < number:
                await self.seen.wait()
                self.seen = anyio.Event()
        uris, self.uris = self.uris, []
        return uris


@pytest.fixture
def watch(connect):
    """Return what connects a client that is told of changes of some resources."""

    @asynccontextmanager
    async def watching(era, *uris):
        updates = Updates()
        options = {"message_handler": updates.handle} if era == "legacy" else {}
        async with connect(era, "http", **options) as client:
            if era == "legacy":
                for uri in uris:
                    await client.subscribe_resource(uri)
                yield client, updates
                return
            async with (
                client.listen(resource_subscriptions=list(uris)) as stream,
                anyio.create_task_group() as tasks,
            ):

                async def follow():
                    async for event in stream:
                        updates.note(event.uri)

                tasks.start_soon(follow)
                yield client, updates
                tasks.cancel_scope.cancel()

    return watching


@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
@pytest.mark.parametrize("era", ERAS)
async def test_a_change_by_a_cell_or_a_call_is_told_once(sales, watch, era):
    sales.ok("%%mcp_tool\ndef raise_rate() -> int:\n    global rate\n    rate += 1\n    return 1")
    uris = ("text://rate", "data://orders", "frame://orders", "bytes://zero")
    async with watch(era, *uris) as (client, updates):
        await until_listed(client, "raise_rate")
        sales.ok("unrelated = 1")
        sales.ok("rate = 2.5")
        assert await updates.next() == ["text://rate"]
        sales.ok("rate = 2.5")  # the same value
        sales.ok("orders.loc[0, 'revenue'] = 5")
        assert sorted(await updates.next(2)) == ["data://orders", "frame://orders"]
        await client.call_tool("raise_rate", {})
        assert await updates.next() == ["text://rate"]
        sales.ok("__import__('mcp_notebook').resource_changed('bytes://zero')")
        assert await updates.next() == ["bytes://zero"]
        sales.ok("%%mcp_resource text://rate\nf'Now {rate}.'", cell="again")
        assert await updates.next() == ["text://rate"]
        if era == "legacy":
            await client.unsubscribe_resource("text://rate")
            sales.ok("rate = 9")
            sales.ok("orders.loc[0, 'revenue'] = 6")
            assert "text://rate" not in await updates.next(2)


@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
@pytest.mark.parametrize("era", ERAS)
async def test_who_subscribes_to_nothing_is_told_when_it_comes_and_goes(sales, watch, era):
    async with watch(era, "late://x") as (_, updates):
        sales.ok("%%mcp_resource late://x\n'x'")
        assert await updates.next() == ["late://x"]
        sales.ok("__import__('mcp_notebook').registry.remove('late_x')")
        assert await updates.next() == ["late://x"]


async def test_two_notebooks_with_the_same_uri_serve_it_with_their_names(home):
    cells = (
        "x = 1",
        "%%mcp_resource data://{name}\nname + NOTEBOOK",
        "%%mcp_resource data://x\n'x'",
    )
    with (
        tool_kernel(home, "NOTEBOOK = ' of sales'", *cells, name="sales"),
        tool_kernel(home, "NOTEBOOK = ' of stock'", *cells[:2], name="stock"),
    ):
        async with connected(home, "auto", "http") as client:
            templates = (await client.list_resource_templates()).resource_templates
            assert [each.uri_template for each in templates] == [
                "data://sales/{name}",
                "data://stock/{name}",
            ]
            assert (await read(client, "data://stock/a")).text == "a of stock"
            assert (await read(client, "data://x")).text == "x"
            assert (await read(client, "data://sales/x")).text == "x"
            error = await refusal(client, "data://a")
            assert "Read 'data://sales/{name}' or 'data://stock/{name}' instead" in error.message


async def test_the_variables_of_a_template_are_completed_from_live_names(sales, connect):
    sales.ok(
        "%%mcp_resource part://{region}/{column} --complete region=orders.region "
        "--complete column=orders.columns\norders[orders.region == region][[column]]"
    )
    async with connect("auto", "http") as client:
        with anyio.fail_after(TIMEOUT):
            while "part://{region}/{column}" not in [
                each.uri_template
                for each in (
                    await client.list_resource_templates(cache_mode="bypass")
                ).resource_templates
            ]:
                pass
        reference = ResourceTemplateReference(uri="part://{region}/{column}")
        found = await client.complete(reference, {"name": "column", "value": "re"})
        assert found.completion.values == ["region", "revenue"]
        assert (await read(client, "part://EU/region")).text == "region\nEU\n"


async def test_a_caller_reads_what_its_permissions_allow(sales, module_home, served):
    words = ["token", "add", "reader", "--tools", "frame"]
    env = {"HOME": str(module_home), "MCP_NOTEBOOK_HOME": str(module_home / ".mcp-notebook")}
    token = CliRunner().invoke(main.app, words, env=env).stdout.strip()
    async with over_http(served.url, "auto", token=token) as client:
        assert (await client.list_resources()).resources == []
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.name == "frame"
        assert json.loads((await read(client, "frame://customers")).text) == [{"name": "Ann"}]
        error = await refusal(client, "data://orders")
        assert error.message.endswith("The notebooks' resources: frame://{name}{?rows}.")


async def test_a_model_reads_pages_of_a_declared_resource_by_a_tool(sales, connect):
    sales.ok("%%mcp_tool\ndef any_tool() -> int:\n    return 1")
    async with connect("auto", "http") as client:
        await until_listed(client, "any_tool")
        refused = await client.call_tool(READ_RESOURCE, {"uri": "year://soon"})
        assert refused.is_error
        assert refused.content[0].text.startswith("The resource 'by_year' was not read. year: got")
        refused = await client.call_tool(READ_RESOURCE, {"uri": "data://order"})
        assert "Did you mean 'data://orders'?" in refused.content[0].text
        result = await client.call_tool(READ_RESOURCE, {"uri": "data://orders"})
        assert "region,revenue\nEU," in result.content[0].text


def time_of(resource):
    return datetime.fromisoformat(resource.annotations.last_modified)


async def test_the_list_says_when_the_data_was_last_modified(home):
    began = datetime.now(UTC) - timedelta(milliseconds=1)
    cells = (
        "level = [1]",
        "%%mcp_resource level://now\nlevel",
        "%%mcp_resource fixed://now\n'always'",
        "%%mcp_skill how\nUse this.",
    )
    with tool_kernel(home, *cells, name="sales") as kernel:
        async with connected(home, "auto", "http") as client:

            async def read_times():
                listed = await client.list_resources(cache_mode="bypass")
                return {each.name: time_of(each) for each in listed.resources}

            before = await read_times()
            assert list(before) == ["level_now", "fixed_now", "how"]
            assert all(began <= at <= datetime.now(UTC) for at in before.values())
            kernel.ok("%%mcp_skill how\nUse this.")
            kernel.ok("level.append(2)")
            with anyio.fail_after(TIMEOUT):
                while (changed := await read_times())["level_now"] == before["level_now"]:
                    pass
            assert changed["level_now"] > before["level_now"]
            assert changed["fixed_now"] == before["fixed_now"]
            assert changed["how"] == before["how"]  # the same text
            kernel.ok("__import__('mcp_notebook').resource_changed('fixed://now')")
            with anyio.fail_after(TIMEOUT):
                while (await read_times())["fixed_now"] == before["fixed_now"]:
                    pass
            again = await read_times()
    assert again["level_now"] == changed["level_now"]
