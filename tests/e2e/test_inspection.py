"""The notebook's variables as resources (`--inspect`), read by real clients in both eras."""

import json

import anyio
import pytest
from audit_lines import read_ends
from clients import (
    ERAS,
    LOAD,
    Changes,
    connected,
    http_bridge,
    over_http,
    text_of,
    tool_kernel,
    until_listed,
)
from live import TIMEOUT, Link, record_of
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ResourceTemplateReference
from notebook_files import write_notebook
from typer.testing import CliRunner

from mcp_notebook import meta_keys
from mcp_notebook.cli import main
from mcp_notebook.text.missing_tools import READ_RESOURCE
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

CELL = """
import math
import pandas as pd
from pathlib import Path
from typing import Literal
orders = pd.DataFrame({"region": ["EU", "US", "EU"], "revenue": [3, 4, None]})
rate = 1.5
names = ["Ann", "Bo"]
größe = 3
_private = "secret"
globals()["net sales"] = 1
def helper(): ...
class Model: ...
class Broken:
    def __repr__(self): raise SystemExit("no repr")
broken = Broken()
"""
LISTED = ["orders", "rate", "names", "größe", "broken"]


@pytest.fixture(scope="module")
def sales(module_home):
    with tool_kernel(module_home, CELL, name="sales") as kernel:
        yield kernel


@pytest.fixture(scope="module")
def inspected(sales, module_home):
    with http_bridge(module_home, "--inspect") as served:
        yield served


@pytest.fixture
def connect(inspected, module_home):
    def connect_to(era, transport, **options):
        if transport == "http":
            return over_http(inspected.url, era, **options)
        return connected(module_home, era, transport, "--inspect", **options)

    return connect_to


async def list_resources(client):
    return (await client.list_resources(cache_mode="bypass")).resources


async def list_variables(client):
    return {each.name: each for each in await list_resources(client)}


async def until_variables(client, *names):
    with anyio.fail_after(TIMEOUT):
        while list(variables := await list_variables(client)) != list(names):
            pass
    return variables


async def read(client, uri):
    (content,) = (await client.read_resource(uri, cache_mode="bypass")).contents
    assert (str(content.uri), content.mime_type) == (uri, "application/json")
    return json.loads(content.text)


async def refusal(client, uri):
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri, cache_mode="bypass")
    return caught.value.error


@pytest.mark.smoke
async def test_variables_are_listed_and_read_with_type_shape_and_summary(sales, connect):
    async with connect("auto", "http") as client:
        variables = await until_variables(client, *LISTED)
        orders = variables["orders"]
        assert str(orders.uri) == "variable://orders"
        assert orders.description.startswith("pandas.DataFrame, 3 rows x 2 columns, ")
        facts = orders.meta[meta_keys.VARIABLE]
        assert (facts["type"], facts["shape"]) == ("pandas.DataFrame", [3, 2])
        assert facts["bytes"] > 0
        assert variables["names"].description == "list, 2 items"
        assert str(variables["größe"].uri) == "variable://gr%C3%B6%C3%9Fe"
        table = await read(client, "variable://orders")
        region, revenue = table["columns"]
        assert (region["name"], region["top"]) == ("region", [["EU", 2], ["US", 1]])
        assert (revenue["missing"], revenue["min"], revenue["max"]) == (1, 3, 4)
        assert table["head"][:2] == [["EU", "3.0"], ["US", "4.0"]]
        assert (await read(client, "variable://rate"))["value"] == 1.5
        assert (await read(client, "variable://gr%C3%B6%C3%9Fe"))["name"] == "größe"
        assert "SystemExit: no repr" in (await read(client, "variable://broken"))["value"]
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "variable://{name}"


@pytest.mark.parametrize(
    "name",
    [
        *("_private", "math", "helper", "Model", "Literal", "net%20sales", "In", "exit"),
        *("orders.region", "orders%5B0%5D", "__import__('os')", "rate%20%2B%201", "Rate"),
    ],
)
async def test_a_name_is_looked_up_and_never_evaluated(sales, connect, name):
    async with connect("auto", "http") as client:
        error = await refusal(client, f"variable://{name}")
        assert error.code == INVALID_PARAMS
        assert "has no variable" in error.message


