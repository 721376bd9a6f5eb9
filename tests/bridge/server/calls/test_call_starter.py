"""What the audit log hears of calls to a live kernel, in both eras."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest
from judge import in_process
from kernel_stand_ins import peer, welcome
from linked_servers import Notes, linked_server, make_server
from listing import is_unknown, list_tools
from live import TIMEOUT, kernel_with, record_of
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.calls.gates import identify_request
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart
from mcp_notebook.settings.limits import Limits
from mcp_notebook.text.missing_tools import META_TOOLS
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool --read-only
def add(a: int, b: int = 1) -> int:
    "Add."
    return a + b
"""
MORE = """%%mcp_tool --timeout 0.1s
def hurry():
    "Has no time."
    import time
    time.sleep(600)
"""
STILL_MORE = """%%mcp_tool
def fail(why: str):
    "Fail."
    raise ValueError(why)

async def forever():
    "Never ends."
    import asyncio
    await asyncio.sleep(600)
"""


sums = kernel_with(TOOLS, MORE, STILL_MORE)


@asynccontextmanager
async def asked(kernel, era, client_info=None, **options):
    """Yield a client of a server that is linked to this kernel, and its links."""
    async with (
        linked_server(kernel, **options) as (server, links),
        Client(in_process(server), mode=era, client_info=client_info) as client,
    ):
        yield client, links


async def test_a_call_has_a_start_and_one_end(sums, era):
    notes = Notes()
    async with asked(sums, era, audit=notes) as (client, _):
        await client.call_tool("add", {"a": 2})
        await client.call_tool("fail", {"why": "never"})
    first, first_end, second, second_end = notes
    assert isinstance(first, CallStart)
    assert isinstance(first_end, CallEnd)
    assert (first.tool, first.arguments, first.caller) == ("add", {"a": 2}, "owner")
    assert first.client.startswith("mcp ")
    assert first.id != second.id
    assert (first_end.start, first_end.outcome, first_end.error) == (first, "ok", None)
    assert first_end.size == 1
    assert first_end.queue_seconds + first_end.run_seconds < first_end.seconds < TIMEOUT
    assert second_end.outcome == "error"
    assert "never" in second_end.error


async def test_a_call_that_its_kernel_takes_along_is_lost(sums, era):
    notes = Notes()
    async with (
        asked(sums, era, audit=notes) as (client, links),
        anyio.create_task_group() as t,
    ):

        async def call():
            await client.call_tool("forever", {})

        t.start_soon(call)
        while not notes:
            await anyio.lowlevel.checkpoint()
        links.end_calls()
    start, end = notes
    assert (end.start, end.outcome) == (start, "lost")
    assert "stopped" in end.error


async def test_the_end_says_how_long_the_call_waited_for_its_turn_and_ran(sums, era):
    notes = Notes()
    async with asked(sums, era, audit=notes) as (client, _), anyio.create_task_group() as t:
        with sums.busy():
            t.start_soon(client.call_tool, "add", {"a": 2})
            while not notes:
                await anyio.lowlevel.checkpoint()
            await client.list_resources()  # the kernel answers in order: it has the call now
            begin = anyio.current_time()
            await anyio.sleep(0.05)
            least = anyio.current_time() - begin
    end = notes[1]
    assert least <= end.queue_seconds < end.seconds
    assert 0 < end.run_seconds <= end.seconds - end.queue_seconds


async def test_a_stopped_call_is_not_an_error(sums, era):
    notes = Notes()
    async with asked(sums, era, audit=notes) as (client, _), anyio.create_task_group() as t:
        await client.call_tool("hurry", {})
        t.start_soon(client.call_tool, "forever", {})
        while len(notes) < 3:
            await anyio.lowlevel.checkpoint()
        t.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            while len(notes) < 4:
                await anyio.lowlevel.checkpoint()
    late, cancelled = notes[1], notes[3]
    assert late.outcome == "timed out"
    assert late.run_seconds >= 0.1
    assert cancelled.outcome == "cancelled"


async def test_the_times_of_a_call_are_unknown_if_its_kernel_is_of_an_older_version(tmp_path):
    notes = Notes()
    catalog = Catalog()
    async with (
        peer(tmp_path, welcome("add")) as old,
        Links(catalog) as links,
    ):
        await links.connect(old.record)
        server = make_server(catalog, links, audit=notes)
        async with Client(in_process(server)) as client, anyio.create_task_group() as t:
            t.start_soon(client.call_tool, "add", {})
            await old.called.wait()
            old.say(messages.Returned(id=1, content=[], is_error=True))
    end = notes[1]
    assert (end.outcome, end.queue_seconds, end.run_seconds) == ("error", None, None)


