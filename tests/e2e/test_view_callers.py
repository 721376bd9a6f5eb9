"""Live views by who asks and how the call ran: tokens, tasks, caches, runners, meta-tools, logs."""

import json
from urllib.parse import quote

import anyio
import pytest
from clients import SHOWS_VIEWS, TOKEN, http_bridge, over_http, text_of, tool_kernel, until_listed
from listing import is_unknown
from live import until
from mcp.shared.exceptions import MCPError
from task_client import TasksExtension
from typer.testing import CliRunner

from mcp_notebook.bridge.views.pages import PAGES
from mcp_notebook.cli import main
from mcp_notebook.meta_keys import VIEW
from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool --read-only
import pandas as pd
from concurrent.futures import ThreadPoolExecutor
from mcp_notebook import mcp_tool

pool = ThreadPoolExecutor(1)

def rain(rows: int = 2) -> pd.DataFrame:
    "Rain."
    return pd.DataFrame({"rain": range(rows)})
"""
SECRET = """%%mcp_tool --read-only --tag secret --ui
def budget() -> pd.DataFrame:
    "Money."
    return pd.DataFrame({"money": [42]})

def chart():
    "A plot of it."
    import plotly.graph_objects as go
    return go.Figure(go.Bar(y=[42]))
"""
WAYS = {
    "in_thread": "run='thread'",
    "in_pool": "executor=pool",
    "cached": "cache='60s'",
    "in_task": "task=True",
}
RUNNERS = [
    f"@mcp_tool(read_only=True, {options})\ndef {name}() -> pd.DataFrame:\n    'Rain.'\n"
    "    return pd.DataFrame({'rain': [1, 2]})"
    for name, options in WAYS.items()
]
SLOW = """%%mcp_tool --read-only --run thread --task
import threading
from mcp_notebook import Context

gate = threading.Event()

def slow(ctx: Context, name: str = "a") -> pd.DataFrame:
    "Rain, step by step."
    for _ in ctx.track(range(2), message=f"Reading {name}"):
        gate.wait(60)
    return pd.DataFrame({"rain": [1, 2]})
"""
FORKED = """%%mcp_tool --read-only --run fork
def forked() -> pd.DataFrame:
    "Rain."
    return pd.DataFrame({"rain": range(5_000)})
"""


@pytest.fixture(scope="module")
def kernel(module_home):
    with tool_kernel(module_home, TOOLS, SECRET, *RUNNERS, SLOW, FORKED, name="weather") as kernel:
        yield kernel


@pytest.fixture(scope="module")
def url(module_home, kernel):
    with http_bridge(module_home, "--meta-tools") as served:
        yield served.url


def host(url, token=TOKEN, **options):
    """Connect a client that shows views."""
    return over_http(url, "auto", token=token, shows_views=True, **options)


def add_token(home, *arguments):
    """Return a new token of a named caller."""
    answer = CliRunner().invoke(main.app, ["token", "add", *arguments], env={"HOME": str(home)})
    assert answer.exit_code == 0, answer.output
    return answer.stdout.strip()


def address(view, **query):
    """Return the URI of a view's query."""
    return f"{view['uri']}?{quote(json.dumps(query))}"


async def rows_of(client, view, **query):
    """Return the rows of a view's first page."""
    (read,) = (await client.read_resource(address(view, kind="page", **query))).contents
    return json.loads(read.text)["rows"]