async def test_names_are_completed(sales, connect):
    async with connect("auto", "http") as client:
        await until_variables(client, *LISTED)
        reference = ResourceTemplateReference(uri="variable://{name}")
        found = await client.complete(reference, {"name": "name", "value": "r"})
        assert found.completion.values == ["rate", "orders", "größe", "broken"]


@pytest.mark.parametrize("era", ERAS)
async def test_clients_are_told_when_variables_come_change_and_go(sales, connect, era):
    changes = Changes()
    async with (
        connect(era, "http", message_handler=changes.handle_resources) as client,
        changes.watch(client, era, resources_list_changed=True),
    ):
        await until_variables(client, *LISTED)
        sales.ok("extra = [1]")
        await changes.wait()
        before = (await until_variables(client, *LISTED, "extra"))["extra"]
        assert before.description == "list, 1 item"
        sales.ok("extra.append(2)")
        await changes.wait()
        with anyio.fail_after(TIMEOUT):
            while (now := (await list_variables(client))["extra"]).description != "list, 2 items":
                pass
        assert now.annotations.last_modified > before.annotations.last_modified
        sales.ok("del extra")
        await changes.wait()
        await until_variables(client, *LISTED)


async def test_a_variable_is_read_while_a_cell_runs(sales, connect):
    async with connect("auto", "http") as client:
        await until_variables(client, *LISTED)
        with sales.busy():
            assert (await read(client, "variable://rate"))["value"] == 1.5


async def test_without_the_switch_there_are_no_variables(sales, served):
    async with over_http(served.url, "auto") as client:
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []
        error = await refusal(client, "variable://orders")
        assert "has no variable" not in error.message


async def test_only_callers_that_may_use_the_template_see_variables(sales, inspected, module_home):
    env = {"HOME": str(module_home), "MCP_NOTEBOOK_HOME": str(module_home / ".mcp-notebook")}
    seen = {}
    for name, pattern in (("one", "other_*"), ("two", "inspect/variable")):
        words = ["token", "add", name, "--tools", pattern]
        token = CliRunner().invoke(main.app, words, env=env).stdout.strip()
        async with over_http(inspected.url, "auto", token=token) as client:
            seen[name] = list(await list_variables(client))
            if name == "one":
                await refusal(client, "variable://orders")
            else:
                assert (await read(client, "variable://rate"))["value"] == 1.5
    assert seen == {"one": [], "two": LISTED}


async def test_variables_of_two_notebooks_have_their_names_in_front(home):
    with (
        tool_kernel(home, "x = 1", name="sales"),
        tool_kernel(home, "x = 2", name="stock"),
    ):
        async with connected(home, "auto", "http", "--inspect") as client:
            expected = ["variable://sales/x", "variable://stock/x"]
            with anyio.fail_after(TIMEOUT):
                while [str(each.uri) for each in await list_resources(client)] != expected:
                    pass
            assert (await read(client, "variable://sales/x"))["value"] == 1
            assert (await read(client, "variable://stock/x"))["value"] == 2
            assert "variable://sales/{name}" in (await refusal(client, "variable://x")).message


@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
async def test_subscribers_are_told_of_their_variable_only(home):
    updates = []
    told = anyio.Event()

    async def note(message):
        nonlocal told
        if type(message).__name__ == "ResourceUpdatedNotification":
            updates.append(str(message.params.uri))
            told.set()

    with tool_kernel(home, "rate = 1", "names = ['Ann']", name="sales") as kernel:
        async with connected(home, "legacy", "http", "--inspect", message_handler=note) as client:
            await until_variables(client, "rate", "names")
            for name in ("rate", "names"):
                await client.subscribe_resource(f"variable://{name}")
            kernel.ok("other = [1]")
            await until_variables(client, "rate", "names", "other")
            for value in (2, 3):  # what was to be told of `other` comes before the second one
                kernel.ok(f"rate = {value}")
                with anyio.fail_after(TIMEOUT):
                    await told.wait()
                told = anyio.Event()
    assert updates == ["variable://rate"] * 2