async def test_a_call_that_is_not_started_is_a_refusal(sums, era):
    notes = Notes()
    async with asked(sums, era, audit=notes) as (client, _):
        assert is_unknown(await client.call_tool("ad", {"a": 2}))
    (refusal,) = notes
    assert isinstance(refusal, CallRefusal)
    assert (refusal.tool, refusal.caller) == ("ad", "owner")
    assert "Unknown tool" in refusal.reason


async def test_a_guests_call_of_no_tool_is_told_only_to_notebooks_with_tools_for_it(tmp_path):
    def list_told(kernel):
        return [each.tool for each in kernel.heard if isinstance(each, messages.UnknownCall)]

    guest = Caller(name="guest", permissions=Permissions(tools=("add",)))
    catalog = Catalog()
    async with (
        peer(tmp_path, welcome("add")) as sales,
        peer(tmp_path, welcome(), name="costs") as costs,
        Links(catalog) as links,
    ):
        for each in (sales, costs):
            await links.connect(each.record)
        for caller, name in ((guest, "guess"), (OWNER, "typo")):
            server = make_server(catalog, links, default_caller=caller)
            async with Client(in_process(server)) as client:
                assert is_unknown(await client.call_tool(name, {}))
        with anyio.fail_after(TIMEOUT):
            while not all("typo" in list_told(each) for each in (sales, costs)):
                await anyio.lowlevel.checkpoint()
        assert (list_told(sales), list_told(costs)) == (["guess", "typo"], ["typo"])


@pytest.mark.parametrize("wrong", ["name", "arguments"])
async def test_no_value_is_in_a_refusal_as_it_may_be_a_secret_in_the_wrong_place(sums, era, wrong):
    notes = Notes()
    secret = {"password": "correct horse"}
    value = secret if wrong == "name" else json.dumps(secret)
    async with asked(sums, era, audit=notes, meta_tools=True) as (client, _):
        await client.call_tool(META_TOOLS[2], {"name": "add"} | {wrong: value})
    (refusal,) = notes
    assert f"`$.{wrong}`" in refusal.reason
    assert "horse" not in refusal.reason


async def test_a_call_that_comes_too_soon_is_a_refusal_and_so_is_one_too_many(sums, era):
    notes = Notes()
    limits = Limits(max_caller_calls=1, max_caller_calls_per_minute=2)
    async with (
        asked(sums, era, audit=notes, limits=limits) as (client, links),
        anyio.create_task_group() as t,
    ):
        t.start_soon(client.call_tool, "forever", {})
        while not notes:
            await anyio.lowlevel.checkpoint()
        results = [await client.call_tool("add", {"a": 1}) for _ in range(2)]
        links.end_calls()
    refusals = [note for note in notes if isinstance(note, CallRefusal)]
    assert [result.content[0].text for result in results] == [note.reason for note in refusals]
    assert "one caller can have 1 at a time" in refusals[0].reason
    assert "one caller may make 2 per minute" in refusals[1].reason
    assert (refusals[0].kernel, refusals[1].kernel) == (record_of(sums).id, None)


async def test_a_caller_gets_and_calls_only_what_it_may(sums, era):
    reader = Caller(name="reader", permissions=Permissions(read_only=True))
    notes = Notes()
    async with asked(sums, era, default_caller=reader, audit=notes, meta_tools=True) as (
        client,
        _,
    ):
        listed = [tool.name for tool in await list_tools(client)]
        assert listed == [*META_TOOLS, "add"]
        assert (await client.call_tool("add", {"a": 1})).content[0].text == "2"
        assert is_unknown(await client.call_tool("fail", {"why": ""}))
        text = (await client.call_tool(META_TOOLS[0], {})).content[0].text
        assert "add" in text
        assert "fail" not in text
        hidden = await client.call_tool(META_TOOLS[2], {"name": "fail", "arguments": {"why": ""}})
        assert hidden.is_error
    assert {note.caller for note in notes if not isinstance(note, CallEnd)} == {"reader"}


async def test_a_call_that_continues_none_is_a_refusal(sums):
    notes = Notes()
    async with asked(sums, "auto", audit=notes) as (client, _):
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.session.call_tool("add", {"a": 1}, request_state="made-up")
    (refusal,) = notes
    assert isinstance(refusal, CallRefusal)
    assert "requestState" in refusal.reason


def test_requests_that_differ_are_told_apart():
    same = identify_request("owner", "drop", arguments={"a": 1, "b": 2})
    assert identify_request("owner", "drop", arguments={"b": 2, "a": 1}) == same
    others = [
        identify_request("other", "drop", arguments={"a": 1, "b": 2}),
        identify_request("owner", "drop", arguments={"a": True, "b": 2}),
        identify_request("owner", "drop", arguments={"a": "\ud800"}),
    ]
    assert len({same, *others}) == 4