@pytest.mark.needs("plotly")
async def test_a_caller_reads_the_views_of_its_own_results_and_nobody_elses(
    module_home, kernel, url
):
    ada = add_token(module_home, "ada", "--tools", "budget")
    bob = add_token(module_home, "bob", "--tools", "rain")
    async with host(url) as owner, host(url, ada) as first, host(url, bob) as second:
        await until_listed(owner, "budget")
        money = (await first.call_tool("budget", {})).meta[VIEW]
        plot = (await owner.call_tool("chart", {})).meta[VIEW]
        assert await rows_of(first, money) == [["42"]]
        assert await rows_of(owner, money) == [["42"]]
        assert is_unknown(await second.call_tool("budget", {}))
        own = (await second.call_tool("rain", {})).meta[VIEW]
        assert await rows_of(second, own) == [["0"], ["1"]]
        secrets = [address(money, kind="page"), money["uri"], money["files"]["csv"]["uri"]]
        secrets += [plot["uri"], plot["library"]]
        for uri in secrets:
            with pytest.raises(MCPError, match="does not exist"):
                await second.read_resource(uri)
            assert (await second.call_tool(READ_RESOURCE, {"uri": uri})).is_error
        with pytest.raises(MCPError, match="does not exist"):
            await first.read_resource(address(own, kind="page"))


@pytest.mark.parametrize("tool", ["in_thread", "in_pool", "cached"])
async def test_a_result_has_its_view_wherever_the_call_ran(url, tool):
    async with host(url) as client:
        listed = await until_listed(client, tool)
        assert listed[tool].meta["ui"]["resourceUri"] == PAGES["result"].uri
        first, second = [await client.call_tool(tool, {}) for _ in range(2)]
        for result in (first, second):
            assert await rows_of(client, result.meta[VIEW]) == [["1"], ["2"]]
        is_same = first.meta[VIEW] == second.meta[VIEW]
        assert is_same == (tool == "cached")


async def test_a_cached_result_has_a_view_for_those_clients_only_that_show_it(url):
    async with host(url) as shows, over_http(url, "auto") as plain:
        await until_listed(shows, "cached")
        for _ in range(2):
            assert VIEW in (await shows.call_tool("cached", {})).meta
            assert VIEW not in ((await plain.call_tool("cached", {})).meta or {})


async def test_the_result_of_a_task_has_its_view(url):
    tasks = TasksExtension()
    async with over_http(url, "auto", extensions=[*SHOWS_VIEWS, tasks]) as client:
        await until_listed(client, "in_task")
        result = await client.call_tool("in_task", {})
        assert tasks.created
        assert await rows_of(client, result.meta[VIEW]) == [["1"], ["2"]]


async def test_a_table_that_was_made_in_a_copy_of_the_kernel_has_a_view(url):
    async with host(url) as client:
        listed = await until_listed(client, "forked")
        assert listed["forked"].meta["ui"]["resourceUri"]
        result = await client.call_tool("forked", {})
        assert "5,000 rows" in text_of(result)
        rows = await rows_of(client, result.meta[VIEW], rows={"sort": 0, "descending": True})
        assert rows[0] == ["4999"]


async def test_a_tool_that_is_called_through_another_has_its_view(url):
    async with host(url) as client:
        await until_listed(client, "rain")
        asked = {"name": "rain", "arguments": {"rows": 3}}
        result = await client.call_tool("call_notebook_tool", asked)
        assert await rows_of(client, result.meta[VIEW]) == [["0"], ["1"], ["2"]]
    async with over_http(url, "auto") as client:
        assert VIEW not in ((await client.call_tool("call_notebook_tool", asked)).meta or {})


async def test_what_a_person_does_in_a_view_is_in_the_audit_log_with_the_tool(
    module_home, kernel, url
):
    token = add_token(module_home, "eve")
    async with host(url, token) as client:
        await until_listed(client, "rain")
        view = (await client.call_tool("rain", {})).meta[VIEW]
        await rows_of(client, view)
        await client.call_tool(READ_RESOURCE, {"uri": address(view, kind="summary", column=0)})
        with pytest.raises(MCPError):
            await client.read_resource(address({"uri": view["uri"].replace("/view", "0/view")}))
        await client.call_tool("rain", {}, meta={VIEW: True})  # *Refresh*
    path = module_home / ".mcp-notebook" / "audit.jsonl"

    def read():
        lines = map(json.loads, path.read_text().splitlines())
        return [line for line in lines if line.get("caller") == "eve"]

    until(lambda: len(read()) == 5)
    call, page, summary, unknown, refresh = sorted(read(), key=lambda line: line["time"])
    assert (call["kind"], call.get("by")) == ("call", None)
    for line in (page, summary):
        assert (line["kind"], line["outcome"]) == ("view", "ok")
        assert (line["notebook"], line["tool"], line["uri"]) == ("weather", "rain", view["uri"])
        assert "arguments_sha256" in line
    assert (unknown["kind"], unknown["outcome"]) == ("view", "error")
    assert "tool" not in unknown
    assert (refresh["kind"], refresh["tool"], refresh["by"]) == ("call", "rain", "view")
    shown = CliRunner().invoke(
        main.app, ["audit", "--caller", "eve"], env={"HOME": str(module_home)}
    )
    assert shown.stdout.count("weather.rain (view)") == 3
    assert "(view)  rain(" in kernel.ok("%mcp log rain -n 1").text


