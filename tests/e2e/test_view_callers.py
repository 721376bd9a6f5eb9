"""Live views by who asks and how the call ran: tokens, tasks, caches, runners, meta-tools, logs."""

import json
from urllib.parse import quote

import anyio
import pytest
from audit_lines import read_ends
from clients import SHOWS_VIEWS, TOKEN, http_bridge, over_http, text_of, tool_kernel, until_listed
from listing import is_unknown
from live import until
from mcp.shared.exceptions import MCPError
from task_client import TasksExtension
from typer.testing import CliRunner

from mcp_notebook.bridge.views.pages import RESULT_URI
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
    "in_task": "task=True",
}
HEAVY = """%%mcp_tool --read-only
import threading, time

class Heavy:
    "Takes a while to write."
    def __str__(self):
        time.sleep(0.01)
        return "heavy"
    __repr__ = __str__

def heavy() -> pd.DataFrame:
    "A table that is searched for minutes."
    return pd.DataFrame({"n": range(60_000), "x": [Heavy() for _ in range(60_000)]})

def readers() -> int:
    "How many threads read."
    return sum(thread.name == "mcp-notebook-read" for thread in threading.enumerate())
"""
RUNNERS = [
    f"@mcp_tool(read_only=True, {options})\ndef {name}() -> pd.DataFrame:\n    'Rain.'\n"
    "    return pd.DataFrame({'rain': [1, 2]})"
    for name, options in WAYS.items()
]
FORKED = """%%mcp_tool --read-only --run fork
def forked() -> pd.DataFrame:
    "Rain."
    return pd.DataFrame({"rain": range(5_000)})
"""


@pytest.fixture(scope="module")
def kernel(module_home):
    with tool_kernel(module_home, TOOLS, SECRET, HEAVY, *RUNNERS, FORKED, name="weather") as kernel:
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


@pytest.mark.parametrize("tool", ["in_thread", "in_pool"])
async def test_a_result_has_its_view_wherever_the_call_ran(url, tool):
    async with host(url) as client:
        listed = await until_listed(client, tool)
        assert listed[tool].meta["ui"]["resourceUri"] == RESULT_URI
        first, second = [await client.call_tool(tool, {}) for _ in range(2)]
        for result in (first, second):
            assert await rows_of(client, result.meta[VIEW]) == [["1"], ["2"]]
        assert first.meta[VIEW] != second.meta[VIEW]


async def test_the_result_of_a_task_has_its_view(url):
    tasks = TasksExtension()
    async with over_http(url, "auto", extensions=[*SHOWS_VIEWS, tasks]) as client:
        await until_listed(client, "in_task")
        result = await client.call_tool("in_task", {})
        assert tasks.created
        assert await rows_of(client, result.meta[VIEW]) == [["1"], ["2"]]


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
        return [line for line in read_ends(path) if line.get("caller") == "eve"]

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


async def test_searches_of_a_guest_leave_a_reader_to_the_user_and_end_with_their_requests(
    module_home, kernel, url
):
    token = add_token(module_home, "searcher")
    async with host(url) as owner, host(url, token) as guest:
        await until_listed(owner, "heavy")
        view = (await guest.call_tool("heavy", {})).meta[VIEW]
        async with anyio.create_task_group() as searches:
            for number in range(24):
                uri = address(view, kind="page", rows={"search": str(number)})
                searches.start_soon(guest.read_resource, uri)
            with anyio.fail_after(30):
                while text_of(await owner.call_tool("readers", {})) == "0":
                    pass
                assert len(await rows_of(owner, view, count=200)) == 200
                assert text_of(await owner.call_tool("readers", {})) in {"1", "2"}
            searches.cancel_scope.cancel()
        with anyio.fail_after(30):
            while text_of(await owner.call_tool("readers", {})) != "0":
                pass


async def test_a_search_that_takes_too_long_says_so_and_what_to_do(url, kernel):
    kernel.set_constants("mcp_notebook.kernel.link.resource_reader", QUERY_LIMIT=0.5)
    try:
        async with host(url) as owner:
            await until_listed(owner, "heavy")
            view = (await owner.call_tool("heavy", {})).meta[VIEW]
            with pytest.raises(MCPError, match=r"not answered within 0\.5 s.*Ask for less: filter"):
                await rows_of(owner, view, rows={"search": "a"})
    finally:
        kernel.set_constants("mcp_notebook.kernel.link.resource_reader", QUERY_LIMIT=5.0)


async def test_a_table_that_was_made_in_a_copy_of_the_kernel_has_a_view(url):
    async with host(url) as client:
        listed = await until_listed(client, "forked")
        assert listed["forked"].meta["ui"]["resourceUri"]
        result = await client.call_tool("forked", {})
        assert "5,000 rows" in text_of(result)
        rows = await rows_of(client, result.meta[VIEW], rows={"sort": 0, "descending": True})
        assert rows[0] == ["4999"]