@pytest.mark.slow
async def test_a_notebook_without_tools_can_be_inspected_headless(home):
    path = home / "sums.ipynb"
    write_notebook(path, LOAD, "total = 3")
    async with connected(home, "auto", "stdio", str(path), "--inspect") as client:
        await until_variables(client, "total")
        assert (await read(client, "variable://total"))["value"] == 3


async def test_a_model_reads_a_variable_by_a_tool(sales, connect):
    sales.ok("%%mcp_tool\ndef any_tool() -> int:\n    return 1")
    async with connect("auto", "http") as client:
        await until_listed(client, "any_tool")
        result = await client.call_tool(READ_RESOURCE, {"uri": "variable://rate"})
        assert '"value": 1.5' in result.content[0].text


SLEEPERS = """
import threading, time
asked = []
def sleep(*_arguments):
    asked.append(threading.current_thread().name)
    while True:
        time.sleep(0.01)
class Sleeper:
    __class__ = property(sleep)
class OtherSleeper:
    def __getattribute__(self, name): sleep()
class Slow:
    def __repr__(self):
        asked.append(threading.current_thread().name)
        time.sleep(3_600)
sleeper, others, slow = Sleeper(), {"a": [OtherSleeper()]}, Slow()
"""
SLEEPER_TOOLS = """
%%mcp_tool
def look() -> int:
    return len({"sleeper": sleeper, "others": others})

def get(name: str):
    return {"sleeper": sleeper, "others": others, "both": [1, sleeper]}[name]
"""


@pytest.mark.slow
async def test_a_value_that_never_says_its_class_holds_up_nothing(home):
    with tool_kernel(home, SLEEPERS, name="sales") as kernel:
        kernel.ok(SLEEPER_TOOLS.replace("%%mcp_tool", "%%mcp_tool --run thread"))
        kernel.ok("%%mcp_tool --run fork --read-only\ndef copy():\n    return len([sleeper])")
        kernel.ok("%%mcp_tool\nasync def wait():\n    return len([sleeper])")
        kernel.ok("%%mcp_resource data://n\ndef n():\n    return str(len([sleeper, others]))")
        async with connected(home, "auto", "http", "--inspect") as client:
            variables = await until_variables(client, "n", "asked", "sleeper", "others", "slow")
            assert variables["sleeper"].description == "Sleeper"
            reference = ResourceTemplateReference(uri="variable://{name}")
            found = await client.complete(reference, {"name": "name", "value": "sl"})
            assert found.completion.values[:2] == ["sleeper", "slow"]
            for tool in ("look", "copy", "wait"):
                assert text_of(await client.call_tool(tool, {})) in {"1", "2"}
            (content,) = (await client.read_resource("data://n")).contents
            assert content.text == "2"
            kernel.ok("sleeper; others; slow\nNone")  # a single line, IPython itself would look at
            kernel.ok("%mcp status\n%mcp list\n%mcp log")
            assert kernel.ok("print(asked)").stdout == "[]\n"
            said = await read(client, "variable://sleeper")
            assert "took longer than" in str(said)
            assert "took longer than" in str(await read(client, "variable://others"))
            assert "ran longer than 5 s" in (await refusal(client, "variable://slow")).message
            with Link(record_of(kernel), messages.Hello(version="9", inspects=True)) as link:
                assert link.welcome.tools
        asked = kernel.ok("print(set(asked))").stdout
        assert "MainThread" not in asked
        assert "endpoint" not in asked


@pytest.mark.slow
async def test_a_result_with_a_value_that_never_says_its_class_is_a_sentence(home):
    with tool_kernel(home, SLEEPERS, SLEEPER_TOOLS, name="sales"):
        async with connected(home, "auto", "http") as client:
            await until_listed(client, "get")
            for name, kind in (("sleeper", "Sleeper"), ("both", "list"), ("others", "dict")):
                said = text_of(await client.call_tool("get", {"name": name}))
                assert f"[an object of type {kind} whose repr took longer than 5 s]" in said


async def test_reads_are_calls_in_the_audit_log(sales, connect, module_home):
    async with connect("auto", "http") as client:
        await until_variables(client, *LISTED)
        await read(client, "variable://rate")
    records = read_ends(module_home / ".mcp-notebook" / "audit.jsonl")
    assert records[-1]["tool"] == "inspect/variable"