async def test_a_client_that_shows_no_views_cannot_mark_its_calls_as_a_persons(
    module_home, kernel, url
):
    async with over_http(url, "auto") as client:
        await until_listed(client, "rain")
        await client.call_tool("rain", {}, meta={VIEW: True})
    assert "(view)" not in kernel.ok("%mcp log rain -n 1").text


async def progress_of(client, **known):
    """Ask how far a call is, as its view does."""
    uri = f"notebook://calls/progress?{quote(json.dumps(known))}"
    (read,) = (await client.read_resource(uri)).contents
    return json.loads(read.text)


async def test_a_view_is_told_how_far_its_own_call_is_and_of_nobody_elses(module_home, kernel, url):
    visitor = add_token(module_home, "visitor")
    async with host(url) as client, anyio.create_task_group() as calls:
        try:
            await until_listed(client, "slow")
            kernel.ok("gate.clear()")
            calls.start_soon(client.call_tool, "slow", {"name": "a"})
            calls.start_soon(client.call_tool, "slow", {"name": "b"})
            known = {"tool": "slow", "arguments": {"name": "a"}}
            answer = await progress_of(client, **known)
            while answer["total"] is None:
                answer = await progress_of(client, call=answer["call"], seen=answer["seen"])
            assert (answer["progress"], answer["total"], answer["message"]) == (0, 2, "Reading a")
            assert (await progress_of(client, arguments={"name": "a"}))["call"] == answer["call"]
            asked = {"uri": f"notebook://calls/progress?{quote(json.dumps(known))}"}
            by_tool = await client.call_tool(READ_RESOURCE, asked)
            assert json.loads(by_tool.content[0].text)["call"] == answer["call"]
            async with over_http(url, "auto") as other:
                with pytest.raises(MCPError, match="cannot be read"):
                    await progress_of(other, **known)
            async with host(url, visitor) as guest:
                assert await progress_of(guest, call=answer["call"]) == {"running": 0}
            kernel.ok("gate.set()")
            while answer["running"]:
                answer = await progress_of(client, call=answer["call"], seen=answer["seen"])
            with pytest.raises(MCPError, match="cannot be read"):
                await progress_of(client, seen="x")
        finally:
            kernel.ok("gate.set()")


async def test_a_view_is_told_how_far_the_task_is_that_its_call_has_become(kernel, url):
    tasks = TasksExtension()
    async with over_http(url, "auto", extensions=[*SHOWS_VIEWS, tasks]) as client:
        await until_listed(client, "slow")
        kernel.ok("gate.clear()")
        async with anyio.create_task_group() as calls:
            try:
                calls.start_soon(client.call_tool, "slow", {"name": "task"})
                answer = await progress_of(client, arguments={"name": "task"})
                while not (tasks.created and answer["total"]):
                    answer = await progress_of(client, call=answer["call"], seen=answer["seen"])
                assert (answer["progress"], answer["total"]) == (0, 2)
                kernel.ok("gate.set()")
                while answer["running"]:
                    answer = await progress_of(client, call=answer["call"], seen=answer["seen"])
            finally:
                kernel.ok("gate.set()")
